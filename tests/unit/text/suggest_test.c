#include "text/suggest.h"

#include "lib/test.h"

static const char *nearest(const char *word)
{
	static const char *const WORDS[] = {"gpus", "for", "kubernetes", "pool", "h100"};

	return suggest_nearest(word, WORDS, ARRAY_SIZE(WORDS));
}

static void test_slips_find_their_word(void **state UNUSED)
{
	assert_string_equal(nearest("gpu"), "gpus");
	assert_string_equal(nearest("gupsx"), "gpus");
	assert_string_equal(nearest("kubernets"), "kubernetes");
	assert_string_equal(nearest("kuebrnetes"), "kubernetes");
	assert_string_equal(nearest("h10"), "h100");
	assert_string_equal(nearest("fro"), "for");
}

static void test_other_words_find_nothing(void **state UNUSED)
{
	static const char *const NONE[] = {
		"",     "x",
		"zzzz", "memory",
		"kube", "an-option-with-a-name-of-more-than-sixty-four-characters-in-all-of-it"};

	for (size_t i = 0; i < ARRAY_SIZE(NONE); i++)
		assert_null(nearest(NONE[i]));
	assert_null(suggest_nearest("x", NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slips_find_their_word),
		cmocka_unit_test(test_other_words_find_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
