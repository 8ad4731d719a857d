/* The same node: releases, who holds them, and the marker of a record that was lost. */
#include "node_world.h"

#include "lib/alone.h"
#include "node/core/reports.h"
#include "node/state.h"
#include "sys/durable.h"

#include <sys/stat.h>
#include <unistd.h>

static bool nothing_is_offered(void *arg)
{
	struct kubelet_plugin *gpu = kubelet_find(&((struct world *)arg)->kubelet, GPU);

	return gpu && gpu->device_count == 0;
}

static bool read_releases(struct world *world, struct releases *releases)
{
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	return durable_read(world_at(world, "var/lib/bcd/releasing.json"), RELEASES_MAX_FILE, &text,
			    &error) &&
	       releases_parse(buf_text(&text), text.length, releases, &error);
}

static size_t count_released(struct world *world)
{
	CLEANUP(reports) struct reports reports = {0};
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	expect_ok(durable_read(world_at(world, "var/lib/bcd/reports.json"), REPORTS_MAX_FILE, &text,
			       &error),
		  &error);
	expect_ok(reports_parse(buf_text(&text), text.length, &reports, &error), &error);
	return reports_has(&reports, REPORT_RELEASED, ALC_A);
}

static bool is_released(void *arg)
{
	return count_released(arg) == 1;
}

/* proves: REL-1 REL-2 REL-3 REL-7 REL-16 REL-18 HOSTED-25 */
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
	assert_int_equal(access(world_at(world, "etc/cdi/bcd.dev-" ALC_A ".json"), F_OK), -1);
	assert_true(read_releases(world, &releases));
	assert_string_equal(releases.entries.items[0].allocation, ALC_A);
	assert_false(releases.entries.items[0].reported);
	releases_deinit(&releases);
	assert_int_equal(allocate(world, id, names, message), RPC_FAILED_PRECONDITION);
	/* held, then no answer, then free: said only at the end */
	kubelet_pass(world->loop, RELEASE_KUBELET_SETTLE_MS);
	assert_int_equal(count_released(world), 0);
	world->kubelet.pods_fail = true;
	world->kubelet.held[0] = NULL;
	kubelet_pass(world->loop, 2500);
	assert_int_equal(count_released(world), 0);
	world->kubelet.pods_fail = false;
	kubelet_pass_until(world->loop, is_released, world, 3000, "the release is reported");
	kubelet_rest(world->loop); /* its entry follows in the same list of steps */
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
	kubelet_pass(world->loop, RELEASE_KUBELET_SETTLE_MS + 2000);
	assert_int_equal(count_released(world), 0);
	stop_node(world);
	write_spec(world, false);
	start_node(world);
	kubelet_pass(world->loop, RELEASE_KUBELET_SETTLE_MS);
	kubelet_pass_until(world->loop, is_released, world, 3000, "the release is reported");
}

/* A kubelet that lists nobody, because it hasn't heard of its pods yet. proves: REL-14 REL-16 */
static void test_release_waits_for_the_checkpoint(void **state)
{
	struct world *world = *state;
	char id[HOLDS_ID_SIZE];

	fixture_id(id, fixture_gpu(&world->inventory, 0), ALC_A);
	start_kubelet(world);
	start_node(world);
	wait_registered(world);
	stop_node(world);
	write_spec(world, false);
	kubelet_write_checkpoint(&world->kubelet, "uid-1", id);
	assert_int_equal(mkdir(world_at(world, "var/lib/kubelet/pods"), 0700), 0);
	assert_int_equal(mkdir(world_at(world, "var/lib/kubelet/pods/uid-1"), 0700), 0);
	start_node(world);
	kubelet_pass(world->loop, RELEASE_KUBELET_SETTLE_MS + 3000);
	assert_int_equal(count_released(world), 0);
	/* Each list makes a kubelet write its checkpoint. */
	assert_in_range(kubelet_find(&world->kubelet, GPU)->lists, 3, 6);
	write_text(world, "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", "{}");
	assert_int_equal(rmdir(world_at(world, "var/lib/kubelet/pods/uid-1")), 0);
	kubelet_pass(world->loop, 2500);
	assert_int_equal(count_released(world), 0); /* unreadable is held */
	kubelet_write_checkpoint(&world->kubelet, "uid-1", id);
	kubelet_pass_until(world->loop, is_released, world, 3000, "the release is reported");
}

/* --- processes --- */

static bool a_is_bound(void *arg)
{
	return access(world_at(arg, "etc/cdi/bcd.dev-" ALC_A ".json"), F_OK) == 0;
}

static void bind_a(struct world *world)
{
	start_kubelet(world);
	start_node(world);
	wait_registered(world);
	stop_node(world);
}

static void release_a(struct world *world)
{
	write_spec(world, false);
	start_node(world);
	kubelet_until(world->loop, nothing_is_offered, world, 3000, "the devices are withdrawn");
}

