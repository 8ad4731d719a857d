#include "store/driver.h"

#include "sys/clock.h"
#include "sys/random.h"

#include <time.h>

/* A constraint that is still in the way after so many looks is really there. */
#define MAX_CONSTRAINT_TRIES 3
#define MAX_PAUSE_MS         50

struct store_cell {
	enum store_kind kind;
	int64_t number;
	size_t offset; /* of the text in store_rows.texts */
};

/* --- rows --- */

bool store_rows_start(struct store_rows *rows, size_t columns, struct error *error)
{
	if (rows->count == STORE_MAX_ROWS)
		return error_set(error, ERROR_RESOURCES_EXHAUSTED,
				 "read rows: more than %d in one answer", STORE_MAX_ROWS);
	assert(rows->count == 0 || rows->columns == columns);
	rows->columns = columns;
	return true;
}

static struct store_cell *add_cell(struct store_rows *rows)
{
	if (rows->cells_count == rows->cells_capacity) {
		rows->cells_capacity = rows->cells_capacity ? rows->cells_capacity * 2 : 64;
		rows->cells = mem_resize(rows->cells, rows->cells_capacity, sizeof *rows->cells);
	}
	rows->cells[rows->cells_count] = (struct store_cell){.kind = STORE_NULL_TEXT};
	if (++rows->cells_count % rows->columns == 0)
		rows->count++;
	return &rows->cells[rows->cells_count - 1];
}

void store_rows_add_null(struct store_rows *rows)
{
	add_cell(rows);
}

void store_rows_add_int(struct store_rows *rows, int64_t number)
{
	struct store_cell *cell = add_cell(rows);

	cell->kind = STORE_INT;
	cell->number = number;
}

bool store_rows_add_text(struct store_rows *rows, const char *text, size_t length,
			 struct error *error)
{
	struct store_cell *cell;

	if (length > STORE_MAX_TEXT)
		return error_set(error, ERROR_RESOURCES_EXHAUSTED,
				 "read rows: a text of %zu bytes is over %zu", length,
				 STORE_MAX_TEXT);
	cell = add_cell(rows);
	cell->kind = STORE_TEXT;
	cell->offset = rows->texts.length;
	buf_add(&rows->texts, text, length);
	buf_add(&rows->texts, "", 1);
	return true;
}

void store_rows_deinit(struct store_rows *rows)
{
	free(rows->cells);
	buf_deinit(&rows->texts);
	*rows = (struct store_rows){0};
}

static const struct store_cell *cell_at(const struct store_rows *rows, size_t row, size_t column)
{
	assert(row < rows->count);
	assert(column < rows->columns);
	return &rows->cells[row * rows->columns + column];
}

bool store_is_null(const struct store_rows *rows, size_t row, size_t column)
{
	enum store_kind kind = cell_at(rows, row, column)->kind;

	return kind == STORE_NULL_TEXT || kind == STORE_NULL_INT;
}

int64_t store_get_int(const struct store_rows *rows, size_t row, size_t column)
{
	const struct store_cell *cell = cell_at(rows, row, column);

	assert(cell->kind != STORE_TEXT);
	return cell->number;
}

const char *store_get_text(const struct store_rows *rows, size_t row, size_t column)
{
	const struct store_cell *cell = cell_at(rows, row, column);

	assert(cell->kind != STORE_INT);
	return cell->kind == STORE_TEXT ? (const char *)rows->texts.data + cell->offset : NULL;
}

/* --- statements --- */

uint64_t store_sql_hash(const char *sql)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (; *sql; sql++)
		hash = (hash ^ (unsigned char)*sql) * 0x100000001b3;
	return hash;
}

bool store_exec(struct store_connection *connection, const char *sql,
		const struct store_value *params, size_t count, struct error *error)
{
	assert(connection->inside);
	assert(connection->mode == STORE_WRITE);
	assert(!connection->failed);
	if (connection->driver->run(connection, sql, params, count, NULL, error))
		return true;
	connection->failed = true;
	return false;
}

bool store_query(struct store_connection *connection, const char *sql,
		 const struct store_value *params, size_t count, struct store_rows *ret_rows,
		 struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	assert(connection->inside);
	assert(!connection->failed);
	if (!connection->driver->run(connection, sql, params, count, &rows, error)) {
		connection->failed = true;
		return false;
	}
	store_rows_deinit(ret_rows);
	*ret_rows = rows;
	rows = (struct store_rows){0};
	return true;
}

