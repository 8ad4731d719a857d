#include "base/error.h"

#include "lib/test.h"

#include <errno.h>

static void test_messages_read_from_the_outside_in(void **state UNUSED)
{
	struct error error;

	errno = EACCES;
	assert_false(error_os(&error, "open '%s'", "/x"));
	assert_false(error_wrap(&error, "load %s", "pending releases"));
	assert_string_equal(error.what, "load pending releases: open '/x': Permission denied");
	assert_int_equal(error.code, ERROR_FORBIDDEN);
	assert_int_equal(error.os, EACCES);
	assert_false(error_hint(&error, "Run as %s.", "root"));
	assert_string_equal(error.hint, "Run as root.");
	error_wrap(&error, "again");
	assert_string_equal(error.hint, "Run as root.");
}

static void test_a_field_is_named(void **state UNUSED)
{
	struct error error;

	error_field(&error, "devices[0].count", "%d is too many", 9);
	assert_int_equal(error.code, ERROR_INVALID_INPUT);
	assert_string_equal(error.field, "devices[0].count");
	assert_string_equal(error.what, "devices[0].count: 9 is too many");
}

static void test_a_cut_shows_and_keeps_characters_whole(void **state UNUSED)
{
	char text[ERROR_WHAT_SIZE + 10];
	struct error error;

	for (size_t length = ERROR_WHAT_SIZE - 4; length < ERROR_WHAT_SIZE + 4; length++) {
		size_t at = 0;

		while (at + 2 <= length) {
			memcpy(text + at, "\xc3\xa4", 2);
			at += 2;
		}
		text[at] = '\0';
		error_set(&error, ERROR_INTERNAL, "%s", text);
		if (at < ERROR_WHAT_SIZE) {
			assert_string_equal(error.what, text);
			continue;
		}
		assert_true(str_ends(error.what, "\xa4\xe2\x80\xa6"));
		error_wrap(&error, "outside");
		assert_true(str_starts(error.what, "outside: "));
		assert_true(str_ends(error.what, "\xe2\x80\xa6"));
	}
}

static void test_errno_has_a_kind(void **state UNUSED)
{
	static const struct {
		int os;
		enum error_code code;
	} CASES[] = {
		{ENOENT, ERROR_NOT_FOUND},
		{EPERM, ERROR_FORBIDDEN},
		{ECONNREFUSED, ERROR_UNAVAILABLE},
		{EPIPE, ERROR_UNAVAILABLE},
		{ETIMEDOUT, ERROR_UNAVAILABLE},
		{ENOSPC, ERROR_INTERNAL},
		{EIO, ERROR_INTERNAL},
	};
	struct error error;

	for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
		errno = CASES[i].os;
		error_os(&error, "x");
		assert_int_equal(error.code, CASES[i].code);
	}
}

/* proves: POOL-25 */
static void test_every_code_has_its_answers(void **state UNUSED)
{
	static const struct {
		enum error_code code;
		const char *name;
		int http, exit;
	} ROWS[] = {
		{ERROR_INVALID_INPUT, "INVALID_INPUT", 400, 2},
		{ERROR_INVALID_CONFIG, "INVALID_CONFIG", 400, 2},
		{ERROR_UNAUTHENTICATED, "UNAUTHENTICATED", 401, 5},
		{ERROR_FORBIDDEN, "FORBIDDEN", 403, 5},
		{ERROR_NOT_FOUND, "NOT_FOUND", 404, 1},
		{ERROR_CONFLICT, "CONFLICT", 409, 3},
		{ERROR_INVALID_STATE, "INVALID_STATE", 409, 3},
		{ERROR_RESOURCES_EXHAUSTED, "RESOURCES_EXHAUSTED", 409, 3},
		{ERROR_RATE_LIMITED, "RATE_LIMITED", 429, 4},
		{ERROR_UNAVAILABLE, "UNAVAILABLE", 503, 4},
		{ERROR_INTERNAL, "INTERNAL", 500, 1},
	};
	enum error_code code = ERROR_NONE;

	for (size_t i = 0; i < ARRAY_SIZE(ROWS); i++) {
		assert_string_equal(error_code_name(ROWS[i].code), ROWS[i].name);
		assert_true(error_code_parse(ROWS[i].name, &code));
		assert_int_equal(code, ROWS[i].code);
		assert_int_equal(error_http_status(code), ROWS[i].http);
		assert_int_equal(error_exit_status(code), ROWS[i].exit);
		assert_in_range(error_grpc_status(code), 1, 16);
	}
	code = ERROR_CONFLICT;
	assert_false(error_code_parse("NO_SUCH", &code));
	assert_int_equal(code, ERROR_CONFLICT);
}

static void test_grpc_statuses_map_back(void **state UNUSED)
{
	assert_int_equal(error_code_from_grpc(0), ERROR_NONE);
	assert_int_equal(error_code_from_grpc(5), ERROR_NOT_FOUND);
	assert_int_equal(error_code_from_grpc(14), ERROR_UNAVAILABLE);
	assert_int_equal(error_code_from_grpc(4), ERROR_UNAVAILABLE); /* deadline */
	assert_int_equal(error_code_from_grpc(2), ERROR_INTERNAL);
	assert_int_equal(error_code_from_grpc(99), ERROR_INTERNAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages_read_from_the_outside_in),
		cmocka_unit_test(test_a_field_is_named),
		cmocka_unit_test(test_a_cut_shows_and_keeps_characters_whole),
		cmocka_unit_test(test_errno_has_a_kind),
		cmocka_unit_test(test_every_code_has_its_answers),
		cmocka_unit_test(test_grpc_statuses_map_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
