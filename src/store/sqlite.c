#include "store/driver.h"

#include "sys/clock.h"
#include "sys/durable.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* How long a statement waits for another connection's transaction before it counts as lost. */
#define BUSY_TIMEOUT_MS 10000
#define MAX_PATH        4096

struct sqlite_statement {
	uint64_t hash;
	char *sql;
	sqlite3_stmt *handle;
};

struct sqlite_connection {
	struct store_connection base; /* first */
	sqlite3 *handle;
	bool writes; /* has the store's writer lock */
	VEC(struct sqlite_statement) statements;
};

/* What the store keeps: the lock on its file, or the connection that keeps the memory alive. */
struct sqlite_store {
	char file[MAX_PATH]; /* path, or the shared memory's name as a URI */
	bool memory;
	struct durable_lock *lock;
	sqlite3 *keeper;

	pthread_mutex_t writer; /* held by the one that writes */
	pthread_mutex_t guard;  /* of what follows */
	pthread_cond_t synced_more;
	uint64_t committed, synced; /* transactions: in the journal, and on the disk */
	bool syncing;
};

static struct sqlite_connection *of(struct store_connection *connection)
{
	return (struct sqlite_connection *)connection;
}

static bool is_race(int result)
{
	int primary = result & 0xff;

	return primary == SQLITE_BUSY || primary == SQLITE_LOCKED;
}

/* The bookings' triggers and the schema's constraints speak through these two. */
static enum error_code code_of(int result)
{
	switch (result & 0xff) {
	case SQLITE_CONSTRAINT:
		return ERROR_CONFLICT;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_FULL: /* the disk is our matter, not what was asked for: it may be tried again */
		return ERROR_UNAVAILABLE;
	case SQLITE_NOTADB:
	case SQLITE_CANTOPEN:
		return ERROR_INVALID_CONFIG;
	default:
		return ERROR_INTERNAL;
	}
}

static struct sqlite_store *state_of(const struct store_connection *connection)
{
	return connection->store->driver_state;
}

static bool failure(struct sqlite_connection *connection, const char *doing, struct error *error)
{
	int result = sqlite3_extended_errcode(connection->handle);

	if (is_race(result))
		connection->base.loss = STORE_LOSS_RACE;
	return error_set(error, code_of(result), "%s: %s", doing,
			 sqlite3_errmsg(connection->handle));
}

/* --- the store --- */

static bool open_handle(const struct sqlite_store *state, sqlite3 **ret_handle, struct error *error)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
		    (state->memory ? SQLITE_OPEN_URI | SQLITE_OPEN_CREATE : 0);
	sqlite3 *handle = NULL;

	if (sqlite3_open_v2(state->file, &handle, flags, NULL) == SQLITE_OK) {
		*ret_handle = handle;
		return true;
	}
	error_set(error, ERROR_INVALID_CONFIG, "open '%s': %s", state->file,
		  handle ? sqlite3_errmsg(handle) : "out of memory");
	sqlite3_close(handle);
	return false;
}

/* The file is made here so that nobody else can read it, its journal included. */
static bool prepare_file(struct sqlite_store *state, const char *path, struct error *error)
{
	char lock_path[MAX_PATH + 8];
	struct error exists;

	if (!str_copy(state->file, sizeof state->file, path))
		return error_set(error, ERROR_INVALID_CONFIG, "path: over %d bytes", MAX_PATH - 1);
	snprintf(lock_path, sizeof lock_path, "%s.lock", path);
	if (!durable_lock_take(lock_path, &state->lock, error))
		return error_wrap(error, "lock '%s'", path);
	/* SQLite takes an empty file for a new database. */
	if (!durable_create(path, "", 0, 0600, &exists) && exists.code != ERROR_CONFLICT) {
		*error = exists;
		return false;
	}
	return true;
}

/* A reader takes no lock: WAL lets it look while the owner writes. */
static bool find_file(struct sqlite_store *state, const char *path, struct error *error)
{
	if (!str_copy(state->file, sizeof state->file, path))
		return error_set(error, ERROR_INVALID_CONFIG, "path: over %d bytes", MAX_PATH - 1);
	return durable_stamp(path).exists ||
	       error_set(error, ERROR_NOT_FOUND, "'%s' is not there", path);
}

