#include "sim/world.h"

#include "base/id.h"
#include "proto/gateway.pb-c.h"
#include "proto/message.h"
#include "proto/methods.h"
#include "sim/invariants.h"
#include "sim/programs.h"
#include "sim/sim_api.h"
#include "sim/sim_fs.h"
#include "sim/sim_processes.h"
#include "sim/sim_rpc.h"
#include "standin/standin.h"
#include "sys/durable.h"
#include "text/tree.h"

#include <stdio.h>

#define OP_EVERY_MS 4000   /* on average half of it between two things */
#define CALM_MS     600000 /* everything must be at rest after at most so long */
#define LOOK_MS     1000   /* how often that is looked at */
#define SPECS_KEPT  16
#define STEP_LIMIT  2000000 /* of events: a run that never rests is broken */

static struct {
	struct world_options options;
	struct world_result result;
	uint64_t ops_left, pods, outlived_before;
	VEC(char *) reservations; /* that were granted, ended or not */
	VEC(struct buf) specs;    /* sent to the node, the newest last */
	bool pods_dirty, holds_dirty;
	int phase; /* of the calm, or of the story */
	int64_t phase_until_ms;
	bool over;
} world;

/* --- looking --- */

static void on_pods(void *arg UNUSED, json_t *answer)
{
	const json_t *pods = json_object_get(answer, "pods");
	if (!pods)
		return;
	sim_processes_pods(pods);
	invariants_pods(pods);
	sim_api_pods(pods);
}

static void look(void)
{
	if (programs.standin && sim.last == &programs.kubelet) {
		CLEANUP(tree) json_t *list = json_pack("{s:s}", "verb", "list");
		standin_request(programs.standin, list, on_pods, NULL);
	}
	if (world.holds_dirty)
		invariants_holds();
	world.holds_dirty = false;
}

/* Told by sim_fs.c through sim_watch.c's hints being made: a folder has changed. */
void sim_world_changed(const char *folder)
{
	if (str_equal(folder, NODE_CDI))
		world.holds_dirty = true;
}

void sim_world_message(const char *path, bool to_server, const uint8_t *data, size_t length)
{
	if (!str_equal(path, METHOD_GATEWAY_CONNECT))
		return;
	invariants_message(to_server, data, length);
	if (to_server)
		return;
	CLEANUP(message) ProtobufCMessage *message = NULL;
	struct error error;
	if (!message_unpack(&bettercompute__v1__down__descriptor, data, length, &message, &error) ||
	    ((Bettercompute__V1__Down *)message)->body_case != BETTERCOMPUTE__V1__DOWN__BODY_SPEC)
		return;
	if (world.specs.count == SPECS_KEPT) {
		buf_deinit(&world.specs.items[0]);
		vec_remove(&world.specs, 0);
	}
	buf_add(vec_push(&world.specs), data, length);
}

static void specs_drop(void)
{
	vec_each (&world.specs, struct buf * spec)
		buf_deinit(spec);
	vec_deinit(&world.specs);
}

/* --- what people do --- */

/* `in_ms` from now, as the API takes it; the simulation's day has no end. */
static void wall_format(char out[32], int64_t in_ms)
{
	int64_t seconds = (sim.now_ms + in_ms) / 1000;
	assert(seconds < (int64_t)24 * 3600);
	snprintf(out, 32, "2026-11-29T%02d:%02d:%02dZ", (int)(seconds / 3600),
		 (int)(seconds / 60 % 60), (int)(seconds % 60));
}

/* From now on, or from `start_in_ms` on: bookings may follow each other on one GPU. */
static void reserve(const char *class, uint64_t count, int minutes, int64_t start_in_ms)
{
	char duration[32], start[32];
	snprintf(duration, sizeof duration, "%dm", minutes);
	json_t *body =
		json_pack("{s:s, s:s, s:[{s:s, s:I}], s:s, s:s}", "tenantId", programs.tenant,
			  "poolId", programs.pool, "devices", "class", class, "count",
			  (json_int_t)count, "duration", duration, "binding", "kubernetes");
	if (start_in_ms > 0) {
		wall_format(start, start_in_ms);
		json_object_set_new(body, "startAt", json_string(start));
	}
	json_t *answer = programs_call(control_reservation_create, NULL, body);
	const char *id = json_string_value(json_object_get(answer, "id"));
	sim_trace("reserve %llu of %s: %s %s", (unsigned long long)count, class, id ? id : "no",
		  id ? json_string_value(json_object_get(answer, "state")) : "");
	if (id) {
		*vec_push(&world.reservations) = mem_strdup(id);
		world.result.bookings++;
	}
	json_decref(answer);
}

