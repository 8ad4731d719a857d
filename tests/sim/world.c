#include "sim/world.h"

#include "proto/methods.h"
#include "sim/calm.h"
#include "sim/ends.h"
#include "sim/invariants.h"
#include "sim/kubelet.h"
#include "sim/people.h"
#include "sim/programs.h"
#include "sim/sim_api.h"
#include "sim/sim_changes.h"
#include "sim/sim_faults.h"
#include "sim/sim_fiber.h"
#include "sim/sim_fs.h"
#include "sim/sim_pods.h"
#include "sim/sim_processes.h"
#include "sim/sim_rpc.h"
#include "sim/trouble.h"
#include "standin/standin.h"
#include "text/tree.h"

#include <stdio.h>

#define HASTY_MS       800  /* on average half of it between two things */
#define CALMER_MS      4000 /* in half of the longer runs: more comes to its end by itself */
#define LONGER_STEPS   1000
#define UNTOLD_MS      60000 /* where each is a story of its own */
#define PEOPLE_DO      76    /* of a hundred things: the others go wrong */
#define PAUSE_MS       10000 /* but now and then at most so long */
#define AGAIN_MS       5000
#define EVENT_LIMIT    2000000 /* a run that never rests is broken */
#define WARM_MS        10000   /* in so long programs have met, and a booking is bound or gone */
#define STORY_EVERY_MS 40000

static struct {
	struct world_options options;
	struct world_result result;
	uint64_t outlived_before, boot;
	uint64_t op_every_ms;
	bool quiet; /* little goes wrong, so that more pods come to run, and run on for longer */
	bool pods_dirty, holds_dirty;
	int phase; /* of the story */
} world;

/* --- looking --- */

static void on_pods(void *arg UNUSED, json_t *answer)
{
	const json_t *pods = json_object_get(answer, "pods");
	if (!pods)
		return;
	sim_processes_pods(pods);
	sim_pods_seen(pods);
	kubelet_pods(pods);
	invariants_pods(pods);
}

/* After each event; only what has changed is looked at. */
static void look(void)
{
	if (world.pods_dirty && programs.standin && sim.last == &programs.kubelet) {
		CLEANUP(tree) json_t *list = json_pack("{s:s}", "verb", "list");
		world.pods_dirty = false;
		standin_request(programs.standin, list, on_pods, NULL);
	}
	sim_changes_look();
	sim_http_tell();
	if (world.holds_dirty)
		invariants_holds();
	world.holds_dirty = false;
}

/* Told by sim_fs.c through sim_watch.c's hints being made: a folder has changed. */
void sim_world_changed(const char *folder)
{
	if (str_equal(folder, NODE_CDI))
		world.holds_dirty = true;
	/* The stand-in keeps its pods in a file, and what they hold in its checkpoint. */
	else if (str_starts(folder, NODE_KUBELET) && !str_starts(folder, NODE_KUBELET "/pods"))
		world.pods_dirty = true;
}

void sim_world_message(const char *path, bool to_server, const uint8_t *data, size_t length)
{
	if (!str_equal(path, METHOD_GATEWAY_CONNECT))
		return;
	invariants_message(to_server, data, length);
	trouble_message(to_server, data, length);
}

/* --- what happens --- */

/* Of one of the last bookings; else this one. */
static const char *class_booked(const char *class)
{
	size_t back = sim_below(3), count = people.bookings.count;
	return back < count ? people.bookings.items[count - 1 - back].class : class;
}

