/* The node's shell on real sockets and a real disk, with a kubelet that has bad habits: what is offered, and given. */
#include "node_world.h"

#include "node/records.h"
#include "node/state.h"
#include "node/status.h"
#include "sys/net.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

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

/* --- an answer that takes its time --- */

#define SLOW_MS 100

static struct mono answered; /* when the allocator had its answer */
static bool slow;

bool __real_allocator_allocate(struct allocator *allocator, const struct inventory *inventory,
			       const struct strays *strays, enum atom_class class,
			       const char *const *ids, size_t count,
			       struct allocate_answer *ret_answer, struct error *error);
bool __wrap_allocator_allocate(struct allocator *allocator, const struct inventory *inventory,
			       const struct strays *strays, enum atom_class class,
			       const char *const *ids, size_t count,
			       struct allocate_answer *ret_answer, struct error *error);

bool __wrap_allocator_allocate(struct allocator *allocator, const struct inventory *inventory,
			       const struct strays *strays, enum atom_class class,
			       const char *const *ids, size_t count,
			       struct allocate_answer *ret_answer, struct error *error)
{
	bool done = __real_allocator_allocate(allocator, inventory, strays, class, ids, count,
					      ret_answer, error);

	if (slow)
		usleep(SLOW_MS * 1000);
	answered = clock_mono();
	return done;
}

/* Listings count from so long after the answer, not after the question's wake-up. */
static void test_what_was_given_counts_from_the_answer(void **state)
{
	struct world *world = *state;
	char names[512], message[512], id[HOLDS_ID_SIZE];

	start_kubelet(world);
	start_node(world);
	wait_registered(world);
	fixture_id(id, fixture_gpu(&world->inventory, 0), ALC_A);
	slow = true;
	assert_int_equal(allocate(world, id, names, message), RPC_OK);
	slow = false;
	assert_true(mono_until(answered, release_given(world->node)) >= 0);
}

static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* As in a pod, from where no process of others is seen. */
static bool is_withheld(void *arg)
{
	struct world *world = arg;

	world->node->blind = true;
	return world->node->withheld.code != ERROR_NONE;
}

static bool is_given(void *arg)
{
	return !is_withheld(arg);
}

/* Where no process can be seen, who has a device must outlive bcd on record: without, nobody is given one. On a machine
 * it is seen. proves: REL-13 REL-14 */