static void sqlite_close(struct store *store)
{
	struct sqlite_store *state = store->driver_state;

	if (!state)
		return;
	sqlite3_close(state->keeper);
	durable_lock_destroy(state->lock);
	pthread_mutex_destroy(&state->writer);
	pthread_mutex_destroy(&state->guard);
	pthread_cond_destroy(&state->synced_more);
	free(state);
	store->driver_state = NULL;
}

static bool sqlite_open(struct store *store, bool reading, struct error *error)
{
	const char *path = store->url + strlen("sqlite:");
	struct sqlite_store *state = mem_alloc(sizeof *state);

	pthread_mutex_init(&state->writer, NULL);
	pthread_mutex_init(&state->guard, NULL);
	pthread_cond_init(&state->synced_more, NULL);
	store->driver_state = state;
	if (*path == '\0')
		return error_set(error, ERROR_INVALID_CONFIG, "'sqlite:' needs a path");
	if (!str_equal(path, ":memory:"))
		return reading ? find_file(state, path, error) : prepare_file(state, path, error);
	/* The name is the store's own, so that two stores in one process stay apart. */
	state->memory = true;
	snprintf(state->file, sizeof state->file, "file:/store-%p?vfs=memdb", (void *)state);
	return open_handle(state, &state->keeper, error);
}

/* --- statements --- */

static bool prepare(struct sqlite_connection *connection, const char *sql,
		    sqlite3_stmt **ret_handle, struct error *error)
{
	uint64_t hash = store_sql_hash(sql);
	sqlite3_stmt *handle;
	struct sqlite_statement *statement;

	for (size_t i = 0; i < connection->statements.count; i++) {
		statement = &connection->statements.items[i];
		if (statement->hash == hash && str_equal(statement->sql, sql)) {
			*ret_handle = statement->handle;
			return true;
		}
	}
	if (sqlite3_prepare_v3(connection->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &handle,
			       NULL) != SQLITE_OK)
		return failure(connection, "prepare", error);
	statement = vec_push(&connection->statements);
	*statement = (struct sqlite_statement){hash, mem_strdup(sql), handle};
	*ret_handle = handle;
	return true;
}

/* "$3" is a name to SQLite, numbered by where it first stands: so each is looked up. */
static void bind(sqlite3_stmt *handle, const struct store_value *params, size_t count)
{
	char name[24];

	for (size_t i = 0; i < count; i++) {
		const struct store_value *value = &params[i];
		int at;

		snprintf(name, sizeof name, "$%zu", i + 1);
		at = sqlite3_bind_parameter_index(handle, name);
		assert(at > 0);
		switch (value->kind) {
		case STORE_NULL_INT:
		case STORE_NULL_TEXT:
			sqlite3_bind_null(handle, at);
			break;
		case STORE_INT:
			sqlite3_bind_int64(handle, at, value->number);
			break;
		case STORE_TEXT:
			sqlite3_bind_text(handle, at, value->text, -1, SQLITE_STATIC);
			break;
		}
	}
}

static bool add_row(sqlite3_stmt *handle, struct store_rows *rows, struct error *error)
{
	int columns = sqlite3_column_count(handle);

	if (!store_rows_start(rows, (size_t)columns, error))
		return false;
	for (int i = 0; i < columns; i++) {
		int type = sqlite3_column_type(handle, i);

		if (type == SQLITE_NULL)
			store_rows_add_null(rows);
		else if (type == SQLITE_INTEGER)
			store_rows_add_int(rows, sqlite3_column_int64(handle, i));
		else if (!store_rows_add_text(rows, (const char *)sqlite3_column_text(handle, i),
					      (size_t)sqlite3_column_bytes(handle, i), error))
			return false;
	}
	return true;
}

static bool sqlite_run(struct store_connection *base, const char *sql,
		       const struct store_value *params, size_t count, struct store_rows *rows,
		       struct error *error)
{
	struct sqlite_connection *connection = of(base);
	sqlite3_stmt *handle;
	bool done = true;
	int result;

	if (!prepare(connection, sql, &handle, error))
		return false;
	assert((size_t)sqlite3_bind_parameter_count(handle) == count);
	bind(handle, params, count);
	while ((result = sqlite3_step(handle)) == SQLITE_ROW) {
		done = !rows || add_row(handle, rows, error);
		if (!done)
			break;
	}
	if (done && result != SQLITE_DONE)
		done = failure(connection, "run a statement", error);
	if (done)
		base->changed = sqlite3_changes64(connection->handle);
	sqlite3_reset(handle);
	sqlite3_clear_bindings(handle);
	return done;
}

