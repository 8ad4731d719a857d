#include "standin/pods.h"

#include "lib/test.h"
#include "text/tree.h"

static void pods_cleanup(struct pods *pods)
{
	pods_deinit(pods);
}

static json_t *json(const char *text)
{
	json_t *tree;
	struct error error;
	expect_ok(tree_parse(text, strlen(text), 65536, "test", &tree, &error), &error);
	return tree;
}

static void test_round_trip(void **state UNUSED)
{
	CLEANUP(pods) struct pods pods = {0};
	CLEANUP(pods) struct pods back = {0};
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(tree)
	json_t *request = json("{\"verb\":\"run-pod\",\"name\":\"a\",\"resource\":"
			       "\"bcd.dev/gpu\",\"count\":2,\"env\":{\"K\":\"v\"},"
			       "\"stubborn\":true}");
	CLEANUP(tree) json_t *plain = json("{\"name\":\"b\",\"namespace\":\"n\"}");
	struct error error;
	struct pod *pod;
	expect_ok(pods_add(&pods, request, "uid-a", &pod, &error), &error);
	assert_false(pod_active(pod));
	pod->deleting = true;
	pod->grace_ms = 5000;
	pod->seen = json("{\"env\":{\"X\":\"y\"}}");
	pod_set(pod, POD_RUNNING, "", "");
	expect_ok(pods_add(&pods, plain, "uid-b", &pod, &error), &error);
	pod_set(pod, POD_FAILED, "Because", "bytes that are no text: \xff");
	pods_format(&pods, &text);

	expect_ok(pods_parse(text.data, text.length, &back, &error), &error);
	pod = pods_find(&back, "default", "a");
	assert_non_null(pod);
	assert_string_equal(pod->uid, "uid-a");
	assert_string_equal(pod->container, "main");
	assert_int_equal(pod->count, 2);
	assert_int_equal(pod->phase, POD_RUNNING);
	assert_true(pod->stubborn && pod->deleting && pod_active(pod));
	assert_int_equal(pod->grace_ms, 5000);
	assert_string_equal(json_string_value(json_object_get(pod->env, "K")), "v");
	assert_non_null(json_object_get(pod->seen, "env"));
	pod = pods_by_uid(&back, "uid-b");
	assert_non_null(pod);
	assert_string_equal(pod->reason, "Because");
	assert_string_equal(pod->resource, "");
	pods_remove(&back, pod);
	assert_null(pods_find(&back, "n", "b"));
}

static void test_bad_requests(void **state UNUSED)
{
	static const struct {
		const char *request, *names;
		enum error_code code;
	} table[] = {
		{"{}", "name", ERROR_INVALID_INPUT},
		{"{\"name\":\"\"}", "name", ERROR_INVALID_INPUT},
		{"{\"name\":\"b\",\"count\":1}", "count", ERROR_INVALID_INPUT},
		{"{\"name\":\"b\",\"resource\":\"r\"}", "count", ERROR_INVALID_INPUT},
		{"{\"name\":\"b\",\"resource\":\"r\",\"count\":1025}", "count",
		 ERROR_INVALID_INPUT},
		{"{\"name\":\"b\",\"resource\":\"r\",\"count\":-1}", "count", ERROR_INVALID_INPUT},
		{"{\"name\":\"b\",\"env\":{\"K\":1}}", "env", ERROR_INVALID_INPUT},
		{"{\"name\":\"b\",\"bound\":\"yes\"}", "bound", ERROR_INVALID_INPUT},
		{"{\"name\":\"a\"}", "exists", ERROR_CONFLICT},
	};
	CLEANUP(pods) struct pods pods = {0};
	CLEANUP(tree) json_t *first = json("{\"name\":\"a\"}");
	struct error error;
	struct pod *pod;
	expect_ok(pods_add(&pods, first, "uid", &pod, &error), &error);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		CLEANUP(tree) json_t *request = json(table[i].request);
		expect_error(pods_add(&pods, request, "uid", &pod, &error), &error, table[i].code,
			     table[i].names);
		assert_int_equal(pods.list.count, 1);
	}
}

static void test_bad_files(void **state UNUSED)
{
	static const char *const table[] = {
		"",
		"[]",
		"{\"version\":2,\"bootId\":\"\",\"pods\":[]}",
		"{\"version\":1,\"bootId\":\"\",\"pods\":{}}",
		"{\"version\":1,\"bootId\":\"\",\"pods\":[7]}",
		"{\"version\":1,\"bootId\":\"\",\"pods\":[{\"name\":\"a\"}]}",
		"{\"version\":1,\"bootId\":\"\",\"pods\":[{\"name\":\"a\",\"uid\":\"u\",\"phase\":"
		"\"asleep\"}]}"};
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct pods pods = {0};
		struct error error;
		expect_error(pods_parse(table[i], strlen(table[i]), &pods, &error), &error,
			     ERROR_INVALID_INPUT, "");
		assert_int_equal(pods.list.count, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_bad_requests),
		cmocka_unit_test(test_bad_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
