#include "base/utf8.h"

#include "lib/test.h"

static void test_sequences(void **state UNUSED)
{
	static const struct {
		const char *text;
		size_t length;
	} CASES[] = {
		{"a", 1},
		{"\xc3\xa4", 2},
		{"\xe2\x82\xac", 3},
		{"\xf0\x9f\x98\x80", 4},
		{"\x80", 0},
		{"\xc3", 0},
		{"\xc3"
		 "a",
		 0},
		{"\xc0\x80", 0},
		{"\xc1\xbf", 0},
		{"\xe0\x9f\xbf", 0},
		{"\xed\xa0\x80", 0},
		{"\xed\x9f\xbf", 3},
		{"\xef\xbf\xbf", 3},
		{"\xf0\x8f\xbf\xbf", 0},
		{"\xf4\x8f\xbf\xbf", 4},
		{"\xf4\x90\x80\x80", 0},
		{"\xf8\x88\x80\x80\x80", 0},
		{"\xff", 0},
		{"\xe2\x82", 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
		assert_int_equal(utf8_length(CASES[i].text), CASES[i].length);
		assert_int_equal(utf8_valid(CASES[i].text), CASES[i].length > 0);
	}
	assert_true(utf8_valid(""));
	assert_true(utf8_valid("a\xc3\xa4"
			       "b"));
	assert_false(utf8_valid("a\xff"));
}

static void test_cleaning_replaces_byte_by_byte(void **state UNUSED)
{
	CLEANUP(buf) struct buf out = {0};

	utf8_add_clean(&out, "\xc3\xa4\xff\xe2\x82z");
	assert_string_equal(buf_text(&out), "\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz");
	assert_true(utf8_valid(buf_text(&out)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sequences),
		cmocka_unit_test(test_cleaning_replaces_byte_by_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
