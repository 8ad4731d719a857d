/*
 * test: the only place that includes cmocka.
 *
 * Each test binary: static void test_x(void **state) functions, then
 *     int main(void) { const struct CMUnitTest tests[] = {cmocka_unit_test(test_x), ...};
 *                      return cmocka_run_group_tests(tests, NULL, NULL); }
 * A comment above a test that says "proves:" and ids names the requirements which it proves
 * (scripts/check-requirements).
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"

/* Within it comes what must come and no requirement bounds, on a machine that is busy too; it costs only a test that
 * fails, and is shorter than meson's patience with one. */
#define TEST_PATIENCE_MS 20000

/* A call that must succeed; the failure's message is what the test prints. */
#define expect_ok(call, error)                                                                     \
	do {                                                                                       \
		(error)->what[0] = '\0';                                                           \
		if (!(call))                                                                       \
			fail_msg("%s: %s", #call, (error)->what);                                  \
	} while (0)

/* A call that must fail with this code, and whose message must hold this text. */
#define expect_error(call, error, wanted_code, text)                                               \
	do {                                                                                       \
		if (call)                                                                          \
			fail_msg("%s did not fail", #call);                                        \
		assert_string_equal(error_code_name((error)->code), error_code_name(wanted_code)); \
		if (!strstr((error)->what, text))                                                  \
			fail_msg("message \"%s\" lacks \"%s\"", (error)->what, text);              \
	} while (0)
