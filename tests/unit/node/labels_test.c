/* The labels' shell: a kubelet's kubeconfig, a scripted API server behind it, a node on a loop. */
#include "node/labels.h"

#include "cluster.h"
#include "core/fixture.h"
#include "lib/folder.h"
#include "node/status.h"
#include "node/uplink.h"
#include "text/tree.h"

#include <stdio.h>

#define NODE(labels)                                                                               \
	"{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n1\",\"labels\":"       \
	"{" labels "}}}"
#define STATUS(reason, code)                                                                       \
	"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":\"" reason   \
	"\",\"message\":\"no\",\"code\":" code "}"

static enum uplink_standing standing = UPLINK_ALONE;

/* Instead of the uplink's. */
enum uplink_standing __wrap_uplink_standing(const struct uplink *uplink);
enum uplink_standing __wrap_uplink_standing(const struct uplink *uplink UNUSED)
{
	return standing;
}

/* A node that has GPU 0 to offer, and does so unless host units are on. */
static void prepare_with(void **state, bool units, const struct fake_api_answer *answers,
			 size_t count)
{
	CLEANUP(inventory) struct inventory inventory = {0};
	CLEANUP(spec) struct spec spec = {.generation = 1};
	CLEANUP(buf) struct buf text = {0};

	cluster_prepare(&cluster, state,
			&(struct cluster_options){.units = units,
						  .api = {.answers = answers, .count = count}});
	fixture_inventory(&inventory);
	fixture_assign(fixture_assignment(&spec, ALC_A), &inventory, fixture_gpu(&inventory, 0));
	spec_format(&spec, &text);
	cluster_write(&cluster, "var/lib/bcd/spec.json", buf_text(&text));
}

static void prepare(void **state, const struct fake_api_answer *answers, size_t count)
{
	prepare_with(state, false, answers, count);
}

static const char *condition(const char *type)
{
	return cluster_condition(&cluster, type);
}

static bool has_condition(void *type)
{
	return condition(type);
}

static void wait_for_condition(const char *type)
{
	kubelet_pass_until(cluster.loop, has_condition, (void *)(uintptr_t)type, 8000, type);
}

/* How many GPUs the kubelet was offered last. */
static size_t offered(void)
{
	const struct kubelet_plugin *plugin = kubelet_find(&cluster.kubelet, "bcd.dev/gpu");

	return plugin ? plugin->device_count : 0;
}

static bool is_offered(void *arg UNUSED)
{
	return offered() == 1;
}

static bool is_not_offered(void *arg UNUSED)
{
	return offered() == 0;
}

/* One read, one patch of what differs, by whom the kubeconfig says.
 * proves: HOSTED-8 HOSTED-9 HOSTED-20 HOSTED-21 HOSTED-22 OBS-19 */
static void test_labels_are_kept(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200,
		 .body = NODE("\"bcd.dev/pool\":\"old\",\"bcd.dev/gone\":\"x\",\"mine\":\"y\","
			      "\"bcd.dev/gpu.count\":\"8\"")},
		{.status = 200, .body = NODE("")},
	};
	struct identity identity = {
		.node_id = "node_01kb00000000000000000000aa", .site = "site_x", .pool = "h100"};
	const char *asked, *patch;

	prepare(state, ANSWERS, ARRAY_SIZE(ANSWERS));
	cluster_begin(&cluster, &identity);
	cluster_wait(&cluster, 2);
	kubelet_pass(cluster.loop, 2500);
	assert_int_equal(fake_api_requests(cluster.api), 2); /* at most once a minute */
	asked = cluster_finish(&cluster);
	assert_true(str_starts(asked, "#0 CN=system:node:n1\nGET /api/v1/nodes/n1 "));
	patch = strstr(asked, "PATCH /api/v1/nodes/n1?fieldManager=bcd ");
	assert_non_null(patch);
	assert_non_null(strstr(patch, "application/merge-patch+json"));
	assert_non_null(strstr(patch, "{\"metadata\":{\"labels\":{\"bcd.dev/gone\":null,"
				      "\"bcd.dev/gpu.compute.major\":\"9\","));
	assert_non_null(strstr(patch, "\"bcd.dev/node-id\":\"node_01kb00000000000000000000aa\""));
	assert_non_null(strstr(patch, "\"bcd.dev/pool\":\"h100\",\"bcd.dev/site\":\"site_x\"}}}"));
	assert_null(strstr(patch, "gpu.count")); /* it stands there already */
	assert_null(strstr(patch, "mine"));
	assert_null(strstr(asked, "taints"));
	fake_api_destroy(cluster.api);
}

