#include "control/core/timestamp.h"

#include "lib/test.h"

#include <stdio.h>
#include <time.h>

static void test_times_that_are_right(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} rows[] = {
		{"1970-01-01T00:00:00Z", 0},
		{"1970-01-01T00:00:00.001Z", 1},
		{"2026-11-30T02:00:00Z", 1796004000000},
		{"2026-11-30t02:00:00z", 1796004000000},
		{"2026-11-30T03:30:00+01:30", 1796004000000},
		{"2026-11-29T18:00:00-08:00", 1796004000000},
		{"2026-11-30T02:00:00.5Z", 1796004000500},
		{"2026-11-30T02:00:00.123456789Z", 1796004000123},
		{"2000-02-29T00:00:00Z", 951782400000},
		{"2024-02-29T23:59:59.999Z", 1709251199999},
		{"9999-12-31T23:59:59.999Z", 253402300799999},
	};
	struct wall time;
	struct error error;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		expect_ok(timestamp_parse(rows[i].text, "startAt", &time, &error), &error);
		if (time.ms != rows[i].ms)
			fail_msg("%s: %lld", rows[i].text, (long long)time.ms);
	}
}

static void test_times_that_are_wrong(void **state)
{
	static const char *const rows[] = {
		"",
		"now",
		"2026-11-30",
		"2026-11-30 02:00:00Z",
		"2026-11-30T02:00Z",
		"2026-11-30T02:00:00",
		"2026-13-01T00:00:00Z",
		"2026-00-01T00:00:00Z",
		"2026-11-31T00:00:00Z",
		"2025-02-29T00:00:00Z",
		"1900-02-29T00:00:00Z",
		"2026-11-30T24:00:00Z",
		"2026-11-30T02:60:00Z",
		"2026-11-30T02:00:60Z",
		"2026-11-30T02:00:00.Z",
		"2026-11-30T02:00:00.1234567890Z",
		"2026-11-30T02:00:00+24:00",
		"2026-11-30T02:00:00+0100",
		"2026-11-30T02:00:00Zx",
		" 2026-11-30T02:00:00Z",
		"1969-12-31T23:59:59Z",
		"1970-01-01T00:00:00+00:01",
		"9999-12-31T23:59:59-00:01",
		"26-11-30T02:00:00Z",
		"+2026-11-30T02:00:00Z",
	};
	struct wall time = {42};
	struct error error;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		expect_error(timestamp_parse(rows[i], "startAt", &time, &error), &error,
			     ERROR_INVALID_INPUT, "startAt");
		assert_string_equal(error.field, "startAt");
		assert_int_equal(time.ms, 42);
	}
}

/* Every day of four centuries, as libc's calendar has it, and back. */
static void test_every_day_agrees_with_libc(void **state)
{
	(void)state;
	for (int64_t day = 0; day < 146097; day++) {
		time_t seconds = (time_t)(day * 86400 + day % 86400);
		char wanted[TIMESTAMP_SIZE], text[TIMESTAMP_SIZE];
		struct wall time = {(int64_t)seconds * 1000 + day % 1000}, back;
		struct error error;
		struct tm calendar;

		gmtime_r(&seconds, &calendar);
		strftime(wanted, sizeof wanted, "%Y-%m-%dT%H:%M:%S", &calendar);
		snprintf(wanted + 19, sizeof wanted - 19, ".%03dZ", (int)(day % 1000));
		timestamp_format(text, time);
		assert_string_equal(text, wanted);
		expect_ok(timestamp_parse(text, "t", &back, &error), &error);
		assert_true(back.ms == time.ms);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times_that_are_right),
		cmocka_unit_test(test_times_that_are_wrong),
		cmocka_unit_test(test_every_day_agrees_with_libc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
