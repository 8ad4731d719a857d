#include "unit/store/database.h"

#include "store/driver.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct opened {
	struct store *store;
	struct store_connection *connection;
};

static struct opened open_database(void)
{
	struct opened opened;
	struct error error;

	expect_ok(store_open(database_url(), &opened.store, &error), &error);
	expect_ok(store_connect(opened.store, &opened.connection, &error), &error);
	return opened;
}

static void close_database(struct opened *opened)
{
	store_disconnect(opened->connection);
	store_destroy(opened->store);
}

/* Runs one statement in a transaction of its own. */
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

static bool run_sql(struct store_connection *connection, const char *sql,
		    const struct store_value *params, size_t count, struct error *error)
{
	struct statement statement = {sql, params, count};

	return store_run(connection, STORE_WRITE, statement_body, &statement, error);
}

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

/* A client that reads RESOURCES_EXHAUSTED thinks of a quota, and doesn't try again. */
static void test_a_full_disk_may_be_tried_again(void **state)
{
	struct opened opened = open_database();
	struct error error;

	(void)state;
	if (database_is_postgres()) {
		expect_error(run_sql(opened.connection, "DO 'BEGIN RAISE disk_full; END'",
				     STORE_NO_PARAMS, &error),
			     &error, ERROR_UNAVAILABLE, "disk_full");
		close_database(&opened);
		return;
	}
	expect_ok(run_sql(opened.connection, "PRAGMA max_page_count = 1", STORE_NO_PARAMS, &error),
		  &error);
	expect_error(run_sql(opened.connection,
			     "INSERT INTO meta (name, value) VALUES ('big', hex(zeroblob(100000)))",
			     STORE_NO_PARAMS, &error),
		     &error, ERROR_UNAVAILABLE, "full");
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

/* --- bookings --- */

#define BOOK                                                                                       \
	"INSERT INTO bookings (allocation, gpu, leaf_lo, leaf_hi, from_ms, to_ms, held) "          \
	"VALUES ($1, $2, $3, $4, $5, $6, $7)"

static bool book(struct store_connection *connection, const char *allocation, const char *gpu,
		 int64_t lo, int64_t hi, int64_t from, int64_t to, int64_t held,
		 struct error *error)
{
	return run_sql(connection, BOOK,
		       STORE_PARAMS(store_text(allocation), store_text(gpu), store_int(lo),
				    store_int(hi), store_int(from), store_int(to), store_int(held)),
		       error);
}

/* The rows that bookings hang on. */
static void make_allocations(struct store_connection *connection)
{
	static const char *const sql[] = {
		"INSERT INTO tenants (id, name, created_ms) VALUES ('t', 't', 0)",
		"INSERT INTO sites (id, tenant, name, kind, created_ms) VALUES ('s', 't', 's', "
		"'custom', 0)",
		"INSERT INTO pools (id, tenant, site, name, class, gpu_model, policy, version, "
		"state, created_ms) VALUES ('p', 't', 's', 'p', 'metal-host', 'H100', '{}', 1, "
		"'active', 0)",
		"INSERT INTO join_tokens (id, pool, hosted, hash, max_uses, uses, expires_ms, "
		"revoked_ms, created_ms) VALUES ('jt', 'p', NULL, 'h', 1, 1, 0, NULL, 0)",
		"INSERT INTO nodes (id, pool, join_token, machine_key, smbios_uuid, trust, "
		"state, hostname, kubernetes_node_name, boot_id, bcd_version, kernel, "
		"driver_version, gpu_api, capabilities, vcpus, memory_bytes, simulated, "
		"simulated_reason, has_inventory, has_conditions, spec_generation, "
		"sent_generation, stored_generation, hello_sequence, acknowledged, created_ms) "
		"VALUES ('n', 'p', 'jt', 'k', '', 'tenant-owned', 'ready', '', "
		"'', '', '', '', '', '', '[]', 0, 0, 0, '', 0, 0, 0, 0, 0, 0, 0, 0)",
		"INSERT INTO reservations (id, tenant, pool, state, state_reason, binding, "
		"devices, duration_ms, start_ms, from_ms, end_ms, vcpus, memory_bytes, reasons, "
		"created_ms, release_ms) VALUES ('r', 't', 'p', 'placed', '', 'kubernetes', '[]', "
		"1, NULL, NULL, NULL, NULL, NULL, '[]', 0, NULL)",
	};
	static const char *const ids[] = {"a", "b", "c", "d"};
	struct error error;

	for (size_t i = 0; i < ARRAY_SIZE(sql); i++)
		expect_ok(run_sql(connection, sql[i], STORE_NO_PARAMS, &error), &error);
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		expect_ok(run_sql(connection,
				  "INSERT INTO allocations (id, reservation, node, state, from_ms, "
				  "to_ms, vcpus, "
				  "memory_bytes, limited, assigned_generation, "
				  "withdrawn_generation, bound_ms, "
				  "releasing_ms, released_ms, lost_reason, lost_ms, end_reason, "
				  "created_ms) VALUES ($1, 'r', 'n', 'placed', 0, 1, 0, "
				  "0, 0, NULL, NULL, NULL, NULL, NULL, '', NULL, '', 0)",
				  STORE_PARAMS(store_text(ids[i])), &error),
			  &error);
}

/* The database itself refuses what overlaps, whoever wrote the SQL.
 * proves: RES-19 RES-26 */
static void test_database_refuses_overlapping_bookings(void **state)
{
	static const struct {
		int64_t lo, hi, from, to, held;
		const char *gpu;
		bool refused;
	} rows[] = {
		{0, 1024, 100, 200, 0, "g", true},    /* the same */
		{0, 128, 150, 160, 0, "g", true},     /* a part, inside */
		{896, 1024, 199, 300, 0, "g", true},  /* the last part, by one millisecond */
		{0, 1024, 0, 101, 0, "g", true},      /* by one millisecond before */
		{0, 1024, 200, 300, 0, "g", false},   /* right after */
		{0, 1024, 0, 100, 0, "g", false},     /* right before */
		{0, 1024, 100, 200, 0, "h", false},   /* another GPU */
		{0, 1024, 0, 100, 1, "g", true},      /* right before, but held without end */
		{0, 1024, 200, 300, 1, "g", false},   /* right after, held */
		{512, 1024, 300, 400, 0, "g", false}, /* later */
	};
	struct opened opened = open_database();
	struct error error;

	(void)state;
	make_allocations(opened.connection);
	expect_ok(book(opened.connection, "a", "g", 0, 1024, 100, 200, 0, &error), &error);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		bool done = book(opened.connection, "b", rows[i].gpu, rows[i].lo, rows[i].hi,
				 rows[i].from, rows[i].to, rows[i].held, &error);

		if (done == rows[i].refused)
			fail_msg("row %zu: %s", i, done ? "was let in" : error.what);
		if (done)
			expect_ok(run_sql(opened.connection,
					  "DELETE FROM bookings WHERE allocation = 'b'",
					  STORE_NO_PARAMS, &error),
				  &error);
		else {
			assert_int_equal(error.code, ERROR_CONFLICT);
			assert_non_null(strstr(error.what, "bookings_no_overlap"));
		}
	}
	close_database(&opened);
}

