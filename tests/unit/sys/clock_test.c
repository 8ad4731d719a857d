#include "sys/clock.h"

#include "lib/test.h"

#include <unistd.h>

static void test_mono_never_goes_back(void **state UNUSED)
{
	struct mono last = clock_mono();

	for (int i = 0; i < 1000; i++) {
		struct mono now = clock_mono();

		assert_true(mono_until(last, now) >= 0);
		last = now;
	}
}

static void test_us_is_the_same_clock(void **state UNUSED)
{
	int64_t before = clock_mono().ms, us = clock_us(), after = clock_mono().ms;

	assert_true(before <= us / 1000);
	assert_true(us / 1000 <= after);
}

static void test_wall_is_this_century(void **state UNUSED)
{
	assert_true(clock_wall().ms > 1700000000000);
	assert_true(clock_wall().ms < 4000000000000);
}

static void test_boot_id_is_stable(void **state UNUSED)
{
	char first[CLOCK_BOOT_ID_SIZE], second[CLOCK_BOOT_ID_SIZE];

	clock_boot_id(first);
	clock_boot_id(second);
	assert_int_equal(strlen(first), CLOCK_BOOT_ID_SIZE - 1);
	assert_string_equal(first, second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mono_never_goes_back),
		cmocka_unit_test(test_us_is_the_same_clock),
		cmocka_unit_test(test_wall_is_this_century),
		cmocka_unit_test(test_boot_id_is_stable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