static bool has_word_of_release(struct world *world)
{
	struct releases releases = {0};
	bool has = read_releases(world, &releases) && releases.entries.count > 0 &&
		   releases.entries.items[0].reported;

	releases_deinit(&releases);
	return has;
}

/* Nobody but procfs knows of it: not pod-resources, not the checkpoint.
 * proves: REL-10 REL-12 REL-14 */
static void test_release_waits_for_the_process(void **state)
{
	struct world *world = *state;

	give_node(world, 0);
	bind_a(world);
	put_process(world, "0::/kubepods.slice/kubepods-pod0b6ed7a0_52a5_4c3b_9e5c_"
			   "3a8a6b2f0c11.slice/cri-containerd-a3bf4f1b2b0b822c.scope\n");
	release_a(world);
	kubelet_pass(world->loop, RELEASE_KUBELET_SETTLE_MS + 1500);
	assert_int_equal(count_released(world), 0);
	/* what can't be seen is held, too; what isn't a pod's holds nothing of one */
	write_text(world, "proc/77/cgroup", "0::/system.slice/nvidia-persistenced.service\n");
	assert_int_equal(unlink(world_at(world, "proc/self/cgroup")), 0);
	kubelet_pass(world->loop, 2500);
	assert_int_equal(count_released(world), 0);
	write_text(world, "proc/self/cgroup", "0::/bcd\n");
	kubelet_pass_until(world->loop, is_released, world, 3000, "the release is reported");
}

/* The kubelet stays outside. */
static int release_alone(void *arg)
{
	struct world *world = arg;

	world->loop = loop_create(); /* the one of before is the parent's */
	if (!node_create(world->loop, &world->config, NULL, &world->node, &(struct error){0}))
		return 1;
	for (int s = 0; s < 60 && !has_word_of_release(world); s++)
		kubelet_pass(world->loop, 1000);
	return !has_word_of_release(world);
}

/* Who sees the kubelet's processes waits for the pod's; who doesn't takes the kubelet's word, hosted both times.
 * proves: HOSTED-24 REL-13 */
static void test_processes_that_can_not_be_seen(void **state)
{
	struct world *world = *state;
	pid_t child;

	give_node(world, 0);
	bind_a(world);
	put_process(world, "0::/kubepods/pod" ALC_C "/main\n");
	release_a(world);
	kubelet_pass(world->loop, RELEASE_KUBELET_SETTLE_MS + 2500);
	assert_false(has_word_of_release(world));
	stop_node(world);
	child = alone_start(release_alone, world);
	assert_int_equal(kubelet_until_ended(world->loop, child, 60000, "the release is reported"),
			 0);
}

#define POD_UID "0b6ed7a0-52a5-4c3b-9e5c-3a8a6b2f0c11"

static bool has_pods(void *arg)
{
	struct releases releases = {0};
	bool has = read_releases(arg, &releases) && releases.entries.count > 0 &&
		   releases.entries.items[0].pods.count > 0;

	releases_deinit(&releases);
	return has;
}

/* Forgotten by everybody, with no device open: only bcd remembers what its pod had, also when it is
 * started anew meanwhile.  proves: REL-2 REL-12 REL-14 */
static void test_release_waits_for_a_forgotten_pod(void **state)
{
	struct world *world = *state;
	struct releases releases = {0};
	char id[HOLDS_ID_SIZE];
	struct error error;

	put_process(world, "0::/kubepods/burstable/pod" POD_UID "/main\n");
	close_node(world); /* its device isn't open */
	write_spec(world, true);
	start_kubelet(world);
	fixture_id(id, fixture_gpu(&world->inventory, 0), ALC_A);
	kubelet_write_checkpoint(&world->kubelet, POD_UID, id);
	expect_ok(
		durable_make_folder(world_at(world, "var/lib/kubelet/pods/" POD_UID), 0700, &error),
		&error);
	start_node(world);
	wait_registered(world);
	stop_node(world);
	write_spec(world, false);
	start_node(world);
	kubelet_until(world->loop, nothing_is_offered, world, 3000, "the devices are withdrawn");
	kubelet_pass_until(world->loop, has_pods, world, 2500, "the checkpoint was read");
	assert_true(read_releases(world, &releases));
	assert_int_equal(releases.entries.items[0].pods.count, 1);
	assert_string_equal(releases.entries.items[0].pods.items[0].uid, POD_UID);
	releases_deinit(&releases);
	kubelet_write_checkpoint(&world->kubelet, NULL, NULL);
	assert_int_equal(rmdir(world_at(world, "var/lib/kubelet/pods/" POD_UID)), 0);
	stop_node(world);
	start_node(world);
	kubelet_pass(world->loop, RELEASE_KUBELET_SETTLE_MS + 2500);
	assert_int_equal(count_released(world), 0);
	/* the rest of its pod ends */
	write_text(world, "proc/77/cgroup", "0::/kubepods/burstable/pod" ALC_C "/main\n");
	kubelet_pass_until(world->loop, is_released, world, 3000, "the release is reported");
}

