#include "store/driver.h"

#include "sys/clock.h"
#include "sys/durable.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* How long a statement waits for another connection's transaction before it counts as lost. */
#define BUSY_TIMEOUT_MS 10000
#define MAX_PATH        4096
#define MAX_PARAMS      32

/* What the writer keeps of the file; others' caches are void after each commit. */
#define WRITER_CACHE_KIB "16384"
#define READER_CACHE_KIB "512"

/* The journal is moved into the file each time it has grown by so many pages; and when so few are
 * left, or after so many tries, the rest while nobody writes, so that it can begin again. */
#define JOURNAL_PAGES     8192
#define FEW_PAGES         256
#define MAX_MOVES         4
#define MOVER_PATIENCE_MS 100 /* with readers, while nobody may write */

struct sqlite_statement {
	const char *
		given; /* where its text stood when it was prepared: mostly it stands there again */
	uint64_t hash;
	char *sql;
	sqlite3_stmt *handle;
	uint8_t places[MAX_PARAMS]; /* of "$1", "$2", ...: to SQLite they are names */
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
	char file[MAX_PATH]; /* path, or the shared memory's name as a URI */
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

static bool link_failure(const struct sqlite_link *link, const char *doing, struct error *error)
{
	return error_set(error, code_of(sqlite3_extended_errcode(link->handle)), "%s: %s", doing,
			 sqlite3_errmsg(link->handle));
}

static bool failure(struct sqlite_connection *connection, const char *doing, struct error *error)
{
	if (is_race(sqlite3_extended_errcode(connection->link->handle)))
		connection->base.loss = STORE_LOSS_RACE;
	return link_failure(connection->link, doing, error);
}

/* --- links --- */

static void close_link(struct sqlite_link *link)
{
	vec_each (&link->statements, struct sqlite_statement * statement) {
		sqlite3_finalize(statement->handle);
		free(statement->sql);
	}
	vec_deinit(&link->statements);
	sqlite3_close(link->handle);
	link->handle = NULL;
}

static bool set_pragma(const struct sqlite_link *link, const char *sql, struct error *error)
{
	return sqlite3_exec(link->handle, sql, NULL, NULL, NULL) == SQLITE_OK ||
	       link_failure(link, sql, error);
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

static bool open_link(const struct sqlite_store *state, struct sqlite_link *link,
		      struct error *error)
{
	if (!open_handle(state, &link->handle, error))
		return false;
	sqlite3_busy_timeout(link->handle, BUSY_TIMEOUT_MS);
	if (set_pragma(link, "PRAGMA foreign_keys = ON", error) &&
	    set_pragma(link, "PRAGMA trusted_schema = OFF", error) &&
	    /* Commits are synced by wait_synced(); SQLite itself syncs around its checkpoints. */
	    set_pragma(link, "PRAGMA synchronous = NORMAL", error) &&
	    set_pragma(link, "PRAGMA cache_size = -" READER_CACHE_KIB, error) &&
	    (state->memory || set_pragma(link, "PRAGMA journal_mode = WAL", error)))
		return true;
	close_link(link);
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

/* --- statements --- */

/* "$3" is a name to SQLite, numbered by where it first stands. */
static void find_places(struct sqlite_statement *statement)
{
	int count = sqlite3_bind_parameter_count(statement->handle);

	assert(count <= MAX_PARAMS);
	for (int at = 1; at <= count; at++) {
		long number =
			strtol(sqlite3_bind_parameter_name(statement->handle, at) + 1, NULL, 10);

		assert(number > 0 && number <= count);
		statement->places[number - 1] = (uint8_t)at;
	}
}

static const struct sqlite_statement *find_statement(const struct sqlite_link *link,
						     const char *sql)
{
	uint64_t hash;

	vec_each (&link->statements, const struct sqlite_statement *statement) {
		if (statement->given == sql && str_equal(statement->sql, sql))
			return statement;
	}
	hash = store_sql_hash(sql);
	vec_each (&link->statements, const struct sqlite_statement *statement) {
		if (statement->hash == hash && str_equal(statement->sql, sql))
			return statement;
	}
	return NULL;
}

static bool prepare(struct sqlite_connection *connection, const char *sql,
		    const struct sqlite_statement **ret_statement, struct error *error)
{
	struct sqlite_link *link = connection->link;
	struct sqlite_statement *statement;
	sqlite3_stmt *handle;

	*ret_statement = find_statement(link, sql);
	if (*ret_statement)
		return true;
	if (sqlite3_prepare_v3(link->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &handle, NULL) !=
	    SQLITE_OK)
		return failure(connection, "prepare", error);
	statement = vec_push(&link->statements);
	*statement =
		(struct sqlite_statement){sql, store_sql_hash(sql), mem_strdup(sql), handle, {0}};
	find_places(statement);
	*ret_statement = statement;
	return true;
}

static void bind(const struct sqlite_statement *statement, const struct store_value *params,
		 size_t count)
{
	sqlite3_stmt *handle = statement->handle;

	for (size_t i = 0; i < count; i++) {
		const struct store_value *value = &params[i];
		int at = statement->places[i];

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
	const struct sqlite_statement *statement;
	sqlite3_stmt *handle;
	bool done = true;
	int result;

	if (!prepare(connection, sql, &statement, error))
		return false;
	handle = statement->handle;
	assert((size_t)sqlite3_bind_parameter_count(handle) == count);
	bind(statement, params, count);
	while ((result = sqlite3_step(handle)) == SQLITE_ROW) {
		done = !rows || add_row(handle, rows, error);
		if (!done)
			break;
	}
	if (done && result != SQLITE_DONE)
		done = failure(connection, "run a statement", error);
	sqlite3_reset(handle);
	sqlite3_clear_bindings(handle);
	return done;
}

/* --- the journal's way into the file --- */

/* Moves what no reader needs to find in the journal any more; false: nothing could be moved. */
static bool move_pages(struct sqlite_store *state, int mode, int *ret_left)
{
	int moved = 0;

	if (sqlite3_wal_checkpoint_v2(state->moving.handle, NULL, mode, NULL, &moved) != SQLITE_OK)
		return false;
	pthread_mutex_lock(&state->guard);
	*ret_left = state->journal_pages - moved;
	pthread_mutex_unlock(&state->guard);
	return true;
}

/* Most of it beside the writers, whose commits would wait for it else. What can't be moved now is
 * moved when the journal has grown again. */
static void move_journal(struct sqlite_store *state)
{
	int left = INT_MAX;

	for (int i = 0; i < MAX_MOVES && left > FEW_PAGES; i++) {
		if (!move_pages(state, SQLITE_CHECKPOINT_PASSIVE, &left))
			return;
	}
	pthread_mutex_lock(&state->writer);
	(void)move_pages(state, SQLITE_CHECKPOINT_RESTART, &left);
	pthread_mutex_unlock(&state->writer);
}

static void *mover_main(void *arg)
{
	struct sqlite_store *state = arg;

	pthread_mutex_lock(&state->guard);
	while (!state->stopping) {
		if (state->journal_pages < state->journal_limit) {
			pthread_cond_wait(&state->journal_grew, &state->guard);
			continue;
		}
		pthread_mutex_unlock(&state->guard);
		move_journal(state);
		pthread_mutex_lock(&state->guard);
		state->journal_limit = state->journal_pages + JOURNAL_PAGES;
	}
	pthread_mutex_unlock(&state->guard);
	return NULL;
}

/* After each commit. A journal that began again is as long as it was allowed to be. */
static int on_commit(void *arg, sqlite3 *handle UNUSED, const char *database UNUSED, int pages)
{
	struct sqlite_store *state = arg;

	pthread_mutex_lock(&state->guard);
	if (pages < state->journal_pages)
		state->journal_limit = JOURNAL_PAGES;
	state->journal_pages = pages;
	if (pages >= state->journal_limit)
		pthread_cond_signal(&state->journal_grew);
	pthread_mutex_unlock(&state->guard);
	return SQLITE_OK;
}

static bool start_mover(struct sqlite_store *state, struct error *error)
{
	sigset_t all, before;
	int failed;

	if (!open_link(state, &state->moving, error))
		return false;
	sqlite3_busy_timeout(state->moving.handle, MOVER_PATIENCE_MS);
	state->journal_limit = JOURNAL_PAGES;
	/* Signals are the program's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&state->mover, NULL, mover_main, state);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed) {
		close_link(&state->moving);
		return error_set(error, ERROR_UNAVAILABLE, "start a thread for the journal: %s",
				 strerror(failed));
	}
	state->moves = true;
	sqlite3_wal_hook(state->writing.handle, on_commit, state);
	return true;
}

static void stop_mover(struct sqlite_store *state)
{
	if (!state->moves)
		return;
	pthread_mutex_lock(&state->guard);
	state->stopping = true;
	pthread_cond_signal(&state->journal_grew);
	pthread_mutex_unlock(&state->guard);
	pthread_join(state->mover, NULL);
	close_link(&state->moving);
}

/* --- the writer --- */

/* The first one makes what all of them use. */
static bool open_writing(struct sqlite_store *state, struct error *error)
{
	if (state->writing.handle)
		return true;
	if (!open_link(state, &state->writing, error))
		return false;
	if (set_pragma(&state->writing, "PRAGMA cache_size = -" WRITER_CACHE_KIB, error) &&
	    (state->memory || start_mover(state, error)))
		return true;
	close_link(&state->writing);
	return false;
}

/* No longer than the deadline allows. */
static struct timespec lock_until(const struct store_connection *base)
{
	int64_t wait_ms = BUSY_TIMEOUT_MS;
	struct timespec until;

	if (base->deadline.ms && mono_until(clock_mono(), base->deadline) < wait_ms)
		wait_ms = mono_until(clock_mono(), base->deadline);
	wait_ms = wait_ms > 0 ? wait_ms : 0;
	if (clock_gettime(CLOCK_MONOTONIC, &until) != 0)
		abort();
	until.tv_sec += wait_ms / 1000;
	until.tv_nsec += wait_ms % 1000 * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	return until;
}

/* Writers queue here rather than in SQLite, whose losers sleep and look again. A memory has one
 * thread. */
static bool lock_writer(struct store_connection *base, struct error *error)
{
	struct sqlite_store *state = state_of(base);
	struct timespec until;

	if (state->memory)
		return true;
	until = lock_until(base);
	if (pthread_mutex_clocklock(&state->writer, CLOCK_MONOTONIC, &until) == 0)
		return true;
	base->loss = STORE_LOSS_RACE;
	return error_set(error, ERROR_UNAVAILABLE, "other transactions take too long");
}

static void leave_writing(struct store_connection *base)
{
	struct sqlite_store *state = state_of(base);

	if (of(base)->link != &state->writing)
		return;
	of(base)->link = &of(base)->own;
	if (!state->memory)
		pthread_mutex_unlock(&state->writer);
}

static bool enter_writing(struct store_connection *base, struct error *error)
{
	struct sqlite_store *state = state_of(base);

	if (!lock_writer(base, error))
		return false;
	of(base)->link = &state->writing;
	if (open_writing(state, error))
		return true;
	leave_writing(base);
	return false;
}

/* --- transactions --- */

/* It is there as long as the writer's link is open. */
static bool sync_journal(struct sqlite_store *state, struct error *error)
{
	char path[MAX_PATH + 8];

	snprintf(path, sizeof path, "%s-wal", state->file);
	if (state->journal < 0)
		state->journal = open(path, O_RDONLY | O_CLOEXEC);
	if (state->journal < 0)
		return error_os(error, "open '%s'", path);
	return fdatasync(state->journal) == 0 || error_os(error, "sync '%s'", path);
}

static bool refuse_broken(struct error *error)
{
	error_set(error, ERROR_UNAVAILABLE, "the database's disk failed earlier");
	return error_hint(error, "See to the disk, then start again: what is on it is read anew.");
}

/*
 * Waits until the first `wanted` transactions are on the disk. One of those who wait syncs for all
 * that committed before it began, so that many at a time cost one sync. Whoever only reads waits
 * too: what it tells must not be undone by a power cut. After a sync that failed the kernel may take
 * what it couldn't write for written: no later one counts.
 */
static bool wait_synced(struct sqlite_store *state, uint64_t wanted, struct error *error)
{
	bool done = true;

	pthread_mutex_lock(&state->guard);
	while (done && state->synced < wanted) {
		uint64_t covers = state->committed;

		if (state->broken) {
			done = refuse_broken(error);
			break;
		}
		if (state->syncing) {
			pthread_cond_wait(&state->synced_more, &state->guard);
			continue;
		}
		state->syncing = true;
		pthread_mutex_unlock(&state->guard);
		done = sync_journal(state, error);
		pthread_mutex_lock(&state->guard);
		state->syncing = false;
		state->broken = !done;
		if (done)
			state->synced = covers;
		pthread_cond_broadcast(&state->synced_more);
	}
	pthread_mutex_unlock(&state->guard);
	return done;
}

static bool is_broken(struct sqlite_store *state)
{
	bool broken;

	pthread_mutex_lock(&state->guard);
	broken = state->broken;
	pthread_mutex_unlock(&state->guard);
	return broken;
}

/* All that a reader can have seen: whose commit is under way is counted before. */
static uint64_t count_seen(struct sqlite_store *state)
{
	uint64_t seen;

	pthread_mutex_lock(&state->guard);
	while (state->committing)
		pthread_cond_wait(&state->synced_more, &state->guard);
	seen = state->committed;
	pthread_mutex_unlock(&state->guard);
	return seen;
}

static void begin_counting(struct sqlite_store *state)
{
	pthread_mutex_lock(&state->guard);
	state->committing = true;
	pthread_mutex_unlock(&state->guard);
}

static uint64_t end_counting(struct sqlite_store *state, bool committed)
{
	uint64_t number;

	pthread_mutex_lock(&state->guard);
	state->committing = false;
	state->committed += committed;
	number = state->committed;
	pthread_cond_broadcast(&state->synced_more);
	pthread_mutex_unlock(&state->guard);
	return number;
}

/* Into the journal. */
static bool commit_write(struct store_connection *base, uint64_t *ret_number, struct error *error)
{
	struct sqlite_store *state = state_of(base);
	bool done;

	begin_counting(state);
	done = sqlite_run(base, "COMMIT", NULL, 0, NULL, error);
	*ret_number = end_counting(state, done);
	return done;
}

static bool sqlite_begin(struct store_connection *base, enum store_mode mode, struct wall *ret_now,
			 struct error *error)
{
	/* A writer takes its place at once: it never finds out half-way that it has to start over.
	 */
	if (mode == STORE_WRITE && is_broken(state_of(base)))
		return refuse_broken(error);
	if (mode == STORE_WRITE && !enter_writing(base, error))
		return false;
	if (!sqlite_run(base, mode == STORE_WRITE ? "BEGIN IMMEDIATE" : "BEGIN", NULL, 0, NULL,
			error)) {
		leave_writing(base);
		return false;
	}
	*ret_now = clock_wall();
	return true;
}

static bool sqlite_commit(struct store_connection *base, struct error *error)
{
	struct sqlite_store *state = state_of(base);
	uint64_t wanted;

	if (base->mode == STORE_WRITE) {
		if (!commit_write(base, &wanted, error))
			return false;
	} else {
		if (!sqlite_run(base, "COMMIT", NULL, 0, NULL, error))
			return false;
		wanted = count_seen(state);
	}
	leave_writing(base);
	if (state->memory || wait_synced(state, wanted, error))
		return true;
	/* Whether it survives, nobody knows: running it again might do it twice. */
	base->loss = STORE_LOSS_NONE;
	error->code = ERROR_UNAVAILABLE;
	return false;
}

static void sqlite_rollback(struct store_connection *base)
{
	sqlite3 *handle = of(base)->link->handle;

	/* Some failures have rolled back already. */
	if (!sqlite3_get_autocommit(handle))
		sqlite3_exec(handle, "ROLLBACK", NULL, NULL, NULL);
	leave_writing(base);
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
	stop_mover(state);
	close_link(&state->writing);
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
	return open_handle(state, &state->keeper, error);
}

/* --- connections --- */

static void sqlite_disconnect(struct store_connection *base)
{
	close_link(&of(base)->own);
	free(base);
}

static bool sqlite_connect(struct store *store, struct store_connection **ret_connection,
			   struct error *error)
{
	struct sqlite_connection *connection = mem_alloc(sizeof *connection);

	if (!open_link(store->driver_state, &connection->own, error)) {
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
