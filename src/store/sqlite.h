/*
 * sqlite: what the parts of the SQLite driver share. Private to this room.
 *
 *   sqlite_link.c     an open file and the statements that were prepared on it
 *   sqlite_journal.c  the journal: synced before anybody hears of a commit, moved into the file beside the writers
 *   sqlite_writer.c   one writes at a time
 *   sqlite.c          the driver: files, transactions, connections, the copy before a migration
 *
 * Threads   a link belongs to one thread at a time; the store's `guard` and `writer` say which fields are under which.
 */
#pragma once

#include "store/driver.h"

#include <pthread.h>
#include <sqlite3.h>

/* How long a statement waits for another connection's transaction before it counts as lost. */
#define SQLITE_BUSY_TIMEOUT_MS 10000
#define SQLITE_MAX_PATH        4096
#define SQLITE_MAX_PARAMS      32

struct sqlite_statement {
	const char *
		given; /* where its text stood when it was prepared: mostly it stands there again */
	uint64_t hash;
	char *sql;
	sqlite3_stmt *handle;
	uint8_t places[SQLITE_MAX_PARAMS]; /* of "$1", "$2", ...: to SQLite they are names */
};

/* An open file and what was prepared on it. */
struct sqlite_link {
	sqlite3 *handle;
	VEC(struct sqlite_statement) statements;
};

struct sqlite_connection {
	struct store_connection base; /* first */
	struct sqlite_link own;       /* reads */
	struct sqlite_link *link;     /* of this transaction: its own, or the store's to write */
};

/* What the store keeps: the lock on its file, or the connection that keeps the memory alive. */
struct sqlite_store {
	char file[SQLITE_MAX_PATH]; /* path, or the shared memory's name as a URI */
	bool memory;
	struct durable_lock *lock;
	sqlite3 *keeper;

	/* One writes at a time, all through this link: what it has read of the file stays true. */
	pthread_mutex_t writer;
	struct sqlite_link writing;

	int journal; /* to sync it by; -1: not open yet; whose turn it is to sync */

	pthread_mutex_t guard; /* of what follows */
	pthread_cond_t synced_more;
	uint64_t committed, synced; /* transactions: in the journal, and on the disk */
	bool committing;            /* one more, which readers may see before it is counted */
	bool syncing;
	bool broken; /* a sync failed: what is on the disk nobody knows any more */

	pthread_t mover; /* of the journal into the file */
	bool moves;      /* it runs */
	struct sqlite_link moving;
	pthread_cond_t journal_grew;
	int journal_pages, journal_limit;
	bool stopping;
};

static inline struct sqlite_connection *sqlite_of(struct store_connection *connection)
{
	return (struct sqlite_connection *)connection;
}

static inline struct sqlite_store *sqlite_state_of(const struct store_connection *connection)
{
	return connection->store->driver_state;
}

/* --- links (sqlite_link.c) --- */

MUST_CHECK bool sqlite_open_handle(const struct sqlite_store *state, sqlite3 **ret_handle,
				   struct error *error);
MUST_CHECK bool sqlite_open_link(const struct sqlite_store *state, struct sqlite_link *link,
				 struct error *error);
void sqlite_close_link(struct sqlite_link *link); /* takes one that was never opened */
MUST_CHECK bool sqlite_set_pragma(const struct sqlite_link *link, const char *sql,
				  struct error *error);
/* What a result of SQLite is to whoever asked. */
enum error_code sqlite_code(int result);

/* One statement on the connection's link, prepared the first time; driver.h's `run`. */
MUST_CHECK bool sqlite_run(struct store_connection *base, const char *sql,
			   const struct store_value *params, size_t count, struct store_rows *rows,
			   struct error *error);

/* --- the journal (sqlite_journal.c) --- */

/* Moves it into the file by a thread of its own, from now until it is stopped. */
MUST_CHECK bool sqlite_start_mover(struct sqlite_store *state, struct error *error);
void sqlite_stop_mover(struct sqlite_store *state); /* takes a store whose mover never ran */

/* COMMIT of the writer's transaction into the journal; its number is what sqlite_wait_synced() waits for. */
MUST_CHECK bool sqlite_commit_write(struct store_connection *base, uint64_t *ret_number,
				    struct error *error);
/* All that a reader can have seen. */
uint64_t sqlite_count_seen(struct sqlite_store *state);
MUST_CHECK bool sqlite_wait_synced(struct sqlite_store *state, uint64_t wanted,
				   struct error *error);
/* False with UNAVAILABLE once a sync failed. */
MUST_CHECK bool sqlite_is_sound(struct sqlite_store *state, struct error *error);

/* --- the writer (sqlite_writer.c) --- */

/* Waits for its turn; the connection's link is the writer's until it leaves. */
MUST_CHECK bool sqlite_enter_writing(struct store_connection *base, struct error *error);
void sqlite_leave_writing(struct store_connection *base); /* takes one that didn't enter */
