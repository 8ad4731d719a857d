#include "rpc/core/metadata.h"

#include "lib/test.h"

static bool add_wire(struct metadata *metadata, const char *name, const char *value)
{
	return metadata_add_wire(metadata, (const uint8_t *)name, strlen(name),
				 (const uint8_t *)value, strlen(value));
}

static void test_first_of_a_name(void **state)
{
	(void)state;
	struct metadata metadata = {0};
	assert_null(metadata_find(&metadata, "a"));
	metadata_add(&metadata, "a", "one", 3);
	metadata_add(&metadata, "b", "", 0);
	metadata_add(&metadata, "a", "two", 3);
	assert_string_equal((char *)metadata_find(&metadata, "a")->value, "one");
	assert_int_equal(metadata_find(&metadata, "b")->length, 0);
	assert_null(metadata_find(&metadata, "c"));
	metadata_deinit(&metadata);
	assert_int_equal(metadata.count, 0);
}

static void test_text_is_made_printable(void **state)
{
	(void)state;
	struct metadata metadata = {0};
	metadata_add(&metadata, "x", "a\r\nb\0\x7f\xc3~ ", 9);
	assert_string_equal((char *)metadata.items[0].value, "a??b???~ ");
	metadata_deinit(&metadata);
}

/* Each length up to 64 bytes, of all byte values: encoded, and read back with and without padding.
 */
static void test_binary_round_trip(void **state)
{
	(void)state;
	for (size_t length = 0; length <= 64; length++) {
		uint8_t bytes[64];
		for (size_t i = 0; i < length; i++)
			bytes[i] = (uint8_t)(i * 37 + length * 11);
		struct metadata metadata = {0};
		metadata_add(&metadata, "x-bin", bytes, length);
		CLEANUP(buf) struct buf wire = {0};
		metadata_value_encode(&wire, &metadata.items[0]);
		assert_null(strchr(buf_text(&wire), '='));
		assert_true(add_wire(&metadata, "y-bin", buf_text(&wire)));
		while (wire.length % 4)
			buf_add_char(&wire, '=');
		assert_true(add_wire(&metadata, "z-bin", buf_text(&wire)));
		buf_add_text(&wire, ",AAAA");
		assert_true(add_wire(&metadata, "list-bin", buf_text(&wire)));
		for (size_t i = 1; i < metadata.count; i++) {
			assert_int_equal(metadata.items[i].length, length);
			assert_memory_equal(metadata.items[i].value, bytes, length);
		}
		metadata_deinit(&metadata);
	}
}

static void test_binary_that_is_not_base64(void **state)
{
	(void)state;
	static const char *const cases[] = {
		"A", "A===", "AAAAA", "A A=", "!AAA", "AA=A", "=", "===="};
	struct metadata metadata = {0};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_false(add_wire(&metadata, "x-bin", cases[i]));
	assert_true(add_wire(&metadata, "x", "!AAA")); /* only "-bin" is base64 */
	metadata_deinit(&metadata);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_of_a_name),
		cmocka_unit_test(test_text_is_made_printable),
		cmocka_unit_test(test_binary_round_trip),
		cmocka_unit_test(test_binary_that_is_not_base64),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