static void release(const char *id)
{
	sim_trace("release %s", id);
	json_decref(programs_call(control_reservation_release, id, NULL));
}

static void on_pod(void *arg UNUSED, json_t *answer)
{
	const json_t *pod = json_object_get(answer, "pod");
	if (!pod)
		return;
	sim_trace("pod %s: %s %s", json_string_value(json_object_get(pod, "name")),
		  json_string_value(json_object_get(pod, "phase")),
		  json_string_value(json_object_get(pod, "reason")));
	world.result.pods += str_equal(json_string_value(json_object_get(pod, "phase")), "Running");
}

static void on_answer(void *arg UNUSED, json_t *answer UNUSED)
{
}

/* As the kubelet's process, whose code it is. */
struct asked {
	json_t *request;
	standin_answer_fn *fn;
};

static void ask_now(void *arg)
{
	struct asked asked = *(struct asked *)arg;
	free(arg);
	if (programs.standin && sim_effective())
		standin_request(programs.standin, asked.request, asked.fn, NULL);
	json_decref(asked.request);
}

static void ask_kubelet(json_t *request, standin_answer_fn *fn)
{
	if (!programs.kubelet.running) {
		json_decref(request);
		return;
	}
	struct asked *asked = mem_alloc(sizeof *asked);
	*asked = (struct asked){request, fn};
	sim_schedule(&programs.kubelet, 0, ask_now, asked)->is_work = true;
}

static void run_pod(const char *resource, uint64_t count, bool bound)
{
	char name[32];
	snprintf(name, sizeof name, "pod-%llu", (unsigned long long)++world.pods);
	sim_trace("run %s with %llu of %s", name, (unsigned long long)count, resource);
	ask_kubelet(json_pack("{s:s, s:s, s:s, s:I, s:b, s:b}", "verb", "run-pod", "name", name,
			      "resource", resource, "count", (json_int_t)count, "bound", bound,
			      "stubborn", sim_chance(4)),
		    on_pod);
}

static void delete_pod(uint64_t number)
{
	char name[32];
	snprintf(name, sizeof name, "pod-%llu", (unsigned long long)number);
	ask_kubelet(json_pack("{s:s, s:s}", "verb", "delete-pod", "name", name), on_answer);
}

void sim_world_pod_ends(const char *name, int64_t grace_s)
{
	ask_kubelet(json_pack("{s:s, s:s, s:I}", "verb", "delete-pod", "name", name, "graceSeconds",
			      (json_int_t)grace_s),
		    on_answer);
}

/* --- what goes wrong --- */

static void network_heals(void *arg UNUSED)
{
	sim_trace("the network is back");
	sim_rpc_cut_network(false);
}

static void network_breaks(void)
{
	bool apart = sim_below(2);
	sim_trace("the network %s", apart ? "is gone" : "drops its connections");
	sim_rpc_cut_network(apart);
	if (apart)
		sim_schedule(NULL, (int64_t)sim_below(60000), network_heals, NULL);
}

/* proves: GW-26 */
static void spec_comes_late(void)
{
	if (world.specs.count < 2)
		return;
	const struct buf *spec = &world.specs.items[sim_below(world.specs.count - 1)];
	if (sim_rpc_inject(METHOD_GATEWAY_CONNECT, spec->data, spec->length))
		sim_trace("an old Spec comes once more");
}

static void socket_vanishes(void)
{
	struct durable_names names = {0};
	struct error error;
	if (!durable_list(NODE_KUBELET "/device-plugins", 4096, &names, &error))
		return;
	for (size_t i = 0; i < names.count; i++) {
		CLEANUP(buf) struct buf path = {0};
		buf_printf(&path, NODE_KUBELET "/device-plugins/%s", names.names[i]);
		if (!str_starts(names.names[i], "bcd-") || !sim_fs_socket(buf_text(&path)))
			continue;
		sim_trace("%s is deleted", names.names[i]);
		if (!durable_remove(buf_text(&path), &error))
			sim_broken("%s", error.what);
		break;
	}
	durable_names_deinit(&names);
}

/* Bookings of the time between are forgotten, those that ended in it are back. What was sent before
 * has no way to come through the new process's streams. */
