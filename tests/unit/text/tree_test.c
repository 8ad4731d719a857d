#include "text/tree.h"

#include "lib/test.h"

static json_t *parse(const char *text)
{
	json_t *tree = NULL;
	struct error error;

	expect_ok(tree_parse(text, strlen(text), 10000, "input", &tree, &error), &error);
	return tree;
}

static void expect_refused(const char *text, size_t length, const char *message)
{
	json_t *tree = NULL;
	struct error error;

	expect_error(tree_parse(text, length, 1000, "input", &tree, &error), &error,
		     ERROR_INVALID_INPUT, message);
	assert_null(tree);
}

static void test_bad_texts_are_refused_by_line(void **state UNUSED)
{
	static const struct {
		const char *text, *message;
	} CASES[] = {
		{"", "input: empty"},
		{"{", "input:1:1: the text ends too early"},
		{"{1}", "input:1:2: a name in double quotes is expected"},
		{"{\"a\" 1}", "input:1:6: ':' is expected"},
		{"{\"a\":1 2}", "input:1:8: ',' or '}' is expected"},
		{"{\"a\":1,\n2:3}", "input:2:1: a name in double quotes is expected"},
		{"{\"a\":}", "input:1:6: a value is expected"},
		{"{\"a\":1,\n\"a\":2}", "input:2:3: \"a\" is there twice"},
		{"{\"a\":1} x", "input:1:9: something follows the end"},
		{"[1,2,]", "input:1:6: a value is expected"},
		{"[1 2]", "input:1:4: ',' or ']' is expected"},
		{"\"alone\"", "input:1:7: an object or an array is expected"},
		{"[\"a", "input:1:3: the text ends too early"},
		{"[\"a\nb\"]", "input:1:3: a text goes on to its closing quote"},
		{"[\"\t\"]", "input:1:2: a control character in a text"},
		{"[\"\\x\"]", "input:1:4: an unknown escape"},
		{"[\"\\ud800\"]", "\\u doesn't name a character"},
		{"{\"a\":99999999999999999999}", "input:1:25: the number is too large"},
		{"{\"a\":1e999}", "the number is too large"},
		{"{\"a\":\"\\u0000\"}", "\\u0000 and the byte 0 aren't taken"},
		{"{\"a\":\"\xff\"}", "a byte that is no UTF-8"},
		{"{\"a\":NaN}", "input:1:8: no value of JSON"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(CASES); i++)
		expect_refused(CASES[i].text, strlen(CASES[i].text), CASES[i].message);
	expect_refused("{\"a\":\"x\0y\"}", 11, "input:1:");
}

static void test_errors_do_not_show_the_text(void **state UNUSED)
{
	const char *text = "{\"key\": s3cret}";
	json_t *tree;
	struct error error;

	assert_false(tree_parse(text, strlen(text), 100, "key file", &tree, &error));
	assert_null(strstr(error.what, "s3cret"));
}

static void test_size_is_bounded(void **state UNUSED)
{
	json_t *tree;
	struct error error;

	expect_ok(tree_parse("[1]", 3, 3, "input", &tree, &error), &error);
	json_decref(tree);
	expect_error(tree_parse("[12]", 4, 3, "input", &tree, &error), &error, ERROR_INVALID_INPUT,
		     "larger than 3 bytes");
}

static void test_depth_is_bounded(void **state UNUSED)
{
	char text[2 * (TREE_MAX_DEPTH + 1)];
	size_t half = TREE_MAX_DEPTH;
	json_t *tree;
	struct error error;

	memset(text, '[', half);
	memset(text + half, ']', half);
	expect_ok(tree_parse(text, 2 * half, 1000, "input", &tree, &error), &error);
	json_decref(tree);
	half++;
	memset(text, '[', half);
	memset(text + half, ']', half);
	expect_refused(text, 2 * half, "nested deeper than 64 levels");
	json_decref(
		parse("[\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"]"));
}

static void test_fields_have_types_and_bounds(void **state UNUSED)
{
	CLEANUP(tree)
	json_t *tree = parse("{\"text\":\"abc\",\"empty\":\"\",\"number\":7,\"real\":1.5,"
			     "\"yes\":true,\"list\":[1,2],\"object\":{},\"none\":null}");
	const char *text;
	int64_t number;
	bool flag;
	json_t *value;
	size_t choice;
	struct error error;

	expect_ok(tree_get_string(tree, "text", "", 3, &text, &error), &error);
	assert_string_equal(text, "abc");
	expect_error(tree_get_string(tree, "text", "", 2, &text, &error), &error,
		     ERROR_INVALID_INPUT, "text: is longer than 2 bytes");
	expect_error(tree_get_string(tree, "empty", "", 2, &text, &error), &error,
		     ERROR_INVALID_INPUT, "empty: is empty");
	expect_ok(tree_get_text(tree, "empty", "", 0, &text, &error), &error);
	expect_error(tree_get_string(tree, "absent", "a.b", 2, &text, &error), &error,
		     ERROR_INVALID_INPUT, "a.b.absent: is missing");
	assert_string_equal(error.field, "a.b.absent");
	expect_error(tree_get_string(tree, "none", "", 2, &text, &error), &error,
		     ERROR_INVALID_INPUT, "none: must be a string, not null");

	expect_ok(tree_get_int(tree, "number", "", 7, 7, &number, &error), &error);
	assert_int_equal(number, 7);
	expect_error(tree_get_int(tree, "number", "", 8, 9, &number, &error), &error,
		     ERROR_INVALID_INPUT, "number: 7 is not from 8 to 9");
	expect_error(tree_get_int(tree, "number", "", 0, 6, &number, &error), &error,
		     ERROR_INVALID_INPUT, "number: 7 is not from 0 to 6");
	expect_error(tree_get_int(tree, "real", "", 0, 9, &number, &error), &error,
		     ERROR_INVALID_INPUT, "real: must be a whole number");
	expect_error(tree_get_int(tree, "text", "", 0, 9, &number, &error), &error,
		     ERROR_INVALID_INPUT, "text: must be a whole number, not a string");

	expect_ok(tree_get_bool(tree, "yes", "", &flag, &error), &error);
	assert_true(flag);
	expect_error(tree_get_bool(tree, "number", "", &flag, &error), &error, ERROR_INVALID_INPUT,
		     "number: must be true or false, not a number");
	expect_ok(tree_get_array(tree, "list", "", 2, &value, &error), &error);
	expect_error(tree_get_array(tree, "list", "", 1, &value, &error), &error,
		     ERROR_INVALID_INPUT, "list: has more than 1 items");
	expect_error(tree_get_array(tree, "object", "", 1, &value, &error), &error,
		     ERROR_INVALID_INPUT, "object: must be an array, not an object");
	expect_ok(tree_get_object(tree, "object", "", &value, &error), &error);
	expect_ok(tree_get_choice(tree, "text", "", TREE_KEYS("x", "abc"), &choice, &error),
		  &error);
	assert_int_equal(choice, 1);
	expect_error(tree_get_choice(tree, "text", "", TREE_KEYS("x", "y"), &choice, &error),
		     &error, ERROR_INVALID_INPUT, "text: 'abc' is not one of x, y");
}

static void test_optional_fields_keep_their_default(void **state UNUSED)
{
	CLEANUP(tree) json_t *tree = parse("{\"wrong\":[]}");
	const char *text = "default";
	int64_t number = 3;
	bool flag = true;
	size_t choice = 5;
	json_t *value = NULL;
	struct error error;

	expect_ok(tree_opt_string(tree, "a", "", 9, &text, &error), &error);
	expect_ok(tree_opt_int(tree, "a", "", 0, 9, &number, &error), &error);
	expect_ok(tree_opt_bool(tree, "a", "", &flag, &error), &error);
	expect_ok(tree_opt_choice(tree, "a", "", TREE_KEYS("x"), &choice, &error), &error);
	expect_ok(tree_opt_object(tree, "a", "", &value, &error), &error);
	expect_ok(tree_opt_array(tree, "a", "", 9, &value, &error), &error);
	assert_string_equal(text, "default");
	assert_int_equal(number, 3);
	assert_true(flag);
	assert_int_equal(choice, 5);
	assert_null(value);
	expect_error(tree_opt_int(tree, "wrong", "", 0, 9, &number, &error), &error,
		     ERROR_INVALID_INPUT, "wrong: must be a whole number, not an array");
}

static void test_items_are_named_by_index(void **state UNUSED)
{
	CLEANUP(tree) json_t *tree = parse("[{}, \"x\", 3]");
	const char *text;
	json_t *value;
	struct error error;

	expect_ok(tree_item_object(tree, 0, "devices", "", &value, &error), &error);
	expect_error(tree_item_object(tree, 1, "devices", "", &value, &error), &error,
		     ERROR_INVALID_INPUT, "devices[1]: must be an object, not a string");
	expect_ok(tree_item_string(tree, 1, "devices", "", 1, &text, &error), &error);
	expect_error(tree_item_string(tree, 2, "devices", "spec", 1, &text, &error), &error,
		     ERROR_INVALID_INPUT, "spec.devices[2]: must be a string, not a number");
}

static void test_unknown_keys_are_refused(void **state UNUSED)
{
	CLEANUP(tree) json_t *tree = parse("{\"count\":1,\"clas\":2}");
	struct error error;

	expect_ok(tree_check_keys(tree, "", TREE_KEYS("clas", "count"), &error), &error);
	expect_error(tree_check_keys(tree, "devices[0]", TREE_KEYS("class", "count"), &error),
		     &error, ERROR_INVALID_INPUT,
		     "devices[0].clas: unknown field (did you mean \"class\"?)");
	assert_string_equal(error.field, "devices[0].clas");
	expect_error(tree_check_keys(tree, "", TREE_KEYS("count"), &error), &error,
		     ERROR_INVALID_INPUT, "clas: unknown field");
	expect_error(
		tree_check_keys(json_object_get(tree, "count"), "count", TREE_KEYS("x"), &error),
		&error, ERROR_INVALID_INPUT, "count: must be an object, not a number");
}

static void test_dumps(void **state UNUSED)
{
	CLEANUP(tree) json_t *tree = parse("{ \"b\": [1, 2.5], \"a\": \"\\u00e4\" }");
	CLEANUP(buf) struct buf out = {0};

	tree_dump_canonical(&out, tree);
	assert_string_equal(buf_text(&out), "{\"a\":\"\xc3\xa4\",\"b\":[1,2.5]}");
	buf_clear(&out);
	tree_dump_pretty(&out, tree);
	assert_string_equal(buf_text(&out),
			    "{\n  \"b\": [\n    1,\n    2.5\n  ],\n  \"a\": \"\xc3\xa4\"\n}\n");
}

static void test_written_strings_are_always_utf8(void **state UNUSED)
{
	CLEANUP(tree) json_t *tree = json_object();

	tree_set(tree, "good", tree_string("\xc3\xa4"));
	tree_set(tree, "bad", tree_string("a\xff\xc3"));
	assert_string_equal(json_string_value(json_object_get(tree, "good")), "\xc3\xa4");
	assert_string_equal(json_string_value(json_object_get(tree, "bad")),
			    "a\xef\xbf\xbd\xef\xbf\xbd");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_texts_are_refused_by_line),
		cmocka_unit_test(test_errors_do_not_show_the_text),
		cmocka_unit_test(test_size_is_bounded),
		cmocka_unit_test(test_depth_is_bounded),
		cmocka_unit_test(test_fields_have_types_and_bounds),
		cmocka_unit_test(test_optional_fields_keep_their_default),
		cmocka_unit_test(test_items_are_named_by_index),
		cmocka_unit_test(test_unknown_keys_are_refused),
		cmocka_unit_test(test_dumps),
		cmocka_unit_test(test_written_strings_are_always_utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
