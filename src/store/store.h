/*
 * store: the database, one SQL text for SQLite and PostgreSQL.
 *
 * Owns      the schema and its migrations, transactions, and what "now" is inside one.
 * SQL       parameters are $1 ... $n, integers are milliseconds or counts, ids and JSON are text,
 *           truth is 0 or 1; no function or type that only one database knows.
 * Retry     a control function is one store_run() body. When the database says that it lost a race
 *           (BUSY, serialization failure, a constraint that another transaction met first) the
 *           whole body runs again from a fresh transaction: it must be pure over the rows it loads
 *           and over its argument, and give away its results only through what it overwrites.
 * Time      store_now() is read once per transaction: with PostgreSQL the server's clock, so that
 *           replicas agree, and once a writer has its turn, so that it grows from commit to commit;
 *           with SQLite sys/clock, so that it is simulated in the simulation.
 * Threads   a struct store is shared by all; a connection belongs to one thread at a time. Every
 *           call blocks: on workers only.
 * Source    SQLite 3.40 (WAL, synced by the store, foreign_keys=ON, STRICT), PostgreSQL 15
 *           (SERIALIZABLE, prepared statements).
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/histogram.h"

struct store;
struct store_connection;

/* Sizes: a statement's answer, and one text in it. Passing them is RESOURCES_EXHAUSTED. */
#define STORE_MAX_ROWS 1000000
#define STORE_MAX_TEXT ((size_t)16 << 20)

/*
 * Opens a database and brings its schema up to date.
 *
 *   sqlite:PATH         a file, made if absent (0600). One process at a time: a second one is
 *                       refused with CONFLICT by a lock on "PATH.lock".
 *   sqlite::memory:     gone with the store; for tests and the simulation.
 *   postgresql://...    or a libpq conninfo ("host=... dbname=..."); any number of processes. The
 *                       schema is the connection's first in search_path.
 *
 * A schema newer than this program: INVALID_STATE. Messages never hold a password.
 */
MUST_CHECK bool store_open(const char *url, struct store **ret_store, struct error *error);

/* What becomes of a database whose schema is older than this program's. */
enum store_migrate {
	STORE_MIGRATE,       /* brought up to date; store_open() does so */
	STORE_MIGRATE_ASKED, /* SQLite's too; PostgreSQL's is INVALID_STATE: nobody copied it */
	STORE_MIGRATE_NEVER, /* it is only read, as it is: no lock is taken, nothing is written */
};
/* Before an older SQLite file is migrated it is copied to "PATH.schema-N", N its schema: whole, or
 * the migration doesn't begin. With STORE_MIGRATE_NEVER a database that isn't there is NOT_FOUND. */
MUST_CHECK bool store_open_as(const char *url, enum store_migrate migrate, struct store **ret_store,
			      struct error *error);
void store_destroy(struct store *store); /* takes NULL; after its connections */

/* "sqlite" or "postgresql". */
const char *store_driver(const struct store *store);

/* The highest migration that is applied: STORE_MIGRATIONS once it is open. */
#define STORE_MIGRATIONS 9
int store_schema_version(const struct store *store);

/* Another connection, for one more worker. */
MUST_CHECK bool store_connect(struct store *store, struct store_connection **ret_connection,
			      struct error *error);
void store_disconnect(struct store_connection *connection); /* takes NULL */

/* Whoever stops waits for no silent server: a statement under way is given up after this much
 * silence, and a lost server isn't connected to again. From any thread; it stays so. */
#define STORE_HURRIED_MS 2000
void store_hurry(struct store *store);

/* A run that isn't done by then is UNAVAILABLE: a server that says nothing is given up, what lost a
 * race isn't run again, and nothing begins. Holds until it is set anew; `{0}`: no end. A lost server
 * may be connected to for longer, by its connect_timeout. */
void store_set_deadline(struct store_connection *connection, struct mono deadline);

/* --- transactions --- */

enum store_mode {
	STORE_READ,  /* one snapshot; writing in it is a bug */
	STORE_WRITE, /* serializable */
};

/* What runs inside. False with *error set undoes everything. */
typedef bool store_body_fn(struct store_connection *connection, void *argument,
			   struct error *error);

/*
 * Runs `body` in one transaction and commits. True: committed, and durable. False: nothing of it
 * happened, but for UNAVAILABLE, when the connection broke during the commit and it may have; or when
 * the disk didn't keep SQLite's journal: then all is UNAVAILABLE until it is opened anew.
 * A lost race is tried again STORE_MAX_TRIES times, then is UNAVAILABLE.
 */
