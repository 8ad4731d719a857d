/* The reaper's shell: a real API server's wire, a kubelet on sockets, a release that is overdue. */
#include "node/reaper.h"

#include "core/fixture.h"
#include "kubelet.h"
#include "lib/folder.h"
#include "node/core/reap.h"
#include "node/core/release.h"
#include "node/node.h"
#include "sys/clock.h"
#include "sys/durable.h"
#include "sys/log.h"
#include "text/toml.h"
#include "unit/kube/fake_api.h"
#include "unit/rpc/certs.h"

#define POD                                                                                        \
	"{\"metadata\":{\"uid\":\"uid-1\",\"namespace\":\"ns\",\"name\":\"web\"},\"spec\":{},"     \
	"\"status\":{\"phase\":\"Succeeded\"}}"
#define LIST(items) "{\"kind\":\"PodList\",\"metadata\":{},\"items\":[" items "]}"
#define STATUS(reason, code)                                                                       \
	"{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"" reason                         \
	"\",\"message\":\"no\",\"code\":" code "}"

static struct world {
	void **folder;
	struct certs_pair ca, server, client;
	struct fake_api *api;
	struct loop *loop;
	struct config config;
	struct kubelet kubelet;
	struct inventory inventory;
	struct node *node;
	char id[HOLDS_ID_SIZE];
} world;

static void write_text(const char *name, const char *text)
{
	struct error error;

	expect_ok(
		durable_replace(folder_path(world.folder, name), text, strlen(text), 0600, &error),
		&error);
}

static void write_gpus(void)
{
	CLEANUP(scenario) struct scenario scenario = {0};
	CLEANUP(buf) struct buf text = {0};

	fixture_scenario(&scenario);
	scenario_inventory(&scenario, 0, "test", &world.inventory);
	scenario_format(&scenario, &text);
	write_text("gpus.toml", buf_text(&text));
	fixture_id(world.id, fixture_gpu(&world.inventory, 0), ALC_A);
}

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
	vec_push(&entry->devices)->atom = fixture_gpu(&world.inventory, 0);
	releases_format(&releases, &text);
	write_text("var/lib/bcd/releasing.json", buf_text(&text));
}

/* What the kubelet's file says of uid-1. */
static void write_checkpoint(void)
{
	CLEANUP(buf) struct buf text = {0};

	buf_printf(&text,
		   "{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"uid-1\",\"ContainerName\":"
		   "\"main\",\"ResourceName\":\"bcd.dev/gpu\",\"DeviceIDs\":{\"0\":[\"%s\"]}}]},"
		   "\"Checksum\":0}",
		   world.id);
	write_text("var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", buf_text(&text));
}

static void write_kubeconfig(void)
{
	CLEANUP(buf) struct buf text = {0}, pair = {0};
	struct error error;

	expect_ok(durable_make_folder(folder_path(world.folder, "etc/kubernetes"), 0700, &error),
		  &error);
	buf_printf(&pair, "%s%s", world.client.certificate, world.client.key);
	write_text("etc/kubernetes/pair.pem", buf_text(&pair));
	write_text("etc/kubernetes/ca.pem", world.ca.certificate);
	buf_printf(&text,
		   "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
		   "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:%d', "
		   "certificate-authority: ca.pem, tls-server-name: api.test}}]\n"
		   "users: [{name: u, user: {client-certificate: pair.pem, client-key: "
		   "pair.pem}}]\n",
		   fake_api_port(world.api));
	write_text("etc/kubernetes/kubelet.conf", buf_text(&text));
}

static void read_config(bool units)
{
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(tree) json_t *tree = NULL;
	struct error error;

	buf_printf(&text,
		   "[paths]\nroot = '%s'\n[host]\nunits = %s\n[gpu]\nsource = 'sim'\n"
		   "sim_file = '%s'\n[kubernetes]\nnode_name = 'n1'\n",
		   *(const char **)world.folder, units ? "true" : "false",
		   folder_path(world.folder, "gpus.toml"));
	expect_ok(toml_parse(buf_text(&text), text.length, CONFIG_MAX_FILE, "config.toml", &tree,
			     &error),
		  &error);
	expect_ok(config_read(tree, NULL, &world.config, &error), &error);
}

/* A node that has been releasing ALC_A for `ms` while a pod of the kubelet has its GPU. */
static void begin_with(void **state, bool units, const struct fake_api_answer *answers,
		       size_t count, int64_t ms)
{
	struct error error;

	world.folder = state;
	world.api = fake_api_start(&(struct fake_api_options){
		.certificate_pem = world.server.certificate,
		.key_pem = world.server.key,
		.answers = answers,
		.count = count,
	});
	read_config(units);
	expect_ok(durable_make_folder(folder_path(state, "var/lib/bcd"), 0700, &error), &error);
	write_gpus();
	write_releases(ms);
	write_kubeconfig();
	world.loop = loop_create();
	kubelet_start(&world.kubelet, world.loop, world.config.kubelet);
	write_checkpoint();
	world.kubelet.held[0] = world.id;
	expect_ok(node_create(world.loop, &world.config, NULL, &world.node, &error), &error);
}

