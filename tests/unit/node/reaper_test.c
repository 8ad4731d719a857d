/* The reaper's shell: whom it ends, by the API server's wire, and whom it spares. */
#include "node/reaper.h"

#include "node/core/reap.h"
#include "reaper_world.h"

/* A pod is read, deleted and told of; what stands in it is its user's. */
static void expect_no_pod_is_written(const char *asked)
{
	assert_null(strstr(asked, "POST /api/v1/namespaces/ns/pods"));
	assert_null(strstr(asked, "PUT "));
	assert_null(strstr(asked, "PATCH /api/v1/namespaces/"));
	assert_null(strstr(asked, "PATCH /api/v1/pods"));
}

/* Also one that is over: it is listed with the device.
 * proves: HOST-5 REL-21 REL-22 REL-50 REL-51 REL-52 */
static void test_an_overdue_holder_is_deleted(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200, .body = LIST(POD)},
		{.status = 200, .body = POD},
		{.status = 201, .body = "{}"},
	};
	const char *asked;

	begin(state, ANSWERS, ARRAY_SIZE(ANSWERS), REAP_HOLD_MS + 5000);
	cluster_wait(&cluster, 3);
	asked = finish();
	assert_non_null(strstr(asked, "CN=system:node:n1"));
	assert_non_null(strstr(asked, "GET /api/v1/pods?"));
	assert_non_null(strstr(asked, "fieldSelector=spec.nodeName%3Dn1"));
	assert_non_null(strstr(asked, "DELETE /api/v1/namespaces/ns/pods/web "));
	assert_non_null(strstr(asked, "\"gracePeriodSeconds\":10"));
	assert_non_null(strstr(asked, "\"preconditions\":{\"uid\":\"uid-1\"}"));
	assert_non_null(strstr(asked, "POST /api/v1/namespaces/ns/events"));
	assert_non_null(strstr(asked, "DeviceReleased"));
	expect_no_pod_is_written(asked);
	fake_api_destroy(cluster.api);
}

/* A machine that offers nothing any more, but was a worker. proves: REL-26 */
static void test_where_nothing_is_offered(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200, .body = LIST(POD)},
		{.status = 200, .body = POD},
		{.status = 201, .body = "{}"},
	};

	begin_with(state, true, ANSWERS, ARRAY_SIZE(ANSWERS), REAP_HOLD_MS + 5000);
	cluster_wait(&cluster, 2);
	assert_null(kubelet_find(&cluster.kubelet, "bcd.dev/gpu"));
	assert_non_null(strstr(finish(), "DELETE /api/v1/namespaces/ns/pods/web "));
	fake_api_destroy(cluster.api);
}

/* What somebody writes into a pod, and a pod that can't be read, save nobody else's.
 * proves: REL-21 */
static void test_pods_that_are_odd(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200,
		 .body = LIST("{\"metadata\":{\"uid\":\"uid-7\",\"namespace\":\"a\",\"name\":\"a\","
			      "\"annotations\":{\"kubernetes.io/config.mirror\":\"\"}}},"
			      "{\"metadata\":{\"uid\":\"uid-8\",\"namespace\":\"a\",\"name\":\"b\","
			      "\"annotations\":{\"kubernetes.io/config.mirror\":\"uid-1\"}}},"
			      "{\"metadata\":{\"uid\":\"uid-9\",\"namespace\":\"a\"}}," POD)},
		{.status = 200, .body = POD},
		{.status = 201, .body = "{}"},
	};
	const char *asked;

	begin(state, ANSWERS, ARRAY_SIZE(ANSWERS), REAP_HOLD_MS + 5000);
	cluster_wait(&cluster, 2);
	asked = finish();
	assert_non_null(strstr(asked, "DELETE /api/v1/namespaces/ns/pods/web "));
	fake_api_destroy(cluster.api);
}

static bool the_unread_is_named(void *arg UNUSED)
{
	return condition_says(
		"KubernetesApiUnavailable",
		"the API server's list of pods: 'ns/web' can't be read: metadata.uid");
}

/* Of a list with a pod that can't be read it isn't told who is gone: nothing is released by it, the holder isn't unknown
 * for it, the pod is named, and the next list has its pause. proves: REL-2 REL-14 REL-21 */
static void test_a_pod_that_cannot_be_read(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200,
		 .body = LIST("{\"metadata\":{\"namespace\":\"ns\",\"name\":\"web\"}},"
			      "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"\\u001b[2J\"}}")}};

	begin(state, ANSWERS, 1, REAP_HOLD_MS + 5000);
	cluster.kubelet.held[0] = NULL; /* the checkpoint alone names it */
	kubelet_pass_until(cluster.loop, the_unread_is_named, NULL, 3000, "it is told");
	kubelet_pass(cluster.loop, 4 * REAP_RETRY_MS);
	assert_true(the_unread_is_named(NULL));
	assert_true(condition_says("KubernetesReleasePending", "pod uid-1 (main)"));
	assert_false(condition_says("KubernetesReleasePending", "unknown to the API server"));
	assert_false(is_reported(NULL));
	assert_in_range(fake_api_requests(cluster.api), 3, 6);
	assert_null(strstr(finish(), "DELETE"));
	fake_api_destroy(cluster.api);
}

