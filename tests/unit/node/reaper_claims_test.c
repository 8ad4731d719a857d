/* Pods that have a released device by a claim. */
#include "node/reaper.h"

#include "node/core/prepared.h"
#include "node/core/reap.h"
#include "reaper_world.h"
#include "sys/clock.h"
#include "sys/durable.h"

/* What the DRA driver would write: ALC_A's GPU is prepared for the claim ns/gpus. */
static void write_prepared(bool any)
{
	CLEANUP(prepared) struct prepared prepared = {0};
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	clock_boot_id(prepared.boot_id);
	if (any) {
		struct prepared_claim *claim = vec_push(&prepared.claims);
		struct prepared_device *device = vec_push(&claim->devices);
		struct atom atom = fixture_gpu(&inventory, 0);

		str_copy(claim->uid, sizeof claim->uid, "c-1");
		str_copy(claim->namespace, sizeof claim->namespace, "ns");
		str_copy(claim->name, sizeof claim->name, "gpus");
		dra_name(device->device, &atom, ALC_A);
		str_copy(device->pool, sizeof device->pool, "n1");
		str_copy(device->allocation, sizeof device->allocation, ALC_A);
	}
	prepared_format(&prepared, &text);
	expect_ok(durable_make_folder(
			  folder_path(cluster.folder, "var/lib/kubelet/plugins/gpu.bcd.dev"), 0700,
			  &error),
		  &error);
	cluster_write(&cluster, "var/lib/kubelet/" PREPARED_FILE, buf_text(&text));
}

/* A pod that has the device by a claim, which only the DRA driver's record knows of: a record that can't
 * be read holds everything, the pod is deleted once it can, and the end is reported once the claim is
 * unprepared. proves: REL-8 REL-9 REL-21 DRA-32 */
static void test_a_pod_that_holds_by_a_claim(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200,
		 .body = LIST("{\"metadata\":{\"uid\":\"uid-2\",\"namespace\":\"other\",\"name\":"
			      "\"x\"},\"spec\":{\"resourceClaims\":[{\"name\":\"g\","
			      "\"resourceClaimName\":\"gpus\"}]}},"
			      "{\"metadata\":{\"uid\":\"uid-3\",\"namespace\":\"ns\",\"name\":"
			      "\"claimer\"},\"spec\":{\"resourceClaims\":[{\"name\":\"g\","
			      "\"resourceClaimName\":\"gpus\"}]}}")},
		{.status = 200, .body = CLAIM("c-1")},
		{.status = 200, .body = POD},
		{.status = 201, .body = "{}"},
	};
	const char *asked;

	begin(state, ANSWERS, ARRAY_SIZE(ANSWERS), REAP_HOLD_MS + 5000);
	cluster.kubelet.held[0] = NULL;
	assert_int_equal(remove(folder_path(state, CHECKPOINT)), 0);
	write_prepared(false);
	cluster_write(&cluster, "var/lib/kubelet/" PREPARED_FILE, "{");
	kubelet_pass(cluster.loop, RELEASE_KUBELET_SETTLE_MS + 2500);
	assert_false(is_reported(NULL));
	assert_int_equal(fake_api_requests(cluster.api), 0);
	write_prepared(true);
	cluster_wait(&cluster, 4);
	assert_false(is_reported(NULL));
	write_prepared(false);
	kubelet_pass_until(cluster.loop, is_reported, NULL, RELEASE_ASK_OLD_MS + 2000,
			   "the release is reported");
	asked = finish();
	assert_non_null(
		strstr(asked, "GET /apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/gpus "));
	assert_non_null(strstr(asked, "DELETE /api/v1/namespaces/ns/pods/claimer "));
	assert_non_null(strstr(asked, "\"preconditions\":{\"uid\":\"uid-3\"}"));
	assert_null(strstr(asked, "namespaces/other/"));
	fake_api_destroy(cluster.api);
}

#define NEWCOMER                                                                                   \
	LIST("{\"metadata\":{\"uid\":\"uid-4\",\"namespace\":\"ns\",\"name\":\"claimer\"},"        \
	     "\"spec\":{\"resourceClaims\":[{\"name\":\"g\",\"resourceClaimName\":\"gpus\"}]}}")

/* The claim that has the device was deleted, and another was made under its name, or none, or nobody
 * says which: whoever names it now has nothing of what was released. proves: REL-25 REL-51 DRA-32 */
static void test_a_claim_that_was_made_anew(void **state)
{
	static const struct fake_api_answer CLAIMS[] = {
		{.status = 200, .body = CLAIM("c-2")},
		{.status = 404,
		 .body = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\","
			 "\"reason\":\"NotFound\",\"details\":{\"name\":\"gpus\","
			 "\"group\":\"resource.k8s.io\",\"kind\":\"resourceclaims\"},"
			 "\"code\":404}"},
		{.status = 403, .body = STATUS("Forbidden", "403")},
	};

	for (size_t i = 0; i < ARRAY_SIZE(CLAIMS); i++) {
		const struct fake_api_answer answers[] = {{.status = 200, .body = NEWCOMER},
							  CLAIMS[i]};
		const char *asked;

		begin(state, answers, ARRAY_SIZE(answers), REAP_HOLD_MS + 5000);
		cluster.kubelet.held[0] = NULL;
		assert_int_equal(remove(folder_path(state, CHECKPOINT)), 0);
		write_prepared(true);
		cluster_wait(&cluster, 2);
		kubelet_pass(cluster.loop, 1500);
		assert_false(is_reported(NULL));
		asked = finish();
		assert_null(strstr(asked, "DELETE"));
		fake_api_destroy(cluster.api);
		folder_remove(state);
		folder_make(state);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_FOLDER(test_a_pod_that_holds_by_a_claim),
		IN_FOLDER(test_a_claim_that_was_made_anew),
	};

	return cmocka_run_group_tests(tests, cluster_set_up, cluster_tear_down);
}
