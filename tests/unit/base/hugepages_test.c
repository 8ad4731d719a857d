#include "base/hugepages.h"

#include "lib/test.h"

static void test_sizes_are_found_by_their_bytes(void **state)
{
	enum hugepages_size size;

	(void)state;
	for (int i = 0; i < HUGEPAGES_SIZES; i++) {
		assert_true(hugepages_find(hugepages_page_bytes((enum hugepages_size)i), &size));
		assert_int_equal(size, i);
	}
	assert_string_equal(hugepages_name(HUGEPAGES_2MI), "2Mi");
	assert_int_equal(hugepages_page_bytes(HUGEPAGES_2MI), 2048 * 1024);
	assert_string_equal(hugepages_name(HUGEPAGES_1GI), "1Gi");
	assert_int_equal(hugepages_page_bytes(HUGEPAGES_1GI), 1048576 * 1024);
	/* of arm64 */
	assert_false(hugepages_find((int64_t)64 << 10, &size));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes_are_found_by_their_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
