#include "control/core/metering.h"

#include "control/core/timestamp.h"
#include "lib/seed.h"

/* proves: RES-20 RES-53 */
static void test_meter_stops_at_the_earlier_of_release_and_end(void **state)
{
	static const struct {
		int64_t bound_ms, end_ms, now_ms, seconds;
	} rows[] = {
		{1000, 61000, 31000, 30},                           /* released early */
		{1000, 61000, 61000, 60},                           /* at its end */
		{1000, 61000, 99000, 60},                           /* held beyond it */
		{1000, 61000, 1999, 0},                             /* less than a second */
		{1000, 61000, 2000, 1},   {0, 61000, 31000, 0},     /* never bound */
		{62000, 61000, 99000, 0},                           /* bound after its end */
		{61000, 61000, 99000, 0}, {40000, 61000, 31000, 0}, /* a clock that went back */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct metering_span span =
			metering_span(rows[i].bound_ms, rows[i].end_ms, rows[i].now_ms);

		assert_int_equal(metering_seconds(span), rows[i].seconds);
		assert_true(span.stopped_ms <= rows[i].end_ms);
	}
}

/* Windows that touch add up to the whole, wherever they are cut.
 * proves: RES-53 */
static void test_windows_add_up(void **state)
{
	struct seed seed;

	(void)state;
	seed_init(&seed);
	for (int i = 0; i < 1000; i++) {
		int64_t start = 1 + (int64_t)seed_below(&seed, 100000);
		struct metering_span span = {start, start + (int64_t)seed_below(&seed, 100000)};
		int64_t cut = 0, sum = 0;

		while (cut < 300000) {
			int64_t next = cut + (int64_t)seed_below(&seed, 20000);

			sum += metering_seconds_within(span, cut, next);
			cut = next;
		}
		assert_int_equal(sum, metering_seconds(span));
	}
}

/* proves: ADM-3 */
static void test_months(void **state)
{
	static const struct {
		const char *time, *month, *next;
	} rows[] = {
		{"2026-11-30T23:59:59.999Z", "2026-11-01T00:00:00.000Z",
		 "2026-12-01T00:00:00.000Z"},
		{"2026-12-01T00:00:00Z", "2026-12-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z"},
		{"2028-02-29T12:00:00Z", "2028-02-01T00:00:00.000Z", "2028-03-01T00:00:00.000Z"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[TIMESTAMP_SIZE];
		struct wall time;
		struct error error;

		expect_ok(timestamp_parse(rows[i].time, "time", &time, &error), &error);
		timestamp_format(text, metering_month(time));
		assert_string_equal(text, rows[i].month);
		timestamp_format(text, metering_next_month(time));
		assert_string_equal(text, rows[i].next);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_meter_stops_at_the_earlier_of_release_and_end),
		cmocka_unit_test(test_windows_add_up),
		cmocka_unit_test(test_months),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
