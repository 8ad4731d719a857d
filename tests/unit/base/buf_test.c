#include "base/buf.h"

#include "lib/test.h"

static void test_an_empty_buf_is_valid(void **state UNUSED)
{
	struct buf buf = {0};

	assert_string_equal(buf_text(&buf), "");
	buf_clear(&buf);
	buf_drop_front(&buf, 0);
	buf_add(&buf, NULL, 0);
	assert_int_equal(buf.length, 0);
	assert_string_equal(buf_text(&buf), "");
	buf_deinit(&buf);
	buf_deinit(&buf);
	buf_deinit(NULL);
}

static void test_text_is_always_ended(void **state UNUSED)
{
	CLEANUP(buf) struct buf buf = {0};
	char wanted[2001] = "";

	for (int i = 0; i < 2000; i++) {
		buf_add_char(&buf, (char)('a' + i % 26));
		wanted[i] = (char)('a' + i % 26);
		assert_int_equal(buf.data[buf.length], '\0');
	}
	assert_string_equal(buf_text(&buf), wanted);
	buf_clear(&buf);
	assert_string_equal(buf_text(&buf), "");
	buf_printf(&buf, "%s %d", "n", 5);
	buf_add_text(&buf, "!");
	assert_string_equal(buf_text(&buf), "n 5!");
	buf_printf(&buf, "%300d", 1);
	assert_int_equal(buf.length, 304);
}

static void test_bytes_may_hold_nuls(void **state UNUSED)
{
	CLEANUP(buf) struct buf buf = {0};

	buf_add(&buf, "a\0b", 3);
	assert_int_equal(buf.length, 3);
	assert_memory_equal(buf.data, "a\0b", 4);
}

static void test_the_front_is_dropped(void **state UNUSED)
{
	CLEANUP(buf) struct buf buf = {0};

	buf_add_text(&buf, "abcdef");
	buf_drop_front(&buf, 2);
	assert_string_equal(buf_text(&buf), "cdef");
	buf_drop_front(&buf, 4);
	assert_string_equal(buf_text(&buf), "");
}

static void test_the_text_is_taken(void **state UNUSED)
{
	struct buf buf = {0};
	char *text;

	text = buf_take_text(&buf);
	assert_string_equal(text, "");
	free(text);
	buf_add_text(&buf, "mine");
	text = buf_take_text(&buf);
	assert_string_equal(text, "mine");
	assert_null(buf.data);
	assert_int_equal(buf.length, 0);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_empty_buf_is_valid),
		cmocka_unit_test(test_text_is_always_ended),
		cmocka_unit_test(test_bytes_may_hold_nuls),
		cmocka_unit_test(test_the_front_is_dropped),
		cmocka_unit_test(test_the_text_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