/* --- transactions --- */

struct wall store_now(const struct store_connection *connection)
{
	assert(connection->inside);
	return connection->now;
}

static bool run_once(struct store_connection *connection, enum store_mode mode, store_body_fn *body,
		     void *argument, struct error *error)
{
	const struct store_driver *driver = connection->driver;
	bool done;

	assert(!connection->inside);
	connection->loss = STORE_LOSS_NONE;
	connection->failed = connection->refused = false;
	connection->mode = mode;
	if (!driver->begin(connection, mode, &connection->now, error))
		return false;
	connection->inside = true;
	done = body(connection, argument, error);
	connection->inside = false;
	/* A body that goes on after a failed statement would commit half of what it meant. */
	assert(!done || !connection->failed);
	if (!connection->failed && driver->settle && !driver->settle(connection, error)) {
		connection->failed = true;
		done = false;
	}
	connection->refused = !done && !connection->failed;
	if (done && driver->commit(connection, error))
		return true;
	driver->rollback(connection);
	return false;
}

/* Lets the winner finish; longer each time and never the same for two losers. */
static void pause_after_loss(int tries)
{
	int64_t most_ms = tries * 4 < MAX_PAUSE_MS ? tries * 4 : MAX_PAUSE_MS;
	int64_t ms = (int64_t)random_below((uint64_t)most_ms + 1);
	struct timespec pause = {.tv_sec = 0, .tv_nsec = ms * 1000000};

	nanosleep(&pause, NULL);
}

bool store_is_late(const struct store_connection *connection)
{
	return connection->deadline.ms && mono_until(clock_mono(), connection->deadline) <= 0;
}

bool store_is_to_blame(const struct store_connection *connection)
{
	return connection->to_blame;
}

void store_set_deadline(struct store_connection *connection, struct mono deadline)
{
	connection->deadline = deadline;
}

static bool run_with_retries(struct store_connection *connection, enum store_mode mode,
			     store_body_fn *body, void *argument, struct error *error)
{
	int constraint_tries = 0;

	connection->refused = false;
	if (store_is_late(connection))
		return error_set(error, ERROR_UNAVAILABLE, "the database was waited for too long");
	for (int tries = 1; tries <= STORE_MAX_TRIES; tries++) {
		if (tries > 1)
			connection->store->counters[mode].retries++;
		if (run_once(connection, mode, body, argument, error))
			return true;
		switch (connection->loss) {
		case STORE_LOSS_NONE:
			return false;
		case STORE_LOSS_CONSTRAINT:
			if (++constraint_tries == MAX_CONSTRAINT_TRIES)
				return false;
			break;
		case STORE_LOSS_RACE:
			break;
		}
		if (store_is_late(connection))
			return false;
		pause_after_loss(tries);
	}
	error->code = ERROR_UNAVAILABLE;
	return error_wrap(error, "%d tries lost against other transactions", STORE_MAX_TRIES);
}

bool store_run(struct store_connection *connection, enum store_mode mode, store_body_fn *body,
	       void *argument, struct error *error)
{
	struct store_counters *counters = &connection->store->counters[mode];
	int64_t began_us = clock_us(), took_us;
	bool done = run_with_retries(connection, mode, body, argument, error);

	connection->to_blame = !done && !connection->refused;
	took_us = clock_us() - began_us;
	if (done)
		counters->committed++;
	else
		counters->failed++;
	counters->took_us += (uint64_t)took_us;
	counters->took[histogram_bucket(took_us)]++;
	return done;
}

void store_stats_read(const struct store *store, enum store_mode mode,
		      struct store_stats *ret_stats)
{
	const struct store_counters *counters = &store->counters[mode];

	*ret_stats = (struct store_stats){
		.committed = counters->committed,
		.failed = counters->failed,
		.retries = counters->retries,
		.took.sum_us = counters->took_us,
	};
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		ret_stats->took.counts[i] = counters->took[i];
}

/* --- schema --- */

struct migrate_step {
	struct store *store;
	bool done; /* nothing is left to apply */
};