static void begin(void **state, const struct fake_api_answer *answers, size_t count, int64_t ms)
{
	begin_with(state, false, answers, count, ms);
}

/* What the API server was asked. */
static const char *finish(void)
{
	node_destroy(TAKE(world.node));
	kubelet_run(world.loop, 50);
	kubelet_stop(&world.kubelet);
	kubelet_run(world.loop, 20);
	loop_destroy(world.loop);
	inventory_deinit(&world.inventory);
	world.inventory = (struct inventory){0};
	config_deinit(&world.config);
	world.config = (struct config){0};
	return fake_api_finish(world.api);
}

static size_t wanted_requests;

static bool was_asked(void *arg UNUSED)
{
	return fake_api_requests(world.api) >= wanted_requests;
}

static void wait_for(size_t requests)
{
	wanted_requests = requests;
	kubelet_until(world.loop, was_asked, NULL, 8000, "the API server is asked");
	kubelet_run(world.loop, 100);
}

/* Also one that is over: it is listed with the device. proves: REL-21 REL-22 REL-50 REL-51 REL-52 */
static void test_an_overdue_holder_is_deleted(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200, .body = LIST(POD)},
		{.status = 200, .body = POD},
		{.status = 201, .body = "{}"},
	};
	const char *asked;

	begin(state, ANSWERS, ARRAY_SIZE(ANSWERS), REAP_HOLD_MS + 5000);
	wait_for(3);
	asked = finish();
	assert_non_null(strstr(asked, "CN=system:node:n1"));
	assert_non_null(strstr(asked, "GET /api/v1/pods?"));
	assert_non_null(strstr(asked, "fieldSelector=spec.nodeName%3Dn1"));
	assert_non_null(strstr(asked, "DELETE /api/v1/namespaces/ns/pods/web "));
	assert_non_null(strstr(asked, "\"gracePeriodSeconds\":10"));
	assert_non_null(strstr(asked, "\"preconditions\":{\"uid\":\"uid-1\"}"));
	assert_non_null(strstr(asked, "POST /api/v1/namespaces/ns/events"));
	assert_non_null(strstr(asked, "DeviceReleased"));
	fake_api_destroy(world.api);
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
	wait_for(2);
	assert_null(kubelet_find(&world.kubelet, "bcd.dev/gpu"));
	assert_non_null(strstr(finish(), "DELETE /api/v1/namespaces/ns/pods/web "));
	fake_api_destroy(world.api);
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
	wait_for(1);
	kubelet_run(world.loop, 1500);
	asked = finish();
	assert_null(strstr(asked, "DELETE"));
	fake_api_destroy(world.api);
}

/* It has its 30 s. proves: REL-21 REL-49 */
static void test_nobody_is_asked_for_before_its_time(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {{.status = 200, .body = LIST(POD)}};

	begin(state, ANSWERS, ARRAY_SIZE(ANSWERS), REAP_HOLD_MS - 20000);
	kubelet_run(world.loop, 3000);
	assert_int_equal(fake_api_requests(world.api), 0);
	finish();
	fake_api_destroy(world.api);
}

/* Refused for good: said, tried again, and nothing is released. */
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
	wait_for(3);
	asked = finish();
	assert_non_null(strstr(asked, "DELETE"));
	fake_api_destroy(world.api);
}

/* Without an identity nobody is deleted, and a bcd that ends meanwhile leaves nothing. */
static void test_without_a_kubeconfig(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {{.status = 200, .body = LIST(POD)}};

	begin(state, ANSWERS, ARRAY_SIZE(ANSWERS), REAP_HOLD_MS + 5000);
	assert_int_equal(remove(folder_path(state, "etc/kubernetes/kubelet.conf")), 0);
	kubelet_run(world.loop, 3000);
	assert_int_equal(fake_api_requests(world.api), 0);
	finish();
	fake_api_destroy(world.api);
}

static int make_certificates(void **state UNUSED)
{
	log_set_level(LOG_ERROR);
	world.ca = certs_make(&(struct certs_options){.name = "ca", .is_ca = true});
	world.server = certs_make(&(struct certs_options){.name = "api.test", .issuer = &world.ca});
	world.client =
		certs_make(&(struct certs_options){.name = "system:node:n1", .issuer = &world.ca});
	return 0;
}

static int free_certificates(void **state UNUSED)
{
	certs_free(&world.ca);
	certs_free(&world.server);
	certs_free(&world.client);
	return 0;
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_make, folder_remove)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_FOLDER(test_an_overdue_holder_is_deleted),
		IN_FOLDER(test_where_nothing_is_offered),
		IN_FOLDER(test_a_newcomer_is_spared),
		IN_FOLDER(test_nobody_is_asked_for_before_its_time),
		IN_FOLDER(test_a_refusal_is_tried_again),
		IN_FOLDER(test_without_a_kubeconfig),
	};

	return cmocka_run_group_tests(tests, make_certificates, free_certificates);
}
