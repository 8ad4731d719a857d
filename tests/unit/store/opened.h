/* opened: a store on the test's database with one connection, and one statement in a transaction of its own. */
#pragma once

#include "unit/store/database.h"

struct opened {
	struct store *store;
	struct store_connection *connection;
};

struct opened open_database(void); /* once at a time on SQLite */
void close_database(struct opened *opened);

MUST_CHECK bool run_sql(struct store_connection *connection, const char *sql,
			const struct store_value *params, size_t count, struct error *error);

#define DATABASE_TEST(function)                                                                    \
	cmocka_unit_test_setup_teardown(function, database_setup, database_teardown)
