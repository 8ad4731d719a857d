/* Transactions: their time, their turn, what becomes of one that loses, fails or is cut off. */
#include "unit/store/opened.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static bool time_body(struct store_connection *connection, void *argument, struct error *error)
{
	(void)error;
	*(int64_t *)argument = store_now(connection).ms;
	return true;
}

static void test_time_is_the_transactions(void **state)
{
	struct opened opened = open_database();
	int64_t seen = 0;
	struct error error;

	(void)state;
	database_set_time(DATABASE_EPOCH_MS + 123);
	expect_ok(store_run(opened.connection, STORE_WRITE, time_body, &seen, &error), &error);
	assert_true(seen == DATABASE_EPOCH_MS + 123);
	close_database(&opened);
}

struct waiter {
	struct store_connection *connection;
	int64_t seen;
};

static void *write_in_thread(void *argument)
{
	struct waiter *waiter = argument;
	struct error error;

	expect_ok(store_run(waiter->connection, STORE_WRITE, time_body, &waiter->seen, &error),
		  &error);
	return NULL;
}

struct first_writer {
	struct waiter waiter;
	pthread_t thread;
	int64_t ended_ms; /* by the server's clock */
};

/* Has the writers' lock while the other one begins. */
static bool first_writer_body(struct store_connection *connection, void *argument,
			      struct error *error)
{
	const struct timespec while_it_waits = {.tv_nsec = 200000000};
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct first_writer *first = argument;

	assert_int_equal(pthread_create(&first->thread, NULL, write_in_thread, &first->waiter), 0);
	nanosleep(&while_it_waits, NULL);
	if (!store_query(connection,
			 "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint",
			 STORE_NO_PARAMS, &rows, error))
		return false;
	first->ended_ms = store_get_int(&rows, 0, 0);
	return true;
}

/* Who waited for another writer doesn't write an older time over its newer one. The server's own
 * clock is asked: it comes first where the schema alone is searched. */
static void test_time_grows_from_writer_to_writer(void **state)
{
	struct first_writer first = {0};
	struct store *store;
	struct store_connection *connection;
	char url[1200];
	struct error error;

	(void)state;
	if (!database_is_postgres())
		return;
	snprintf(url, sizeof url, "%s options='-c search_path=public'", database_url());
	expect_ok(store_open(url, &store, &error), &error);
	expect_ok(store_connect(store, &connection, &error), &error);
	expect_ok(store_connect(store, &first.waiter.connection, &error), &error);
	expect_ok(store_run(connection, STORE_WRITE, first_writer_body, &first, &error), &error);
	pthread_join(first.thread, NULL);
	assert_true(first.waiter.seen >= first.ended_ms);
	store_disconnect(connection);
	store_disconnect(first.waiter.connection);
	store_destroy(store);
}

/* --- waiting for a writer --- */

#define BREAK_OFF                                                                                  \
	"SELECT count(pg_cancel_backend(pid)) FROM pg_locks WHERE NOT granted AND database = "     \
	"(SELECT oid FROM pg_database WHERE datname = current_database())"

struct broken_off {
	struct store_connection *connection;
	bool done;
	struct error error;
};

static void *wait_in_thread(void *argument)
{
	struct broken_off *waiter = argument;

	waiter->done = run_sql(waiter->connection, "DELETE FROM meta WHERE name = 'none'",
			       STORE_NO_PARAMS, &waiter->error);
	return NULL;
}

/* Holds the writers' lock until the other's wait for it was broken off. */
static bool break_off_body(struct store_connection *connection, void *argument, struct error *error)
{
	struct broken_off waiter = {.connection = argument};
	pthread_t thread;
	int64_t ended = 0;

	assert_int_equal(pthread_create(&thread, NULL, wait_in_thread, &waiter), 0);
	for (int i = 0; i < 1000 && ended == 0; i++) {
		CLEANUP(store_rows) struct store_rows rows = {0};

		if (!store_query(connection, BREAK_OFF, STORE_NO_PARAMS, &rows, error))
			return false;
		ended = store_get_int(&rows, 0, 0);
		usleep(10000);
	}
	pthread_join(thread, NULL);
	assert_int_equal(ended, 1);
	expect_error(waiter.done, &waiter.error, ERROR_UNAVAILABLE, "begin");
	return true;
}

