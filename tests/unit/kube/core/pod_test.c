#include "kube/core/pod.h"

#include "lib/test.h"
#include "text/tree.h"

static bool read_pod(const char *metadata, json_t **tree, struct kube_pod *pod, struct error *error)
{
	CLEANUP(buf) struct buf text = {0};

	buf_printf(&text, "{\"metadata\": {%s}}", metadata);
	expect_ok(tree_parse(text.data, text.length, 4096, "pod", tree, error), error);
	return kube_pod_read(*tree, pod, error);
}

#define NAMED "\"uid\": \"u-1\", \"namespace\": \"ns\", \"name\": \"web\""

static void test_plain(void **state UNUSED)
{
	CLEANUP(tree) json_t *tree = NULL;
	struct kube_pod pod;
	struct error error;

	expect_ok(read_pod(NAMED, &tree, &pod, &error), &error);
	assert_string_equal(pod.uid, "u-1");
	assert_string_equal(pod.namespace, "ns");
	assert_string_equal(pod.name, "web");
	assert_string_equal(pod.static_uid, "");
	assert_string_equal(pod.static_source, "");
	assert_string_equal(pod.finalizer, "");
	assert_false(pod.deleting);
}

static void test_deleting(void **state UNUSED)
{
	CLEANUP(tree) json_t *tree = NULL;
	struct kube_pod pod;
	struct error error;

	expect_ok(read_pod(NAMED ", \"deletionTimestamp\": \"2026-11-30T02:00:10Z\", "
				 "\"deletionGracePeriodSeconds\": 10, "
				 "\"finalizers\": [\"a/b\", \"c/d\"]",
			   &tree, &pod, &error),
		  &error);
	assert_true(pod.deleting);
	assert_int_equal(pod.deletion.ms, 1796004010000);
	assert_int_equal(pod.grace_s, 10);
	assert_string_equal(pod.finalizer, "a/b");
}

/* proves: REL-56 */
static void test_static(void **state UNUSED)
{
	CLEANUP(tree) json_t *tree = NULL, *odd = NULL;
	struct kube_pod pod;
	struct error error;

	expect_ok(read_pod(NAMED ", \"annotations\": {\"kubernetes.io/config.mirror\": \"s-1\", "
				 "\"kubernetes.io/config.source\": \"file\"}",
			   &tree, &pod, &error),
		  &error);
	assert_string_equal(pod.static_uid, "s-1");
	assert_string_equal(pod.static_source, "file");
	expect_ok(read_pod(NAMED ", \"annotations\": {\"kubernetes.io/config.source\": \"api\"}",
			   &odd, &pod, &error),
		  &error);
	assert_string_equal(pod.static_source, "");
}

static void test_refused(void **state UNUSED)
{
	static const struct {
		const char *metadata, *field;
	} TABLE[] = {
		{"\"namespace\": \"ns\", \"name\": \"web\"", "metadata.uid"},
		{"\"uid\": \"\", \"namespace\": \"ns\", \"name\": \"web\"", "metadata.uid"},
		{"\"uid\": \"u-1\", \"name\": \"web\"", "metadata.namespace"},
		{"\"uid\": \"u-1\", \"namespace\": \"ns\", \"name\": 7", "metadata.name"},
		{NAMED ", \"annotations\": []", "metadata.annotations"},
		{NAMED ", \"finalizers\": [1]", "metadata.finalizers[0]"},
		{NAMED ", \"deletionTimestamp\": \"soon\"", "metadata.deletionTimestamp"},
		{NAMED ", \"deletionGracePeriodSeconds\": -1",
		 "metadata.deletionGracePeriodSeconds"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		CLEANUP(tree) json_t *tree = NULL;
		struct kube_pod pod;
		struct error error = {0};

		assert_false(read_pod(TABLE[i].metadata, &tree, &pod, &error));
		assert_string_equal(error.field, TABLE[i].field);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_deleting),
		cmocka_unit_test(test_static),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
