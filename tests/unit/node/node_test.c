/* The node's shell on real sockets and a real disk, with a kubelet that has bad habits. */
#include "node/node.h"

#include "core/fixture.h"
#include "kubelet.h"
#include "lib/folder.h"
#include "node/core/reports.h"
#include "node/exporter.h"
#include "node/state.h"
#include "sys/durable.h"
#include "sys/log.h"
#include "sys/net.h"
#include "text/toml.h"

#include <sys/stat.h>
#include <unistd.h>

#define GPU  "bcd.dev/gpu"
#define SLOT "bcd.dev/gpu.slot"

struct world {
	void *folder; /* lib/folder.h: a path */
	char path[512];
	struct loop *loop;
	struct config config;
	struct kubelet kubelet;
	struct node *node;
	struct inventory inventory;
};

static const char *at(struct world *world, const char *name)
{
	snprintf(world->path, sizeof world->path, "%s/%s", (const char *)world->folder, name);
	return world->path;
}

static void write_text(struct world *world, const char *name, const char *text)
{
	struct error error;

	expect_ok(durable_replace(at(world, name), text, strlen(text), 0600, &error), &error);
}

static void write_gpus(struct world *world, const char *change)
{
	CLEANUP(scenario) struct scenario scenario = {0};
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	fixture_scenario(&scenario);
	if (change)
		expect_ok(scenario_set(&scenario.gpus.items[0], change, 1, &error), &error);
	inventory_deinit(&world->inventory);
	memset(&world->inventory, 0, sizeof world->inventory);
	scenario_inventory(&scenario, 0, "test", &world->inventory);
	scenario_format(&scenario, &text);
	write_text(world, "gpus.toml", buf_text(&text));
}

/* ALC_A has the whole GPUs 0 and 4, ALC_B two slots of GPU 7. */
static void write_spec(struct world *world, bool with_a)
{
	CLEANUP(buf) struct buf text = {0};
	struct spec spec = {0};
	struct spec_assignment *assignment;

	if (with_a) {
		assignment = fixture_assignment(&spec, ALC_A);
		fixture_assign(assignment, &world->inventory, fixture_gpu(&world->inventory, 0));
		fixture_assign(assignment, &world->inventory, fixture_gpu(&world->inventory, 4));
	}
	assignment = fixture_assignment(&spec, ALC_B);
	fixture_assign(assignment, &world->inventory, fixture_slot(&world->inventory, 0));
	fixture_assign(assignment, &world->inventory, fixture_slot(&world->inventory, 1));
	spec.generation = with_a ? 1 : 2;
	spec_format(&spec, &text);
	write_text(world, "var/lib/bcd/spec.json", buf_text(&text));
	spec_deinit(&spec);
}

static void start_node(struct world *world)
{
	struct error error;

	expect_ok(node_create(world->loop, &world->config, NULL, &world->node, &error), &error);
}

static void stop_node(struct world *world)
{
	node_destroy(TAKE(world->node));
	kubelet_run(world->loop, 50);
}

static int setup(void **state)
{
	struct world *world = mem_alloc(sizeof *world);
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(tree) json_t *tree = NULL;
	struct error error;

	log_set_level(LOG_ERROR);
	assert_int_equal(folder_make(&world->folder), 0);
	buf_printf(&text,
		   "[paths]\nroot = '%s'\n[host]\nunits = false\nreserved_memory_mib = 0\n"
		   "[gpu]\nsource = 'sim'\nsim_file = '%s/gpus.toml'\n"
		   "[kubernetes]\nnode_name = 'n1'\n",
		   (const char *)world->folder, (const char *)world->folder);
	expect_ok(toml_parse(buf_text(&text), text.length, CONFIG_MAX_FILE, "config.toml", &tree,
			     &error),
		  &error);
	expect_ok(config_read(tree, NULL, &world->config, &error), &error);
	expect_ok(durable_make_folder(at(world, "var/lib/bcd"), 0700, &error), &error);
	/* Nobody but this process, and what a test puts there. */
	expect_ok(durable_make_folder(at(world, "proc/self"), 0700, &error), &error);
	write_text(world, "proc/self/cgroup", "0::/bcd\n");
	world->loop = loop_create();
	write_gpus(world, NULL);
	write_spec(world, true);
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	stop_node(world);
	kubelet_stop(&world->kubelet);
	kubelet_run(world->loop, 20);
	loop_destroy(world->loop);
	inventory_deinit(&world->inventory);
	config_deinit(&world->config);
	assert_int_equal(folder_remove(&world->folder), 0);
	free(world);
	return 0;
}

