#include "store/driver.h"

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
	store->writes = mem_alloc(sizeof *store->writes);
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
	if (!store_bring_up(store, migrate, error)) {
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
	free(store->writes);
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