/* --- transactions --- */

static bool run_plain(struct sqlite_connection *connection, const char *sql, struct error *error)
{
	if (sqlite3_exec(connection->handle, sql, NULL, NULL, NULL) == SQLITE_OK)
		return true;
	return failure(connection, sql, error);
}

/*
 * Writers queue here rather than in SQLite, whose losers sleep and look again. A memory has one
 * thread.
 */
static bool lock_writer(struct store_connection *base, struct error *error)
{
	struct sqlite_store *state = state_of(base);
	struct timespec until;

	if (state->memory)
		return true;
	if (clock_gettime(CLOCK_REALTIME, &until) != 0)
		abort();
	until.tv_sec += BUSY_TIMEOUT_MS / 1000;
	if (pthread_mutex_timedlock(&state->writer, &until) == 0) {
		of(base)->writes = true;
		return true;
	}
	base->loss = STORE_LOSS_RACE;
	return error_set(error, ERROR_UNAVAILABLE, "another transaction takes over %d s",
			 BUSY_TIMEOUT_MS / 1000);
}

static void unlock_writer(struct store_connection *base)
{
	if (!of(base)->writes)
		return;
	of(base)->writes = false;
	pthread_mutex_unlock(&state_of(base)->writer);
}

static bool sync_journal(const struct sqlite_store *state, struct error *error)
{
	char path[MAX_PATH + 8];
	bool done;
	int fd;

	snprintf(path, sizeof path, "%s-wal", state->file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) /* gone: SQLite has moved all of it into the file, and synced that */
		return errno == ENOENT || error_os(error, "open '%s'", path);
	done = fdatasync(fd) == 0 || error_os(error, "sync '%s'", path);
	close(fd);
	return done;
}

/*
 * Waits until the first `wanted` transactions are on the disk. One of those who wait syncs for all
 * that committed before it began, so that many at a time cost one sync. Whoever only reads waits
 * too: what it tells must not be undone by a power cut.
 */
static bool wait_synced(struct sqlite_store *state, uint64_t wanted, struct error *error)
{
	bool done = true;

	pthread_mutex_lock(&state->guard);
	while (done && state->synced < wanted) {
		uint64_t covers = state->committed;

		if (state->syncing) {
			pthread_cond_wait(&state->synced_more, &state->guard);
			continue;
		}
		state->syncing = true;
		pthread_mutex_unlock(&state->guard);
		done = sync_journal(state, error);
		pthread_mutex_lock(&state->guard);
		state->syncing = false;
		if (done)
			state->synced = covers;
		pthread_cond_broadcast(&state->synced_more);
	}
	pthread_mutex_unlock(&state->guard);
	return done;
}

static uint64_t count_committed(struct sqlite_store *state, bool one_more)
{
	uint64_t committed;

	pthread_mutex_lock(&state->guard);
	state->committed += one_more;
	committed = state->committed;
	pthread_mutex_unlock(&state->guard);
	return committed;
}

static bool sqlite_begin(struct store_connection *base, enum store_mode mode, struct wall *ret_now,
			 struct error *error)
{
	/* A writer takes its place at once: it never finds out half-way that it has to start over.
	 */
	if (mode == STORE_WRITE && !lock_writer(base, error))
		return false;
	if (!run_plain(of(base), mode == STORE_WRITE ? "BEGIN IMMEDIATE" : "BEGIN", error)) {
		unlock_writer(base);
		return false;
	}
	*ret_now = clock_wall();
	return true;
}

static bool sqlite_commit(struct store_connection *base, struct error *error)
{
	struct sqlite_store *state = state_of(base);
	uint64_t wanted;

	if (!run_plain(of(base), "COMMIT", error))
		return false;
	if (state->memory)
		return true;
	wanted = count_committed(state, base->mode == STORE_WRITE);
	unlock_writer(base);
	if (wait_synced(state, wanted, error))
		return true;
	/* Whether it survives, nobody knows: running it again might do it twice. */
	base->loss = STORE_LOSS_NONE;
	error->code = ERROR_UNAVAILABLE;
	return false;
}

static void sqlite_rollback(struct store_connection *base)
{
	/* Some failures have rolled back already. */
	if (!sqlite3_get_autocommit(of(base)->handle))
		sqlite3_exec(of(base)->handle, "ROLLBACK", NULL, NULL, NULL);
	unlock_writer(base);
}