static void start_kubelet(struct world *world)
{
	kubelet_start(&world->kubelet, world->loop, world->config.kubelet);
}

/* --- what tests wait for --- */

static bool both_registered(void *arg)
{
	struct world *world = arg;
	struct kubelet_plugin *gpu = kubelet_find(&world->kubelet, GPU);
	struct kubelet_plugin *slot = kubelet_find(&world->kubelet, SLOT);

	return gpu && slot && gpu->device_count == 2 && slot->device_count == 2;
}

static bool one_is_unhealthy(void *arg)
{
	struct kubelet_plugin *gpu = kubelet_find(&((struct world *)arg)->kubelet, GPU);

	return gpu && gpu->device_count == 2 && gpu->devices[0].healthy != gpu->devices[1].healthy;
}

static bool all_are_unhealthy(void *arg)
{
	struct kubelet_plugin *gpu = kubelet_find(&((struct world *)arg)->kubelet, GPU);

	return gpu && gpu->device_count == 2 && !gpu->devices[0].healthy &&
	       !gpu->devices[1].healthy;
}

static bool nothing_is_offered(void *arg)
{
	struct kubelet_plugin *gpu = kubelet_find(&((struct world *)arg)->kubelet, GPU);

	return gpu && gpu->device_count == 0;
}

static void wait_registered(struct world *world)
{
	kubelet_until(world->loop, both_registered, world, 2000, "both classes are registered");
	assert_int_equal(kubelet_alive(&world->kubelet, GPU), 1);
	assert_int_equal(kubelet_alive(&world->kubelet, SLOT), 1);
}

static enum rpc_code allocate(struct world *world, const char *id, char *names, char *message)
{
	return kubelet_allocate(&world->kubelet, kubelet_find(&world->kubelet, GPU), &id, 1, names,
				512, message, 512);
}

/* --- tests --- */

/* No control plane at all: what is on disk is bound and served.
 * proves: DP-1 DP-4 DP-5 DP-6 DP-9 DP-15 DP-16 DP-17 DP-18 DP-19 DP-20 DP-25 DP-27 */
static void test_serves_what_is_on_disk(void **state)
{
	struct world *world = *state;
	char names[512], message[512], id[HOLDS_ID_SIZE], wanted[512];
	struct kubelet_plugin *gpu;

	start_kubelet(world);
	start_node(world);
	wait_registered(world);
	gpu = kubelet_find(&world->kubelet, GPU);
	assert_true(str_starts(gpu->endpoint, "bcd-gpu-"));
	fixture_id(id, fixture_gpu(&world->inventory, 0), ALC_A);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(gpu->devices[i].numa, str_equal(gpu->devices[i].id, id) ? 0 : 1);
	assert_int_equal(allocate(world, id, names, message), RPC_OK);
	snprintf(wanted, sizeof wanted, "bcd.dev/gpu=%.*s", (int)(strchr(id, '@') - id), id);
	assert_string_equal(names, wanted);
	fixture_id(id, fixture_gpu(&world->inventory, 0), ALC_C);
	assert_int_equal(allocate(world, id, names, message), RPC_FAILED_PRECONDITION);
	assert_non_null(strstr(message, id));
	assert_non_null(strstr(message, "isn't bound"));
}

