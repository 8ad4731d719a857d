/* A database that is opened, who may, and what it is asked to keep. */
#include "unit/store/opened.h"

#include "store/driver.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* --- opening --- */

static void test_open_twice_keeps_the_schema_and_the_lineage(void **state)
{
	struct opened opened = open_database();
	char lineage[STORE_LINEAGE_SIZE];

	(void)state;
	assert_int_equal(store_schema_version(opened.store), STORE_MIGRATIONS);
	assert_string_equal(store_driver(opened.store),
			    database_is_postgres() ? "postgresql" : "sqlite");
	str_copy(lineage, sizeof lineage, store_connection_lineage(opened.connection));
	assert_int_equal(strlen(lineage), 30);
	close_database(&opened);

	opened = open_database();
	assert_string_equal(store_connection_lineage(opened.connection), lineage);
	assert_string_equal(store_connection_lineage(opened.connection), lineage);
	close_database(&opened);
}

static void test_second_process_on_one_file_is_refused(void **state)
{
	struct opened opened = open_database(), replica;
	struct store *second = NULL;
	struct error error;

	(void)state;
	if (database_is_postgres()) {
		/* Replicas are many there. */
		replica = open_database();
		assert_string_equal(store_connection_lineage(replica.connection),
				    store_connection_lineage(opened.connection));
		close_database(&replica);
	} else {
		expect_error(store_open(database_url(), &second, &error), &error, ERROR_CONFLICT,
			     "test.db");
		assert_null(second);
	}
	close_database(&opened);
}

static void test_database_of_a_newer_program_is_refused(void **state)
{
	struct opened opened = open_database();
	struct store *store;
	struct error error;
	char told[64];

	(void)state;
	snprintf(told, sizeof told, "schema 99, this program knows %d", STORE_MIGRATIONS);
	expect_ok(run_sql(opened.connection,
			  "INSERT INTO schema_versions (version, name, applied_ms) "
			  "VALUES (99, 'future', 0)",
			  STORE_NO_PARAMS, &error),
		  &error);
	close_database(&opened);
	expect_error(store_open(database_url(), &store, &error), &error, ERROR_INVALID_STATE, told);
}

static void test_wrong_urls_are_refused_with_a_reason(void **state)
{
	static const struct {
		const char *url;
		enum error_code code;
		const char *text;
	} rows[] = {
		{"", ERROR_INVALID_CONFIG, "unknown kind of URL"},
		{"mysql://x", ERROR_INVALID_CONFIG, "unknown kind of URL"},
		{"sqlite:", ERROR_INVALID_CONFIG, "needs a path"},
		{"sqlite:/nowhere/at/all.db", ERROR_NOT_FOUND, "/nowhere/at/all.db"},
		{"postgresql://u:pa55word@127.0.0.1:1/x", ERROR_UNAVAILABLE, "connect"},
		{"host=/nowhere dbname=x password=pa55word", ERROR_UNAVAILABLE, "connect"},
	};
	struct store *store;
	struct error error;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		expect_error(store_open(rows[i].url, &store, &error), &error, rows[i].code,
			     rows[i].text);
		assert_null(strstr(error.what, "pa55word"));
		assert_null(strstr(error.hint, "pa55word"));
	}
}

static void test_file_that_is_no_database_is_refused_and_kept(void **state)
{
	const char *path = database_url() + strlen("sqlite:");
	char content[64] = "";
	struct store *store;
	struct error error;
	FILE *file;

	(void)state;
	if (database_is_postgres())
		return;
	file = fopen(path, "w");
	for (int i = 0; i < 100; i++)
		fputs("this is somebody's letter\n", file);
	fclose(file);
	expect_error(store_open(database_url(), &store, &error), &error, ERROR_INVALID_CONFIG,
		     "not a database");
	file = fopen(path, "r");
	assert_non_null(fgets(content, sizeof content, file));
	assert_string_equal(content, "this is somebody's letter\n");
	fclose(file);
}

static void test_file_is_for_its_owner_alone(void **state)
{
	struct opened opened;
	struct stat file;

	(void)state;
	if (database_is_postgres())
		return;
	opened = open_database();
	assert_int_equal(stat(database_url() + strlen("sqlite:"), &file), 0);
	assert_int_equal(file.st_mode & 0777, 0600);
	close_database(&opened);
}