/* A process that has the GPU open may be that of another part: it can't be told.
 * proves: REL-11 */
static void test_a_part_does_not_wait_for_its_gpu_s_process(void **state)
{
	struct world *world = *state;
	CLEANUP(buf) struct buf text = {0};
	struct spec spec = {.generation = 1};

	give_node(world, 7);
	fixture_assign(fixture_assignment(&spec, ALC_A), &world->inventory,
		       fixture_slot(&world->inventory, 2));
	spec_format(&spec, &text);
	write_text(world, "var/lib/bcd/spec.json", buf_text(&text));
	start_kubelet(world);
	start_node(world);
	kubelet_until(world->loop, a_is_bound, world, 3000, "the slot is bound");
	stop_node(world);
	/* before, it would be in the way of the bind */
	put_process(world, "0::/kubepods/pod" ALC_C "\n");
	spec_deinit(&spec);
	spec = (struct spec){.generation = 2};
	buf_clear(&text);
	spec_format(&spec, &text);
	write_text(world, "var/lib/bcd/spec.json", buf_text(&text));
	start_node(world);
	kubelet_pass(world->loop, RELEASE_KUBELET_SETTLE_MS);
	kubelet_pass_until(world->loop, is_released, world, 4000, "the release is reported");
}

static const char *pending_message(const struct world *world)
{
	vec_each (&world->node->conditions, const struct condition *condition)
		if (str_equal(condition->type, "KubernetesReleasePending"))
			return condition->message;
	return NULL;
}

static bool is_pending_told(void *arg)
{
	return pending_message(arg);
}

/* Who has several devices of it is named once. proves: REL-19 */
static void test_a_pod_of_two_devices_is_named_once(void **state)
{
	struct world *world = *state;
	char first[HOLDS_ID_SIZE], second[HOLDS_ID_SIZE];
	const char *named;

	fixture_id(first, fixture_gpu(&world->inventory, 0), ALC_A);
	fixture_id(second, fixture_gpu(&world->inventory, 4), ALC_A);
	world->kubelet.held[0] = first;
	world->kubelet.held[1] = second;
	bind_a(world);
	release_a(world);
	kubelet_pass_until(world->loop, is_pending_told, world, 8000, "who holds it is told");
	named = strstr(pending_message(world), "default/p (main)");
	assert_non_null(named);
	assert_null(strstr(named + 1, "default/p (main)"));
}

/* Somebody removed /etc/cdi under a bcd that runs: it is made again, and what is wanted bound. Before, each
 * write failed for as long as nobody made it. proves: DP-54 */
static void test_the_holds_folder_is_removed(void **state)
{
	struct world *world = *state;

	start_kubelet(world);
	start_node(world);
	wait_registered(world);
	assert_int_equal(unlink(world_at(world, "etc/cdi/bcd.dev-" ALC_A ".json")), 0);
	assert_int_equal(unlink(world_at(world, "etc/cdi/bcd.dev-" ALC_B ".json")), 0);
	assert_int_equal(rmdir(world_at(world, "etc/cdi")), 0);
	kubelet_pass_until(world->loop, a_is_bound, world, NODE_HOLDS_MS + 3 * NODE_WRITE_AGAIN_MS,
			   "it is bound again");
	kubelet_until(world->loop, both_registered, world, 3000, "all is well again");
}

static bool is_marked(void *arg)
{
	return !durable_absent(world_at(arg, "var/lib/bcd/releasing.unreadable"));
}

static bool is_set_aside(void *arg)
{
	return durable_absent(world_at(arg, "var/lib/bcd/releasing.json"));
}

/* Every kind of damage: never taken as "none pending". proves: REL-30 REL-31 REL-32 REL-42 */
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
			assert_int_equal(mkdir(world_at(world, "var/lib/bcd/releasing.json"), 0700),
					 0);
		start_node(world);
		kubelet_until(world->loop, is_marked, world, 1000, "the marker is written");
		kubelet_until(world->loop, is_set_aside, world, 1000, "it is out of the way");
		kubelet_run(world->loop, 100);
		expect_ok(durable_list(world_at(world, "var/lib/bcd"), 100, &names, &error),
			  &error);
		for (size_t j = 0; j < names.count; j++)
			aside |= str_starts(names.names[j], "releasing.json.unreadable-");
		durable_names_deinit(&names);
		assert_true(aside);
		/* claimed: nothing could be bound */
		assert_int_equal(access(world_at(world, "etc/cdi/bcd.dev-" ALC_A ".json"), F_OK),
				 -1);
		stop_node(world);
		assert_int_equal(unlink(world_at(world, "var/lib/bcd/releasing.unreadable")), 0);
		unlink(world_at(world, "var/lib/bcd/reports.json"));
		write_spec(world, true); /* without the failures that were recorded */
	}
	/* a link to nowhere in its place is no absence */
	assert_int_equal(symlink("nowhere", world_at(world, "var/lib/bcd/releasing.unreadable")),
			 0);
	start_node(world);
	kubelet_run(world->loop, 200);
	assert_int_equal(access(world_at(world, "etc/cdi/bcd.dev-" ALC_A ".json"), F_OK), -1);
	stop_node(world);
	assert_int_equal(unlink(world_at(world, "var/lib/bcd/releasing.unreadable")), 0);
	unlink(world_at(world, "var/lib/bcd/reports.json"));
	write_spec(world, true);
	/* an operator removed the marker: devices are bound again */
	start_node(world);
	kubelet_until(world->loop, a_is_bound, world, 1000, "it is bound");
}