/* What the control plane says while the Node is read changes what is wanted of it: a machine that was retired gets no
 * labels when it is started again. proves: HOSTED-20 HOSTED-21 */
static void test_a_stranger_gets_none(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200, .body = NODE(""), .delay_ms = 1000},
		{.status = 200, .body = NODE("")},
	};
	struct identity identity = {
		.node_id = "node_01kb00000000000000000000aa", .site = "site_x", .pool = "h100"};
	const char *asked;

	standing = UPLINK_UNHEARD;
	prepare(state, ANSWERS, ARRAY_SIZE(ANSWERS));
	cluster_begin(&cluster, &identity);
	cluster_wait(&cluster, 1);
	standing = UPLINK_STRANGER;
	cluster_wait(&cluster, 2);
	kubelet_pass(cluster.loop, 2500);
	asked = cluster_finish(&cluster);
	standing = UPLINK_ALONE;
	assert_null(strstr(asked, "PATCH"));
	fake_api_destroy(cluster.api);
}

/* Host units, of which there are none, keep bcd from the kubelet: that is said, and what the machine has is
 * true all the same. proves: HOSTED-20 */
static void test_a_kubelet_that_is_not_served(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200, .body = NODE("")},
		{.status = 200, .body = NODE("")},
	};
	const char *said;

	prepare_with(state, true, ANSWERS, ARRAY_SIZE(ANSWERS));
	cluster_begin(&cluster, NULL);
	cluster_wait(&cluster, 2);
	said = condition("KubernetesBindingUnsupported");
	assert_non_null(said);
	assert_non_null(strstr(said, "the kubelet of Node 'n1'"));
	assert_non_null(strstr(said, "units = false"));
	assert_int_equal(offered(), 0);
	assert_non_null(strstr(cluster_finish(&cluster), "\"bcd.dev/gpu.count\":\"8\""));
	fake_api_destroy(cluster.api);
	prepare(state, ANSWERS, ARRAY_SIZE(ANSWERS));
	cluster_begin(&cluster, NULL);
	cluster_wait(&cluster, 2);
	assert_null(condition("KubernetesBindingUnsupported"));
	cluster_finish(&cluster);
	fake_api_destroy(cluster.api);
}

/* proves: HOSTED-41 */
static void test_a_node_that_is_not_there(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 404,
		 .body = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\","
			 "\"reason\":\"NotFound\",\"details\":{\"name\":\"n1\","
			 "\"kind\":\"nodes\"},\"code\":404}"},
	};

	prepare(state, ANSWERS, ARRAY_SIZE(ANSWERS));
	cluster_begin(&cluster, NULL);
	wait_for_condition("KubernetesNodeUnknown");
	assert_non_null(strstr(condition("KubernetesNodeUnknown"), "no Node 'n1'"));
	assert_non_null(strstr(condition("KubernetesNodeUnknown"), "NODE_NAME"));
	assert_null(condition("KubernetesApiUnavailable"));
	kubelet_until(cluster.loop, is_not_offered, NULL, 2000, "nothing is offered");
	kubelet_run(cluster.loop, 500);
	assert_int_equal(offered(), 0);
	cluster_finish(&cluster);
	fake_api_destroy(cluster.api);
}

static void expect_refusal(void **state, const struct fake_api_answer *answer, const char *status);

/* What anything between says of a page it doesn't have is no word of the cluster's: GPUs stay offered.
 * proves: HOSTED-41 HOSTED-42 */