static void database_goes_back(void)
{
	if (sim_below(2) == 0) {
		sim_trace("a backup");
		programs_backup();
		return;
	}
	if (!programs_restore())
		return;
	sim_trace("the database is put back to its backup");
	specs_drop();
}

/* What is pending is lost, and nobody can say what it was. proves: REL-36 */
static void record_is_damaged(void)
{
	sim_trace("releasing.json is damaged");
	sim_process_kill(&programs.bcd, SIM_KILLED);
	sim_fs_put(NODE_DATA "/releasing.json", "{\"version\": 1, \"rel");
}

static void something_happens(void)
{
	static const char *const classes[] = {"gpu", "gpu", "gpu", "gpu.slot"};
	const char *class = classes[sim_below(ARRAY_SIZE(classes))];
	uint64_t what = sim_below(100);
	if (what < 22) {
		if (programs.control.running)
			reserve(class, 1 + sim_below(2), (int)(1 + sim_below(4)),
				sim_below(2) ? 0 : (int64_t)sim_below(180000));
	} else if (what < 36) {
		if (programs.control.running && world.reservations.count > 0)
			release(world.reservations.items[sim_below(world.reservations.count)]);
	} else if (what < 60) {
		char resource[32];
		snprintf(resource, sizeof resource, "bcd.dev/%s", class);
		run_pod(resource, 1 + sim_below(2), sim_below(4) == 0);
	} else if (what < 76) {
		if (world.pods > 0)
			delete_pod(1 + sim_below(world.pods));
	} else if (what < 80) {
		sim_process_kill(&programs.kubelet, SIM_KILLED);
	} else if (what < 84) {
		sim_process_kill(&programs.bcd, SIM_KILLED);
	} else if (what < 87) {
		sim_process_kill(&programs.control, SIM_KILLED);
	} else if (what < 89) {
		sim_machine_cut(&programs.node);
	} else if (what < 93) {
		network_breaks();
	} else if (what < 96) {
		spec_comes_late();
	} else if (what < 97) {
		record_is_damaged();
	} else {
		socket_vanishes();
	}
}

/* --- the calm: what must be true in the end --- */

static size_t holds_on_disk(void)
{
	struct durable_names names = {0};
	struct error error;
	size_t count = 0;
	if (!durable_list(NODE_CDI, 4096, &names, &error))
		return 0;
	for (size_t i = 0; i < names.count; i++)
		count += str_starts(names.names[i], "bcd.dev-");
	durable_names_deinit(&names);
	return count;
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

/* What the control plane says: devices that are to be bound, and allocations that aren't where they
 * should be. The first of those is named in `why`. */
struct booked {
	size_t devices, allocations, unsettled;
	char why[256];
};

static void reservation_look(const json_t *reservation, struct booked *booked)
{
	const json_t *allocations = json_object_get(reservation, "allocations");
	bool wanted = str_equal(text_of(reservation, "state"), "active"), bound = false;
	for (size_t i = 0; i < json_array_size(allocations); i++) {
		const json_t *allocation = json_array_get(allocations, i);
		const char *state = text_of(allocation, "state");
		if (wanted && str_equal(state, "bound")) {
			bound = true;
			booked->allocations++;
			booked->devices += json_array_size(json_object_get(allocation, "devices"));
		} else if (!str_equal(state, "released") && !str_equal(state, "failed") &&
			   booked->unsettled++ == 0) {
			snprintf(booked->why, sizeof booked->why, "%s of %s reservation %s is %s",
				 text_of(allocation, "id"), text_of(reservation, "state"),
				 text_of(reservation, "id"), state);
		}
	}
	if (wanted && !bound && booked->unsettled++ == 0)
		snprintf(booked->why, sizeof booked->why, "active reservation %s has nothing bound",
			 text_of(reservation, "id"));
}

static struct booked booked_look(void)
{
	struct booked booked = {0};
	vec_each (&world.reservations, char **id) {
		CLEANUP(tree) json_t *reservation = programs_look(control_reservation_get, *id);
		reservation_look(reservation, &booked);
	}
	return booked;
}

/* --- what is billed --- */

/* The rows of this allocation, which must stop at its end at the latest. */
static size_t rows_of(const json_t *rows, const char *allocation, const char *end)
{
	size_t found = 0;
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		if (!str_equal(text_of(row, "allocationId"), allocation))
			continue;
		found++;
		if (json_integer_value(json_object_get(row, "gpuSeconds")) > 0 &&
		    strcmp(text_of(row, "stoppedAt"), end) > 0)
			sim_broken("%s is billed until %s, it ended at %s", allocation,
				   text_of(row, "stoppedAt"), end);
	}
	return found;
}

