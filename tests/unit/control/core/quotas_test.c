#include "control/core/quotas.h"

#include "lib/seed.h"

#define HOUR_MS ((int64_t)3600 * 1000)

/* proves: ADM-3 */
static void test_peak_is_the_most_at_any_moment(void **state)
{
	struct seed seed;

	(void)state;
	seed_init(&seed);
	assert_int_equal(quota_peak(NULL, 0, 0, 10), 0);
	for (int round = 0; round < 500; round++) {
		struct quota_claim claims[6];
		size_t count = seed_below(&seed, 7);
		int64_t from = (int64_t)seed_below(&seed, 20);
		int64_t to = from + 1 + (int64_t)seed_below(&seed, 20), most = 0;

		for (size_t i = 0; i < count; i++) {
			claims[i] = (struct quota_claim){
				.devices = 1 + (int64_t)seed_below(&seed, 4),
				.from_ms = (int64_t)seed_below(&seed, 40),
			};
			claims[i].to_ms =
				seed_chance(&seed, 20)
					? INT64_MAX
					: claims[i].from_ms + 1 + (int64_t)seed_below(&seed, 20);
		}
		for (int64_t at = from; at < to; at++) {
			int64_t held = 0;

			for (size_t i = 0; i < count; i++)
				held += claims[i].from_ms <= at && at < claims[i].to_ms
						? claims[i].devices
						: 0;
			most = held > most ? held : most;
		}
		assert_int_equal(quota_peak(claims, count, from, to), most);
	}
}

/* proves: ADM-3 */
static void test_hours_count_devices_and_their_part_of_the_window(void **state)
{
	const struct quota_claim claims[] = {
		{.devices = 2, .billed_ms = 0, .billed_to_ms = 2 * HOUR_MS},
		{.devices = 1, .billed_ms = HOUR_MS, .billed_to_ms = 3 * HOUR_MS},
	};
	char text[QUOTA_HOURS_SIZE];

	(void)state;
	assert_int_equal(quota_seconds(claims, 2, 0, 4 * HOUR_MS), 6 * 3600);
	assert_int_equal(quota_seconds(claims, 2, HOUR_MS, 2 * HOUR_MS), 3 * 3600);
	assert_int_equal(quota_seconds(claims, 2, 4 * HOUR_MS, 5 * HOUR_MS), 0);
	quota_format_hours(text, 6 * 3600);
	assert_string_equal(text, "6.0");
	quota_format_hours(text, 6 * 3600 + 1);
	assert_string_equal(text, "6.1");
	quota_format_hours(text, 0);
	assert_string_equal(text, "0.0");
}

static void test_needs_are_counted_by_class(void **state)
{
	const struct placement_need needs[] = {{PLACEMENT_CLASS_GPU, NULL, 2},
					       {PLACEMENT_CLASS_MIG, "1g.10gb", 3},
					       {PLACEMENT_CLASS_MIG, "2g.20gb", 4}};

	(void)state;
	assert_int_equal(quota_devices(needs, 3, ""), 9);
	assert_int_equal(quota_devices(needs, 3, "gpu"), 2);
	assert_int_equal(quota_devices(needs, 3, "gpu.mig"), 7);
	assert_int_equal(quota_devices(needs, 3, "gpu.slot"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_peak_is_the_most_at_any_moment),
		cmocka_unit_test(test_hours_count_devices_and_their_part_of_the_window),
		cmocka_unit_test(test_needs_are_counted_by_class),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