static void test_a_stranger_that_knows_no_node(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 404,
		 .headers = "Content-Type: text/plain\r\n",
		 .body = "default backend - 404"},
		{.status = 404,
		 .body = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\","
			 "\"reason\":\"NotFound\",\"details\":{\"name\":\"n2\","
			 "\"kind\":\"nodes\"},\"code\":404}"},
		{.status = 200, .body = "{\"status\":\"ok\"}"},
	};
	static const char *const STATUS[] = {"404", "404", "200"};

	for (size_t i = 0; i < ARRAY_SIZE(ANSWERS); i++)
		expect_refusal(state, &ANSWERS[i], STATUS[i]);
}

/* Offering doesn't wait for the API server, nor end with it. */
static void expect_refusal(void **state, const struct fake_api_answer *answer, const char *status)
{
	prepare(state, answer, 1);
	cluster_begin(&cluster, NULL);
	wait_for_condition("KubernetesApiUnavailable");
	assert_non_null(strstr(condition("KubernetesApiUnavailable"), status));
	assert_null(condition("KubernetesNodeUnknown"));
	kubelet_until(cluster.loop, is_offered, NULL, 2000, "a GPU is offered");
	cluster_finish(&cluster);
	fake_api_destroy(cluster.api);
}

/* proves: HOSTED-42 */
static void test_a_refusal(void **state)
{
	static const struct fake_api_answer ANSWER = {.status = 403,
						      .body = STATUS("Forbidden", "403")};

	expect_refusal(state, &ANSWER, "403");
}

/* proves: HOSTED-42 */
static void test_an_identity_that_is_none(void **state)
{
	static const struct fake_api_answer ANSWER = {.status = 401,
						      .body = STATUS("Unauthorized", "401")};

	expect_refusal(state, &ANSWER, "401");
}

static void expect_trouble_with_kubeconfig(void **state, const char *text, const char *cause)
{
	static const struct fake_api_answer ANSWERS[] = {{.status = 200, .body = NODE("")}};

	prepare(state, ANSWERS, ARRAY_SIZE(ANSWERS));
	if (text)
		cluster_write(&cluster, "etc/kubernetes/kubelet.conf", text);
	else
		assert_int_equal(remove(folder_path(state, "etc/kubernetes/kubelet.conf")), 0);
	cluster_begin(&cluster, NULL);
	wait_for_condition("KubernetesApiUnavailable");
	if (!strstr(condition("KubernetesApiUnavailable"), cause))
		fail_msg("'%s' is missing in: %s", cause, condition("KubernetesApiUnavailable"));
	assert_int_equal(fake_api_requests(cluster.api), 0);
	kubelet_until(cluster.loop, is_offered, NULL, 2000, "a GPU is offered");
	cluster_finish(&cluster);
	fake_api_destroy(cluster.api);
}

/* proves: HOSTED-42 */
static void test_no_kubeconfig(void **state)
{
	expect_trouble_with_kubeconfig(state, NULL, "kubelet.conf");
}

/* proves: HOSTED-42 */
static void test_a_kubeconfig_that_is_none(void **state)
{
	expect_trouble_with_kubeconfig(state, "contexts: [", "kubelet.conf");
}

/* Without one by configuration, nobody is asked and nothing is wrong. */
static void test_without_an_api_server(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {{.status = 200, .body = NODE("")}};

	prepare(state, ANSWERS, ARRAY_SIZE(ANSWERS));
	cluster.config.kubeconfig = "";
	cluster_begin(&cluster, NULL);
	kubelet_pass(cluster.loop, 1500);
	assert_int_equal(fake_api_requests(cluster.api), 0);
	assert_null(condition("KubernetesApiUnavailable"));
	cluster_finish(&cluster);
	fake_api_destroy(cluster.api);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_FOLDER(test_labels_are_kept),
		IN_FOLDER(test_a_stranger_gets_none),
		IN_FOLDER(test_a_kubelet_that_is_not_served),
		IN_FOLDER(test_a_node_that_is_not_there),
		IN_FOLDER(test_a_stranger_that_knows_no_node),
		IN_FOLDER(test_a_refusal),
		IN_FOLDER(test_an_identity_that_is_none),
		IN_FOLDER(test_no_kubeconfig),
		IN_FOLDER(test_a_kubeconfig_that_is_none),
		IN_FOLDER(test_without_an_api_server),
	};

	return cmocka_run_group_tests(tests, cluster_set_up, cluster_tear_down);
}
