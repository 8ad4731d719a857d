/* A node of which nothing is on record while pods of the kubelet have its GPUs. */
#include "node/strays.h"

#include "node/core/reports.h"
#include "node/state.h"
#include "node_world.h"
#include "sys/durable.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOLD_A "etc/cdi/bcd.dev-" ALC_A ".json"
#define HOLD_B "etc/cdi/bcd.dev-" ALC_B ".json"
#define CGROUP "0::/kubepods/pod" ALC_C "\n"

static bool a_is_bound(void *arg)
{
	return access(world_at(arg, HOLD_A), F_OK) == 0;
}

static bool b_is_bound(void *arg)
{
	return access(world_at(arg, HOLD_B), F_OK) == 0;
}

static bool is_refused(void *arg)
{
	struct world *world = arg;

	return reports_has(&world->node->reports, REPORT_FAILED, ALC_A);
}

static const char *refusal(const struct world *world)
{
	vec_each (&world->node->reports.queue, const struct report *report)
		if (report->kind == REPORT_FAILED)
			return report->message;
	return "";
}

static bool is_over(void *arg)
{
	struct world *world = arg;

	return reports_has(&world->node->reports, REPORT_RELEASED, ALC_C);
}

static void begin(struct world *world, struct atom held, const char *allocation,
		  char id[HOLDS_ID_SIZE])
{
	fixture_id(id, held, allocation);
	world->kubelet.held[0] = id;
	start_kubelet(world);
	start_node(world);
}

/* Whoever it was bound for, in a life of this node that nobody remembers. The end of it is told, and what was
 * refused for it is bound. proves: REL-2 REL-4 REL-27 DP-42 RES-30 */
static void test_a_pod_of_an_earlier_life(void **state)
{
	struct world *world = *state;
	const struct release_entry *entry;
	char id[HOLDS_ID_SIZE];

	begin(world, fixture_gpu(&world->inventory, 4), ALC_C, id);
	kubelet_until(world->loop, b_is_bound, world, 3000, "what nobody has is bound");
	kubelet_until(world->loop, is_refused, world, 3000, "what a pod has is refused");
	assert_non_null(strstr(refusal(world), "default/p (main), which has gpu_"));
	assert_non_null(strstr(refusal(world), ALC_C));
	entry = releases_find(&world->node->releases, ALC_C);
	assert_non_null(entry);
	assert_int_equal(entry->devices.count, 1);
	/* also by a bcd that is started anew, and by one that is told nothing */
	stop_node(world);
	world->kubelet.pods_fail = true;
	start_node(world);
	kubelet_pass(world->loop, RELEASE_KUBELET_SETTLE_MS + 1000);
	assert_false(a_is_bound(world));
	assert_false(is_over(world));
	world->kubelet.pods_fail = false;
	kubelet_pass(world->loop, 3000);
	assert_false(a_is_bound(world));
	assert_non_null(strstr(condition(world, "KubernetesReleasePending")->message,
			       "by default/p (main)"));
	world->kubelet.held[0] = NULL;
	kubelet_pass_until(world->loop, is_over, world, 8000, "its release is told");
	kubelet_pass_until(world->loop, a_is_bound, world, NODE_REFUSED_MS + 8000,
			   "what was refused is bound");
}

/* The same name: it was bound before, and is bound again while its pod runs. proves: REL-25 */
static void test_its_own_pod(void **state)
{
	struct world *world = *state;
	char id[HOLDS_ID_SIZE];

	begin(world, fixture_gpu(&world->inventory, 0), ALC_A, id);
	kubelet_until(world->loop, a_is_bound, world, 3000, "it is bound");
	assert_int_equal(world->node->releases.entries.count, 0);
}

/* proves: REL-14 REL-16 */
static void test_a_kubelet_that_does_not_answer(void **state)
{
	struct world *world = *state;

	world->kubelet.pods_fail = true;
	start_kubelet(world);
	start_node(world);
	kubelet_pass(world->loop, CONDITIONS_POD_MS + 2000);
	assert_false(a_is_bound(world) || b_is_bound(world));
	assert_int_equal(world->node->reports.queue.count > 0 && is_refused(world), 0);
	assert_non_null(
		strstr(condition(world, "PodResourcesUnavailable")->message, "none is bound"));
	world->kubelet.pods_fail = false;
	kubelet_pass_until(world->loop, a_is_bound, world, 3000, "it is bound");
}