/* What had begun, and got no further, doesn't stay in the way. */
static void test_wait_for_a_writer_that_is_broken_off_is_over(void **state)
{
	struct opened opened = open_database();
	struct store_connection *other;
	struct error error;

	(void)state;
	expect_ok(store_connect(opened.store, &other, &error), &error);
	if (database_is_postgres())
		expect_ok(store_run(opened.connection, STORE_WRITE, break_off_body, other, &error),
			  &error);
	expect_ok(run_sql(other, "INSERT INTO meta (name, value) VALUES ('after', 'x')",
			  STORE_NO_PARAMS, &error),
		  &error);
	store_disconnect(other);
	close_database(&opened);
}

/* --- transactions --- */

static bool double_body(struct store_connection *connection, void *argument, struct error *error)
{
	static const char sql[] = "INSERT INTO meta (name, value) VALUES ('double', 'x')";
	const bool *says_yes = argument;

	return store_exec(connection, sql, STORE_NO_PARAMS, error) &&
	       store_exec(connection, sql, STORE_NO_PARAMS, error) &&
	       (*says_yes || error_set(error, ERROR_NOT_FOUND, "the body says no"));
}

/* The last statement may still be on its way when the body ends: what it says counts, whatever the
 * body says. */
static void test_statement_that_fails_last_is_heard_of(void **state)
{
	struct opened opened = open_database();
	struct error error;

	(void)state;
	for (int says_yes = 0; says_yes < 2; says_yes++) {
		expect_error(store_run(opened.connection, STORE_WRITE, double_body,
				       &(bool){says_yes}, &error),
			     &error, ERROR_CONFLICT, "statement");
		assert_true(store_is_to_blame(opened.connection));
	}
	expect_ok(run_sql(opened.connection,
			  "INSERT INTO meta (name, value) VALUES ('double', 'x')", STORE_NO_PARAMS,
			  &error),
		  &error);
	close_database(&opened);
}

static bool half_body(struct store_connection *connection, void *argument, struct error *error)
{
	(void)argument;
	if (!store_exec(connection, "INSERT INTO meta (name, value) VALUES ('half', 'done')",
			STORE_NO_PARAMS, error))
		return false;
	return error_set(error, ERROR_FORBIDDEN, "the rule says no");
}

static void test_refused_body_leaves_nothing(void **state)
{
	struct opened opened = open_database();
	struct error error;

	(void)state;
	for (int i = 0; i < 2; i++)
		expect_error(store_run(opened.connection, STORE_WRITE, half_body, NULL, &error),
			     &error, ERROR_FORBIDDEN, "the rule says no");
	expect_ok(run_sql(opened.connection, "INSERT INTO meta (name, value) VALUES ('half', 'x')",
			  STORE_NO_PARAMS, &error),
		  &error);
	close_database(&opened);
}

/* Reads, then writes what it read plus one: lost updates would show. */
static bool increment_body(struct store_connection *connection, void *argument, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	(void)argument;
	if (!store_query(connection, "SELECT value FROM counters WHERE name = 'test'",
			 STORE_NO_PARAMS, &rows, error))
		return false;
	return store_exec(connection, "UPDATE counters SET value = $1 WHERE name = 'test'",
			  STORE_PARAMS(store_int(store_get_int(&rows, 0, 0) + 1)), error);
}

#define INCREMENTS 50

static void *increment_thread(void *argument)
{
	struct store_connection *connection = argument;
	struct error error;

	for (int i = 0; i < INCREMENTS; i++) {
		if (!store_run(connection, STORE_WRITE, increment_body, NULL, &error)) {
			fprintf(stderr, "%s\n", error.what);
			return connection;
		}
	}
	return NULL;
}

