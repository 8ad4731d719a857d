#include "proto/hugepages.h"

#include "lib/test.h"

#define GIB ((int64_t)1 << 30)

static void test_there_and_back(void **state UNUSED)
{
	static const struct hugepages TABLE[] = {
		{{0, 0}}, {{GIB, 0}}, {{0, 4 * GIB}}, {{GIB, 4 * GIB}}};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		CLEANUP(arena) struct arena arena = {0};
		Bettercompute__V1__HugePages **items;
		struct hugepages back;
		size_t count;

		hugepages_pack(&TABLE[i], &arena, &items, &count);
		assert_int_equal(count, (TABLE[i].bytes[0] > 0) + (TABLE[i].bytes[1] > 0));
		back = hugepages_unpack(items, count);
		assert_memory_equal(&back, &TABLE[i], sizeof back);
	}
}

/* Another size, less than nothing: none. */
static void test_what_counts_as_none(void **state UNUSED)
{
	Bettercompute__V1__HugePages odd = BETTERCOMPUTE__V1__HUGE_PAGES__INIT;
	Bettercompute__V1__HugePages negative = BETTERCOMPUTE__V1__HUGE_PAGES__INIT;
	Bettercompute__V1__HugePages *items[] = {&odd, &negative};
	static const struct hugepages NONE = {0};
	struct hugepages pages;

	odd.page_bytes = 16 << 20;
	odd.bytes = GIB;
	negative.page_bytes = 2 << 20;
	negative.bytes = -GIB;
	pages = hugepages_unpack(items, ARRAY_SIZE(items));
	assert_memory_equal(&pages, &NONE, sizeof pages);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_what_counts_as_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