/* Neither is there one, nor was there: nobody can have got anything. proves: REL-17 */
static void test_without_a_kubelet(void **state)
{
	struct world *world = *state;

	start_node(world);
	kubelet_until(world->loop, a_is_bound, world, 3000, "it is bound");
}

static bool is_nobody_s(void *arg)
{
	return !condition(arg, "KubernetesGpuOpen");
}

/* Of a pod that the kubelet says nothing of; that it has ended is told, so that the control plane asks again.
 * proves: REL-10 REL-12 REL-14 */
static void test_a_process_of_a_forgotten_pod(void **state)
{
	struct world *world = *state;

	give_node(world, 0);
	put_process(world, CGROUP);
	start_kubelet(world);
	start_node(world);
	kubelet_until(world->loop, is_refused, world, 3000, "it is refused");
	assert_non_null(strstr(refusal(world), "process 77 (python)"));
	kubelet_pass(world->loop, 2 * NODE_HOLDERS_MS);
	assert_false(a_is_bound(world));
	assert_non_null(
		strstr(condition(world, "KubernetesGpuOpen")->message, "process 77 (python)"));
	/* one that can't be looked at is no absence */
	assert_int_equal(unlink(world_at(world, "proc/self/cgroup")), 0);
	close_node(world);
	kubelet_pass(world->loop, 2 * NODE_HOLDERS_MS);
	assert_false(a_is_bound(world));
	write_text(world, "proc/self/cgroup", "0::/bcd\n");
	kubelet_pass_until(world->loop, is_nobody_s, world, 8000, "its end is told");
	kubelet_pass_until(world->loop, a_is_bound, world, NODE_REFUSED_MS + 8000, "it is bound");
}

static bool b_is_refused(void *arg)
{
	struct world *world = arg;

	return reports_has(&world->node->reports, REPORT_FAILED, ALC_B);
}

/* Nothing live has a part of the GPU: whose process has it open has all of it. proves: REL-10 REL-12 */
static void test_a_process_is_in_the_way_of_parts(void **state)
{
	struct world *world = *state;

	give_node(world, 7);
	put_process(world, CGROUP);
	start_kubelet(world);
	start_node(world);
	kubelet_until(world->loop, b_is_refused, world, 3000, "it is refused");
	assert_non_null(strstr(refusal(world), "process 77 (python)"));
	assert_false(b_is_bound(world));
	close_node(world);
	kubelet_pass_until(world->loop, b_is_bound, world, NODE_REFUSED_MS + 16000, "it is bound");
}

static bool is_claimed(void *arg)
{
	struct world *world = arg;

	return world->node->strays.items.count > 0;
}

/* Who comes after the bind, by whatever way, is known at the next listing. proves: DP-42 REL-4 */
static void test_allocate_is_the_second_line(void **state)
{
	struct world *world = *state;
	char id[HOLDS_ID_SIZE], old[HOLDS_ID_SIZE], names[512], message[512];

	fixture_id(id, fixture_gpu(&world->inventory, 0), ALC_A);
	fixture_id(old, fixture_gpu(&world->inventory, 0), ALC_C);
	start_kubelet(world);
	start_node(world);
	wait_registered(world);
	assert_int_equal(allocate(world, id, names, message), RPC_OK);
	world->kubelet.held[0] = old;
	kubelet_pass_until(world->loop, is_claimed, world, 2 * NODE_HOLDERS_MS, "it is seen");
	assert_int_equal(allocate(world, id, names, message), RPC_FAILED_PRECONDITION);
	assert_non_null(strstr(message, "is held by default/p (main)"));
	assert_null(releases_find(&world->node->releases, ALC_C)); /* its GPU is bound */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_WORLD(test_a_pod_of_an_earlier_life),
		WITH_WORLD(test_its_own_pod),
		WITH_WORLD(test_a_kubelet_that_does_not_answer),
		WITH_WORLD(test_without_a_kubelet),
		WITH_WORLD(test_a_process_of_a_forgotten_pod),
		WITH_WORLD(test_a_process_is_in_the_way_of_parts),
		WITH_WORLD(test_allocate_is_the_second_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
