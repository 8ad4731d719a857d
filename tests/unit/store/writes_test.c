/* Writes that fail: what is said of them, and until when. */
#include "unit/store/opened.h"

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

/* Whoever asks whether it is ready hears of it, and of its end; what is refused by the rules is no such
 * failure. proves: ADM-10 */
static void test_writes_that_fail_are_told(void **state UNUSED)
{
	struct opened opened = open_database();
	struct error error;

	expect_ok(store_check_writes(opened.connection, &error), &error);
	expect_error(run_sql(opened.connection, "INSERT INTO meta (name, value) VALUES ('a', NULL)",
			     STORE_NO_PARAMS, &error),
		     &error, ERROR_CONFLICT, "");
	expect_ok(store_check_writes(opened.connection, &error), &error);
	if (database_is_postgres()) {
		expect_ok(run_sql(opened.connection,
				  "ALTER TABLE meta ADD CONSTRAINT no_probe CHECK (length(value) < "
				  "100000) NOT VALID",
				  STORE_NO_PARAMS, &error),
			  &error);
		expect_error(run_sql(opened.connection, "DO 'BEGIN RAISE disk_full; END'",
				     STORE_NO_PARAMS, &error),
			     &error, ERROR_UNAVAILABLE, "disk_full");
	} else {
		expect_ok(run_sql(opened.connection, "PRAGMA max_page_count = 1", STORE_NO_PARAMS,
				  &error),
			  &error);
		expect_error(run_sql(opened.connection,
				     "INSERT INTO meta (name, value) VALUES ('big', "
				     "hex(zeroblob(100000)))",
				     STORE_NO_PARAMS, &error),
			     &error, ERROR_UNAVAILABLE, "full");
	}
	expect_error(store_check_writes(opened.connection, &error), &error, ERROR_UNAVAILABLE,
		     "writes to the database fail");
	if (!database_is_postgres())
		assert_non_null(strstr(error.what, "full"));
	assert_false(store_is_to_blame(opened.connection)); /* or nobody would hear of it */
	expect_error(store_check_writes(opened.connection, &error), &error, ERROR_UNAVAILABLE,
		     "writes to the database fail");
	expect_ok(run_sql(opened.connection,
			  database_is_postgres() ? "ALTER TABLE meta DROP CONSTRAINT no_probe"
						 : "PRAGMA max_page_count = 100000",
			  STORE_NO_PARAMS, &error),
		  &error);
	expect_ok(store_check_writes(opened.connection, &error), &error);
	expect_ok(store_check_writes(opened.connection, &error), &error);
	close_database(&opened);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		DATABASE_TEST(test_a_full_disk_may_be_tried_again),
		DATABASE_TEST(test_writes_that_fail_are_told),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
