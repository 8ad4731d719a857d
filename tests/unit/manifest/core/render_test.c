#include "manifest/core/render.h"
#include "sample.h"

/* proves: MAN-41 MAN-66 */
static void test_bytes(void **state UNUSED)
{
	CLEANUP(tree)
	json_t *objects = sample_parse("[{\"kind\":\"B\",\"apiVersion\":\"v1\"},"
				       "{\"b\":{\"d\":1,\"c\":2},\"a\":3}]");
	CLEANUP(tree)
	json_t *other = sample_parse("[{\"apiVersion\":\"v1\",\"kind\":\"B\"},"
				     "{\"a\":3,\"b\":{\"c\":2,\"d\":1}}]");
	CLEANUP(buf) struct buf json = {0}, again = {0}, yaml = {0}, more = {0};

	render_json(objects, &json);
	assert_string_equal(buf_text(&json),
			    "{\n  \"apiVersion\": \"v1\",\n  \"items\": [\n    {\n      "
			    "\"apiVersion\": \"v1\",\n      \"kind\": \"B\"\n    },\n    {\n      "
			    "\"a\": 3,\n      \"b\": {\n        \"c\": 2,\n        \"d\": 1\n      "
			    "}\n    }\n  ],\n  \"kind\": \"List\"\n}\n");
	render_json(other, &again);
	assert_string_equal(buf_text(&json), buf_text(&again));
	render_yaml(objects, &yaml);
	assert_string_equal(buf_text(&yaml),
			    "apiVersion: v1\nkind: B\n---\na: 3\nb:\n  c: 2\n  d: 1\n");
	render_yaml(other, &more);
	assert_string_equal(buf_text(&yaml), buf_text(&more));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_bytes)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
