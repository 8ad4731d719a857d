#include "base/duration.h"

#include "lib/test.h"

#define HOUR_MS 3600000

/* proves: RES-49 */
static void test_durations_are_read(void **state UNUSED)
{
	static const struct {
		const char *text;
		int64_t ms;
	} CASES[] = {
		{"1s", 1000},
		{"90s", 90000},
		{"8h", 8 * HOUR_MS},
		{"1h30m", 90 * 60000},
		{"7d", 168 * HOUR_MS},
		{"1d2h3m4s", 26 * HOUR_MS + 184000},
		{"0s", 0},
	};
	struct error error;
	int64_t ms;

	for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
		expect_ok(duration_parse(CASES[i].text, "duration", 0, INT64_MAX, &ms, &error),
			  &error);
		assert_int_equal(ms, CASES[i].ms);
	}
}

/* proves: RES-49 */
static void test_anything_else_is_refused_by_field(void **state UNUSED)
{
	static const char *const BAD[] = {
		"",
		"8",
		"h",
		"8 h",
		"-1h",
		"+1h",
		"1.5h",
		"1h1h",
		"1m1h",
		"8H",
		"1h30",
		"1ms",
		"1w",
		" 1h",
		"1h ",
		"0x1h",
		"99999999999999999999s",
		"9223372036854775807d",
	};
	struct error error;
	int64_t ms = -1;

	for (size_t i = 0; i < ARRAY_SIZE(BAD); i++) {
		expect_error(duration_parse(BAD[i], "duration", 0, INT64_MAX, &ms, &error), &error,
			     ERROR_INVALID_INPUT, "duration: '");
		assert_string_equal(error.field, "duration");
		assert_int_equal(ms, -1);
	}
}

static void test_the_range_is_closed(void **state UNUSED)
{
	struct error error;
	int64_t ms;

	expect_ok(duration_parse("1m", "for", 60000, 60000, &ms, &error), &error);
	expect_error(duration_parse("59s", "for", 60000, HOUR_MS, &ms, &error), &error,
		     ERROR_INVALID_INPUT, "for: '59s' is not between 1m and 1h");
	expect_error(duration_parse("1h1s", "for", 60000, HOUR_MS, &ms, &error), &error,
		     ERROR_INVALID_INPUT, "not between");
	expect_error(duration_parse("8hours", "for", 60000, HOUR_MS, &ms, &error), &error,
		     ERROR_INVALID_INPUT, "for: '8hours' is not a duration");
	assert_string_equal(error.hint,
			    "Its units are d, h, m and s, the larger first; it is from 1m to 1h.");
}

static void test_formats_read_back(void **state UNUSED)
{
	static const int64_t CASES[] = {0,        1000,      61000,         3600000,
					90000000, 694861000, 86400000000000};
	char text[DURATION_TEXT_SIZE];
	struct error error;
	int64_t ms;

	for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
		duration_format(text, CASES[i]);
		expect_ok(duration_parse(text, "x", 0, INT64_MAX, &ms, &error), &error);
		assert_int_equal(ms, CASES[i]);
	}
}

static void test_for_people(void **state UNUSED)
{
	static const struct {
		int64_t ms;
		const char *text;
	} CASES[] = {
		{0, "0 ms"},          {40, "40 ms"},
		{12999, "12 s"},      {60000, "1 min"},
		{61000, "1 min 1 s"}, {8 * HOUR_MS - 60000, "7 h 59 min"},
		{8 * HOUR_MS, "8 h"}, {76 * (int64_t)HOUR_MS, "3 d 4 h"},
	};
	char text[DURATION_TEXT_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
		duration_format_short(text, CASES[i].ms);
		assert_string_equal(text, CASES[i].text);
	}
	duration_format_short(text, INT64_MAX);
	duration_format(text, INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_durations_are_read),
		cmocka_unit_test(test_anything_else_is_refused_by_field),
		cmocka_unit_test(test_the_range_is_closed),
		cmocka_unit_test(test_formats_read_back),
		cmocka_unit_test(test_for_people),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
