#include "cli/when.h"
#include "lib/test.h"

static const struct wall NOW = {INT64_C(1795995200000)}; /* 2026-11-29T23:33:20Z */

static void test_times_read_and_written(void **state)
{
	static const struct {
		const char *text, *same;
	} good[] = {
		{"2026-11-30T00:12:00.000Z", "2026-11-30T00:12:00.000Z"},
		{"2026-11-30T01:12:00+01:00", "2026-11-30T00:12:00.000Z"},
		{"2026-11-29t19:12:00.5-05:00", "2026-11-30T00:12:00.500Z"},
		{"2026-11-30 00:12:00.123456789Z", "2026-11-30T00:12:00.123Z"},
		{"2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000Z"},
		{"1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"},
		{"1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"},
	};
	static const char *const bad[] = {
		"",
		"8h",
		"2026-11-30",
		"2026-11-30T00:12:00",
		"2026-13-01T00:00:00Z",
		"2026-02-30T00:00:00Z",
		"2025-02-29T00:00:00Z",
		"2026-11-30T24:00:00Z",
		"2026-11-30T00:60:00Z",
		"2026-11-30T00:12:00Zx",
		"2026-11-30T00:12:00.Z",
		"2026-11-30T00:12:00+1:00",
		"20261130T001200Z",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct wall time;
		char text[WHEN_SIZE];
		if (!when_parse(good[i].text, &time))
			fail_msg("'%s' was refused", good[i].text);
		when_format(text, time);
		assert_string_equal(text, good[i].same);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct wall time;
		if (when_parse(bad[i], &time))
			fail_msg("'%s' was taken", bad[i]);
	}
}

static void test_times_for_people(void **state)
{
	char text[WHEN_SIZE];

	(void)state;
	when_format_exact(text, NOW);
	assert_string_equal(text, "2026-11-29 23:33 UTC");
	when_format_second(text, NOW);
	assert_string_equal(text, "2026-11-29 23:33:20 UTC");
	when_format_relative(text, (struct wall){NOW.ms + 8 * 3600000 - 1000}, NOW);
	assert_string_equal(text, "in 7 h 59 min");
	when_format_relative(text, (struct wall){NOW.ms - 360000}, NOW);
	assert_string_equal(text, "6 min ago");
	when_format_relative(text, (struct wall){NOW.ms + 999}, NOW);
	assert_string_equal(text, "now");
}

static void test_start_times_as_typed(void **state)
{
	struct error error = {0};
	struct wall time;

	(void)state;
	expect_ok(when_parse_start("8h", "--start", NOW, &time, &error), &error);
	assert_int_equal(time.ms, NOW.ms + 8 * 3600000);
	expect_ok(when_parse_start("2026-11-30T00:00:00Z", "--start", NOW, &time, &error), &error);
	assert_int_equal(time.ms, NOW.ms + 1600000);
	expect_error(when_parse_start("tomorrow", "--start", NOW, &time, &error), &error,
		     ERROR_INVALID_INPUT, "--start: 'tomorrow' is not a time");
	expect_error(when_parse_start("400d", "--start", NOW, &time, &error), &error,
		     ERROR_INVALID_INPUT, "--start");
}

static void test_times_in_the_past(void **state)
{
	struct error error = {0};
	struct wall time;

	(void)state;
	expect_ok(when_parse_past("7d", "--from", NOW, &time, &error), &error);
	assert_int_equal(time.ms, NOW.ms - INT64_C(7) * 86400 * 1000);
	expect_ok(when_parse_past("2026-11-30T00:00:00Z", "--from", NOW, &time, &error), &error);
	assert_int_equal(time.ms, INT64_C(1795996800000));
	expect_error(when_parse_past("yesterday", "--from", NOW, &time, &error), &error,
		     ERROR_INVALID_INPUT, "--from: 'yesterday' is not a time");
	assert_non_null(strstr(error.hint, "ago such as 7d"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times_read_and_written),
		cmocka_unit_test(test_times_for_people),
		cmocka_unit_test(test_start_times_as_typed),
		cmocka_unit_test(test_times_in_the_past),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