/* The list follows the GPUs' health at once, both ways. proves: DP-11 DP-13 DP-14 DP-50 */
static void test_health_reaches_the_kubelet(void **state)
{
	struct world *world = *state;
	char names[512], message[512], id[HOLDS_ID_SIZE];

	start_kubelet(world);
	start_node(world);
	wait_registered(world);
	write_gpus(world, "xid=79");
	kubelet_until(world->loop, one_is_unhealthy, world, 500, "XID 79 shows");
	fixture_id(id, fixture_gpu(&world->inventory, 0), ALC_A);
	assert_int_equal(allocate(world, id, names, message), RPC_FAILED_PRECONDITION);
	assert_non_null(strstr(message, "XID 79"));
	write_gpus(world, NULL);
	kubelet_until(world->loop, both_registered, world, 500, "the GPU is well again");
	assert_int_equal(world->kubelet.register_calls, 2);
}

/* The kubelet goes and comes, twice within 100 ms, and late. proves: DP-2 DP-31 DP-46 */
static void test_kubelet_restarts(void **state)
{
	static const int64_t pauses[] = {0, 50, 1500};
	struct world *world = *state;
	char before[128];

	start_kubelet(world);
	start_node(world);
	wait_registered(world);
	for (size_t i = 0; i < ARRAY_SIZE(pauses); i++) {
		str_copy(before, sizeof before, kubelet_find(&world->kubelet, GPU)->endpoint);
		kubelet_stop(&world->kubelet);
		kubelet_run(world->loop, pauses[i]);
		start_kubelet(world);
		wait_registered(world);
		assert_string_not_equal(before, kubelet_find(&world->kubelet, GPU)->endpoint);
	}
}

static void on_foreign(void *arg UNUSED, struct net_conn *conn)
{
	net_close(conn);
}

/* proves: DP-32 DP-46 */
static void test_own_socket_taken_away(void **state)
{
	struct world *world = *state;
	struct net_listener *foreign;
	char path[512], before[128];
	struct error error;

	start_kubelet(world);
	start_node(world);
	wait_registered(world);
	str_copy(before, sizeof before, kubelet_find(&world->kubelet, GPU)->endpoint);
	snprintf(path, sizeof path, "%s/device-plugins/%s", world->config.kubelet, before);
	assert_int_equal(unlink(path), 0);
	/* somebody else's living socket of the same name stays */
	expect_ok(net_listen_unix(world->loop, path, 0600, on_foreign, NULL, &foreign, &error),
		  &error);
	kubelet_run(world->loop, 300);
	wait_registered(world);
	assert_string_not_equal(before, kubelet_find(&world->kubelet, GPU)->endpoint);
	assert_true(net_unix_alive(path));
	net_listener_destroy(foreign);
}

/* The folder is made anew: its watch is dead. proves: DP-47 */
static void test_folder_made_anew(void **state)
{
	struct world *world = *state;
	char path[512], moved[512];

	start_kubelet(world);
	start_node(world);
	wait_registered(world);
	snprintf(path, sizeof path, "%s/device-plugins", world->config.kubelet);
	snprintf(moved, sizeof moved, "%s/device-plugins.old", world->config.kubelet);
	assert_int_equal(rename(path, moved), 0);
	kubelet_stop(&world->kubelet);
	kubelet_run(world->loop, 100);
	assert_int_equal(unlink(at(world, "var/lib/kubelet/pod-resources/kubelet.sock")), -1);
	start_kubelet(world);
	kubelet_until(world->loop, both_registered, world, 3000, "registered in the new folder");
}

/* Refused, then not a socket, then well: it waits, keeps trying, and doesn't storm.
 * proves: DP-47 */