static bool counter_body(struct store_connection *connection, void *argument, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(connection, "SELECT value FROM counters WHERE name = 'test'",
			 STORE_NO_PARAMS, &rows, error))
		return false;
	*(int64_t *)argument = store_get_int(&rows, 0, 0);
	return true;
}

static void test_racing_transactions_lose_no_update(void **state)
{
	struct opened opened = open_database();
	struct store_connection *connections[3];
	pthread_t threads[3];
	int64_t value = 0;
	struct error error;

	(void)state;
	expect_ok(run_sql(opened.connection,
			  "INSERT INTO counters (name, value) VALUES ('test', 0)", STORE_NO_PARAMS,
			  &error),
		  &error);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		expect_ok(store_connect(opened.store, &connections[i], &error), &error);
		pthread_create(&threads[i], NULL, increment_thread, connections[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		assert_null(failed);
		store_disconnect(connections[i]);
	}
	expect_ok(store_run(opened.connection, STORE_READ, counter_body, &value, &error), &error);
	assert_int_equal(value, ARRAY_SIZE(threads) * INCREMENTS);
	close_database(&opened);
}

static void test_broken_connection_is_made_again(void **state)
{
	struct opened opened = open_database();
	struct opened other = {0};
	struct error error;

	(void)state;
	if (database_is_postgres()) {
		other = open_database();
		/* Everybody else's connection to this database is cut. */
		expect_ok(run_sql(other.connection,
				  "INSERT INTO meta (name, value) SELECT 'cut', "
				  "CAST(count(pg_terminate_backend(pid)) AS TEXT) "
				  "FROM pg_stat_activity WHERE datname = current_database() AND "
				  "pid <> pg_backend_pid() AND application_name <> 'admin'",
				  STORE_NO_PARAMS, &error),
			  &error);
		close_database(&other);
	}
	expect_ok(run_sql(opened.connection, "INSERT INTO meta (name, value) VALUES ('a', 'b')",
			  STORE_NO_PARAMS, &error),
		  &error);
	close_database(&opened);
}

struct cut {
	struct store_connection *other;
	int tries;
};

static bool cut_others_body(struct store_connection *connection, void *argument,
			    struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	(void)argument;
	return store_query(connection,
			   "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
			   "current_database() AND pid <> pg_backend_pid() AND application_name <> "
			   "'admin'",
			   STORE_NO_PARAMS, &rows, error);
}

static bool cut_halfway_body(struct store_connection *connection, void *argument,
			     struct error *error)
{
	struct cut *cut = argument;
	struct error cut_error;

	if (!store_exec(connection, "INSERT INTO meta (name, value) VALUES ('early', 'x')",
			STORE_NO_PARAMS, error))
		return false;
	if (++cut->tries == 1 && database_is_postgres())
		expect_ok(store_run(cut->other, STORE_READ, cut_others_body, NULL, &cut_error),
			  &cut_error);
	return store_exec(connection, "INSERT INTO meta (name, value) VALUES ('late', 'x')",
			  STORE_NO_PARAMS, error);
}

static void test_connection_cut_while_statements_are_on_their_way(void **state)
{
	struct opened opened = open_database();
	struct cut cut = {0};
	struct error error;

	(void)state;
	expect_ok(store_connect(opened.store, &cut.other, &error), &error);
	expect_ok(store_run(opened.connection, STORE_WRITE, cut_halfway_body, &cut, &error),
		  &error);
	assert_int_equal(cut.tries, database_is_postgres() ? 2 : 1);
	store_disconnect(cut.other);
	close_database(&opened);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		DATABASE_TEST(test_time_is_the_transactions),
		DATABASE_TEST(test_time_grows_from_writer_to_writer),
		DATABASE_TEST(test_wait_for_a_writer_that_is_broken_off_is_over),
		DATABASE_TEST(test_refused_body_leaves_nothing),
		DATABASE_TEST(test_statement_that_fails_last_is_heard_of),
		DATABASE_TEST(test_connection_cut_while_statements_are_on_their_way),
		DATABASE_TEST(test_racing_transactions_lose_no_update),
		DATABASE_TEST(test_broken_connection_is_made_again),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
