#include "sys/random.h"

#include "lib/test.h"

static void test_bytes_fill_all(void **state UNUSED)
{
	uint8_t bytes[1000] = {0};
	size_t zeros = 0;

	random_bytes(bytes, sizeof bytes);
	for (size_t i = 0; i < sizeof bytes; i++)
		zeros += bytes[i] == 0;
	assert_true(zeros < 50); /* about 4 are expected */
	assert_true(memcmp(bytes, bytes + 500, 500) != 0);
}

static void test_below_covers_its_range_and_no_more(void **state UNUSED)
{
	unsigned seen[7] = {0};

	for (int i = 0; i < 7000; i++) {
		uint64_t value = random_below(7);

		assert_true(value < 7);
		seen[value]++;
	}
	for (int i = 0; i < 7; i++)
		assert_in_range(seen[i], 700, 1300);
	assert_int_equal(random_below(1), 0);
}

static void test_ids_are_valid_and_differ(void **state UNUSED)
{
	char a[ID_SIZE], b[ID_SIZE];
	struct wall now = {1764000000000};

	random_id(a, "rsv", now);
	random_id(b, "rsv", now);
	assert_true(id_valid(a, "rsv"));
	assert_string_not_equal(a, b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_fill_all),
		cmocka_unit_test(test_below_covers_its_range_and_no_more),
		cmocka_unit_test(test_ids_are_valid_and_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
