#include "lib/test.h"
#include "text/suggest.h"

static const char *const WORDS[] = {"h100", "a100", "pool", "reserve", "release", "b", "no"};

static void test_slips_are_recognised(void **state)
{
	static const struct {
		const char *word, *nearest;
	} cases[] = {
		{"h10", "h100"},
		{"h1000", "h100"},
		{"resreve", "reserve"},
		{"resreev", "reserve"},
		{"relase", "release"},
		{"polo", "pool"},
		{"h100", "h100"},
		{"on", "no"},
		{"completely", NULL},
		{"x", NULL},
		{"", NULL},
		{"ab", NULL},
		{"reservation", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *nearest = suggest_nearest(cases[i].word, WORDS, ARRAY_SIZE(WORDS));
		if (!cases[i].nearest && nearest)
			fail_msg("'%s' became '%s'", cases[i].word, nearest);
		if (cases[i].nearest)
			assert_string_equal(nearest, cases[i].nearest);
	}
}

static void test_long_words_are_left_alone(void **state)
{
	char at_bound[65], past[66];
	const char *candidates[] = {at_bound, past};

	(void)state;
	memset(at_bound, 'a', 64);
	at_bound[64] = '\0';
	memset(past, 'a', 65);
	past[65] = '\0';
	assert_ptr_equal(suggest_nearest(at_bound, candidates, 2), at_bound);
	assert_null(suggest_nearest(past, candidates, 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slips_are_recognised),
		cmocka_unit_test(test_long_words_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
