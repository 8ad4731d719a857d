#include "kube/core/pod.h"

#include "lib/test.h"
#include "text/tree.h"

static bool read_pod(const char *metadata, json_t **tree, struct kube_pod *pod, struct error *error)
{
	CLEANUP(buf) struct buf text = {0};

	buf_printf(&text, "{\"metadata\": {%s}}", metadata);
	expect_ok(tree_parse(text.data, text.length, 65536, "pod", tree, error), error);
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

#define FAILED(where, state)                                                                       \
	"{\"phase\": \"Failed\", \"" where "\": [{}, 7, {\"state\": " state "}]}"
#define COLLECTED(reason)                                                                          \
	"{\"phase\": \"Failed\", \"conditions\": [7, {}, {\"type\": \"DisruptionTarget\", "        \
	"\"status\": "                                                                             \
	"\"True\", \"reason\": \"" reason "\"}]}"
#define RUNNING "{\"running\": {\"startedAt\": \"2026-11-30T02:00:10Z\"}}"

/* Only a phase that Kubernetes calls final is one, and only while no container is said to run: others than the kubelet
 * set it, too. proves: HOSTED-24 */
static void test_over(void **state UNUSED)
{
	static const struct {
		const char *status;
		bool over;
	} TABLE[] = {
		{"{\"phase\": \"Succeeded\"}", true},
		{"{\"phase\": \"Failed\"}", true},
		{"{\"phase\": \"Running\"}", false},
		{"{\"phase\": \"Pending\"}", false},
		{"{\"phase\": \"Unknown\"}", false},
		{"{\"phase\": 7}", false},
		{FAILED("containerStatuses", "{\"terminated\": {\"exitCode\": 0}}"), true},
		{FAILED("containerStatuses", "{\"waiting\": {}}"), true},
		{FAILED("containerStatuses", RUNNING), false},
		{FAILED("initContainerStatuses", RUNNING), false},
		{FAILED("ephemeralContainerStatuses", RUNNING), false},
		{COLLECTED("DeletionByPodGC"), false},
		{COLLECTED("PreemptionByScheduler"), true},
		{"{}", false},
		{"[]", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		CLEANUP(tree) json_t *tree = NULL;
		CLEANUP(buf) struct buf text = {0};
		struct kube_pod pod;
		struct error error;

		buf_printf(&text, "{\"metadata\": {" NAMED "}, \"status\": %s}", TABLE[i].status);
		expect_ok(tree_parse(text.data, text.length, 4096, "pod", &tree, &error), &error);
		expect_ok(kube_pod_read(tree, &pod, &error), &error);
		assert_int_equal(pod.over, TABLE[i].over);
	}
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

#define OWNER(kind, name, more)                                                                    \
	"\"ownerReferences\": [{\"apiVersion\": \"v1\", \"kind\": \"" kind "\", \"name\": \"" name \
	"\", \"uid\": \"o-1\"" more "}]"
#define OF_NODE        OWNER("Node", "n1", ", \"controller\": true")
#define SAYS(uid)      "\"annotations\": {\"kubernetes.io/config.mirror\": " uid "}"
#define LONG_8(text)   text text text text text text text text
#define LONG_256(text) LONG_8(LONG_8(text text text text))

/* Anybody may write the annotation: a mirror is one that its Node controls, and names a UID. Whatever else
 * stands there costs nothing but that. proves: REL-21 REL-56 */
static void test_static(void **state UNUSED)
{
	static const struct {
		const char *metadata, *uid, *source;
	} TABLE[] = {
		{OF_NODE ", \"annotations\": {\"kubernetes.io/config.mirror\": \"s-1\", "
			 "\"kubernetes.io/config.source\": \"file\"}",
		 "s-1", "file"},
		{OF_NODE ", " SAYS("\"s-1\""), "s-1", ""},
		{OF_NODE ", \"annotations\": {\"kubernetes.io/config.source\": \"api\"}", "", ""},
		{OF_NODE ", " SAYS("\"\""), "", ""},
		{OF_NODE ", " SAYS("7"), "", ""},
		{OF_NODE ", " SAYS("\"" LONG_256("x") "\""), "", ""},
		{OF_NODE ", \"annotations\": []", "", ""},
		{SAYS("\"s-1\""), "", ""},
		{"\"ownerReferences\": 7, " SAYS("\"s-1\""), "", ""},
		{OWNER("Node", "n2", ", \"controller\": true") ", " SAYS("\"s-1\""), "", ""},
		{OWNER("Node", "n1", "") ", " SAYS("\"s-1\""), "", ""},
		{OWNER("ReplicaSet", "n1", ", \"controller\": true") ", " SAYS("\"s-1\""), "", ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		CLEANUP(tree) json_t *tree = NULL;
		CLEANUP(buf) struct buf text = {0};
		struct kube_pod pod;
		struct error error;

		buf_printf(&text,
			   "{\"metadata\": {" NAMED ", %s}, \"spec\": {\"nodeName\": \"n1\"}}",
			   TABLE[i].metadata);
		expect_ok(tree_parse(text.data, text.length, 4096, "pod", &tree, &error), &error);
		expect_ok(kube_pod_read(tree, &pod, &error), &error);
		assert_string_equal(pod.static_uid, TABLE[i].uid);
		assert_string_equal(pod.static_source, TABLE[i].source);
	}
}

/* What a pod's maker may write makes no pod unreadable. */
static void test_what_anybody_may_write(void **state UNUSED)
{
	static const struct {
		const char *metadata, *finalizer;
		int64_t grace_s;
	} TABLE[] = {
		{"\"finalizers\": [1]", "", 0},
		{"\"finalizers\": {}", "", 0},
		{"\"finalizers\": [" LONG_256("\"x/y\",") LONG_256("\"x/y\",") LONG_256("\"x/y\",")
			 LONG_256("\"x/y\",") "\"x/y\"]",
		 "x/y", 0},
		{"\"deletionGracePeriodSeconds\": 9223372036854775807", "", (int64_t)1 << 40},
		{"\"deletionGracePeriodSeconds\": -1", "", 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		CLEANUP(tree) json_t *tree = NULL;
		CLEANUP(buf) struct buf text = {0};
		struct kube_pod pod;
		struct error error;

		buf_printf(&text, NAMED ", %s", TABLE[i].metadata);
		expect_ok(read_pod(buf_text(&text), &tree, &pod, &error), &error);
		assert_string_equal(pod.finalizer, TABLE[i].finalizer);
		assert_int_equal(pod.grace_s, TABLE[i].grace_s);
	}
}

/* How long the kubelet lets it go on, once it is to end. */
static void test_termination(void **state UNUSED)
{
	static const struct {
		const char *spec;
		int64_t seconds;
	} TABLE[] = {
		{"{\"terminationGracePeriodSeconds\": 3600}", 3600},
		{"{\"terminationGracePeriodSeconds\": 0}", 0},
		{"{\"terminationGracePeriodSeconds\": -5}", 0},
		{"{\"terminationGracePeriodSeconds\": 9223372036854775807}", (int64_t)1 << 40},
		{"{\"terminationGracePeriodSeconds\": \"7\"}", 30},
		{"{}", 30},
		{"7", 30},
	};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		CLEANUP(tree) json_t *tree = NULL;
		CLEANUP(buf) struct buf text = {0};
		struct kube_pod pod;
		struct error error;

		buf_printf(&text, "{\"metadata\": {" NAMED "}, \"spec\": %s}", TABLE[i].spec);
		expect_ok(tree_parse(text.data, text.length, 4096, "pod", &tree, &error), &error);
		expect_ok(kube_pod_read(tree, &pod, &error), &error);
		assert_int_equal(pod.termination_s, TABLE[i].seconds);
	}
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
		{NAMED ", \"deletionTimestamp\": \"soon\"", "metadata.deletionTimestamp"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		CLEANUP(tree) json_t *tree = NULL;
		struct kube_pod pod;
		struct error error = {0};

		assert_false(read_pod(TABLE[i].metadata, &tree, &pod, &error));
		assert_string_equal(error.field, TABLE[i].field);
	}
}

static void test_which_claims_a_pod_names(void **state UNUSED)
{
	static const struct {
		const char *pod;
		bool has;
	} TABLE[] = {
		{"{\"spec\":{\"resourceClaims\":[{\"name\":\"gpus\",\"resourceClaimName\":\"x\"},"
		 "{\"name\":\"g\",\"resourceClaimName\":\"gpus\"}]}}",
		 true},
		{"{\"spec\":{\"resourceClaims\":[{\"name\":\"g\",\"resourceClaimTemplateName\":"
		 "\"t\"}]},\"status\":{\"resourceClaimStatuses\":[{\"name\":\"g\","
		 "\"resourceClaimName\":\"gpus\"}]}}",
		 true},
		{"{\"status\":{\"extendedResourceClaimStatus\":{\"resourceClaimName\":\"gpus\"}}}",
		 true},
		{"{\"spec\":{\"resourceClaims\":[{\"name\":\"gpus\",\"resourceClaimName\":\"x\"}]}"
		 "}",
		 false},
		{"{\"spec\":{\"resourceClaims\":{}},\"status\":[]}", false},
		{"{\"spec\":{\"resourceClaims\":[7,{\"resourceClaimName\":7}]}}", false},
		{"{}", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		CLEANUP(tree) json_t *tree = NULL;
		struct error error;

		expect_ok(
			tree_parse(TABLE[i].pod, strlen(TABLE[i].pod), 65536, "pod", &tree, &error),
			&error);
		assert_int_equal(kube_pod_has_claim(tree, "gpus"), TABLE[i].has);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_over),
		cmocka_unit_test(test_deleting),
		cmocka_unit_test(test_static),
		cmocka_unit_test(test_what_anybody_may_write),
		cmocka_unit_test(test_termination),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_which_claims_a_pod_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
