#include "base/arena.h"

#include "lib/test.h"

#include <stdalign.h>

static void test_memory_is_zeroed_aligned_and_apart(void **state UNUSED)
{
	CLEANUP(arena) struct arena arena = {0};
	uint8_t *blocks[200];

	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++) {
		size_t size = i * 37 % 500 + 1;

		blocks[i] = arena_alloc(&arena, size);
		assert_int_equal((uintptr_t)blocks[i] % alignof(max_align_t), 0);
		for (size_t j = 0; j < size; j++)
			assert_int_equal(blocks[i][j], 0);
		memset(blocks[i], (int)i + 1, size);
	}
	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++)
		assert_int_equal(blocks[i][i * 37 % 500], (uint8_t)(i + 1));
}

static void test_large_pieces_fit(void **state UNUSED)
{
	CLEANUP(arena) struct arena arena = {0};
	uint8_t *large = arena_alloc(&arena, 1 << 20);

	memset(large, 1, 1 << 20);
	assert_non_null(arena_alloc(&arena, 0));
}

static void test_texts(void **state UNUSED)
{
	CLEANUP(arena) struct arena arena = {0};
	char *long_text;

	assert_string_equal(arena_strdup(&arena, "abc"), "abc");
	assert_null(arena_strdup(&arena, NULL));
	assert_string_equal(arena_strndup(&arena, "abcdef", 2), "ab");
	assert_string_equal(arena_printf(&arena, "%s-%d", "x", 42), "x-42");
	long_text = arena_printf(&arena, "%20000d", 7);
	assert_int_equal(strlen(long_text), 20000);
	arena_deinit(&arena);
	arena_deinit(&arena); /* empty and usable again */
	assert_string_equal(arena_strdup(&arena, "again"), "again");
	arena_deinit(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_is_zeroed_aligned_and_apart),
		cmocka_unit_test(test_large_pieces_fit),
		cmocka_unit_test(test_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
