#include "control/control.h"
#include "lib/test.h"
#include "serve/outward.h"
#include "store/store.h"

static bool refuse_body(struct store_connection *connection, void *argument, struct error *error)
{
	(void)connection, (void)argument;
	return error_set(error, ERROR_UNAVAILABLE, "the secret key file can't be used");
}

static bool broken_body(struct store_connection *connection, void *argument, struct error *error)
{
	(void)argument;
	return store_exec(connection, "INSERT INTO nowhere (x) VALUES (1)", STORE_NO_PARAMS, error);
}

static bool fine_body(struct store_connection *connection, void *argument, struct error *error)
{
	(void)connection, (void)argument, (void)error;
	return true;
}

struct fixture {
	struct store *store;
	struct control control;
};

static int setup(void **state)
{
	struct fixture *fixture = mem_alloc(sizeof *fixture);
	struct error error;

	expect_ok(store_open("sqlite::memory:", &fixture->store, &error), &error);
	expect_ok(store_connect(fixture->store, &fixture->control.connection, &error), &error);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	store_disconnect(fixture->control.connection);
	store_destroy(fixture->store);
	free(fixture);
	return 0;
}

static void test_what_the_database_says_is_not_for_outside(void **state)
{
	struct fixture *fixture = *state;
	struct error error;

	assert_false(
		store_run(fixture->control.connection, STORE_WRITE, broken_body, NULL, &error));
	assert_non_null(strstr(error.what, "nowhere"));
	outward_logged(&fixture->control, "node", "node_1", &error);
	assert_int_equal(error.code, ERROR_INTERNAL);
	assert_string_equal(error.what, "the database failed");
	assert_non_null(strstr(error.hint, "log"));
	store_set_deadline(fixture->control.connection, (struct mono){1});
	assert_false(store_run(fixture->control.connection, STORE_READ, fine_body, NULL, &error));
	assert_true(outward(&fixture->control, &error));
	assert_int_equal(error.code, ERROR_UNAVAILABLE);
	assert_string_equal(error.what, "the database can't be asked now");
}

static void test_what_we_say_ourselves_is_told(void **state)
{
	struct fixture *fixture = *state;
	struct error error;

	assert_false(store_run(fixture->control.connection, STORE_READ, refuse_body, NULL, &error));
	assert_false(outward(&fixture->control, &error));
	assert_string_equal(error.what, "the secret key file can't be used");
	/* One before doesn't count. */
	assert_false(
		store_run(fixture->control.connection, STORE_WRITE, broken_body, NULL, &error));
	expect_ok(store_run(fixture->control.connection, STORE_READ, fine_body, NULL, &error),
		  &error);
	error_set(&error, ERROR_UNAVAILABLE, "the control plane is stopping");
	assert_false(outward(&fixture->control, &error));
	/* Nor does what the caller is to blame for. */
	assert_false(
		store_run(fixture->control.connection, STORE_WRITE, broken_body, NULL, &error));
	error_set(&error, ERROR_CONFLICT, "it is booked");
	assert_false(outward(&fixture->control, &error));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_the_database_says_is_not_for_outside,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_we_say_ourselves_is_told, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