/* proves: RES-26 */
static void test_database_refuses_growing_into_another_booking(void **state)
{
	struct opened opened = open_database();
	struct error error;

	(void)state;
	make_allocations(opened.connection);
	expect_ok(book(opened.connection, "a", "g", 0, 512, 100, 200, 0, &error), &error);
	expect_ok(book(opened.connection, "b", "g", 0, 512, 300, 400, 0, &error), &error);
	expect_ok(book(opened.connection, "c", "g", 512, 1024, 100, 200, 0, &error), &error);
	/* Up to the next one, beside another part: fine; then not one millisecond more. */
	const char *grow = "UPDATE bookings SET to_ms = $1, held = $2 WHERE allocation = 'a'";
	expect_ok(run_sql(opened.connection, grow, STORE_PARAMS(store_int(300), store_int(0)),
			  &error),
		  &error);
	expect_error(run_sql(opened.connection, grow, STORE_PARAMS(store_int(301), store_int(0)),
			     &error),
		     &error, ERROR_CONFLICT, "bookings_no_overlap");
	expect_error(run_sql(opened.connection, grow, STORE_PARAMS(store_int(300), store_int(1)),
			     &error),
		     &error, ERROR_CONFLICT, "bookings_no_overlap");
	/* Held: nothing later fits any more, at any time. */
	expect_ok(run_sql(opened.connection, "UPDATE bookings SET held = 1 WHERE allocation = 'c'",
			  STORE_NO_PARAMS, &error),
		  &error);
	expect_error(book(opened.connection, "d", "g", 1000, 1024, INT64_MAX / 4, INT64_MAX / 2, 0,
			  &error),
		     &error, ERROR_CONFLICT, "bookings_no_overlap");
	/* Out of bounds. */
	expect_error(book(opened.connection, "d", "x", 0, 1025, 1, 2, 0, &error), &error,
		     ERROR_CONFLICT, "");
	expect_error(book(opened.connection, "d", "x", 5, 5, 1, 2, 0, &error), &error,
		     ERROR_CONFLICT, "");
	expect_error(book(opened.connection, "d", "x", 0, 5, 2, 2, 0, &error), &error,
		     ERROR_CONFLICT, "");
	/* Bookings belong to an allocation. */
	expect_error(book(opened.connection, "nobody", "x", 0, 5, 1, 2, 0, &error), &error,
		     ERROR_CONFLICT, "");
	close_database(&opened);
}

#define DATABASE_TEST(function)                                                                    \
	cmocka_unit_test_setup_teardown(function, database_setup, database_teardown)

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
		DATABASE_TEST(test_time_is_the_transactions),
		DATABASE_TEST(test_time_grows_from_writer_to_writer),
		DATABASE_TEST(test_wait_for_a_writer_that_is_broken_off_is_over),
		DATABASE_TEST(test_refused_body_leaves_nothing),
		DATABASE_TEST(test_statement_that_fails_last_is_heard_of),
		DATABASE_TEST(test_connection_cut_while_statements_are_on_their_way),
		DATABASE_TEST(test_a_full_disk_may_be_tried_again),
		DATABASE_TEST(test_racing_transactions_lose_no_update),
		DATABASE_TEST(test_broken_connection_is_made_again),
		DATABASE_TEST(test_database_refuses_overlapping_bookings),
		DATABASE_TEST(test_database_refuses_growing_into_another_booking),
		DATABASE_TEST(test_a_long_migration_is_waited_for),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
