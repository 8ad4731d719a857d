/*
 * schema: which one a database has, its migrations to this program's, and its lineage.
 */
#include "store/driver.h"

#include "sys/random.h"

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

bool store_bring_up(struct store *store, enum store_migrate migrate, struct error *error)
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