/* One row for each allocation that is over, and none for others. */
static void bills_check(void)
{
	CLEANUP(tree) json_t *meter = programs_look(control_meter_list, NULL);
	const json_t *rows = json_object_get(meter, "items");
	vec_each (&world.reservations, char **id) {
		CLEANUP(tree) json_t *reservation = programs_look(control_reservation_get, *id);
		const json_t *allocations = json_object_get(reservation, "allocations");
		for (size_t i = 0; i < json_array_size(allocations); i++) {
			const json_t *allocation = json_array_get(allocations, i);
			const char *state = text_of(allocation, "state");
			bool over = str_equal(state, "released") || str_equal(state, "failed");
			size_t found = rows_of(rows, text_of(allocation, "id"),
					       text_of(reservation, "endAt"));
			if (found != over && !json_object_get(meter, "nextCursor"))
				sim_broken("%s is %s and has %zu rows on the meter",
					   text_of(allocation, "id"), state, found);
		}
	}
}

struct offered {
	int64_t capacity, allocatable;
};

static void on_node(void *arg, json_t *answer)
{
	struct offered *offered = arg;
	const char *name;
	json_t *counts;
	json_object_foreach(json_object_get(json_object_get(answer, "node"), "resources"), name,
			    counts)
	{
		offered->capacity += json_integer_value(json_object_get(counts, "capacity"));
		offered->allocatable += json_integer_value(json_object_get(counts, "allocatable"));
	}
}

/* Does the control plane know of the node what is true: all its GPUs, and nothing wrong with it? */
static bool node_is_well(char *why, size_t size)
{
	CLEANUP(tree) json_t *node = programs_look(control_node_get, programs.node_id);
	const json_t *conditions = json_object_get(node, "conditions");
	for (size_t i = 0; i < json_array_size(conditions); i++) {
		const json_t *condition = json_array_get(conditions, i);
		const char *type = text_of(condition, "type");
		/* What holds for every hosted node. */
		if (str_equal(type, "HostUnsupported"))
			continue;
		snprintf(why, size, "the node has condition %s: %s", type,
			 text_of(condition, "message"));
		return false;
	}
	size_t gpus = json_array_size(json_object_get(node, "gpus"));
	if (gpus != 4)
		snprintf(why, size, "the control plane knows %zu GPUs", gpus);
	return gpus == 4;
}

/* Is everything where it should be? `why` says what is not. */
static bool at_rest(char *why, size_t size)
{
	struct offered offered = {0};
	if (!programs.standin || !programs.bcd.running || !programs.control.running) {
		snprintf(why, size, "a program is away");
		return false;
	}
	CLEANUP(tree) json_t *request = json_pack("{s:s}", "verb", "node");
	standin_request(programs.standin, request, on_node, &offered);
	struct booked booked = booked_look();
	size_t holds = holds_on_disk();
	if (booked.unsettled > 0)
		snprintf(why, size, "%s", booked.why);
	else if (holds != booked.allocations)
		snprintf(why, size, "%zu holds on disk for %zu allocations", holds,
			 booked.allocations);
	else if ((size_t)offered.allocatable != booked.devices)
		snprintf(why, size, "the kubelet has %lld devices, %zu are booked",
			 (long long)offered.allocatable, booked.devices);
	else
		return node_is_well(why, size);
	return false;
}

static void phase_next(int phase)
{
	world.phase = phase;
	world.phase_until_ms = sim.now_ms + CALM_MS;
}

static void bookings_end(void)
{
	vec_each (&world.reservations, char **id) {
		CLEANUP(tree) json_t *reservation = programs_look(control_reservation_get, *id);
		if (str_equal(text_of(reservation, "state"), "active") ||
		    str_equal(text_of(reservation, "state"), "placed"))
			release(*id);
		else if (str_equal(text_of(reservation, "state"), "pending"))
			json_decref(programs_call(control_reservation_cancel, *id, NULL));
	}
}

static bool releases_on_disk(void)
{
	const struct buf *text = sim_fs_content(NODE_DATA "/releasing.json");
	CLEANUP(tree) json_t *record = NULL;
	struct error error;
	return text &&
	       (!tree_parse(text->data, text->length, 1 << 20, "releasing.json", &record, &error) ||
		json_array_size(json_object_get(record, "releases")) > 0);
}

