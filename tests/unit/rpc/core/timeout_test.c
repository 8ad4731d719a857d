#include "rpc/core/timeout.h"

#include "lib/test.h"

static void test_parse(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t ms;
	} cases[] = {
		{"0m", 0},          {"1m", 1},       {"99999999m", 99999999},
		{"1S", 1000},       {"2M", 120000},  {"99999999H", INT64_C(359999996400000)},
		{"1u", 1},          {"1000u", 1},    {"1001u", 2},
		{"1n", 1},          {"1000000n", 1}, {"1000001n", 2},
		{"00000100m", 100},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int64_t ms = -1;
		assert_true(
			timeout_parse((const uint8_t *)cases[i].text, strlen(cases[i].text), &ms));
		assert_int_equal(ms, cases[i].ms);
	}
}

static void test_malformed(void **state)
{
	(void)state;
	static const char *const cases[] = {"",    "m",    "1",   "100000000m", "12x", "-1S",
					    "+1S", "1.5S", " 1S", "1 S",        "1s",  "1Sm"};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int64_t ms = -1;
		assert_false(timeout_parse((const uint8_t *)cases[i], strlen(cases[i]), &ms));
		assert_int_equal(ms, -1);
	}
}

static void expect_format(int64_t ms, const char *text)
{
	char out[TIMEOUT_SIZE];
	timeout_format(out, ms);
	assert_string_equal(out, text);
}

static void test_format(void **state)
{
	(void)state;
	expect_format(-5, "1m");
	expect_format(0, "1m");
	expect_format(99999999, "99999999m");
	expect_format(100000000, "100000S");
	expect_format(100000001, "100001S"); /* never shorter than asked */
	expect_format(INT64_C(99999999000), "99999999S");
	expect_format(INT64_C(99999999001), "1666667M");
	expect_format(INT64_MAX, "99999999H");
}

static void test_round_trip(void **state)
{
	(void)state;
	for (int64_t ms = 1; ms < INT64_C(1) << 40; ms = ms * 3 + 1) {
		char out[TIMEOUT_SIZE];
		int64_t back;
		timeout_format(out, ms);
		assert_true(timeout_parse((const uint8_t *)out, strlen(out), &back));
		assert_true(back >= ms && back - ms < 60000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_round_trip),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