static void something_happens(uint64_t what)
{
	static const char *const classes[] = {"gpu", "gpu", "gpu", "gpu.slot"};
	const char *class = classes[sim_below(ARRAY_SIZE(classes))];
	if (what < 22) {
		if (programs_serving())
			people_reserve(class, 1 + sim_below(2), (int)(1 + sim_below(4)),
				       sim_below(2) ? 0
						    : (int64_t)sim_below(50 * world.op_every_ms));
	} else if (what < 36) {
		if (people.bookings.count > 0 && programs_serving())
			people_release(people.bookings.items[sim_below(people.bookings.count)].id);
	} else if (what < 60) {
		if (sim_below(4))
			class = class_booked(class);
		people_run_pod(class, 1 + sim_below(2), sim_below(4) == 0, sim_chance(4));
	} else if (what < PEOPLE_DO) {
		if (people.pods > 0)
			(sim_below(5) ? people_delete_pod
				      : people_force_pod)(1 + sim_below(people.pods));
	} else if (what < 80) {
		kubelet_trouble();
	} else if (what < 84) {
		sim_process_kill(&programs.bcd, SIM_KILLED);
	} else if (what < 87) {
		sim_process_kill(&programs.control[sim_below((uint64_t)programs.replicas)],
				 SIM_KILLED);
	} else if (what < 89) {
		sim_machine_cut(&programs.node);
	} else if (what < 93) {
		trouble_network_breaks();
	} else if (what < 95) {
		trouble_message_again();
	} else if (what < 98) {
		trouble_record();
	} else if (what < 99) {
		trouble_disk();
	} else {
		trouble_socket();
	}
}

static void on_op(void *arg UNUSED)
{
	if (sim.calm)
		return;
	if (world.options.vanish && sim_below(4))
		(sim_below(4) ? ends_untold : ends_slowly)();
	else if (world.options.clocks && sim_below(8) == 0)
		trouble_clock();
	else if (world.options.lost && sim_below(8) == 0)
		ends_forgotten();
	else if (world.options.kubelets && sim_pods_runs() && kubelet_is_well() &&
		 sim_below(4) == 0)
		ends_while_kubelet_is_away();
	else if (world.options.kubelets && programs.in_pod && sim_pods_runs() && sim_below(4) == 0)
		ends_while_bcd_is_away();
	else if (world.options.kubelets && sim_below(12) == 0)
		ends_as_it_begins();
	else if (world.options.kubelets && sim_below(40) == 0)
		trouble_api();
	else if (world.quiet ? sim_below(4) : world.options.kubelets && sim_below(16))
		something_happens(sim_below(PEOPLE_DO));
	else if (world.options.restores && sim_below(10) == 0)
		trouble_database();
	else if (world.options.sockets && sim_below(3) == 0)
		trouble_socket();
	else if (sim_below(12) == 0)
		trouble_replica();
	else if (sim_below(25) == 0)
		trouble_clock();
	else if (sim_below(25) == 0)
		trouble_api();
	else if (!world.options.restores && !programs.in_pod && sim_below(12) == 0)
		trouble_state();
	else
		something_happens(sim_below(100));
	sim_schedule(NULL, (int64_t)sim_below(sim_below(16) ? world.op_every_ms : PAUSE_MS), on_op,
		     NULL);
}

/* --- the story --- */

/* Every crash point of it ends in the same rest. proves: REL-3 REL-43 */
static void story_goes_on(void *arg UNUSED)
{
	/* Who tells the story waits for whom it needs. */
	if (!programs_serving() || !programs.standin) {
		sim_schedule(NULL, AGAIN_MS, story_goes_on, NULL);
		return;
	}
	switch (world.phase++) {
	case 0:
		people_reserve("gpu", 2, 600, 0);
		break;
	case 1:
		people_run_pod("gpu", 2, false, sim_chance(4));
		break;
	case 2:
		people_release(people.bookings.items[0].id);
		break;
	case 3:
		people_reserve("gpu", 3, 600, 0);
		break;
	case 4:
		people_delete_pod(1);
		break;
	default:
		calm_begin(world.options.restores);
		return;
	}
	sim_schedule(NULL, STORY_EVERY_MS, story_goes_on, NULL);
}

/* --- one run --- */

static void after_power_cut(void)
{
	if (world.boot != programs.node.boot) {
		sim_processes_power_cut();
		sim_pods_power_cut();
		invariants_no_pods();
	}
	world.boot = programs.node.boot;
}

/* For whoever looks for what went wrong. */
static void show_all(void)
{
	vec_each (&people.bookings, struct booking * booking) {
		CLEANUP(buf) struct buf text = {0};
		CLEANUP(tree)
		json_t *reservation = programs_look(control_reservation_get, booking->id);
		if (!reservation) /* a database that went back knows it no more */
			continue;
		tree_dump_pretty(&text, reservation);
		printf("%s\n", buf_text(&text));
	}
	bcd_show();
}