static void calm_look(void *arg UNUSED)
{
	char why[256] = "";
	bool rests = at_rest(why, sizeof why);
	if (rests)
		bills_check();
	if (rests && world.phase == 1 && releases_on_disk()) {
		rests = false;
		snprintf(why, sizeof why, "releasing.json still has releases");
	}
	if (rests && world.phase == 0) {
		sim_trace("at rest with what is booked; now everything ends");
		bookings_end();
		phase_next(1);
	} else if (rests) {
		sim_trace("at rest with nothing");
		world.over = true;
	} else if (sim.now_ms > world.phase_until_ms) {
		sim_broken("no rest after %d s of calm (%s): %s", CALM_MS / 1000,
			   world.phase == 0 ? "with bookings" : "after everything ended", why);
		world.over = true;
	}
	if (!world.over)
		sim_schedule(NULL, LOOK_MS, calm_look, NULL);
}

static void calm_begins(void)
{
	sim_trace("calm");
	sim.calm = true;
	sim.crash_one_in = 0;
	sim_rpc_cut_network(false);
	phase_next(0);
	sim_schedule(NULL, LOOK_MS, calm_look, NULL);
}

static void on_op(void *arg UNUSED)
{
	if (world.ops_left-- == 0) {
		calm_begins();
		return;
	}
	if (world.options.restores && sim_below(10) == 0)
		database_goes_back();
	else if (world.options.sockets && sim_below(3) == 0)
		socket_vanishes();
	else
		something_happens();
	sim_schedule(NULL, (int64_t)sim_below(OP_EVERY_MS), on_op, NULL);
}

/* --- the story --- */

/* Every crash point of it ends in the same rest. proves: REL-3 REL-43 */
static void story_goes_on(void *arg UNUSED)
{
	/* Who tells the story waits for whom it needs. */
	if (!programs.control.running || !programs.standin) {
		sim_schedule(NULL, LOOK_MS, story_goes_on, NULL);
		return;
	}
	switch (world.phase++) {
	case 0:
		reserve("gpu", 2, 600, 0);
		break;
	case 1:
		run_pod("bcd.dev/gpu", 2, false);
		break;
	case 2:
		release(world.reservations.items[0]);
		break;
	case 3:
		reserve("gpu", 3, 600, 0);
		break;
	case 4:
		delete_pod(1);
		break;
	default:
		calm_begins();
		return;
	}
	sim_schedule(NULL, 40000, story_goes_on, NULL);
}

/* --- one run --- */

static void after_power_cut(void)
{
	static uint64_t boot;
	if (boot != programs.node.boot) {
		sim_processes_power_cut();
		invariants_no_pods();
	}
	boot = programs.node.boot;
}

static void world_begin(const struct world_options *options)
{
	sim.verbose = options->verbose;
	sim_begin(options->seed);
	memset(&world, 0, sizeof world);
	world.options = *options;
	world.ops_left = options->ops;
	world.outlived_before = sim_processes_outlived();
	sim.crash_kind = options->crash_kind;
	invariants_begin();
	programs_begin();
	/* From here on things may go wrong. */
	sim.steps = 0;
	sim.crash_at = options->crash_at;
	sim.crash_one_in = options->crash_one_in;
	sim_schedule(NULL, 10000, options->story ? story_goes_on : on_op, NULL);
}

static void world_end(void)
{
	world.result.steps = sim.steps;
	world.result.trace = sim.trace;
	world.result.time_ms = sim.now_ms;
	world.result.outlived = sim_processes_outlived() - world.outlived_before;
	world.result.ok = sim.broken[0] == '\0';
	str_copy(world.result.why, sizeof world.result.why, sim.broken);
	if (sim.verbose && !world.result.ok)
		bcd_show();
	world.result.deletions = sim_api_deletions();
	sim_end();
	sim_http_end();
	sim_api_end();
	programs_end();
	invariants_end();
	sim_processes_end();
	vec_each (&world.reservations, char **id)
		free(*id);
	vec_deinit(&world.reservations);
	specs_drop();
}

struct world_result world_run(const struct world_options *options)
{
	world_begin(options);
	while (!world.over && sim.broken[0] == '\0') {
		if (!sim_step())
			sim_broken("nothing is left to happen");
		after_power_cut();
		look();
		if (++world.result.events == STEP_LIMIT)
			sim_broken("no rest after %d events", STEP_LIMIT);
	}
	world_end();
	return world.result;
}
