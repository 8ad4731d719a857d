#include "lib/test.h"
#include "text/options.h"

static const char *const COLOURS[] = {"red", "green", NULL};

static const struct option FIRST[] = {
	{"gpus", 'g', OPTION_NUMBER, "N", "how many", 1, 8, NULL},
	{"for", 0, OPTION_DURATION, "D", "how long", 60000, 3600000, NULL},
	{"timeout", 0, OPTION_PATIENCE, "D", "no longer", 1000, 3600000, NULL},
	{"mig", 0, OPTION_LIST, "PROFILE=N", "parts", 0, 0, NULL},
	{0},
};

static const struct option SECOND[] = {
	{"colour", 'c', OPTION_TEXT, "NAME", "of it", 0, 0, COLOURS},
	{"wait", 'w', OPTION_FLAG, NULL, "until it is there", 0, 0, NULL},
	{0},
};

static const struct option AMOUNTS[] = {
	{"cpus", 0, OPTION_NUMBER, "C", "of the host", 1, 8, NULL},
	{"memory", 0, OPTION_NUMBER, "GIB", "of the host", 1, 2048, NULL},
	{"age", 0, OPTION_NUMBER, "SECONDS", "of it", 1, 60, NULL},
	{0},
};

static const struct option *const TABLES[] = {FIRST, SECOND, AMOUNTS};

#define PARSE(options, error, ...)                                                                 \
	options_parse(TABLES, 2, (int)ARRAY_SIZE(((char *[]){__VA_ARGS__})),                       \
		      (char *[]){__VA_ARGS__}, options, error)

static void test_all_forms(void **state)
{
	CLEANUP(options) struct options options = {0};
	struct error error = {0};

	(void)state;
	expect_ok(PARSE(&options, &error, "one", "--gpus", "2", "--for=1h", "-cred", "-w", "--mig",
			"1g=2", "two", "--mig=2g=1", "-", "--", "--gpus"),
		  &error);
	assert_int_equal(options_number(&options, "gpus", 0), 2);
	assert_int_equal(options_number(&options, "for", 0), 3600000);
	assert_string_equal(options_text(&options, "for"), "1h");
	assert_string_equal(options_text(&options, "colour"), "red");
	assert_true(options_given(&options, "wait"));
	assert_int_equal(options_value(&options, "mig")->list_count, 2);
	assert_string_equal(options_value(&options, "mig")->list[1], "2g=1");
	assert_int_equal(options.operand_count, 4);
	assert_string_equal(options.operands[2], "-");
	assert_string_equal(options.operands[3], "--gpus");
}

/* A number alone is seconds, and nothing else is. */
static void test_how_long_to_wait(void **state UNUSED)
{
	static const struct {
		char *text;
		int64_t ms; /* 0: refused */
	} CASES[] = {{"10", 10000},
		     {"10s", 10000},
		     {"1m30s", 90000},
		     {"3600", 3600000},
		     {"0", 0},
		     {"3601", 0},
		     {"1h1s", 0},
		     {"10 ", 0},
		     {"-1", 0},
		     {"soon", 0},
		     {"1.5", 0},
		     {"5000ms", 0},
		     {"99999999999999999999999999999999999999999999999999999999", 0}};

	for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
		CLEANUP(options) struct options options = {0};
		struct error error = {0};
		bool ok = PARSE(&options, &error, "--timeout", CASES[i].text);

		assert_int_equal(ok, CASES[i].ms > 0);
		if (ok)
			assert_int_equal(options_number(&options, "timeout", 0), CASES[i].ms);
		else
			assert_non_null(strstr(error.what, "--timeout"));
	}
}

static void test_absent_values(void **state)
{
	CLEANUP(options) struct options options = {0};
	struct error error = {0};

	(void)state;
	expect_ok(options_parse(TABLES, 2, 0, NULL, &options, &error), &error);
	assert_false(options_given(&options, "wait"));
	assert_null(options_text(&options, "colour"));
	assert_int_equal(options_number(&options, "gpus", 7), 7);
	assert_int_equal(options.operand_count, 0);
}

static void test_what_is_wrong_is_named(void **state)
{
	static const struct {
		char *words[3];
		int count;
		const char *what;
	} cases[] = {
		{{"--gpu", "2"}, 2, "unknown option '--gpu' (did you mean '--gpus'?)"},
		{{"--gpu=2"}, 1, "unknown option '--gpu' (did you mean '--gpus'?)"},
		{{"-x"}, 1, "unknown option '-x'"},
		{{"--gpus"}, 1, "--gpus needs a value: --gpus N"},
		{{"--gpus", "0"}, 2, "--gpus: 0 is not from 1 to 8"},
		{{"--gpus", "9"}, 2, "--gpus: 9 is not from 1 to 8"},
		{{"--gpus", "99999999999999999999"},
		 2,
		 "--gpus: 999999999999999999… is not from 1 to 8"},
		{{"--gpus", "-1"}, 2, "--gpus: '-1' is not a whole number"},
		{{"--gpus", "2x"}, 2, "--gpus: '2x' is not a whole number"},
		{{"--gpus="}, 1, "--gpus: the value is empty"},
		{{"--gpus=1", "--gpus=2"}, 2, "--gpus is given twice"},
		{{"--for", "59s"}, 2, "--for"},
		{{"--colour", "blue"}, 2, "--colour: 'blue' is not one of red, green"},
		{{"--wait=yes"}, 1, "--wait takes no value"},
		{{"-wx"}, 1, "--wait takes no value"},
	};
	struct error error = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct options options = {0};
		expect_error(
			options_parse(TABLES, 2, cases[i].count, cases[i].words, &options, &error),
			&error, ERROR_INVALID_INPUT, cases[i].what);
		assert_null(options.values); /* untouched */
	}
}