static void test_memory_database_is_shared_by_connections_of_its_store_only(void **state)
{
	struct store *first, *second;
	struct store_connection *one, *two, *other;
	struct error error;

	(void)state;
	expect_ok(store_open("sqlite::memory:", &first, &error), &error);
	expect_ok(store_open("sqlite::memory:", &second, &error), &error);
	expect_ok(store_connect(first, &one, &error), &error);
	expect_ok(store_connect(first, &two, &error), &error);
	expect_ok(store_connect(second, &other, &error), &error);
	assert_string_not_equal(store_connection_lineage(one), store_connection_lineage(other));

	const char *sql = "INSERT INTO meta (name, value) VALUES ('x', 'y')";
	expect_ok(run_sql(one, sql, STORE_NO_PARAMS, &error), &error);
	expect_error(run_sql(two, sql, STORE_NO_PARAMS, &error), &error, ERROR_CONFLICT, "UNIQUE");
	expect_ok(run_sql(other, sql, STORE_NO_PARAMS, &error), &error);
	store_disconnect(one);
	store_disconnect(two);
	store_disconnect(other);
	store_destroy(first);
	store_destroy(second);
}

/* --- values --- */

static bool values_body(struct store_connection *connection, void *argument, struct error *error)
{
	static const int64_t numbers[] = {0, -1, INT64_MAX, INT64_MIN, 9007199254740993};
	CLEANUP(store_rows) struct store_rows rows = {0};

	(void)argument;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		/* The order of the numbers in the text is not the order of the values. */
		if (!store_query(
			    connection, "SELECT $2, $1, $3, $4, CAST(NULL AS BIGINT) WHERE $2 = $2",
			    STORE_PARAMS(store_text("caf\xc3\xa9 'quoted' $1"),
					 store_int(numbers[i]), store_text(NULL), store_null_int()),
			    &rows, error))
			return false;
		assert_int_equal(rows.count, 1);
		assert_int_equal(rows.columns, 5);
		assert_true(store_get_int(&rows, 0, 0) == numbers[i]);
		assert_string_equal(store_get_text(&rows, 0, 1), "caf\xc3\xa9 'quoted' $1");
		assert_true(store_is_null(&rows, 0, 2));
		assert_null(store_get_text(&rows, 0, 2));
		assert_true(store_is_null(&rows, 0, 3));
		assert_true(store_is_null(&rows, 0, 4));
		assert_int_equal(store_get_int(&rows, 0, 4), 0);
	}
	return true;
}

static void test_values_come_back_as_they_went_in(void **state)
{
	struct opened opened = open_database();
	struct error error;

	(void)state;
	expect_ok(store_run(opened.connection, STORE_READ, values_body, NULL, &error), &error);
	close_database(&opened);
}

/* --- who migrates has all the time --- */

static bool timeout_body(struct store_connection *connection, void *argument, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	(void)argument;
	if (!store_query(connection, "SELECT current_setting('statement_timeout')", STORE_NO_PARAMS,
			 &rows, error))
		return false;
	assert_string_equal(store_get_text(&rows, 0, 0), "0");
	return true;
}

static void *lock_schema_in_thread(void *argument)
{
	const struct opened *opened = argument;
	struct error error;

	expect_ok(opened->store->driver->lock_schema(opened->connection, &error), &error);
	expect_ok(store_run(opened->connection, STORE_READ, timeout_body, NULL, &error), &error);
	return NULL;
}

/* Behind a migration that takes longer than any other statement may, another process waits. */
static void test_a_long_migration_is_waited_for(void **state)
{
	const struct timespec longer = {.tv_nsec = 500000000};
	struct opened first, second;
	pthread_t thread;
	struct error error;

	(void)state;
	if (!database_is_postgres())
		return;
	first = open_database();
	second = open_database();
	second.store->silence_ms = 100;
	expect_ok(first.store->driver->lock_schema(first.connection, &error), &error);
	assert_int_equal(pthread_create(&thread, NULL, lock_schema_in_thread, &second), 0);
	nanosleep(&longer, NULL);
	close_database(&first);
	pthread_join(thread, NULL);
	close_database(&second);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		DATABASE_TEST(test_open_twice_keeps_the_schema_and_the_lineage),
		DATABASE_TEST(test_second_process_on_one_file_is_refused),
		DATABASE_TEST(test_database_of_a_newer_program_is_refused),
		DATABASE_TEST(test_wrong_urls_are_refused_with_a_reason),
		DATABASE_TEST(test_file_that_is_no_database_is_refused_and_kept),
		DATABASE_TEST(test_file_is_for_its_owner_alone),
		DATABASE_TEST(test_memory_database_is_shared_by_connections_of_its_store_only),
		DATABASE_TEST(test_values_come_back_as_they_went_in),
		DATABASE_TEST(test_a_long_migration_is_waited_for),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
