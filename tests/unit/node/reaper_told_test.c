/* What people are told of a release that somebody holds: by conditions. */
#include "node/reaper.h"

#include "node/core/reap.h"
#include "node/core/release.h"
#include "reaper_world.h"

static bool nobody_can_be_asked(void *arg UNUSED)
{
	return strstr(condition_of("KubernetesReleasePending"),
		      "(main): bcd can't end it, there is no kubeconfig at '") &&
	       strstr(condition_of("KubernetesReleasePending"), "': delete the pod, or give bcd");
}

static bool a_person_ends_it(void *arg)
{
	const char *said = condition_of("KubernetesReleasePending");

	assert_null(strstr(said, "to be asked to go"));
	return strstr(said, arg);
}

static bool api_says_what_to_do(void *arg UNUSED)
{
	return strstr(condition_of("KubernetesApiUnavailable"),
		      ". Name the file that the kubelet uses");
}

static bool what_comes_is_told(void *arg UNUSED)
{
	const char *said = condition_of("KubernetesReleasePending");

	return str_starts(said, ALC_A ": held since 20") &&
	       strstr(said, "Z by default/p (main): to be asked to go at ") &&
	       strstr(said, "Z, forced at ") && strstr(said, " (gpu/");
}

/* Whoever waits for the devices reads on the control plane what a release waits for, and until when.
 * proves: RES-21 */
static void test_when_a_holder_goes_is_told(void **state)
{
	begin(state, NULL, 0, 1000);
	kubelet_pass_until(cluster.loop, what_comes_is_told, NULL, 5000, "it is told");
	finish();
	fake_api_destroy(cluster.api);
}

/* Without an identity nobody is deleted, and a bcd that ends meanwhile leaves nothing. */
static void test_without_a_kubeconfig(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {{.status = 200, .body = LIST(POD)}};

	begin(state, ANSWERS, ARRAY_SIZE(ANSWERS), REAP_HOLD_MS + 5000);
	assert_int_equal(remove(folder_path(state, "etc/kubernetes/kubelet.conf")), 0);
	kubelet_pass_until(cluster.loop, nobody_can_be_asked, NULL, 3000, "it is told");
	kubelet_pass_until(cluster.loop, api_says_what_to_do, NULL, 3000, "the condition, too");
	kubelet_pass(cluster.loop, REAP_RETRY_MS);
	assert_int_equal(fake_api_requests(cluster.api), 0);
	finish();
	fake_api_destroy(cluster.api);
}

/* It isn't due yet, and nobody is promised what can't be. proves: RES-21 */
static void test_who_can_end_nobody_says_so_at_once(void **state)
{
	static char empty[] = "bcd can't end it, kubernetes.kubeconfig is empty: delete the pod",
		    nameless[] = "bcd can't end it, kubernetes.node_name isn't set: delete the pod";

	for (int nobody = 0; nobody < 2; nobody++) {
		prepare(state, NULL, 0, 1000);
		if (nobody)
			cluster.config.node_name = "";
		else
			cluster.config.kubeconfig = "";
		cluster_begin(&cluster, NULL);
		kubelet_pass_until(cluster.loop, a_person_ends_it, nobody ? nameless : empty, 5000,
				   "it is told");
		finish();
		fake_api_destroy(cluster.api);
	}
}

static bool is_unknown(void *arg)
{
	(void)arg;
	return strstr(condition_of("KubernetesReleaseStuck"),
		      "the kubelet's pod-resources doesn't");
}

/* A kubelet that doesn't answer is the cause, not pods that nobody has seen. proves: REL-14 REL-19 */
static void test_a_stuck_release_names_a_silent_kubelet(void **state)
{
	begin(state, NULL, 0, RELEASE_STUCK_MS);
	cluster.kubelet.pods_fail = true;
	cluster.kubelet.held[0] = NULL;
	kubelet_pass_until(cluster.loop, is_unknown, NULL, 60000, "the kubelet's silence is told");
	assert_non_null(strstr(condition_of("KubernetesReleaseStuck"), "not known who holds"));
	assert_null(strstr(condition_of("KubernetesReleaseStuck"), "held by"));
	finish();
	fake_api_destroy(cluster.api);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_FOLDER(test_when_a_holder_goes_is_told),
		IN_FOLDER(test_without_a_kubeconfig),
		IN_FOLDER(test_who_can_end_nobody_says_so_at_once),
		IN_FOLDER(test_a_stuck_release_names_a_silent_kubelet),
	};

	return cmocka_run_group_tests(tests, cluster_set_up, cluster_tear_down);
}
