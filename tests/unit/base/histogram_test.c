#include "base/histogram.h"

#include "lib/test.h"

static void test_a_bound_belongs_below(void **state UNUSED)
{
	for (size_t i = 0; i < HISTOGRAM_BUCKETS - 1; i++) {
		assert_int_equal(histogram_bucket(HISTOGRAM_BOUNDS_US[i]), i);
		assert_int_equal(histogram_bucket(HISTOGRAM_BOUNDS_US[i] + 1), i + 1);
	}
	assert_int_equal(histogram_bucket(0), 0);
	assert_int_equal(histogram_bucket(-1), 0);
	assert_int_equal(histogram_bucket(INT64_MAX), HISTOGRAM_BUCKETS - 1);
}

static void test_bounds_grow(void **state UNUSED)
{
	for (size_t i = 1; i < HISTOGRAM_BUCKETS - 1; i++)
		assert_true(HISTOGRAM_BOUNDS_US[i - 1] < HISTOGRAM_BOUNDS_US[i]);
}

static void test_counts_and_sums(void **state UNUSED)
{
	struct histogram histogram = {0};

	histogram_add(&histogram, 50);
	histogram_add(&histogram, 99999999);
	histogram_add(&histogram, -5); /* a clock that stepped adds nothing */
	assert_int_equal(histogram_count(&histogram), 3);
	assert_int_equal(histogram.sum_us, 100000049);
	assert_int_equal(histogram.counts[HISTOGRAM_BUCKETS - 1], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_bound_belongs_below),
		cmocka_unit_test(test_bounds_grow),
		cmocka_unit_test(test_counts_and_sums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