static void test_what_to_write_is_said(void **state)
{
	static const struct {
		char *words[2];
		const char *hint;
	} cases[] = {
		{{"--for", "8"},
		 "Add the unit: --for 8m for minutes. Its units are d, h, m and s; it is from 1m "
		 "to 1h."},
		/* only what would be taken */
		{{"--for", "1"},
		 "Add the unit: --for 1h for hours. Its units are d, h, m and s; it is from 1m to "
		 "1h."},
		{{"--for", "99"},
		 "Add the unit: --for 99s for seconds. Its units are d, h, m and s; it is from 1m "
		 "to "
		 "1h."},
		{{"--for", "5000"}, "Add the unit: d, h, m or s. It is from 1m to 1h."},
		{{"--for", "0"}, "Add the unit: d, h, m or s. It is from 1m to 1h."},
		{{"--for", "999999999999999999"},
		 "Add the unit: d, h, m or s. It is from 1m to 1h."},
		{{"--for", "soon"},
		 "Its units are d, h, m and s, the larger first; it is from 1m to 1h."},
		/* never the digits alone: with a unit they were another amount */
		{{"--gpus", "10Gi"}, "It takes digits alone, without a unit."},
		{{"--cpus", "500m"}, "It takes whole CPUs, such as --cpus 4"},
		{{"--cpus", "0.5"}, "It takes whole CPUs, such as --cpus 4"},
		{{"--memory", "512Mi"}, "It takes GiB, such as --memory 64"},
		{{"--memory", "64Gi"}, "It takes GiB, such as --memory 64"},
		{{"--age", "1m"}, "It takes seconds, such as --age 30"},
		{{"--gpus", "many"}, ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct options options = {0};
		struct error error = {0};
		if (options_parse(TABLES, 3, 2, cases[i].words, &options, &error))
			fail_msg("'%s' was taken", cases[i].words[1]);
		assert_string_equal(error.hint, cases[i].hint);
	}
}

static void test_a_list_has_its_bound(void **state)
{
	char *words[OPTIONS_MAX_LIST + 1];
	CLEANUP(options) struct options options = {0};
	struct error error = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		words[i] = "--mig=1g";
	expect_ok(options_parse(TABLES, 2, OPTIONS_MAX_LIST, words, &options, &error), &error);
	assert_int_equal(options_value(&options, "mig")->list_count, OPTIONS_MAX_LIST);
	struct options more = {0};
	expect_error(options_parse(TABLES, 2, OPTIONS_MAX_LIST + 1, words, &more, &error), &error,
		     ERROR_INVALID_INPUT, "more than 64 times");
}

static void test_options_that_belong_together_or_do_not(void **state)
{
	static const struct {
		const char *word;
		bool need, exclude; /* --gpus and --wait */
	} CASES[] = {{"--mig=x", true, true}, {"--gpus=1", false, true}, {"--wait", true, true}};
	struct error error;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
		CLEANUP(options) struct options options = {0};
		char *word = (char *)CASES[i].word;

		expect_ok(PARSE(&options, &error, word), &error);
		assert_int_equal(options_need(&options, "gpus", "wait", &error), CASES[i].need);
		assert_int_equal(options_exclude(&options, "gpus", "wait", &error),
				 CASES[i].exclude);
		if (!CASES[i].need)
			assert_string_equal(error.what, "--gpus needs --wait");
	}
	CLEANUP(options) struct options both = {0};
	expect_ok(PARSE(&both, &error, "--gpus", "1", "--wait"), &error);
	expect_ok(options_need(&both, "gpus", "wait", &error), &error);
	expect_error(options_exclude(&both, "gpus", "wait", &error), &error, ERROR_INVALID_INPUT,
		     "--gpus and --wait exclude each other");
}

static void test_help(void **state)
{
	CLEANUP(buf) struct buf text = {0};

	(void)state;
	options_help(&text, SECOND);
	assert_string_equal(buf_text(&text), "  -c, --colour NAME         of it\n"
					     "  -w, --wait                until it is there\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_forms),
		cmocka_unit_test(test_how_long_to_wait),
		cmocka_unit_test(test_absent_values),
		cmocka_unit_test(test_what_is_wrong_is_named),
		cmocka_unit_test(test_what_to_write_is_said),
		cmocka_unit_test(test_a_list_has_its_bound),
		cmocka_unit_test(test_options_that_belong_together_or_do_not),
		cmocka_unit_test(test_help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
