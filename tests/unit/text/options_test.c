#include "text/options.h"

#include "lib/test.h"

static const char *const FORMATS[] = {"table", "json", NULL};

static const struct option OWN[] = {
	{.name = "gpus",
	 .letter = 'g',
	 .kind = OPTION_NUMBER,
	 .value = "N",
	 .help = "how many GPUs",
	 .min = 1,
	 .max = 64},
	{.name = "for",
	 .kind = OPTION_DURATION,
	 .value = "D",
	 .help = "how long",
	 .min = 60000,
	 .max = 86400000},
	{.name = "label", .kind = OPTION_LIST, .value = "K=V", .help = "labels"},
	{0},
};
static const struct option COMMON[] = {
	{.name = "output",
	 .letter = 'o',
	 .kind = OPTION_TEXT,
	 .value = "FORMAT",
	 .help = "how to print",
	 .choices = FORMATS},
	{.name = "wait", .letter = 'w', .kind = OPTION_FLAG, .help = "wait until it is done"},
	{0},
};
static const struct option *const TABLES[] = {OWN, COMMON};

static bool parse(struct options *options, struct error *error, ...)
{
	char *argv[16];
	va_list args;
	int argc = 0;

	va_start(args, error);
	while ((argv[argc] = va_arg(args, char *)))
		argc++;
	va_end(args);
	return options_parse(TABLES, ARRAY_SIZE(TABLES), argc, argv, options, error);
}

static void test_all_forms(void **state UNUSED)
{
	struct options options;
	struct error error;

	expect_ok(parse(&options, &error, "pool", "--gpus", "2", "--for=8h", "-ojson", "-w",
			"--label", "a=b", "--label=c=d", "--", "--gpus", NULL),
		  &error);
	assert_int_equal(options_number(&options, "gpus", 0), 2);
	assert_int_equal(options_number(&options, "for", 0), 8 * 3600000);
	assert_string_equal(options_text(&options, "output"), "json");
	assert_true(options_given(&options, "wait"));
	assert_int_equal(options_value(&options, "label")->list_count, 2);
	assert_string_equal(options_value(&options, "label")->list[1], "c=d");
	assert_int_equal(options.operand_count, 2);
	assert_string_equal(options.operands[0], "pool");
	assert_string_equal(options.operands[1], "--gpus");
	options_deinit(&options);

	expect_ok(parse(&options, &error, "-g", "3", "-", NULL), &error);
	assert_int_equal(options_number(&options, "gpus", 0), 3);
	assert_string_equal(options.operands[0], "-");
	assert_int_equal(options_number(&options, "for", 7), 7);
	assert_null(options_text(&options, "output"));
	assert_false(options_given(&options, "wait"));
	options_deinit(&options);
	options_deinit(NULL);
}

static void expect_refused(char *first, char *second, const char *message)
{
	struct options options;
	struct error error;

	expect_error(parse(&options, &error, first, second, NULL), &error, ERROR_INVALID_INPUT,
		     message);
}

static void test_wrong_use_is_named(void **state UNUSED)
{
	expect_refused("--gpu", "2", "unknown option '--gpu' (did you mean '--gpus'?)");
	expect_refused("--zebra", NULL, "unknown option '--zebra'");
	expect_refused("-z", NULL, "unknown option '-z'");
	expect_refused("--gpus", NULL, "--gpus needs a value");
	expect_refused("--gpus=", NULL, "--gpus: the value is empty");
	expect_refused("--gpus", "two", "--gpus: 'two' is not a whole number");
	expect_refused("--gpus", "-1", "--gpus: '-1' is not a whole number");
	expect_refused("--gpus", "0", "--gpus: 0 is not from 1 to 64");
	expect_refused("--gpus", "65", "--gpus: 65 is not from 1 to 64");
	expect_refused("--gpus", "9999999999999999999", "--gpus: '9999999999999999999' is not");
	expect_refused("--gpus=1", "--gpus=1", "--gpus is given twice");
	expect_refused("--for", "30s", "--for: '30s' is not between 1m and 1d");
	expect_refused("--output", "xml", "--output: 'xml' is not one of table, json");
	expect_refused("--wait=yes", NULL, "--wait takes no value");
}

static void test_lists_are_bounded(void **state UNUSED)
{
	char *argv[OPTIONS_MAX_LIST + 1];
	struct options options;
	struct error error;

	for (int i = 0; i <= OPTIONS_MAX_LIST; i++)
		argv[i] = "--label=x";
	expect_ok(
		options_parse(TABLES, ARRAY_SIZE(TABLES), OPTIONS_MAX_LIST, argv, &options, &error),
		&error);
	options_deinit(&options);
	expect_error(options_parse(TABLES, ARRAY_SIZE(TABLES), OPTIONS_MAX_LIST + 1, argv, &options,
				   &error),
		     &error, ERROR_INVALID_INPUT, "--label is given more than 64 times");
}

static void test_help_stands_in_one_column(void **state UNUSED)
{
	CLEANUP(buf) struct buf help = {0};

	options_help(&help, COMMON);
	assert_string_equal(buf_text(&help), "  -o, --output FORMAT       how to print\n"
					     "  -w, --wait                wait until it is done\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_forms),
		cmocka_unit_test(test_wrong_use_is_named),
		cmocka_unit_test(test_lists_are_bounded),
		cmocka_unit_test(test_help_stands_in_one_column),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