static bool sqlite_lock_schema(struct store_connection *base, struct error *error)
{
	(void)base;
	(void)error;
	return true; /* BEGIN IMMEDIATE and the file's lock keep everybody else out */
}

/* --- connections --- */

static void sqlite_disconnect(struct store_connection *base)
{
	struct sqlite_connection *connection = of(base);

	vec_each (&connection->statements, struct sqlite_statement * statement) {
		sqlite3_finalize(statement->handle);
		free(statement->sql);
	}
	vec_deinit(&connection->statements);
	sqlite3_close(connection->handle);
	free(connection);
}

static bool sqlite_connect(struct store *store, struct store_connection **ret_connection,
			   struct error *error)
{
	const struct sqlite_store *state = store->driver_state;
	struct sqlite_connection *connection = mem_alloc(sizeof *connection);

	if (!open_handle(state, &connection->handle, error)) {
		free(connection);
		return false;
	}
	sqlite3_busy_timeout(connection->handle, BUSY_TIMEOUT_MS);
	if (!run_plain(connection, "PRAGMA foreign_keys = ON", error) ||
	    !run_plain(connection, "PRAGMA trusted_schema = OFF", error) ||
	    /* Commits are synced by wait_synced(); SQLite itself syncs around its checkpoints. */
	    !run_plain(connection, "PRAGMA synchronous = NORMAL", error) ||
	    (!state->memory && !run_plain(connection, "PRAGMA journal_mode = WAL", error))) {
		sqlite_disconnect(&connection->base);
		return false;
	}
	*ret_connection = &connection->base;
	return true;
}

/* --- the copy before a migration --- */

static bool copy_into(struct sqlite_connection *from, sqlite3 *to, struct error *error)
{
	sqlite3_backup *backup = sqlite3_backup_init(to, "main", from->handle, "main");

	if (!backup)
		return error_set(error, ERROR_INTERNAL, "begin: %s", sqlite3_errmsg(to));
	(void)sqlite3_backup_step(backup, -1);
	if (sqlite3_backup_finish(backup) != SQLITE_OK)
		return error_set(error, code_of(sqlite3_errcode(to)), "%s", sqlite3_errmsg(to));
	return true;
}

/* Into a file beside it that only then gets its name, in place of an older one. */
static bool sqlite_copy(struct store_connection *base, int version, struct error *error)
{
	const struct sqlite_store *state = base->store->driver_state;
	char path[MAX_PATH + 32], half[MAX_PATH + 48];
	sqlite3 *to = NULL;
	bool done;

	if (state->memory)
		return true;
	snprintf(path, sizeof path, "%s.schema-%d", state->file, version);
	snprintf(half, sizeof half, "%s.half", path);
	if (!durable_replace(half, "", 0, 0600, error))
		return false;
	done = sqlite3_open_v2(half, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) ==
		       SQLITE_OK ||
	       error_set(error, ERROR_INTERNAL, "open '%s': %s", half, sqlite3_errmsg(to));
	/* A copy is one file: no journal of its own is left beside it. */
	done = done && copy_into(of(base), to, error) &&
	       (sqlite3_exec(to, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL) == SQLITE_OK ||
		error_set(error, ERROR_INTERNAL, "'%s': %s", half, sqlite3_errmsg(to)));
	sqlite3_close(to);
	return done && durable_rename(half, path, error);
}

const struct store_driver store_sqlite = {
	.name = "sqlite",
	.migrations = store_sqlite_migrations,
	.migrations_count = STORE_MIGRATIONS,
	.has_schema = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = "
		      "'schema_versions'",
	.list_columns = "SELECT t.name, c.name, c.type = 'INTEGER', c.pk FROM sqlite_master t, "
			"pragma_table_info(t.name) c WHERE t.type = 'table' ORDER BY t.name, c.cid",
	.list_references = "SELECT t.name, r.\"table\" FROM sqlite_master t, "
			   "pragma_foreign_key_list(t.name) r WHERE t.type = 'table'",
	.open = sqlite_open,
	.close = sqlite_close,
	.connect = sqlite_connect,
	.disconnect = sqlite_disconnect,
	.begin = sqlite_begin,
	.commit = sqlite_commit,
	.rollback = sqlite_rollback,
	.lock_schema = sqlite_lock_schema,
	.copy = sqlite_copy,
	.run = sqlite_run,
};