static void test_registration_that_fails(void **state)
{
	struct world *world = *state;

	start_kubelet(world);
	world->kubelet.refuse = true;
	start_node(world);
	kubelet_run(world->loop, 1500);
	assert_in_range(world->kubelet.register_calls, 4, 20);
	kubelet_stop(&world->kubelet);
	world->kubelet.refuse = false;
	world->kubelet.register_calls = 0;
	write_text(world, "var/lib/kubelet/device-plugins/kubelet.sock", "not a socket");
	kubelet_run(world->loop, 300);
	assert_int_equal(unlink(at(world, "var/lib/kubelet/device-plugins/kubelet.sock")), 0);
	start_kubelet(world);
	wait_registered(world);
}

/* A restart of bcd: the same ids, and sockets of the dead one go. proves: DP-33 */
static void test_restart_of_bcd(void **state)
{
	struct world *world = *state;
	char leftover[512];
	struct net_listener *dead;
	struct error error;

	start_kubelet(world);
	start_node(world);
	wait_registered(world);
	stop_node(world);
	/* a socket file that nobody listens on */
	snprintf(leftover, sizeof leftover, "%s/device-plugins/bcd-gpu-00000000.sock",
		 world->config.kubelet);
	expect_ok(
		net_listen_unix(world->loop, at(world, "s"), 0600, on_foreign, NULL, &dead, &error),
		&error);
	assert_int_equal(link(world->path, leftover), 0);
	net_listener_destroy(dead);
	start_node(world);
	wait_registered(world);
	assert_false(net_unix_is_socket(leftover));
}

/* One damaged hold: everything is unhealthy, nothing is given, and it heals. proves: DP-54 DP-56 */
static void test_unreadable_hold(void **state)
{
	struct world *world = *state;
	char names[512], message[512], id[HOLDS_ID_SIZE];

	start_kubelet(world);
	start_node(world);
	wait_registered(world);
	write_text(world, "etc/cdi/bcd.dev-" ALC_C ".json", "{");
	kubelet_until(world->loop, all_are_unhealthy, world, 500, "nothing is healthy");
	fixture_id(id, fixture_gpu(&world->inventory, 0), ALC_A);
	assert_int_not_equal(allocate(world, id, names, message), RPC_OK);
	assert_non_null(strstr(message, ALC_C));
	assert_int_equal(unlink(at(world, "etc/cdi/bcd.dev-" ALC_C ".json")), 0);
	kubelet_until(world->loop, both_registered, world, 500, "all is well again");
}

/* --- release --- */

static bool read_releases(struct world *world, struct releases *releases)
{
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	return durable_read(at(world, "var/lib/bcd/releasing.json"), RELEASES_MAX_FILE, &text,
			    &error) &&
	       releases_parse(buf_text(&text), text.length, releases, &error);
}

static size_t count_released(struct world *world)
{
	CLEANUP(reports) struct reports reports = {0};
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	expect_ok(durable_read(at(world, "var/lib/bcd/reports.json"), REPORTS_MAX_FILE, &text,
			       &error),
		  &error);
	expect_ok(reports_parse(buf_text(&text), text.length, &reports, &error), &error);
	return reports_has(&reports, REPORT_RELEASED, ALC_A);
}

static bool is_released(void *arg)
{
	return count_released(arg) == 1;
}

/* proves: REL-1 REL-2 REL-3 REL-7 REL-16 REL-18 */
static void test_release_waits_for_the_holder(void **state)
{
	struct world *world = *state;
	char id[HOLDS_ID_SIZE], names[512], message[512];
	struct releases releases = {0};

	fixture_id(id, fixture_gpu(&world->inventory, 0), ALC_A);
	start_kubelet(world);
	start_node(world);
	wait_registered(world);
	stop_node(world);
	write_spec(world, false);
	world->kubelet.held[0] = id;
	start_node(world);
	kubelet_until(world->loop, nothing_is_offered, world, 3000, "the devices are withdrawn");
	assert_int_equal(access(at(world, "etc/cdi/bcd.dev-" ALC_A ".json"), F_OK), -1);
	assert_true(read_releases(world, &releases));
	assert_string_equal(releases.entries.items[0].allocation, ALC_A);
	assert_false(releases.entries.items[0].reported);
	releases_deinit(&releases);
	assert_int_equal(allocate(world, id, names, message), RPC_FAILED_PRECONDITION);
	/* held, then no answer, then free: said only at the end */
	kubelet_run(world->loop, RELEASE_KUBELET_SETTLE_MS);
	assert_int_equal(count_released(world), 0);
	world->kubelet.pods_fail = true;
	world->kubelet.held[0] = NULL;
	kubelet_run(world->loop, 2500);
	assert_int_equal(count_released(world), 0);
	world->kubelet.pods_fail = false;
	kubelet_until(world->loop, is_released, world, 3000, "the release is reported");
	kubelet_run(world->loop, 50); /* its entry follows in the same list of steps */
	assert_true(read_releases(world, &releases));
	assert_true(releases.entries.items[0].reported); /* REL-47: until it is acknowledged */
	releases_deinit(&releases);
}

