#include "rpc/core/status.h"

#include "lib/test.h"

#include <stdio.h>

static enum rpc_code parse(const char *text)
{
	return status_parse((const uint8_t *)text, strlen(text));
}

static void test_codes(void **state)
{
	(void)state;
	assert_string_equal(rpc_code_name(RPC_OK), "OK");
	assert_string_equal(rpc_code_name(RPC_UNAUTHENTICATED), "UNAUTHENTICATED");
	assert_string_equal(rpc_code_name((enum rpc_code)17), "UNKNOWN");
	assert_string_equal(rpc_code_name((enum rpc_code) - 1), "UNKNOWN");
	for (unsigned code = 0; code <= 16; code++) {
		char text[4];
		snprintf(text, sizeof text, "%u", code);
		assert_int_equal(parse(text), code);
	}
	static const char *const bad[] = {"",   "17", "99",  "-1",        "x",
					  "1x", " 1", "001", "4294967296"};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(parse(bad[i]), RPC_UNKNOWN);
}

static void test_from_http_and_resets(void **state)
{
	(void)state;
	assert_int_equal(status_from_http(400), RPC_INTERNAL);
	assert_int_equal(status_from_http(401), RPC_UNAUTHENTICATED);
	assert_int_equal(status_from_http(403), RPC_PERMISSION_DENIED);
	assert_int_equal(status_from_http(404), RPC_UNIMPLEMENTED);
	assert_int_equal(status_from_http(429), RPC_UNAVAILABLE);
	assert_int_equal(status_from_http(502), RPC_UNAVAILABLE);
	assert_int_equal(status_from_http(503), RPC_UNAVAILABLE);
	assert_int_equal(status_from_http(504), RPC_UNAVAILABLE);
	assert_int_equal(status_from_http(500), RPC_UNKNOWN);
	assert_int_equal(status_from_http(0), RPC_UNKNOWN);
	assert_int_equal(status_from_reset(7), RPC_UNAVAILABLE);
	assert_int_equal(status_from_reset(8), RPC_CANCELLED);
	assert_int_equal(status_from_reset(11), RPC_RESOURCE_EXHAUSTED);
	assert_int_equal(status_from_reset(12), RPC_PERMISSION_DENIED);
	assert_int_equal(status_from_reset(0), RPC_INTERNAL);
	assert_int_equal(status_from_reset(UINT32_MAX), RPC_INTERNAL);
}

static void expect_decoded(const char *wire, const char *text)
{
	CLEANUP(buf) struct buf out = {0};
	status_message_decode(&out, (const uint8_t *)wire, strlen(wire));
	assert_string_equal(buf_text(&out), text);
}

static void test_message_texts(void **state)
{
	(void)state;
	CLEANUP(buf) struct buf out = {0};
	status_message_encode(&out, "a%b\t☺~\x7f");
	assert_string_equal(buf_text(&out), "a%25b%09%E2%98%BA~%7F");
	expect_decoded("a%25b%09%e2%98%BA~%7F", "a%b\t☺~\x7f");
	expect_decoded("%", "%");
	expect_decoded("%4", "%4");
	expect_decoded("%zz%4z", "%zz%4z");
	expect_decoded("a%00b", "a?b");
	expect_decoded("", "");
}

static void test_every_byte_comes_back(void **state)
{
	(void)state;
	char text[256];
	for (unsigned i = 1; i < 256; i++)
		text[i - 1] = (char)i;
	text[255] = '\0';
	CLEANUP(buf) struct buf wire = {0};
	status_message_encode(&wire, text);
	expect_decoded(buf_text(&wire), text);
}

static void test_long_message_is_cut(void **state)
{
	(void)state;
	CLEANUP(buf) struct buf text = {0}, out = {0};
	for (size_t i = 0; i < STATUS_MESSAGE_MAX; i++)
		buf_add_char(&text, 'x');
	status_message_encode(&out, buf_text(&text));
	assert_int_equal(out.length, STATUS_MESSAGE_MAX);
	buf_add_char(&text, 'x');
	buf_clear(&out);
	status_message_encode(&out, buf_text(&text));
	assert_int_equal(out.length, STATUS_MESSAGE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_codes),
		cmocka_unit_test(test_from_http_and_resets),
		cmocka_unit_test(test_message_texts),
		cmocka_unit_test(test_every_byte_comes_back),
		cmocka_unit_test(test_long_message_is_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
