#include "base/hash.h"
#include "lib/test.h"

/* From the reference's test vectors. */
static void test_it_is_fnv_1a(void **state UNUSED)
{
	assert_true(hash_text("") == HASH_START);
	assert_true(hash_text("a") == UINT64_C(0xaf63dc4c8601ec8c));
	assert_true(hash_text("foobar") == UINT64_C(0x85944171f73967e8));
	assert_true(hash_text("\xff") == UINT64_C(0xaf64724c8602eb6e));
}

static void test_pieces_are_as_the_whole(void **state UNUSED)
{
	assert_true(hash_add(hash_text("foo"), "bar", 3) == hash_text("foobar"));
	assert_true(hash_add(hash_text("foo"), "", 1) != hash_text("foo")); /* a NUL counts */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_is_fnv_1a),
		cmocka_unit_test(test_pieces_are_as_the_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
