#include "store/sqlite.h"

#include "sys/clock.h"
#include "sys/durable.h"

#include <stdio.h>
#include <unistd.h>

/* --- the file --- */

/* The file is made here so that nobody else can read it, its journal included. */
static bool prepare_file(struct sqlite_store *state, const char *path, struct error *error)
{
	char lock_path[SQLITE_MAX_PATH + 8];
	struct error exists;

	if (!str_copy(state->file, sizeof state->file, path))
		return error_set(error, ERROR_INVALID_CONFIG, "path: over %d bytes",
				 SQLITE_MAX_PATH - 1);
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
		return error_set(error, ERROR_INVALID_CONFIG, "path: over %d bytes",
				 SQLITE_MAX_PATH - 1);
	return durable_stamp(path).exists ||
	       error_set(error, ERROR_NOT_FOUND, "'%s' is not there", path);
}

/* --- transactions --- */

/* Ours queue elsewhere: this one is another program's, which the lock beside the file doesn't keep away. */
static void refuse_locked(struct store_connection *base, struct error *error)
{
	const char *file = sqlite_state_of(base)->file;

	base->loss = STORE_LOSS_LOCK;
	/* The next of ours is let in before anybody looks at this loss, and shall wait no longer. */
	if (store_waited_long(base))
		base->store->writes->locked = true;
	error_set(error, ERROR_UNAVAILABLE,
		  "another program keeps '%s' locked ('fuser -v' on it says which)", file);
}

static bool sqlite_begin(struct store_connection *base, enum store_mode mode, struct wall *ret_now,
			 struct error *error)
{
	/* A writer takes its place at once: it never finds out half-way that it has to start over.
	 */
	if (mode == STORE_WRITE &&
	    (!sqlite_is_sound(sqlite_state_of(base), error) || !sqlite_enter_writing(base, error)))
		return false;
	if (!sqlite_run(base, mode == STORE_WRITE ? "BEGIN IMMEDIATE" : "BEGIN", NULL, 0, NULL,
			error)) {
		if (mode == STORE_WRITE && base->loss == STORE_LOSS_RACE)
			refuse_locked(base, error);
		sqlite_leave_writing(base);
		return false;
	}
	*ret_now = clock_wall();
	return true;
}

static bool sqlite_commit(struct store_connection *base, struct error *error)
{
	struct sqlite_store *state = sqlite_state_of(base);
	uint64_t wanted;

	if (base->mode == STORE_WRITE) {
		if (!sqlite_commit_write(base, &wanted, error))
			return false;
	} else {
		if (!sqlite_run(base, "COMMIT", NULL, 0, NULL, error))
			return false;
		wanted = sqlite_count_seen(state);
	}
	sqlite_leave_writing(base);
	if (state->memory || sqlite_wait_synced(state, wanted, error))
		return true;
	/* Whether it survives, nobody knows: running it again might do it twice. */
	base->loss = STORE_LOSS_NONE;
	error->code = ERROR_UNAVAILABLE;
	return false;
}

static void sqlite_rollback(struct store_connection *base)
{
	sqlite3 *handle = sqlite_of(base)->link->handle;

	/* Some failures have rolled back already. */
	if (!sqlite3_get_autocommit(handle))
		sqlite3_exec(handle, "ROLLBACK", NULL, NULL, NULL);
	sqlite_leave_writing(base);
}

static bool sqlite_lock_schema(struct store_connection *base, struct error *error)
{
	(void)base;
	(void)error;
	return true; /* BEGIN IMMEDIATE and the file's lock keep everybody else out */
}

/* --- life --- */

static void sqlite_close(struct store *store)
{
	struct sqlite_store *state = store->driver_state;

	if (!state)
		return;
	sqlite_stop_mover(state);
	sqlite_close_link(&state->writing);
	if (state->journal >= 0)
		close(state->journal);
	sqlite3_close(state->keeper);
	durable_lock_destroy(state->lock);
	pthread_mutex_destroy(&state->writer);
	pthread_mutex_destroy(&state->guard);
	pthread_cond_destroy(&state->synced_more);
	pthread_cond_destroy(&state->journal_grew);
	free(state);
	store->driver_state = NULL;
}

/* SQLite's own counting of its memory takes one lock for all threads, and nobody reads it. */
static void configure(void)
{
	(void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

static bool sqlite_open(struct store *store, bool reading, struct error *error)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const char *path = store->url + strlen("sqlite:");
	struct sqlite_store *state = mem_alloc(sizeof *state);

	pthread_once(&once, configure);
	store->lock_ms = SQLITE_BUSY_TIMEOUT_MS;
	state->journal = -1;
	pthread_mutex_init(&state->writer, NULL);
	pthread_mutex_init(&state->guard, NULL);
	pthread_cond_init(&state->synced_more, NULL);
	pthread_cond_init(&state->journal_grew, NULL);
	store->driver_state = state;
	if (*path == '\0')
		return error_set(error, ERROR_INVALID_CONFIG, "'sqlite:' needs a path");
	if (!str_equal(path, ":memory:"))
		return reading ? find_file(state, path, error) : prepare_file(state, path, error);
	/* The name is the store's own, so that two stores in one process stay apart. */
	state->memory = true;
	snprintf(state->file, sizeof state->file, "file:/store-%p?vfs=memdb", (void *)state);
	return sqlite_open_handle(state, &state->keeper, error);
}

/* --- connections --- */

static void sqlite_disconnect(struct store_connection *base)
{
	sqlite_close_link(&sqlite_of(base)->own);
	free(base);
}

static bool sqlite_connect(struct store *store, struct store_connection **ret_connection,
			   struct error *error)
{
	struct sqlite_connection *connection = mem_alloc(sizeof *connection);

	if (!sqlite_open_link(store->driver_state, &connection->own, error)) {
		free(connection);
		return false;
	}
	connection->link = &connection->own;
	*ret_connection = &connection->base;
	return true;
}

/* --- the copy before a migration --- */

static bool copy_into(struct sqlite_connection *from, sqlite3 *to, struct error *error)
{
	sqlite3_backup *backup = sqlite3_backup_init(to, "main", from->own.handle, "main");

	if (!backup)
		return error_set(error, ERROR_INTERNAL, "begin: %s", sqlite3_errmsg(to));
	(void)sqlite3_backup_step(backup, -1);
	if (sqlite3_backup_finish(backup) != SQLITE_OK)
		return error_set(error, sqlite_code(sqlite3_errcode(to)), "%s", sqlite3_errmsg(to));
	return true;
}

/* Into a file beside it that only then gets its name, in place of an older one. */
static bool sqlite_copy(struct store_connection *base, int version, struct error *error)
{
	const struct sqlite_store *state = base->store->driver_state;
	char path[SQLITE_MAX_PATH + 32], half[SQLITE_MAX_PATH + 48];
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
	done = done && copy_into(sqlite_of(base), to, error) &&
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
