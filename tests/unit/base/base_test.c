#include "base/base.h"

#include "lib/test.h"

static void test_copies_are_cut_and_ended(void **state UNUSED)
{
	char out[4];

	assert_true(str_copy(out, sizeof out, "abc"));
	assert_string_equal(out, "abc");
	assert_false(str_copy(out, sizeof out, "abcd"));
	assert_string_equal(out, "abc");
	assert_true(str_copy(out, sizeof out, ""));
	assert_string_equal(out, "");
}

static void test_starts_and_ends(void **state UNUSED)
{
	assert_true(str_starts("alc_1", "alc_"));
	assert_true(str_starts("x", ""));
	assert_false(str_starts("al", "alc_"));
	assert_true(str_ends("a.json", ".json"));
	assert_true(str_ends("a", ""));
	assert_false(str_ends("json", ".json"));
}

static void test_memory(void **state UNUSED)
{
	uint8_t *zeroed = mem_alloc(16), *copy, *none = mem_alloc(0);

	for (int i = 0; i < 16; i++)
		assert_int_equal(zeroed[i], 0);
	assert_non_null(none);
	copy = mem_dup("ab", 3);
	assert_string_equal((char *)copy, "ab");
	assert_null(mem_strdup(NULL));
	free(zeroed);
	free(copy);
	free(none);
}

static void test_ownership_leaves(void **state UNUSED)
{
	char *text = mem_strdup("x"), *taken = TAKE(text);

	assert_null(text);
	assert_string_equal(taken, "x");
	free(taken);
}

static void test_time_is_counted_from_to(void **state UNUSED)
{
	struct mono start = {1000}, later = mono_after(start, 250);

	assert_int_equal(mono_until(start, later), 250);
	assert_int_equal(mono_until(later, start), -250);
	assert_int_equal(mono_later(start, later).ms, 1250);
	assert_int_equal(mono_later(later, start).ms, 1250);
}

static void test_addresses_by_their_form(void **state)
{
	static const char *const good[] = {"a:1", "gw.example.com:7443", "10.0.0.1:65535",
					   "[::1]:7443", "[fd00::1%eth0]:1"};
	static const char *const bad[] = {
		"",         "a",    "a:",    ":1",    "a:1x",        "a:65536", "a:99999",
		"a:123456", "a:-1", "a:+1",  "::1:1", "[::1:1",      "[]:1",    "::1]:1",
		" a:1",     "a:1 ", "a b:1", "u@a:1", "https://a:1", "a:1/",    "a:0"};
	char large[300];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(str_is_address(good[i], 1));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (str_is_address(bad[i], 1))
			fail_msg("'%s' is no address", bad[i]);
	assert_true(str_is_address("a:0", 0));
	memset(large, 'a', sizeof large);
	memcpy(large + 255, ":1", 3);
	assert_true(str_is_address(large, 1));
	memcpy(large + 255, "a:1", 4);
	assert_false(str_is_address(large, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copies_are_cut_and_ended),
		cmocka_unit_test(test_starts_and_ends),
		cmocka_unit_test(test_addresses_by_their_form),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_ownership_leaves),
		cmocka_unit_test(test_time_is_counted_from_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
