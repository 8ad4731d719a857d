/* The reaper's shell: a real API server's wire, a kubelet on sockets, a release that is overdue. */
#include "node/reaper.h"

#include "cluster.h"
#include "core/fixture.h"
#include "lib/folder.h"
#include "node/core/prepared.h"
#include "node/core/reap.h"
#include "node/core/release.h"
#include "node/core/reports.h"
#include "node/core/unlisted.h"
#include "node/status.h"
#include "sys/clock.h"
#include "sys/durable.h"
#include "text/tree.h"

#include <stdio.h>
#include <unistd.h>

#define RUNNING                                                                                    \
	"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"uid\":\"uid-1\",\"namespace\":"   \
	"\"ns\",\"name\":\"web\"},\"spec\":{},"                                                    \
	"\"status\":{\"phase\":\"Running\"}}"
#define POD                                                                                        \
	"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"uid\":\"uid-1\",\"namespace\":"   \
	"\"ns\",\"name\":\"web\"},\"spec\":{},"                                                    \
	"\"status\":{\"phase\":\"Succeeded\"}}"
#define CHECKPOINT "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
#define LIST(items)                                                                                \
	"{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[" items "]}"
#define CLAIM(uid)                                                                                 \
	"{\"kind\":\"ResourceClaim\",\"apiVersion\":\"resource.k8s.io/"                            \
	"v1\",\"metadata\":{\"uid\":\"" uid "\",\"namespace\":\"ns\",\"name\":\"gpus\"}}"
#define STATUS(reason, code)                                                                       \
	"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":\"" reason   \
	"\",\"message\":\"no\",\"code\":" code "}"

static struct cluster cluster;
static struct inventory inventory;
static char held[HOLDS_ID_SIZE]; /* GPU 0 as the kubelet knows it */

/* ALC_A has been pending for so long, in this boot. */
static void write_releases(int64_t ms)
{
	CLEANUP(releases) struct releases releases = {0};
	CLEANUP(buf) struct buf text = {0};
	struct release_entry *entry = vec_push(&releases.entries);

	str_copy(entry->allocation, sizeof entry->allocation, ALC_A);
	clock_boot_id(entry->boot_id);
	entry->since = (clock_wall().ms - ms) / 1000;
	entry->since_boot_ms = clock_mono().ms - ms;
	vec_push(&entry->devices)->atom = fixture_gpu(&inventory, 0);
	releases_format(&releases, &text);
	cluster_write(&cluster, "var/lib/bcd/releasing.json", buf_text(&text));
}

/* A number to report a release under. */
static void write_spec(void)
{
	CLEANUP(buf) struct buf text = {0};
	struct spec spec = {.generation = 1};

	spec_format(&spec, &text);
	cluster_write(&cluster, "var/lib/bcd/spec.json", buf_text(&text));
}

/* All of begin() but its end. */
static void prepare_with(void **state, bool units, const struct fake_api_answer *answers,
			 size_t count, int64_t ms)
{
	struct error error;

	cluster_prepare(&cluster, state,
			&(struct cluster_options){
				.units = units,
				.api = {.answers = answers,
					.count = count,
					.aside = "/api/v1/nodes/",
					.aside_answer = {.status = 200, .body = "{}"}},
			});
	fixture_inventory(&inventory);
	fixture_id(held, fixture_gpu(&inventory, 0), ALC_A);
	write_spec();
	write_releases(ms);
	/* Nobody but this process. */
	expect_ok(durable_make_folder(folder_path(state, "proc/self"), 0700, &error), &error);
	cluster_write(&cluster, "proc/self/cgroup", "0::/bcd\n");
	kubelet_write_checkpoint(&cluster.kubelet, "uid-1", held);
	cluster.kubelet.held[0] = held;
}

static void prepare(void **state, const struct fake_api_answer *answers, size_t count, int64_t ms)
{
	prepare_with(state, false, answers, count, ms);
}