/* Without a Spec there is no number to report a release under: told so, it would be ignored and
 * forgotten. */
static void test_release_waits_for_a_spec(void **state)
{
	struct world *world = *state;

	start_kubelet(world);
	start_node(world);
	wait_registered(world);
	stop_node(world);
	write_spec(world, false);
	start_node(world);
	kubelet_until(world->loop, nothing_is_offered, world, 3000, "the devices are withdrawn");
	stop_node(world);
	write_text(world, "var/lib/bcd/spec.json", "{");
	start_node(world);
	kubelet_run(world->loop, RELEASE_KUBELET_SETTLE_MS + 2000);
	assert_int_equal(count_released(world), 0);
	stop_node(world);
	write_spec(world, false);
	start_node(world);
	kubelet_until(world->loop, is_released, world, RELEASE_KUBELET_SETTLE_MS + 3000,
		      "the release is reported");
}

/* A kubelet that lists nobody, because it hasn't heard of its pods yet. proves: REL-14 REL-16 */
static void test_release_waits_for_the_checkpoint(void **state)
{
	struct world *world = *state;
	char id[HOLDS_ID_SIZE], text[512];

	fixture_id(id, fixture_gpu(&world->inventory, 0), ALC_A);
	snprintf(
		text, sizeof text,
		"{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"uid-1\",\"ContainerName\":\"main\","
		"\"ResourceName\":\"bcd.dev/"
		"gpu\",\"DeviceIDs\":{\"0\":[\"%s\"]}}]},\"Checksum\":0}",
		id);
	start_kubelet(world);
	start_node(world);
	wait_registered(world);
	stop_node(world);
	write_spec(world, false);
	write_text(world, "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", text);
	assert_int_equal(mkdir(at(world, "var/lib/kubelet/pods"), 0700), 0);
	assert_int_equal(mkdir(at(world, "var/lib/kubelet/pods/uid-1"), 0700), 0);
	start_node(world);
	kubelet_run(world->loop, RELEASE_KUBELET_SETTLE_MS + 3000);
	assert_int_equal(count_released(world), 0);
	/* Each list makes a kubelet write its checkpoint. */
	assert_in_range(kubelet_find(&world->kubelet, GPU)->lists, 3, 6);
	write_text(world, "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", "{}");
	assert_int_equal(rmdir(at(world, "var/lib/kubelet/pods/uid-1")), 0);
	kubelet_run(world->loop, 2500);
	assert_int_equal(count_released(world), 0); /* unreadable is held */
	write_text(world, "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", text);
	kubelet_until(world->loop, is_released, world, 3000, "the release is reported");
}

/* --- processes --- */

/* GPU `k`'s node is /dev/full: this test needs one that is there for everybody. */
static void give_node(struct world *world, size_t k)
{
	CLEANUP(scenario) struct scenario scenario = {0};
	CLEANUP(buf) struct buf text = {0};
	const char *name = "node-";
	char path[64];

	fixture_scenario(&scenario);
	snprintf(path, sizeof path, "%s%zu", name, k);
	assert_int_equal(symlink("/dev/full", at(world, path)), 0);
	assert_true(str_copy(scenario.nodes.gpu_prefix, sizeof scenario.nodes.gpu_prefix,
			     at(world, name)));
	scenario.nodes.gpu_base = 0;
	scenario_format(&scenario, &text);
	write_text(world, "gpus.toml", buf_text(&text));
}

