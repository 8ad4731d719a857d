#include "unit/store/opened.h"

struct opened open_database(void)
{
	struct opened opened;
	struct error error;

	expect_ok(store_open(database_url(), &opened.store, &error), &error);
	expect_ok(store_connect(opened.store, &opened.connection, &error), &error);
	return opened;
}

void close_database(struct opened *opened)
{
	store_disconnect(opened->connection);
	store_destroy(opened->store);
}

struct statement {
	const char *sql;
	const struct store_value *params;
	size_t count;
};

static bool statement_body(struct store_connection *connection, void *argument, struct error *error)
{
	const struct statement *statement = argument;

	return store_exec(connection, statement->sql, statement->params, statement->count, error);
}

bool run_sql(struct store_connection *connection, const char *sql, const struct store_value *params,
	     size_t count, struct error *error)
{
	struct statement statement = {sql, params, count};

	return store_run(connection, STORE_WRITE, statement_body, &statement, error);
}