/* A node that has been releasing ALC_A for `ms` while a pod of the kubelet has its GPU. */
static void begin_with(void **state, bool units, const struct fake_api_answer *answers,
		       size_t count, int64_t ms)
{
	prepare_with(state, units, answers, count, ms);
	cluster_begin(&cluster, NULL);
}

static void begin(void **state, const struct fake_api_answer *answers, size_t count, int64_t ms)
{
	begin_with(state, false, answers, count, ms);
}

static const char *finish(void)
{
	inventory_deinit(&inventory);
	inventory = (struct inventory){0};
	return cluster_finish(&cluster);
}

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

static bool is_reported(void *arg);
static bool condition_says(const char *type, const char *words);

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

static bool is_reported(void *arg UNUSED)
{
	CLEANUP(buf) struct buf text = {0};
	struct reports reports = {0};
	struct error error;
	bool reported;

	if (!durable_read(folder_path(cluster.folder, "var/lib/bcd/reports.json"), REPORTS_MAX_FILE,
			  &text, &error))
		return false;
	expect_ok(reports_parse(buf_text(&text), text.length, &reports, &error), &error);
	reported = reports_has(&reports, REPORT_RELEASED, ALC_A);
	reports_deinit(&reports);
	return reported;
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

static bool condition_says(const char *type, const char *words)
{
	CLEANUP(tree) json_t *status = status_describe(cluster.node);
	const json_t *conditions = json_object_get(status, "conditions");

	for (size_t i = 0; i < json_array_size(conditions); i++) {
		const json_t *one = json_array_get(conditions, i);

		if (str_equal(json_string_value(json_object_get(one, "type")), type))
			return strstr(json_string_value(json_object_get(one, "message")), words);
	}
	return false;
}

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

static const char *condition_of(const char *type)
{
	CLEANUP(tree) json_t *status = status_describe(cluster.node);
	const json_t *conditions = json_object_get(status, "conditions");
	static char message[2048];

	for (size_t i = 0; i < json_array_size(conditions); i++) {
		const json_t *one = json_array_get(conditions, i);

		if (!str_equal(json_string_value(json_object_get(one, "type")), type))
			continue;
		str_copy(message, sizeof message,
			 json_string_value(json_object_get(one, "message")));
		return message;
	}
	return "";
}

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

static int make_certificates(void **state UNUSED)
{
	cluster_init(&cluster);
	return 0;
}

static int free_certificates(void **state UNUSED)
{
	cluster_deinit(&cluster);
	return 0;
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
		IN_FOLDER(test_an_overdue_holder_is_deleted),
		IN_FOLDER(test_where_nothing_is_offered),
		IN_FOLDER(test_pods_that_are_odd),
		IN_FOLDER(test_a_pod_that_cannot_be_read),
		IN_FOLDER(test_a_newcomer_is_spared),
		IN_FOLDER(test_nobody_is_asked_for_before_its_time),
		IN_FOLDER(test_nobody_is_ended_while_the_spec_is_unread),
		IN_FOLDER(test_a_refusal_is_tried_again),
		IN_FOLDER(test_a_pod_that_holds_by_a_claim),
		IN_FOLDER(test_a_claim_that_was_made_anew),
		IN_FOLDER(test_a_pod_that_only_the_checkpoint_names),
		IN_FOLDER(test_a_stranger_lists_nobody),
		IN_FOLDER(test_a_stranger_deletes_nobody),
		IN_FOLDER(test_an_old_entry_of_the_checkpoint),
		IN_FOLDER(test_the_marker_waits_for_it_too),
		IN_FOLDER(test_when_a_holder_goes_is_told),
		IN_FOLDER(test_without_a_kubeconfig),
		IN_FOLDER(test_who_can_end_nobody_says_so_at_once),
		IN_FOLDER(test_a_stuck_release_names_a_silent_kubelet),
	};

	return cmocka_run_group_tests(tests, make_certificates, free_certificates);
}