/* A process of a pod with /dev/full open, as procfs shows it. */
static void put_process(struct world *world, const char *cgroup)
{
	struct error error;

	expect_ok(durable_make_folder(at(world, "proc/77/fd"), 0700, &error), &error);
	write_text(world, "proc/77/cgroup", cgroup);
	write_text(world, "proc/77/comm", "python\n");
	assert_int_equal(symlink("/dev/full", at(world, "proc/77/fd/3")), 0);
}

static void remove_process(struct world *world)
{
	assert_int_equal(unlink(at(world, "proc/77/fd/3")), 0);
}

static void release_a(struct world *world)
{
	start_kubelet(world);
	start_node(world);
	wait_registered(world);
	stop_node(world);
	write_spec(world, false);
	start_node(world);
	kubelet_until(world->loop, nothing_is_offered, world, 3000, "the devices are withdrawn");
}

/* Nobody but procfs knows of it: not pod-resources, not the checkpoint.
 * proves: REL-10 REL-12 REL-14 */
static void test_release_waits_for_the_process(void **state)
{
	struct world *world = *state;

	give_node(world, 0);
	put_process(world, "0::/kubepods.slice/kubepods-pod0b6ed7a0_52a5_4c3b_9e5c_"
			   "3a8a6b2f0c11.slice/cri-containerd-a3bf4f1b2b0b822c.scope\n");
	release_a(world);
	kubelet_run(world->loop, RELEASE_KUBELET_SETTLE_MS + 1500);
	assert_int_equal(count_released(world), 0);
	/* what can't be seen is held, too; what isn't a pod's holds nothing of one */
	write_text(world, "proc/77/cgroup", "0::/system.slice/nvidia-persistenced.service\n");
	assert_int_equal(unlink(at(world, "proc/self/cgroup")), 0);
	kubelet_run(world->loop, 2500);
	assert_int_equal(count_released(world), 0);
	write_text(world, "proc/self/cgroup", "0::/bcd\n");
	kubelet_until(world->loop, is_released, world, 3000, "the release is reported");
}

/* Every kind of damage: never taken as "none pending". proves: REL-30 REL-31 REL-32 REL-42 REL-48
 */
static void test_unreadable_releases(void **state)
{
	static const char *const texts[] = {"", "{}", "null", "{\"version\":1,\"releases\":[",
					    "\x01"};
	struct world *world = *state;

	for (size_t i = 0; i <= ARRAY_SIZE(texts); i++) {
		struct durable_names names = {0};
		struct error error;
		bool aside = false;

		if (i < ARRAY_SIZE(texts))
			write_text(world, "var/lib/bcd/releasing.json", texts[i]);
		else
			assert_int_equal(mkdir(at(world, "var/lib/bcd/releasing.json"), 0700), 0);
		start_node(world);
		kubelet_run(world->loop, 100);
		assert_int_equal(access(at(world, "var/lib/bcd/releasing.unreadable"), F_OK), 0);
		expect_ok(durable_list(at(world, "var/lib/bcd"), 100, &names, &error), &error);
		for (size_t j = 0; j < names.count; j++)
			aside |= str_starts(names.names[j], "releasing.json.unreadable-");
		durable_names_deinit(&names);
		assert_true(aside);
		/* claimed: nothing could be bound */
		assert_int_equal(access(at(world, "etc/cdi/bcd.dev-" ALC_A ".json"), F_OK), -1);
		stop_node(world);
		assert_int_equal(unlink(at(world, "var/lib/bcd/releasing.unreadable")), 0);
		unlink(at(world, "var/lib/bcd/reports.json"));
		write_spec(world, true); /* without the failures that were recorded */
	}
	/* an operator removed the marker: devices are bound again */
	start_node(world);
	kubelet_run(world->loop, 200);
	assert_int_equal(access(at(world, "etc/cdi/bcd.dev-" ALC_A ".json"), F_OK), 0);
}