void world_turn(void)
{
	if (!sim_step())
		sim_broken("nothing is left to happen");
	after_power_cut();
	look();
	if (++world.result.events == EVENT_LIMIT)
		sim_broken("no rest after %d events", EVENT_LIMIT);
}

/* All programs have met, and one booking has come and gone: what they keep from the first time on, such
 * as statements that are prepared, needn't be made again by every run. */
static void warm_up(void)
{
	char why[256] = "";

	while (sim.now_ms < WARM_MS)
		world_turn();
	people_reserve("gpu", 1, 1, 0);
	for (int i = 0; i < 2; i++) {
		for (int64_t until_ms = sim.now_ms + WARM_MS; sim.now_ms < until_ms;)
			world_turn();
		if (!calm_at_rest(why, sizeof why))
			sim_broken("the world isn't ready: %s", why);
		calm_check_bills();
		people_release_all();
	}
}

void world_prepare(bool cold)
{
	memset(&world, 0, sizeof world);
	memset(&people, 0, sizeof people);
	calm_prepare();
	sim_begin();
	trouble_begin();
	programs_begin(PROGRAMS_REPLICAS);
	world.boot = programs.node.boot;
	if (!cold)
		warm_up();
	world.result = (struct world_result){0};
	people.booked = people.released = 0;
	if (sim.broken[0]) { /* a world in which nothing can go right */
		printf("seed 0: %s\n", sim.broken);
		exit(1);
	}
}

/* From here on things may go wrong. */
static void storm_begins(const struct world_options *options)
{
	static const uint64_t rarer[] = {1, 1, 5, 25};
	world.options = *options;
	world.outlived_before = sim_processes_outlived();
	sim_seed(options->seed);
	sim.verbose = options->verbose;
	sim.calm = options->calm;
	sim.crash_points = sim.deaths = 0;
	sim.crash_at = options->crash_at;
	sim.crash_one_in = options->crash_one_in * rarer[sim_below(ARRAY_SIZE(rarer))];
	sim.crash_kind = options->crash_kind;
	world.quiet = sim_below(2);
	world.op_every_ms = options->vanish                                  ? UNTOLD_MS
			    : options->steps >= LONGER_STEPS && sim_below(2) ? CALMER_MS
									     : HASTY_MS;
	if (options->story || options->calm || sim_below(2))
		programs_leave_one_replica();
	programs.in_pod = options->in_pod || (!options->calm && !options->lost && sim_below(2));
	kubelet_begin(options->kubelets ? 1 : 3);
	sim_api_begin(!options->calm);
}

static void sum_up(void)
{
	world.result.crash_points = sim.crash_points;
	world.result.deaths = sim.deaths;
	world.result.trace = sim.trace;
	world.result.time_ms = sim.now_ms;
	world.result.outlived = sim_processes_outlived() - world.outlived_before;
	world.result.ok = sim.broken[0] == '\0';
	sim_faults_end();
	str_copy(world.result.why, sizeof world.result.why, sim.broken);
	if (sim.verbose && !world.result.ok)
		show_all();
	world.result.deletions = sim_api_deletions();
	world.result.pods = sim_pods_ran();
	world.result.bookings = people.booked;
	world.result.releases = people.released;
}

void world_end(void)
{
	sim_end();
	fiber_end();
	sim_http_end();
	sim_api_end();
	sim_changes_end();
	sim_pods_end();
	programs_end();
	invariants_end();
	sim_processes_end();
	people_end();
	trouble_end();
}

struct world_result world_run(const struct world_options *options)
{
	storm_begins(options);
	if (options->story)
		sim_schedule(NULL, STORY_EVERY_MS / 4, story_goes_on, NULL);
	else
		sim_schedule(NULL, (int64_t)sim_below(world.op_every_ms), on_op, NULL);
	while (!calm_is_over() && sim.broken[0] == '\0') {
		world.result.steps += !sim.calm;
		world_turn();
		if (!sim.calm && !options->story && world.result.steps >= options->steps)
			calm_begin(world.options.restores);
	}
	sum_up();
	return world.result;
}

/* --- for other stories --- */

void world_open(const struct world_options *options)
{
	world_prepare(true);
	storm_begins(options);
}

struct world_result world_close(void)
{
	struct world_result result;

	sum_up();
	result = world.result;
	world_end();
	return result;
}