/* A newcomer of the name is not asked for: it isn't the holder. proves: REL-51 */
static void test_a_newcomer_is_spared(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200,
		 .body = LIST("{\"metadata\":{\"uid\":\"uid-2\",\"namespace\":\"ns\",\"name\":"
			      "\"web\"}}")},
	};
	const char *asked;

	begin(state, ANSWERS, ARRAY_SIZE(ANSWERS), REAP_HOLD_MS + 5000);
	cluster_wait(&cluster, 1);
	kubelet_pass(cluster.loop, 1500);
	asked = finish();
	assert_null(strstr(asked, "DELETE"));
	fake_api_destroy(cluster.api);
}

/* While nothing is known of the Spec, what is released may be wanted again: nobody is ended for it.
 * proves: REL-25 */
static void test_nobody_is_ended_while_the_spec_is_unread(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200, .body = LIST(POD)},
		{.status = 200, .body = POD},
		{.status = 201, .body = "{}"},
	};

	prepare(state, ANSWERS, ARRAY_SIZE(ANSWERS), REAP_HOLD_MS + 5000);
	/* reading it fails with EIO */
	assert_int_equal(unlink(folder_path(state, "var/lib/bcd/spec.json")), 0);
	assert_int_equal(symlink("/proc/self/mem", folder_path(state, "var/lib/bcd/spec.json")), 0);
	cluster_begin(&cluster, NULL);
	kubelet_pass(cluster.loop, 3000);
	assert_int_equal(fake_api_requests(cluster.api), 0);
	write_spec();
	cluster_wait(&cluster, 2);
	assert_non_null(strstr(finish(), "DELETE /api/v1/namespaces/ns/pods/web "));
	fake_api_destroy(cluster.api);
}

/* It has its 30 s. proves: REL-21 REL-49 */
static void test_nobody_is_asked_for_before_its_time(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {{.status = 200, .body = LIST(POD)}};

	begin(state, ANSWERS, ARRAY_SIZE(ANSWERS), REAP_HOLD_MS - 20000);
	kubelet_pass(cluster.loop, 3000);
	assert_int_equal(fake_api_requests(cluster.api), 0);
	finish();
	fake_api_destroy(cluster.api);
}

/* Refused for good: said, tried again, and nothing is released. proves: HOSTED-42 */
static void test_a_refusal_is_tried_again(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 403, .body = STATUS("Forbidden", "403")},
		{.status = 200, .body = LIST(POD)},
		{.status = 200, .body = POD},
		{.status = 201, .body = "{}"},
	};
	const char *asked;

	begin(state, ANSWERS, ARRAY_SIZE(ANSWERS), REAP_HOLD_MS + 5000);
	cluster_wait(&cluster, 3);
	assert_false(is_reported(NULL));
	asked = finish();
	assert_non_null(strstr(asked, "DELETE"));
	fake_api_destroy(cluster.api);
}

/* No page of anybody's means that the pod is gone: it is asked to go again, and what it has isn't free.
 * proves: REL-51 */
static void test_a_stranger_deletes_nobody(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 404, .body = "default backend - 404"},
		{.status = 409, .body = "{}"},
		{.status = 200, .body = "{\"status\":\"ok\"}"},
	};
	static const struct fake_api_answer LISTS[] = {{.status = 200, .body = LIST(POD)}};

	for (size_t i = 0; i < ARRAY_SIZE(ANSWERS); i++) {
		prepare(state, LISTS, ARRAY_SIZE(LISTS), REAP_HOLD_MS);
		fake_api_delete_with(cluster.api, ANSWERS[i]);
		cluster_begin(&cluster, NULL);
		cluster_wait(&cluster, 2);
		kubelet_pass(cluster.loop, 500);
		assert_true(condition_says("KubernetesApiUnavailable", "delete pod 'ns/web'"));
		kubelet_pass(cluster.loop, 2 * REAP_RETRY_MS);
		assert_false(is_reported(NULL));
		const char *asked = finish(), *first = strstr(asked, "DELETE ");
		assert_non_null(first);
		assert_non_null(strstr(first + 1, "DELETE "));
		fake_api_destroy(cluster.api);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_FOLDER(test_an_overdue_holder_is_deleted),
		IN_FOLDER(test_where_nothing_is_offered),
		IN_FOLDER(test_pods_that_are_odd),
		IN_FOLDER(test_a_pod_that_cannot_be_read),
		IN_FOLDER(test_a_newcomer_is_spared),
		IN_FOLDER(test_nobody_is_ended_while_the_spec_is_unread),
		IN_FOLDER(test_nobody_is_asked_for_before_its_time),
		IN_FOLDER(test_a_refusal_is_tried_again),
		IN_FOLDER(test_a_stranger_deletes_nobody),
	};

	return cmocka_run_group_tests(tests, cluster_set_up, cluster_tear_down);
}