static bool marker_is_gone(void *arg)
{
	return access(at(arg, "var/lib/bcd/releasing.unreadable"), F_OK) != 0;
}

/* The claim on all GPUs ends by itself: not while a pod has a device of a lost release, nor while a
 * process of one has, but then at once. proves: REL-36 */
static void test_the_marker_goes_by_itself(void **state)
{
	struct world *world = *state;
	char id[HOLDS_ID_SIZE];

	give_node(world, 1);
	fixture_id(id, fixture_gpu(&world->inventory, 1), ALC_C);
	world->kubelet.held[0] = id;
	write_text(world, "var/lib/bcd/releasing.json", "{");
	start_kubelet(world);
	start_node(world);
	kubelet_run(world->loop, RELEASE_KUBELET_SETTLE_MS + 1500);
	assert_false(marker_is_gone(world));
	put_process(world, "0::/kubepods/pod" ALC_C "\n");
	world->kubelet.held[0] = NULL;
	kubelet_run(world->loop, NODE_HOLDERS_MS + 1500);
	assert_false(marker_is_gone(world));
	remove_process(world);
	kubelet_until(world->loop, marker_is_gone, world, NODE_HOLDERS_MS + 1500,
		      "the marker is gone");
}

/* --- metrics --- */

/* One HTTP exchange on the metrics' socket. */
struct scrape_client {
	struct world *world;
	struct net_conn *conn;
	struct buf answer;
	bool closed;
};

static void on_scraped(void *arg, const uint8_t *data, size_t length)
{
	buf_add(&((struct scrape_client *)arg)->answer, data, length);
}

static void on_scrape_closed(void *arg, const struct error *error UNUSED)
{
	((struct scrape_client *)arg)->closed = true;
}

static void on_scrape_open(void *arg, struct net_conn *conn, const struct error *error)
{
	static const struct net_handlers handlers = {.on_data = on_scraped,
						     .on_close = on_scrape_closed};
	struct scrape_client *client = arg;

	if (error)
		fail_msg("%s", error->what);
	client->conn = conn;
	net_start(conn, &handlers, client);
}

static bool scrape_is_open(void *arg)
{
	return ((struct scrape_client *)arg)->conn;
}

static bool scrape_is_closed(void *arg)
{
	return ((struct scrape_client *)arg)->closed;
}

static void scrape_connect(struct world *world, struct scrape_client *client)
{
	char path[512];

	*client = (struct scrape_client){.world = world};
	snprintf(path, sizeof path, "%s/" EXPORTER_SOCKET, world->config.run);
	net_connect_unix(world->loop, path, on_scrape_open, client);
	kubelet_until(world->loop, scrape_is_open, client, 1000, "the metrics' socket is open");
}

/* The whole answer. */
static const char *scrape_text(struct world *world, struct scrape_client *client,
			       const char *request)
{
	scrape_connect(world, client);
	net_write(client->conn, request, strlen(request));
	kubelet_until(world->loop, scrape_is_closed, client, 1000, "an answer");
	return buf_text(&client->answer);
}

static bool metrics_have(struct world *world, const char *text)
{
	struct scrape_client client;
	bool have =
		strstr(scrape_text(world, &client, "GET /metrics HTTP/1.1\r\n\r\n"), text) != NULL;

	buf_deinit(&client.answer);
	return have;
}

static bool pod_is_told(void *arg)
{
	return metrics_have(arg, "allocation=\"" ALC_A "\",namespace=\"default\",pod=\"p\"");
}

static bool a_list_failed(void *arg)
{
	return metrics_have(arg, "\nbcd_pod_list_failures 1\n");
}