#define STORE_MAX_TRIES 40
MUST_CHECK bool store_run(struct store_connection *connection, enum store_mode mode,
			  store_body_fn *body, void *argument, struct error *error);

/* Did the last run fail by the database rather than by what its body says? Then the error speaks of
 * hosts, users and statements, which isn't for whoever asked. */
bool store_is_to_blame(const struct store_connection *connection);

/* Did the last run fail since somebody else keeps a lock (a session that was left open, another program that has
 * SQLite's file)? It isn't tried again then, and nothing of it happened. */
bool store_is_locked(const struct store_connection *connection);

/*
 * Can the database be written, as far as is known? Not asked of one whose writes go well. Once a write failed by
 * the database, lost races aside (a full disk, a server that only reads, a lock that others keep), something is written and removed each
 * time this is asked, until that goes well: STORE_PROBE_SIZE bytes, since a little finds room on a full disk, too.
 * UNAVAILABLE with what is for everybody to read. Outside of a body.
 */
#define STORE_PROBE_SIZE ((size_t)256 << 10)
MUST_CHECK bool store_check_writes(struct store_connection *connection, struct error *error);

/* This transaction's time. Only inside a body. */
struct wall store_now(const struct store_connection *connection);

/* What the transactions of one mode took, since the store was opened; any thread. */
struct store_stats {
	uint64_t committed, failed;
	uint64_t retries; /* runs that lost a race and were followed by another */
	struct histogram took;
};
void store_stats_read(const struct store *store, enum store_mode mode,
		      struct store_stats *ret_stats);

/* Who this database is: an id, made with it. Restoring a backup gives it a new one, so that
 * numbers handed out before are not compared with numbers handed out after. */
#define STORE_LINEAGE_SIZE 40
const char *store_lineage(const struct store *store);
const char *store_connection_lineage(const struct store_connection *connection);

/* --- statements; only inside a body --- */

enum store_kind {
	STORE_NULL_INT,
	STORE_NULL_TEXT,
	STORE_INT,
	STORE_TEXT,
};

struct store_value {
	enum store_kind kind;
	int64_t number;
	const char *text; /* borrowed for the call */
};

static inline struct store_value store_int(int64_t number)
{
	return (struct store_value){STORE_INT, number, NULL};
}

/* A NULL pointer is SQL's NULL. */
static inline struct store_value store_text(const char *text)
{
	return (struct store_value){text ? STORE_TEXT : STORE_NULL_TEXT, 0, text};
}

static inline struct store_value store_null_int(void)
{
	return (struct store_value){STORE_NULL_INT, 0, NULL};
}

/* The parameters of a statement: store_exec(c, sql, STORE_PARAMS(store_text(id)), &error). */
#define STORE_PARAMS(...)                                                                          \
	(const struct store_value[]){__VA_ARGS__},                                                 \
		sizeof((const struct store_value[]){__VA_ARGS__}) / sizeof(struct store_value)
#define STORE_NO_PARAMS NULL, 0

/* `sql` is a constant text: statements are prepared once per connection and kept. PostgreSQL's may
 * only be on their way then, and fail as the next statement that answers, or as the whole body. */
MUST_CHECK bool store_exec(struct store_connection *connection, const char *sql,
			   const struct store_value *params, size_t count, struct error *error);

/* All rows of an answer. `{0}` is empty; clean up with CLEANUP(store_rows). */
struct store_rows {
	size_t count, columns;
	struct store_cell *cells; /* private, as the rest */
	size_t cells_count, cells_capacity;
	struct buf texts;
};

MUST_CHECK bool store_query(struct store_connection *connection, const char *sql,
			    const struct store_value *params, size_t count,
			    struct store_rows *ret_rows, struct error *error);
void store_rows_deinit(struct store_rows *rows);

bool store_is_null(const struct store_rows *rows, size_t row, size_t column);
int64_t store_get_int(const struct store_rows *rows, size_t row, size_t column); /* NULL: 0 */
const char *store_get_text(const struct store_rows *rows, size_t row,
			   size_t column); /* NULL: NULL; valid until the rows are gone */

static inline void store_rows_cleanup(struct store_rows *rows)
{
	store_rows_deinit(rows);
}
