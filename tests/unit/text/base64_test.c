#include "text/base64.h"

#include "lib/test.h"

static void test_vectors(void **state UNUSED)
{
	/* RFC 4648, section 10 */
	static const char *const table[][2] = {
		{"", ""},
		{"f", "Zg=="},
		{"fo", "Zm8="},
		{"foo", "Zm9v"},
		{"foob", "Zm9vYg=="},
		{"fooba", "Zm9vYmE="},
		{"foobar", "Zm9vYmFy"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		CLEANUP(buf) struct buf text = {0};
		CLEANUP(buf) struct buf back = {0};
		base64_encode(table[i][0], strlen(table[i][0]), &text);
		assert_string_equal(buf_text(&text), table[i][1]);
		assert_true(base64_decode(table[i][1], &back));
		assert_string_equal(buf_text(&back), table[i][0]);
	}
}

static void test_every_byte(void **state UNUSED)
{
	for (size_t length = 0; length < 260; length++) {
		uint8_t bytes[260];
		CLEANUP(buf) struct buf text = {0};
		CLEANUP(buf) struct buf back = {0};
		for (size_t i = 0; i < length; i++)
			bytes[i] = (uint8_t)(i * 7 + length);
		base64_encode(bytes, length, &text);
		assert_true(base64_decode(buf_text(&text), &back));
		assert_int_equal(back.length, length);
		if (length > 0)
			assert_memory_equal(back.data, bytes, length);
	}
}

static void test_bad(void **state UNUSED)
{
	static const char *const table[] = {
		"Z", "Zg", "Zg=", "Z===", "====", "Zm9*", "Zg==Zg==", "Zm 9v", "=m9v"};
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		CLEANUP(buf) struct buf back = {0};
		assert_false(base64_decode(table[i], &back));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_bad),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