/* The pod stands at its GPU within a turn or two of holding it, from the one list that releases
 * need anyway. proves: OBS-16 OBS-20 */
static void test_metrics_name_the_pod(void **state)
{
	struct world *world = *state;
	char id[HOLDS_ID_SIZE];
	struct scrape_client client;
	size_t asked;

	fixture_id(id, fixture_gpu(&world->inventory, 0), ALC_A);
	start_kubelet(world);
	world->kubelet.held[0] = id;
	start_node(world);
	wait_registered(world);
	kubelet_until(world->loop, pod_is_told, world, 3000, "the pod stands at its GPU");
	asked = world->kubelet.list_calls;
	for (size_t i = 0; i < 50; i++)
		assert_true(metrics_have(world, "\nbcd_devices_bound{class=\"gpu\"} 2\n"));
	assert_true(world->kubelet.list_calls <= asked + 1); /* by its own clock, not by scrapes */
	assert_true(str_starts(scrape_text(world, &client, "HEAD /metrics HTTP/1.1\r\n\r\n"),
			       "HTTP/1.1 200 OK\r\n"));
	buf_deinit(&client.answer);
	assert_true(str_starts(scrape_text(world, &client, "DELETE /metrics HTTP/1.1\r\n\r\n"),
			       "HTTP/1.1 405 "));
	buf_deinit(&client.answer);
}

/* A kubelet that refuses (ResourceExhausted) costs the freshness, not the answer: the last list stays,
 * and its age is told. So many connections and no more; silent ones give their place back, and hold up
 * nobody else. proves: OBS-16 */
static void test_metrics_when_others_misbehave(void **state)
{
	struct world *world = *state;
	struct scrape_client clients[EXPORTER_MAX_CONNECTIONS], more;
	char id[HOLDS_ID_SIZE];

	fixture_id(id, fixture_gpu(&world->inventory, 0), ALC_A);
	start_kubelet(world);
	world->kubelet.held[0] = id;
	start_node(world);
	kubelet_until(world->loop, pod_is_told, world, 3000, "the pod stands at its GPU");
	assert_true(metrics_have(world, "\nbcd_pod_list_failures 0\n"));
	world->kubelet.pods_fail = true;
	for (size_t i = 0; i < ARRAY_SIZE(clients); i++)
		scrape_connect(world, &clients[i]);
	scrape_connect(world, &more);
	kubelet_until(world->loop, scrape_is_closed, &more, 1000, "one too many is closed");
	wait_registered(world);
	for (size_t i = 0; i < ARRAY_SIZE(clients); i++)
		kubelet_until(world->loop, scrape_is_closed, &clients[i], EXPORTER_TIMEOUT_MS + 500,
			      "a silent one is closed");
	kubelet_until(world->loop, a_list_failed, world, 3000, "the kubelet was asked in vain");
	assert_true(pod_is_told(world));
	assert_false(metrics_have(world, "\nbcd_pod_list_age_seconds 0."));
}

int main(void)
{
#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_WORLD(test_serves_what_is_on_disk),
		WITH_WORLD(test_health_reaches_the_kubelet),
		WITH_WORLD(test_kubelet_restarts),
		WITH_WORLD(test_own_socket_taken_away),
		WITH_WORLD(test_folder_made_anew),
		WITH_WORLD(test_registration_that_fails),
		WITH_WORLD(test_restart_of_bcd),
		WITH_WORLD(test_unreadable_hold),
		WITH_WORLD(test_release_waits_for_the_holder),
		WITH_WORLD(test_release_waits_for_a_spec),
		WITH_WORLD(test_release_waits_for_the_checkpoint),
		WITH_WORLD(test_release_waits_for_the_process),
		WITH_WORLD(test_unreadable_releases),
		WITH_WORLD(test_the_marker_goes_by_itself),
		WITH_WORLD(test_metrics_name_the_pod),
		WITH_WORLD(test_metrics_when_others_misbehave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