/* While the marker can't be written (something is in its place), the file that can't be read stays in its
 * own: whoever starts next finds one of the two. proves: REL-48 */
static void test_the_marker_comes_first(void **state)
{
	struct world *world = *state;

	write_text(world, "var/lib/bcd/releasing.json", "{");
	assert_int_equal(mkdir(world_at(world, "var/lib/bcd/releasing.unreadable"), 0700), 0);
	for (int i = 0; i < 2; i++) {
		start_node(world);
		kubelet_run(world->loop, 300);
		assert_false(is_set_aside(world));
		assert_int_equal(access(world_at(world, "etc/cdi/bcd.dev-" ALC_A ".json"), F_OK),
				 -1);
		stop_node(world);
	}
	assert_int_equal(rmdir(world_at(world, "var/lib/bcd/releasing.unreadable")), 0);
	start_node(world);
	kubelet_until(world->loop, is_set_aside, world, 2000, "it is out of the way");
	assert_int_equal(access(world_at(world, "var/lib/bcd/releasing.unreadable"), F_OK), 0);
}

static bool claims_all(void *arg)
{
	const struct world *world = arg;

	vec_each (&world->node->conditions, const struct condition *condition)
		if (str_equal(condition->type, "KubernetesReleasesUnreadable"))
			return true;
	return false;
}

/* No file is none pending only without a marker; a link to nowhere is no absence. proves: REL-30 REL-55 */
static void test_no_record_of_releases(void **state)
{
	struct world *world = *state;

	start_node(world);
	kubelet_run(world->loop, 300);
	assert_false(claims_all(world));
	stop_node(world);
	write_text(world, "var/lib/bcd/releasing.unreadable", "1 lost\n");
	unlink(world_at(world, "var/lib/bcd/releasing.json"));
	start_node(world);
	kubelet_until(world->loop, claims_all, world, 1000, "all is claimed");
	stop_node(world);
	assert_int_equal(unlink(world_at(world, "var/lib/bcd/releasing.unreadable")), 0);
	unlink(world_at(world, "var/lib/bcd/releasing.json"));
	assert_int_equal(symlink("nowhere", world_at(world, "var/lib/bcd/releasing.json")), 0);
	start_node(world);
	kubelet_until(world->loop, claims_all, world, 1000, "all is claimed");
}

static bool marker_is_gone(void *arg)
{
	return access(world_at(arg, "var/lib/bcd/releasing.unreadable"), F_OK) != 0;
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
	kubelet_pass(world->loop, RELEASE_KUBELET_SETTLE_MS + 1500);
	assert_false(marker_is_gone(world));
	put_process(world, "0::/kubepods/pod" ALC_C "\n");
	world->kubelet.held[0] = NULL;
	kubelet_pass(world->loop, NODE_HOLDERS_MS + 1500);
	assert_false(marker_is_gone(world));
	close_node(world);
	kubelet_pass_until(world->loop, marker_is_gone, world, NODE_HOLDERS_MS + 1500,
			   "the marker is gone");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_WORLD(test_release_waits_for_the_holder),
		WITH_WORLD(test_release_waits_for_a_spec),
		WITH_WORLD(test_release_waits_for_the_checkpoint),
		WITH_WORLD(test_release_waits_for_the_process),
		WITH_WORLD(test_processes_that_can_not_be_seen),
		WITH_WORLD(test_release_waits_for_a_forgotten_pod),
		WITH_WORLD(test_a_part_does_not_wait_for_its_gpu_s_process),
		WITH_WORLD(test_a_pod_of_two_devices_is_named_once),
		WITH_WORLD(test_the_holds_folder_is_removed),
		WITH_WORLD(test_unreadable_releases),
		WITH_WORLD(test_the_marker_comes_first),
		WITH_WORLD(test_no_record_of_releases),
		WITH_WORLD(test_the_marker_goes_by_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
