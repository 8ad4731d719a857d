#include "base/id.h"

#include "lib/test.h"

static const uint8_t ONES[ID_RANDOM_SIZE] = {0xff, 0xff, 0xff, 0xff, 0xff,
					     0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t ZEROS[ID_RANDOM_SIZE];

/* proves: POOL-26 */
static void test_the_form_is_a_lower_case_ulid(void **state UNUSED)
{
	char id[ID_SIZE];

	id_format(id, "pool", (struct wall){0}, ZEROS);
	assert_string_equal(id, "pool_00000000000000000000000000");
	id_format(id, "rsv", (struct wall){((int64_t)1 << 48) - 1}, ONES);
	assert_string_equal(id, "rsv_7zzzzzzzzzzzzzzzzzzzzzzzzz");
	/* 1469918176385 ms is 01ARYZ6S41 in the ULID specification's own example */
	id_format(id, "a", (struct wall){1469918176385}, ZEROS);
	assert_string_equal(id, "a_01aryz6s410000000000000000");
}

/* proves: POOL-26 */
static void test_ids_sort_by_time(void **state UNUSED)
{
	char earlier[ID_SIZE], later[ID_SIZE];

	for (int64_t ms = 1; ms < (int64_t)1 << 47; ms *= 3) {
		id_format(earlier, "node", (struct wall){ms}, ONES);
		id_format(later, "node", (struct wall){ms + 1}, ZEROS);
		assert_true(strcmp(earlier, later) < 0);
		assert_true(id_valid(earlier, "node"));
	}
}

static void test_only_ids_are_valid(void **state UNUSED)
{
	static const char *const BAD[] = {
		"",
		"rsv",
		"rsv_",
		"rsv_0000000000000000000000000",   /* 25 */
		"rsv_000000000000000000000000000", /* 27 */
		"rsv_8zzzzzzzzzzzzzzzzzzzzzzzzz",  /* beyond 128 bits */
		"rsv_0000000000000000000000000I",
		"rsv_0000000000000000000000000u",
		"rsv_0000000000000000000000000A",
		"alc_00000000000000000000000000",
		"rsv-00000000000000000000000000",
	};

	for (size_t i = 0; i < ARRAY_SIZE(BAD); i++)
		assert_false(id_valid(BAD[i], "rsv"));
	assert_true(id_valid("rsv_00000000000000000000000000", "rsv"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_form_is_a_lower_case_ulid),
		cmocka_unit_test(test_ids_sort_by_time),
		cmocka_unit_test(test_only_ids_are_valid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