static bool apply_migration(struct store_connection *connection, int version, struct error *error)
{
	const struct store_migration *migration = &connection->driver->migrations[version - 1];

	for (const char *const *sql = migration->statements; *sql; sql++) {
		if (!store_exec(connection, *sql, STORE_NO_PARAMS, error))
			return error_wrap(error, "migration %d (%s)", version, migration->name);
	}
	return store_exec(connection,
			  "INSERT INTO schema_versions (version, name, applied_ms) "
			  "VALUES ($1, $2, $3)",
			  STORE_PARAMS(store_int(version), store_text(migration->name),
				       store_int(store_now(connection).ms)),
			  error);
}

bool store_schema_raise(struct store_connection *connection, int from, int to, struct error *error)
{
	if (from == 0 && !store_exec(connection,
				     "CREATE TABLE schema_versions (version INTEGER PRIMARY KEY, "
				     "name TEXT NOT NULL, applied_ms BIGINT NOT NULL)",
				     STORE_NO_PARAMS, error))
		return false;
	for (int version = from + 1; version <= to; version++) {
		if (!apply_migration(connection, version, error))
			return false;
	}
	return true;
}

/* Which tables there are is told by the catalog, each driver's own. */
bool store_schema_read(struct store_connection *connection, int *ret_version, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(connection, connection->driver->has_schema, STORE_NO_PARAMS, &rows, error))
		return false;
	if (store_get_int(&rows, 0, 0) == 0) {
		*ret_version = 0;
		return true;
	}
	if (!store_query(connection, "SELECT max(version) FROM schema_versions", STORE_NO_PARAMS,
			 &rows, error))
		return false;
	*ret_version = (int)store_get_int(&rows, 0, 0);
	return true;
}

/* Applies the next migration, if one is left. */
static bool migrate_body(struct store_connection *connection, void *argument, struct error *error)
{
	struct migrate_step *step = argument;
	int version, last = connection->driver->migrations_count;

	if (!store_schema_read(connection, &version, error))
		return false;
	if (version > last) {
		error_set(error, ERROR_INVALID_STATE,
			  "the database has schema %d, this program knows %d", version, last);
		return error_hint(error, "Run the version that wrote it, or a newer one.");
	}
	step->store->schema_version = version;
	step->done = version == last;
	return step->done || store_schema_raise(connection, version, version + 1, error);
}

static bool read_lineage_body(struct store_connection *connection, void *argument,
			      struct error *error)
{
	struct store *store = argument;
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(connection, "SELECT value FROM meta WHERE name = 'lineage'",
			 STORE_NO_PARAMS, &rows, error))
		return false;
	if (rows.count == 0)
		return error_set(error, ERROR_INVALID_STATE, "it has no lineage");
	str_copy(store->lineage, sizeof store->lineage, store_get_text(&rows, 0, 0));
	return true;
}

/* The lineage is made by who comes first and then only read. */
static bool lineage_body(struct store_connection *connection, void *argument, struct error *error)
{
	char fresh[ID_SIZE];

	random_id(fresh, "lin", store_now(connection));
	return store_exec(connection,
			  "INSERT INTO meta (name, value) VALUES ('lineage', $1) "
			  "ON CONFLICT (name) DO NOTHING",
			  STORE_PARAMS(store_text(fresh)), error) &&
	       read_lineage_body(connection, argument, error);
}

static bool version_body(struct store_connection *connection, void *argument, struct error *error)
{
	return store_schema_read(connection, argument, error);
}

/* May an older schema be migrated, and is what was there kept? */
static bool prepare_migration(struct store_connection *connection, int version,
			      enum store_migrate migrate, struct error *error)
{
	const struct store_driver *driver = connection->driver;

	if (version == 0 || version >= driver->migrations_count)
		return true;
	if (driver->copy)
		return driver->copy(connection, version, error) ||
		       error_wrap(error, "copy the database before it is migrated");
	if (migrate == STORE_MIGRATE)
		return true;
	error_set(error, ERROR_INVALID_STATE, "its schema is %d, this program's is %d", version,
		  driver->migrations_count);
	return error_hint(error,
			  "Take a backup ('better-compute backup'), stop the other replicas, "
			  "then start one with --migrate.");
}