static void test_who_cannot_be_recorded_is_given_nothing(void **state)
{
	struct world *world = *state;
	char names[512], message[512], id[HOLDS_ID_SIZE];

	signal(SIGXFSZ, SIG_IGN);
	start_kubelet(world);
	start_node(world);
	wait_registered(world);
	fixture_id(id, fixture_gpu(&world->inventory, 0), ALC_A);
	limit_files(10);
	world->node->inventory_due = true;
	kubelet_until(world->loop, is_withheld, world, 2 * CONDITIONS_WRITE_MS + 2000, "no record");
	assert_int_not_equal(allocate(world, id, names, message), RPC_OK);
	assert_non_null(
		strstr(message, "no device is given out while it can't be recorded who has it"));
	assert_non_null(strstr(message, "File too large"));
	assert_non_null(strstr(condition(world, CONDITION_RECORDS_UNWRITABLE)->message,
			       "nor given to a pod"));
	world->node->blind = false;
	kubelet_pass(world->loop, 1500);
	assert_null(
		strstr(condition(world, CONDITION_RECORDS_UNWRITABLE)->message, "given to a pod"));
	assert_int_equal(allocate(world, id, names, message), RPC_OK);
	kubelet_until(world->loop, is_withheld, world, 500, "it is withheld again");
	limit_files(RLIM_INFINITY);
	kubelet_until(world->loop, is_given, world, 4000, "it is written");
	assert_int_equal(allocate(world, id, names, message), RPC_OK);
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

/* The kubelet of a hosted node goes and comes, twice within 100 ms, and late: whenever its socket is there it is served.
 * proves: DP-2 DP-31 DP-46 HOSTED-19 */
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

struct socket_wait {
	struct world *world;
	const char *before;
};

static bool has_another_socket(void *arg)
{
	const struct socket_wait *wait = arg;
	const struct kubelet_plugin *plugin = kubelet_find(&wait->world->kubelet, GPU);

	return plugin && !str_equal(plugin->endpoint, wait->before);
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
	kubelet_until(world->loop, has_another_socket, &(struct socket_wait){world, before}, 1000,
		      "it is served by another name");
	wait_registered(world);
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
	assert_int_equal(unlink(world_at(world, "var/lib/kubelet/pod-resources/kubelet.sock")), -1);
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
	assert_int_equal(unlink(world_at(world, "var/lib/kubelet/device-plugins/kubelet.sock")), 0);
	start_kubelet(world);
	wait_registered(world);
}

static bool is_named(void *arg)
{
	return condition(arg, CONDITION_PLUGINS);
}

static bool is_over(void *arg)
{
	return !condition(arg, CONDITION_PLUGINS);
}

/* Refused for long, and a socket of the kubelet's that can't be looked at while all is registered: both are told, with the
 * socket and why, and no more once it is well. proves: DP-47 GW-28 GW-13 */
static void test_a_kubelet_that_is_not_told_is_named(void **state)
{
	struct world *world = *state;
	char path[512], moved[512];
	const char *message;

	start_kubelet(world);
	world->kubelet.refuse = true;
	start_node(world);
	kubelet_pass(world->loop, 10000);
	assert_false(is_named(world));
	kubelet_pass_until(world->loop, is_named, world, 10000, "it is named");
	snprintf(path, sizeof path, "%s/device-plugins/kubelet.sock", world->config.kubelet);
	snprintf(moved, sizeof moved, "%s/device-plugins/moved", world->config.kubelet);
	message = condition(world, CONDITION_PLUGINS)->message;
	assert_non_null(strstr(message, GPU ": register with '"));
	assert_non_null(strstr(message, SLOT ": register with '"));
	assert_non_null(strstr(message, path));
	world->kubelet.refuse = false;
	kubelet_pass_until(world->loop, is_over, world, 20000, "it is well");
	wait_registered(world);

	assert_int_equal(rename(path, moved), 0);
	assert_int_equal(symlink("kubelet.sock", path), 0);
	kubelet_pass_until(world->loop, is_named, world, 20000, "it is named");
	message = condition(world, CONDITION_PLUGINS)->message;
	assert_non_null(strstr(message, path));
	assert_non_null(strstr(message, strerror(ELOOP)));
	assert_int_equal(rename(moved, path), 0);
	kubelet_pass_until(world->loop, is_over, world, 5000, "it is well");
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
	expect_ok(net_listen_unix(world->loop, world_at(world, "s"), 0600, on_foreign, NULL, &dead,
				  &error),
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
	assert_int_equal(unlink(world_at(world, "etc/cdi/bcd.dev-" ALC_C ".json")), 0);
	kubelet_until(world->loop, both_registered, world, 500, "all is well again");
}

static bool says_unsupported(void *arg)
{
	const struct world *world = arg;

	vec_each (&world->node->conditions, const struct condition *condition)
		if (str_equal(condition->type, "GpuApiUnsupported"))
			return true;
	return false;
}

/* Neither binds nor offers anything, and says why; what a pod of another API would ask for is there for nobody. */
static void expect_nothing_offered(struct world *world, const char *why)
{
	CLEANUP(tree) json_t *status = NULL;
	json_t *conditions, *condition;
	bool told = false;
	size_t i;

	start_node(world);
	kubelet_until(world->loop, says_unsupported, world, 1000, "it says so");
	kubelet_run(world->loop, 300);
	assert_int_equal(world->kubelet.register_calls, 0);
	assert_int_equal(access(world_at(world, "etc/cdi/bcd.dev-" ALC_A ".json"), F_OK), -1);
	status = status_describe(world->node);
	assert_int_equal(json_array_size(json_object_get(status, "resources")), 0);
	conditions = json_object_get(status, "conditions");
	json_array_foreach(conditions, i, condition)
	{
		if (!str_equal(json_string_value(json_object_get(condition, "type")),
			       "GpuApiUnsupported"))
			continue;
		told = true;
		assert_non_null(
			strstr(json_string_value(json_object_get(condition, "message")), why));
	}
	assert_true(told);
	stop_node(world);
}

/* Configuration and pool have to say the same, and there is no DRA driver: nothing that is booked is bound
 * for nobody, and no plugin is served beside another way.  proves: JOIN-34 MAN-18 MAN-34 DRA-2 DP-38 */
static void test_another_api_offers_nothing(void **state)
{
	struct world *world = *state;
	CLEANUP(buf) struct buf spec = {0};
	CLEANUP(buf) struct buf asks = {0};
	struct error error;
	const char *api;

	start_kubelet(world);
	world->config.gpu_api = "dra";
	expect_nothing_offered(world, "this bcd has no DRA driver");
	world->config.gpu_api = "device-plugin";
	write_spec(world, true);
	expect_ok(durable_read(world_at(world, "var/lib/bcd/spec.json"), SPEC_MAX_FILE, &spec,
			       &error),
		  &error);
	api = strstr(buf_text(&spec), "\"gpuApi\": \"");
	assert_non_null(api);
	api += strlen("\"gpuApi\": \"");
	buf_add(&asks, spec.data, (size_t)(api - buf_text(&spec)));
	buf_add_text(&asks, "dra");
	buf_add_text(&asks, strchr(api, '"'));
	write_text(world, "var/lib/bcd/spec.json", buf_text(&asks));
	expect_nothing_offered(world, "the pool's gpuApi is dra");
	write_spec(world, true);
	start_node(world);
	wait_registered(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_WORLD(test_serves_what_is_on_disk),
		WITH_WORLD(test_what_was_given_counts_from_the_answer),
		WITH_WORLD(test_who_cannot_be_recorded_is_given_nothing),
		WITH_WORLD(test_health_reaches_the_kubelet),
		WITH_WORLD(test_kubelet_restarts),
		WITH_WORLD(test_own_socket_taken_away),
		WITH_WORLD(test_folder_made_anew),
		WITH_WORLD(test_registration_that_fails),
		WITH_WORLD(test_a_kubelet_that_is_not_told_is_named),
		WITH_WORLD(test_restart_of_bcd),
		WITH_WORLD(test_unreadable_hold),
		WITH_WORLD(test_another_api_offers_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
