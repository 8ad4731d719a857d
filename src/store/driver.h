/*
 * driver: what a database must be able to do for the store. Private to this room.
 *
 * A failing call fills *error and says in connection->loss whether running the whole body again may
 * end differently.
 */
#pragma once

#include "base/vec.h"
#include "store/store.h"

enum store_loss {
	STORE_LOSS_NONE,       /* a failure that stays */
	STORE_LOSS_RACE,       /* another transaction was first; or the connection broke before the
				  commit */
	STORE_LOSS_LOCK,       /* a lock was waited for in vain */
	STORE_LOSS_CONSTRAINT, /* a constraint: perhaps met by a row that the body couldn't see yet
				*/
};

struct store_migration {
	const char *name;
	const char *const *statements; /* ends with NULL */
};

/* One mode's counters; workers add to them at the same time. */
struct store_counters {
	_Atomic uint64_t committed, failed, retries, took_us;
	_Atomic uint64_t took[HISTOGRAM_BUCKETS];
};

/* What is known of writing. */
struct store_writes {
	_Atomic bool doubtful; /* one failed by the database, and no probe went well since */
	_Atomic bool probing;
	_Atomic bool locked; /* one waited in vain for others' lock, and none was done since */
};

struct store {
	const struct store_driver *driver;
	char *url;
	char lineage[STORE_LINEAGE_SIZE];
	int schema_version;
	int silence_ms;                  /* of a server: after so much it is given up */
	int lock_ms;                     /* so long a lock is waited for */
	_Atomic bool hurried;            /* store_hurry() */
	void *driver_state;              /* what the driver keeps while the store is open */
	struct store_counters *counters; /* by enum store_mode */
	struct store_writes *writes;
};

/* Each driver's connection begins with this. */
struct store_connection {
	const struct store_driver *driver;
	const struct store *store;
	struct wall now;
	enum store_loss loss;
	enum store_mode mode;
	int lock_ms;          /* so long this run's locks are waited for */
	char waited_for[256]; /* of STORE_LOSS_LOCK: the table, or a text with it; "": unknown */
	struct mono deadline; /* store_set_deadline() */
	bool inside;          /* a body is running */
	bool failed;          /* a statement of this transaction failed: it can only be undone */
	bool refused;         /* the last run's body said no of itself */
	bool to_blame;        /* store_is_to_blame() */
};

struct store_driver {
	const char *name;
	bool shared; /* any number of processes may have it open */

	/* Migrations, the first is version 1. */
	const struct store_migration *migrations;
	int migrations_count;

	/* A statement: 1 when the table schema_versions is there, else 0. */
	const char *has_schema;
	/* Statements, for all tables of the schema: (table, column, 1 for a number, place in the
	 * primary key from 1 or 0) in the columns' order; and (table, table it refers to). */
	const char *list_columns, *list_references;
	/* A statement: one text that names who of others than the control plane keeps a lock, or no row. $1 is
	 * `waited_for`, "" for any table of ours; $2 is 1 when it was wanted for writing. NULL: whoever keeps one is
	 * another. */
	const char *who_locks;

	/* Takes what belongs to the whole store, such as the lock on its file; `reading` takes none
	 * and makes nothing. */
	bool (*open)(struct store *store, bool reading, struct error *error);
	void (*close)(struct store *store);

	bool (*connect)(struct store *store, struct store_connection **ret_connection,
			struct error *error);
	void (*disconnect)(struct store_connection *connection);

	/* Begins a transaction and reads its time. */
	bool (*begin)(struct store_connection *connection, enum store_mode mode,
		      struct wall *ret_now, struct error *error);
	bool (*commit)(struct store_connection *connection, struct error *error);
	void (*rollback)(struct store_connection *connection);

	/* Keeps other processes from migrating until this connection ends. */
	bool (*lock_schema)(struct store_connection *connection, struct error *error);

	/* Copies the database as it is, before it is migrated from `version`; one that can't, where
	 * somebody has to ask for the migration, has none (NULL). */
	bool (*copy)(struct store_connection *connection, int version, struct error *error);

	/* Runs one statement; its rows are appended to `rows`. Without `rows` (NULL) it may only be
	 * on its way, and fail in what comes next. */
	bool (*run)(struct store_connection *connection, const char *sql,
		    const struct store_value *params, size_t count, struct store_rows *rows,
		    struct error *error);
	/* Has everything that is on its way been done? Before the commit; NULL: nothing ever is. */
	bool (*settle)(struct store_connection *connection, struct error *error);
};

extern const struct store_driver store_sqlite;
extern const struct store_driver store_postgres;

/* store_run(), which nobody counts and which is no sign of whether writes go well. (transaction.c) */
MUST_CHECK bool store_run_retried(struct store_connection *connection, enum store_mode mode,
				  store_body_fn *body, void *argument, struct error *error);
/* One try of it. */
MUST_CHECK bool store_run_once(struct store_connection *connection, enum store_mode mode,
			       store_body_fn *body, void *argument, struct error *error);
/* This run waited for a lock in vain. True: another than the control plane keeps it, and the wait was no short one, or
 * it is known already; says who, and that the next ones needn't wait long. Else it is a race. (writes.c) */
bool store_note_lock(struct store_connection *connection, enum store_mode mode,
		     struct error *error);
/* Was the lock that this run didn't get waited for as long as one is, but for a little that the deadline took off it?
 * (writes.c) */
bool store_waited_long(const struct store_connection *connection);
/* How long a lock is waited for, not beyond the deadline. While one is known to be kept from us all writers would do
 * nothing else, and those who only read would find nobody to work for them. (writes.c) */
#define STORE_LOCKED_MS 250
int store_lock_ms(const struct store_connection *connection, enum store_mode mode);
/* The last run of this mode failed: what it says about later ones. (writes.c) */
void store_note_failure(struct store_connection *connection, enum store_mode mode,
			const struct error *error);

/* Is the deadline over? */
bool store_is_late(const struct store_connection *connection);

/* Opens without looking at the schema. */
MUST_CHECK bool store_create(const char *url, bool reading, struct store **ret_store,
			     struct error *error);
/* Looks at the schema, and migrates it where that is allowed; reads the lineage. (schema.c) */
MUST_CHECK bool store_bring_up(struct store *store, enum store_migrate migrate,
			       struct error *error);
/* Inside a body: the schema's version, 0 for none; and its migrations after `from` up to `to`. */
MUST_CHECK bool store_schema_read(struct store_connection *connection, int *ret_version,
				  struct error *error);
MUST_CHECK bool store_schema_raise(struct store_connection *connection, int from, int to,
				   struct error *error);

/* The two schemas grow together: one version, two texts. */
extern const struct store_migration store_sqlite_migrations[STORE_MIGRATIONS];
extern const struct store_migration store_postgres_migrations[STORE_MIGRATIONS];

/* For drivers: rows are built cell by cell, row after row. */
MUST_CHECK bool store_rows_start(struct store_rows *rows, size_t columns, struct error *error);
void store_rows_add_null(struct store_rows *rows);
void store_rows_add_int(struct store_rows *rows, int64_t number);
MUST_CHECK bool store_rows_add_text(struct store_rows *rows, const char *text, size_t length,
				    struct error *error);

/* Statements are told apart by their text. */
uint64_t store_sql_hash(const char *sql);