static bool migrate_all(struct store *store, struct store_connection *connection,
			enum store_migrate migrate, struct error *error)
{
	struct migrate_step step = {.store = store};
	int version;

	if (!store_run(connection, STORE_READ, version_body, &version, error) ||
	    !prepare_migration(connection, version, migrate, error))
		return false;
	do {
		if (!store_run(connection, STORE_WRITE, migrate_body, &step, error))
			return false;
	} while (!step.done);
	return store_run(connection, STORE_WRITE, lineage_body, store, error);
}

static bool look_only(struct store *store, struct store_connection *connection, struct error *error)
{
	if (!store_run(connection, STORE_READ, version_body, &store->schema_version, error))
		return false;
	if (store->schema_version == 0)
		return error_set(error, ERROR_NOT_FOUND, "it holds nothing of better-compute's");
	if (store->schema_version <= store->driver->migrations_count)
		return store_run(connection, STORE_READ, read_lineage_body, store, error);
	return error_set(error, ERROR_INVALID_STATE, "its schema is %d, this program knows %d",
			 store->schema_version, store->driver->migrations_count);
}

static bool bring_up(struct store *store, enum store_migrate migrate, struct error *error)
{
	struct store_connection *connection;
	bool done;

	if (!store_connect(store, &connection, error))
		return false;
	/* Locked before the transaction: its snapshot must show what the process before us did. */
	done = migrate == STORE_MIGRATE_NEVER
		       ? look_only(store, connection, error)
		       : store->driver->lock_schema(connection, error) &&
				 migrate_all(store, connection, migrate, error);
	store_disconnect(connection);
	return done;
}

/* --- life --- */

static const struct store_driver *driver_of(const char *url)
{
	if (str_starts(url, "sqlite:"))
		return &store_sqlite;
	if (str_starts(url, "postgresql://") || str_starts(url, "postgres://") || strchr(url, '='))
		return &store_postgres;
	return NULL;
}

bool store_open(const char *url, struct store **ret_store, struct error *error)
{
	return store_open_as(url, STORE_MIGRATE, ret_store, error);
}

bool store_create(const char *url, bool reading, struct store **ret_store, struct error *error)
{
	const struct store_driver *driver = driver_of(url);
	struct store *store;

	if (!driver) {
		error_set(error, ERROR_INVALID_CONFIG, "database: unknown kind of URL");
		return error_hint(error, "Use sqlite:PATH, postgresql://... or a libpq conninfo.");
	}
	store = mem_alloc(sizeof *store);
	store->driver = driver;
	store->url = mem_strdup(url);
	store->counters = mem_alloc(2 * sizeof *store->counters);
	if (!driver->open(store, reading, error)) {
		store_destroy(store);
		return error_wrap(error, "open the database");
	}
	*ret_store = store;
	return true;
}

bool store_open_as(const char *url, enum store_migrate migrate, struct store **ret_store,
		   struct error *error)
{
	struct store *store;

	if (!store_create(url, migrate == STORE_MIGRATE_NEVER, &store, error))
		return false;
	if (!bring_up(store, migrate, error)) {
		store_destroy(store);
		return error_wrap(error, "open the database");
	}
	*ret_store = store;
	return true;
}

void store_destroy(struct store *store)
{
	if (!store)
		return;
	store->driver->close(store);
	/* It may hold a password. */
	explicit_bzero(store->url, strlen(store->url));
	free(store->url);
	free(store->counters);
	free(store);
}

bool store_connect(struct store *store, struct store_connection **ret_connection,
		   struct error *error)
{
	struct store_connection *connection;

	if (!store->driver->connect(store, &connection, error))
		return false;
	connection->driver = store->driver;
	connection->store = store;
	*ret_connection = connection;
	return true;
}

void store_disconnect(struct store_connection *connection)
{
	if (!connection)
		return;
	assert(!connection->inside);
	connection->driver->disconnect(connection);
}

void store_hurry(struct store *store)
{
	store->hurried = true;
}

const char *store_driver(const struct store *store)
{
	return store->driver->name;
}

int store_schema_version(const struct store *store)
{
	return store->schema_version;
}

const char *store_lineage(const struct store *store)
{
	return store->lineage;
}

const char *store_connection_lineage(const struct store_connection *connection)
{
	return connection->store->lineage;
}
