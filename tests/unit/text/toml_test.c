#include "text/toml.h"

#include "lib/test.h"

static void expect_json(const char *text, const char *wanted)
{
	CLEANUP(tree) json_t *tree = NULL;
	CLEANUP(buf) struct buf out = {0};
	struct error error;

	expect_ok(toml_parse(text, strlen(text), 100000, "a.toml", &tree, &error), &error);
	tree_dump_canonical(&out, tree);
	assert_string_equal(buf_text(&out), wanted);
}

static void expect_refused(const char *text, const char *message)
{
	json_t *tree = NULL;
	struct error error;

	expect_error(toml_parse(text, strlen(text), 100000, "a.toml", &tree, &error), &error,
		     ERROR_INVALID_INPUT, message);
	assert_null(tree);
}

static void test_every_type_has_its_json(void **state UNUSED)
{
	expect_json("", "{}");
	expect_json("a = 'x'\nb = 1_000\nc = 1.5\nd = true\n",
		    "{\"a\":\"x\",\"b\":1000,\"c\":1.5,\"d\":true}");
	expect_json("[t.u]\nk = [1, [2]]\n[[l]]\nx = 1\n[[l]]\nx = 2\n",
		    "{\"l\":[{\"x\":1},{\"x\":2}],\"t\":{\"u\":{\"k\":[1,[2]]}}}");
	expect_json("a = 2026-11-30T02:00:00Z\nb = 2026-11-30T02:00:00.5+05:30\nc = 2026-11-30\n"
		    "d = 02:00:00\ne = 2026-11-30T02:00:00\n",
		    "{\"a\":\"2026-11-30T02:00:00Z\",\"b\":\"2026-11-30T02:00:00.500000000+05:30\","
		    "\"c\":\"2026-11-30\",\"d\":\"02:00:00\",\"e\":\"2026-11-30T02:00:00\"}");
	expect_json("'io.containerd.grpc.v1.cri'.enable_cdi = true # a comment [[[[",
		    "{\"io.containerd.grpc.v1.cri\":{\"enable_cdi\":true}}");
}

static void test_mistakes_are_named_by_line(void **state UNUSED)
{
	expect_refused("a = 1\nb = \n", "a.toml:2: no value after '='");
	expect_refused("a = ]\n", "a.toml:1: no value after '='");
	expect_refused("a = 1\nb = { c = }\n", "a.toml:2: no value after '='");
	expect_refused("a = 1\na = 2\n", "a.toml:2: ");
	expect_refused("\n\na = nan\n", "a.toml:3: a number is nan or inf");
	expect_refused("a = \"x\\u0000\"\n", "a.toml:1: ");
	expect_refused("a = '\xff'\n", "a.toml:1: ");
	expect_refused("a = 99999999999999999999\n", "a.toml:1: ");
	expect_refused("a = 2026-13-40\n", "a.toml:1: ");
	/* YAML's words, and texts without quotes, whatever toml++ takes their first letter for. */
	expect_refused("\nunits = no\n",
		       "a.toml:2: 'no' is no value: yes and no are true and false, and texts");
	expect_refused("units = yes # all", "a.toml:1: 'yes' is no value");
	expect_refused("a = 1\nb = True", "a.toml:2: 'True' is no value");
	expect_refused("source = auto\n", "a.toml:1: 'auto' is no value");
	expect_refused("a = true b\n", "a.toml:1: ");
}

static void test_bounds(void **state UNUSED)
{
	CLEANUP(buf) struct buf text = {0};
	json_t *tree;
	struct error error;

	expect_error(toml_parse("a = 1", 5, 4, "a.toml", &tree, &error), &error,
		     ERROR_INVALID_INPUT, "larger than 4 bytes");
	buf_add_text(&text, "a = ");
	for (int i = 0; i < 1000; i++)
		buf_add_char(&text, '[');
	expect_refused(buf_text(&text), "a.toml:1: nested deeper than 64 levels");
	buf_clear(&text);
	buf_add_text(&text, "\n[a");
	for (int i = 0; i < 10000; i++)
		buf_add_text(&text, " . \"a\"");
	buf_add_text(&text, "]\n");
	expect_refused(buf_text(&text), "a.toml:2: nested deeper than 64 levels");
	buf_clear(&text); /* a header and its key add up */
	buf_add_text(&text, "[a");
	for (int i = 0; i < 40; i++)
		buf_add_text(&text, ".a");
	buf_add_text(&text, "]\na");
	for (int i = 0; i < 40; i++)
		buf_add_text(&text, ".a");
	buf_add_text(&text, " = 1\n");
	expect_refused(buf_text(&text), "nested too deep");
}

static void test_dots_that_do_not_nest(void **state UNUSED)
{
	CLEANUP(buf) struct buf text = {0}, wanted = {0};

	buf_add_text(&text, "# ");
	for (int i = 0; i < 100; i++)
		buf_add_char(&text, '.');
	buf_add_text(&text, "\na = [");
	buf_add_text(&wanted, "{\"a\":[");
	for (int i = 0; i < 100; i++) {
		buf_printf(&text, "%s1.5", i ? ", " : "");
		buf_printf(&wanted, "%s1.5", i ? "," : "");
	}
	buf_add_text(&text, "]\ns = '''\n[[[[.....''");
	buf_add_text(&wanted, "],\"s\":\"[[[[.....''");
	for (int i = 0; i < 100; i++) {
		buf_add_text(&text, ".[");
		buf_add_text(&wanted, ".[");
	}
	buf_add_text(&text, "'''\n");
	buf_add_text(&wanted, "\"}");
	expect_json(buf_text(&text), buf_text(&wanted));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_type_has_its_json),
		cmocka_unit_test(test_mistakes_are_named_by_line),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_dots_that_do_not_nest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
