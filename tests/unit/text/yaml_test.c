#include "text/yaml.h"

#include "lib/test.h"

static void expect_json(const char *text, const char *wanted)
{
	CLEANUP(tree) json_t *tree = NULL;
	CLEANUP(buf) struct buf out = {0};
	struct error error;

	expect_ok(yaml_parse(text, strlen(text), 100000, "a.yaml", &tree, &error), &error);
	tree_dump_canonical(&out, tree);
	assert_string_equal(buf_text(&out), wanted);
}

static void expect_refused(const char *text, const char *message)
{
	json_t *tree = NULL;
	struct error error;

	expect_error(yaml_parse(text, strlen(text), 100000, "a.yaml", &tree, &error), &error,
		     ERROR_INVALID_INPUT, message);
	assert_null(tree);
}

static void test_every_scalar_has_its_json(void **state UNUSED)
{
	static const struct {
		const char *yaml, *json;
	} TABLE[] = {
		{"", "null"},
		{"~", "null"},
		{"null", "null"},
		{"Null", "null"},
		{"nULL", "\"nULL\""},
		{"true", "true"},
		{"FALSE", "false"},
		{"tRue", "\"tRue\""},
		{"yes", "\"yes\""},
		{"no", "\"no\""},
		{"on", "\"on\""},
		{"y", "\"y\""},
		{"0", "0"},
		{"-0", "0"},
		{"+12", "12"},
		{"-12", "-12"},
		{"0x1F", "31"},
		{"0x", "\"0x\""},
		{"0o17", "15"},
		{"0o8", "\"0o8\""},
		{"1_000", "\"1_000\""},
		{"1:30", "\"1:30\""},
		{"9223372036854775807", "9223372036854775807"},
		{"1.5", "1.5"},
		{".5", "0.5"},
		{"5.", "5.0"},
		{"1e3", "1000.0"},
		{"-1.5E-1", "-0.14999999999999999"},
		{"1e", "\"1e\""},
		{".", "\".\""},
		{"+", "\"+\""},
		{"--1", "\"--1\""},
		{"1.2.3", "\"1.2.3\""},
		{"2026-11-30", "\"2026-11-30\""},
		{"'12'", "\"12\""},
		{"\"true\"", "\"true\""},
		{"''", "\"\""},
		{"'010'", "\"010\""},
		{"!!str 12", "\"12\""},
		{"&anchor 12", "12"},
		{"\"\\u00e9\\n\"", "\"é\\n\""},
		{"|\n  a\n  b\n", "\"a\\nb\\n\""},
		{">-\n  a\n  b\n", "\"a b\""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		CLEANUP(buf) struct buf text = {0}, wanted = {0};

		buf_printf(&text, "k: %s", TABLE[i].yaml);
		buf_printf(&wanted, "{\"k\":%s}", TABLE[i].json);
		expect_json(buf_text(&text), buf_text(&wanted));
	}
}

static void test_structure(void **state UNUSED)
{
	expect_json("a:\n  - 1\n  - b: 2\n    c: [3, {d: 4}]\n  -\n    - x\n",
		    "{\"a\":[1,{\"b\":2,\"c\":[3,{\"d\":4}]},[\"x\"]]}");
	expect_json("- 1\n- two\n", "[1,\"two\"]");
	expect_json("# only\n---\na: {}\nb: []\n...\n", "{\"a\":{},\"b\":[]}");
	expect_json("1: a\ntrue: b\n~: c\n\"1.0\": d\n? e\n: f\n",
		    "{\"1\":\"a\",\"1.0\":\"d\",\"e\":\"f\",\"true\":\"b\",\"~\":\"c\"}");
	expect_json(" \n{\"a\": [1, 2]}", "{\"a\":[1,2]}");
	expect_json("a: {\"b\":\t1}\n", "{\"a\":{\"b\":1}}");
	expect_json("'<<': 1\n", "{\"<<\":1}");
}

static void test_mistakes_are_named_by_line(void **state UNUSED)
{
	expect_refused("", "a.yaml: empty");
	expect_refused("# nothing\n", "a.yaml: empty");
	expect_refused("hello\n", "a.yaml:1: an object or an array is expected");
	expect_refused("a: 1\nb: 2\na: 3\n", "a.yaml:3: \"a\" is there twice");
	expect_refused("a: {b: 1, b: 2}\n", "a.yaml:1: \"b\" is there twice");
	expect_refused("a: 1\n---\nb: 1\n", "a.yaml:2: a second document isn't taken");
	expect_refused("a: &x 1\nb: *x\n", "a.yaml:2: aliases (*name) aren't taken");
	expect_refused("a: &x {b: *x}\n", "a.yaml:1: aliases");
	expect_refused("*x : 1\n", "a.yaml:1: aliases");
	expect_refused("<<: {a: 1}\n", "a.yaml:1: merge keys");
	expect_refused("a: !!int 1\n", "a.yaml:1: a tag other than !!str");
	expect_refused("a: !mine {}\n", "a.yaml:1: a tag other than !!str");
	expect_refused("!mine a: 1\n", "a.yaml:1: a tag other than !!str");
	expect_refused("? [a]\n: 1\n", "a.yaml:1: a key must be a text");
	expect_refused("a:\n b: .nan\n", "a.yaml:2: a number is nan or inf");
	expect_refused("a: 010\n", "a.yaml:1: a number with a leading zero");
	expect_refused("a: 00.5\n", "a.yaml:1: a number with a leading zero");
	expect_refused("a: 9223372036854775808\n", "a.yaml:1: the number is too large");
	expect_refused("a: 1e999\n", "a.yaml:1: the number is too large");
	expect_refused("a: \"x\\0\"\n", "a.yaml:1: the byte 0 isn't taken");
	expect_refused("\"x\\0\": a\n", "a.yaml:1: the byte 0 isn't taken");
	expect_refused("a: b: c\n", "a.yaml:1: mapping values are not allowed in this context");
	expect_refused("a: [1\nb: 2\n", "a.yaml:2: did not find expected ',' or ']'");
	expect_refused("a:\n\tb: 1\n", "a.yaml:2: found character that cannot start any token");
	expect_refused("a: '\xff'\n", "a.yaml:1: ");
	expect_refused("{\"a\": 1, \"a\": 2}", "a.yaml:1:12: \"a\" is there twice");
}

static void test_errors_tell_no_values(void **state UNUSED)
{
	static const char *const TEXTS[] = {"token: s3cr3t: x\n", "token: 's3cr3t\n",
					    "token: [s3cr3t\n", "token: !s3 s3cr3t\n",
					    "token: \"s3cr3t\\0\"\n"};

	for (size_t i = 0; i < ARRAY_SIZE(TEXTS); i++) {
		json_t *tree = NULL;
		struct error error;

		assert_false(yaml_parse(TEXTS[i], strlen(TEXTS[i]), 1000, "a", &tree, &error));
		assert_null(strstr(error.what, "s3cr3t"));
	}
}

static void test_bounds(void **state UNUSED)
{
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(tree) json_t *tree = NULL;
	struct error error;

	expect_error(yaml_parse("a: 12", 5, 4, "a.yaml", &tree, &error), &error,
		     ERROR_INVALID_INPUT, "larger than 4 bytes");
	expect_ok(yaml_parse("a: 1", 4, 4, "a.yaml", &tree, &error), &error);
	for (int i = 0; i < TREE_MAX_DEPTH; i++)
		buf_add_char(&text, '[');
	for (int i = 0; i < TREE_MAX_DEPTH; i++)
		buf_add_char(&text, ']');
	json_decref(TAKE(tree));
	expect_ok(yaml_parse(buf_text(&text), text.length, 1000, "a", &tree, &error), &error);
	buf_clear(&text);
	for (int i = 0; i < 90000; i++)
		buf_add_char(&text, i % 2 ? '[' : ' ');
	expect_refused(buf_text(&text), "a.yaml:1: nested deeper than 64 levels");
	buf_clear(&text);
	for (int i = 0; i < 45000; i++)
		buf_add_text(&text, "- ");
	expect_refused(buf_text(&text), "a.yaml:1: nested deeper than 64 levels");
}

static void test_dump(void **state)
{
	static const struct {
		const char *json, *yaml;
	} cases[] = {
		{"{\"a\":1,\"b\":\"word\",\"c\":\"no\",\"d\":\"1.5\",\"e\":null,\"f\":true}",
		 "a: 1\nb: word\nc: \"no\"\nd: \"1.5\"\ne: null\nf: true\n"},
		{"{\"a\":{\"b\":[]},\"c\":[1,{\"d\":2,\"e\":{\"f\":\"x y\"}},[3,4]]}",
		 "a:\n  b: []\nc:\n  - 1\n  - d: 2\n    e:\n      f: \"x y\"\n  - - 3\n    - 4\n"},
		{"{\"a: b\":\"line\\nbreak\",\"y\":\"~\"}",
		 "\"a: b\": \"line\\nbreak\"\n\"y\": \"~\"\n"},
		{"[]", "[]\n"},
		{"[\"/dev\",\"-x\"]", "- /dev\n- \"-x\"\n"},
		{"{\"a\":[\"x = 1\\n\\ny: 2\\n\"],\"b\":\"é\\n\",\"c\":\" "
		 "x\\n\",\"d\":\"x\\n\\n\"}",
		 "a:\n  - |\n    x = 1\n\n    y: 2\nb: \"é\\n\"\nc: \" x\\n\"\nd: \"x\\n\\n\"\n"},
		{"[\"\x7f\",\"\xc2\x85\xc2\xa0\",\"\xe2\x80\xa8\xe2\x80\xaa\","
		 "\"\xef\xbb\xbf\xef\xbf\xbd\","
		 "\"\xef\xbf\xbe\",\"\xf0\x9f\x98\x80\"]",
		 "- \"\\u007f\"\n- \"\\u0085\xc2\xa0\"\n- \"\\u2028\xe2\x80\xaa\"\n"
		 "- \"\\ufeff\xef\xbf\xbd\"\n- \"\\ufffe\"\n- \"\xf0\x9f\x98\x80\"\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(tree) json_t *value = NULL, *again = NULL;
		CLEANUP(buf) struct buf text = {0};
		struct error error;

		expect_ok(
			tree_parse(cases[i].json, strlen(cases[i].json), 1000, "a", &value, &error),
			&error);
		yaml_dump(&text, value);
		assert_string_equal(buf_text(&text), cases[i].yaml);
		expect_ok(yaml_parse(buf_text(&text), text.length, 1000, "a", &again, &error),
			  &error);
		assert_true(json_equal(value, again));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_scalar_has_its_json),
		cmocka_unit_test(test_structure),
		cmocka_unit_test(test_mistakes_are_named_by_line),
		cmocka_unit_test(test_errors_tell_no_values),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_dump),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
