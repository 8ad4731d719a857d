/* What the API server's list says of a pod that the kubelet's checkpoint alone names. */
#include "node/reaper.h"

#include "node/core/reap.h"
#include "node/core/release.h"
#include "node/core/unlisted.h"
#include "reaper_world.h"
#include "sys/durable.h"

#include <stdio.h>

#define UNASKED                                                                                    \
	"pod uid-1 (main)%sonly the kubelet's checkpoint names it, and the API server can't be "   \
	"asked whether it is there"

static bool pending_says_so(void *arg UNUSED)
{
	char words[256];

	snprintf(words, sizeof words, UNASKED, ": ");
	return condition_says("KubernetesReleasePending", words);
}

/* A kubelet that was restarted lists nobody, and where bcd can't see the pods' folders its checkpoint
 * alone names the pod: it counts until the API server's list says that it is over, however long nobody
 * can ask for one. proves: HOSTED-24 HOSTED-42 REL-2 REL-14 */
static void test_a_pod_that_only_the_checkpoint_names(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 403, .body = STATUS("Forbidden", "403")},
		{.status = 403, .body = STATUS("Forbidden", "403")},
		{.status = 200, .body = LIST(RUNNING)},
		{.status = 200, .body = LIST(POD)},
	};

	begin(state, ANSWERS, ARRAY_SIZE(ANSWERS), 0);
	cluster.kubelet.held[0] = NULL;
	kubelet_pass_until(cluster.loop, pending_says_so, NULL, 3000,
			   "it is said who is in the way");
	assert_true(condition_says("KubernetesApiUnavailable", "403"));
	cluster_wait(&cluster, 3);
	kubelet_pass(cluster.loop, 1000);
	assert_false(is_reported(NULL));
	assert_int_equal(fake_api_requests(cluster.api), 3);
	assert_true(condition_says("KubernetesReleasePending", "and the API server has it"));
	kubelet_pass_until(cluster.loop, is_reported, NULL, UNLISTED_ASK_MS + 1000,
			   "the release is reported");
	assert_null(strstr(finish(), "DELETE"));
	fake_api_destroy(cluster.api);
}

/* What answers in the API server's place says nothing of a pod: least of all that it is gone.
 * proves: HOSTED-42 REL-2 REL-14 REL-46 */
static void test_a_stranger_lists_nobody(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200, .body = "{\"status\":\"ok\"}"},
		{.status = 200, .body = STATUS("InternalError", "500")},
		{.status = 200,
		 .body = "{\"kind\":\"ServiceList\",\"apiVersion\":\"v1\",\"metadata\":{},"
			 "\"items\":[]}"},
		{.status = 200,
		 .body = "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{}}"},
		{.status = 404, .body = "default backend - 404"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(ANSWERS); i++) {
		begin(state, &ANSWERS[i], 1, 0);
		cluster.kubelet.held[0] = NULL;
		kubelet_pass_until(cluster.loop, pending_says_so, NULL, 3000,
				   "it is said who is in the way");
		kubelet_pass(cluster.loop, RELEASE_KUBELET_SETTLE_MS + 2 * REAP_RETRY_MS);
		assert_false(is_reported(NULL));
		assert_true(condition_says("KubernetesApiUnavailable", "list"));
		finish();
		fake_api_destroy(cluster.api);
	}
}

/* The entry of a pod that is long over keeps nothing, where the API server answers. */
static void test_an_old_entry_of_the_checkpoint(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {{.status = 200, .body = LIST("")}};

	begin(state, ANSWERS, ARRAY_SIZE(ANSWERS), 0);
	cluster.kubelet.held[0] = NULL;
	kubelet_pass_until(cluster.loop, is_reported, NULL, RELEASE_KUBELET_SETTLE_MS + 2000,
			   "the release is reported");
	finish();
	assert_int_equal(fake_api_requests(cluster.api), 1);
	fake_api_destroy(cluster.api);
}

static bool marker_says_so(void *arg UNUSED)
{
	char words[256];

	snprintf(words, sizeof words, UNASKED, " (");
	return condition_says("KubernetesReleasesUnreadable", words);
}

static bool marker_is_gone(void *arg UNUSED)
{
	return durable_absent(folder_path(cluster.folder, "var/lib/bcd/releasing.unreadable"));
}

/* The same pod keeps the claim of a record that couldn't be read. proves: REL-36 REL-38 REL-40 */
static void test_the_marker_waits_for_it_too(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 403, .body = STATUS("Forbidden", "403")},
		{.status = 403, .body = STATUS("Forbidden", "403")},
		{.status = 403, .body = STATUS("Forbidden", "403")},
		{.status = 200, .body = LIST("")},
	};

	prepare(state, ANSWERS, ARRAY_SIZE(ANSWERS), 0);
	cluster.kubelet.held[0] = NULL;
	cluster_write(&cluster, "var/lib/bcd/releasing.json", "{");
	cluster_begin(&cluster, NULL);
	kubelet_pass_until(cluster.loop, marker_says_so, NULL, RELEASE_KUBELET_SETTLE_MS + 2500,
			   "it is said who is in the way");
	assert_false(marker_is_gone(NULL));
	kubelet_pass_until(cluster.loop, marker_is_gone, NULL, 2 * REAP_RETRY_MS,
			   "the marker is removed");
	finish();
	fake_api_destroy(cluster.api);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_FOLDER(test_a_pod_that_only_the_checkpoint_names),
		IN_FOLDER(test_a_stranger_lists_nobody),
		IN_FOLDER(test_an_old_entry_of_the_checkpoint),
		IN_FOLDER(test_the_marker_waits_for_it_too),
	};

	return cmocka_run_group_tests(tests, cluster_set_up, cluster_tear_down);
}
