#include "sim/calm.h"

#include "control/core/timestamp.h"
#include "node/core/unlisted.h"
#include "sim/kubelet.h"
#include "sim/people.h"
#include "sim/programs.h"
#include "sim/sim_fs.h"
#include "sim/sim_pods.h"
#include "sim/trouble.h"
#include "standin/standin.h"
#include "sys/clock.h"
#include "sys/durable.h"
#include "text/tree.h"

#include <stdio.h>

#define CALM_MS  600000 /* everything must be at rest after at most so long */
#define GRACE_MS 660000 /* the longest grace that a pod has, and what is waited beyond it */
#define ENDS_MS  60000
#define LOOK_MS  5000 /* how often that is looked at */

static struct {
	bool restores, over;
	int phase;
	int64_t phase_ms, phase_until_ms;
	uint64_t ran; /* pods, up to the last look */
} calm;

void calm_prepare(void)
{
	memset(&calm, 0, sizeof calm);
}

bool calm_is_over(void)
{
	return calm.over;
}

/* --- what is booked --- */

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

/* It begins later: made while the clock was wrong, perhaps in a day. */
static bool is_to_come(const json_t *reservation)
{
	char now[TIMESTAMP_SIZE];
	timestamp_format(now, clock_wall());
	return str_equal(text_of(reservation, "state"), "placed") &&
	       strcmp(text_of(reservation, "startAt"), now) > 0;
}

/* It was bound when the backup was made, and when the node was told to bind it anew it couldn't: people are
 * told of it. */
static bool is_degraded(const json_t *reservation)
{
	const json_t *condition;
	size_t i;
	json_array_foreach(json_object_get(reservation, "conditions"), i, condition)
	{
		if (calm.restores && str_equal(text_of(condition, "reason"), "BindingLost"))
			return true;
	}
	return false;
}

/* True when it is over, with all that it had: nothing becomes of it any more. */
static bool reservation_look(const json_t *reservation, struct booked *booked)
{
	const json_t *allocations = json_object_get(reservation, "allocations");
	const char *is = text_of(reservation, "state");
	bool wanted = str_equal(is, "active"), bound = false, over = true;
	for (size_t i = 0; i < json_array_size(allocations); i++) {
		const json_t *allocation = json_array_get(allocations, i);
		const char *state = text_of(allocation, "state");
		bool ended = str_equal(state, "released") || str_equal(state, "failed");
		over = over && ended;
		if (wanted && str_equal(state, "bound")) {
			bound = true;
			if (is_degraded(reservation))
				continue;
			booked->allocations++;
			booked->devices += json_array_size(json_object_get(allocation, "devices"));
		} else if (!ended && !is_to_come(reservation) && booked->unsettled++ == 0) {
			snprintf(booked->why, sizeof booked->why, "%s of %s reservation %s is %s",
				 text_of(allocation, "id"), text_of(reservation, "state"),
				 text_of(reservation, "id"), state);
		}
	}
	if (wanted && !bound && booked->unsettled++ == 0)
		snprintf(booked->why, sizeof booked->why, "active reservation %s has nothing bound",
			 text_of(reservation, "id"));
	return over && !wanted && !str_equal(is, "pending") && !str_equal(is, "placed");
}

static struct booked booked_look(void)
{
	struct booked booked = {0};
	vec_each (&people.bookings, struct booking * booking) {
		if (booking->over)
			continue;
		CLEANUP(tree)
		json_t *reservation = programs_look(control_reservation_get, booking->id);
		booking->over = reservation_look(reservation, &booked);
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
void calm_check_bills(void)
{
	CLEANUP(tree) json_t *meter = programs_look(control_meter_list, NULL);
	const json_t *rows = json_object_get(meter, "items");
	vec_each (&people.bookings, struct booking * booking) {
		CLEANUP(tree)
		json_t *reservation = programs_look(control_reservation_get, booking->id);
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

/* --- what the node offers --- */

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

/* All its GPUs are known, too. */
bool calm_node_is_well(char *why, size_t size)
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

static bool all_serve(void)
{
	for (int i = 0; i < programs.replicas; i++)
		if (!programs.control[i].running ||
		    programs.control[i].frozen_until_ms > sim.now_ms)
			return false;
	return true;
}

bool calm_is_settled(char *why, size_t size)
{
	struct offered offered = {0};
	if (!programs.standin || !programs.bcd.running || !all_serve()) {
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
		return true;
	return false;
}

bool calm_at_rest(char *why, size_t size)
{
	return calm_is_settled(why, size) && calm_node_is_well(why, size);
}

/* --- until it rests --- */

/* In a pod a release may wait for a grace that is known. */
static void phase_next(int phase)
{
	calm.phase = phase;
	calm.phase_ms = sim.now_ms;
	calm.phase_until_ms = sim.now_ms + CALM_MS + (programs.in_pod ? GRACE_MS : 0);
	calm.ran = sim_pods_ran();
}

static json_t *read_record(void)
{
	const struct buf *text = sim_fs_content(NODE_DATA "/releasing.json");
	json_t *record = NULL;
	struct error error;
	if (text &&
	    !tree_parse(text->data, text->length, 1 << 20, "releasing.json", &record, &error))
		record = json_pack("{s:[n]}", "releases");
	return record;
}

bool calm_has_releases(void)
{
	CLEANUP(tree) json_t *record = read_record();
	return json_array_size(json_object_get(record, "releases")) > 0;
}

/* A release names one of whom bcd had no time to record more than that he has its devices. */
static bool waits_for_untold(const json_t *record)
{
	const json_t *release, *pod;
	size_t i, k;
	json_array_foreach(json_object_get(record, "releases"), i, release)
	{
		json_array_foreach(json_object_get(release, "pods"), k, pod)
		{
			if (sim_pods_untold(json_string_value(pod)))
				return true;
		}
	}
	return false;
}

/* And for an hour, while a pod is on record that no list ever had, or the record was lost. */
static void follow_unknown(void)
{
	CLEANUP(tree) json_t *record = read_record();
	/* What is known then counts as before. */
	int64_t until_ms = sim.now_ms + CALM_MS + GRACE_MS;
	bool unknown = programs.in_pod && (waits_for_untold(record) ||
					   sim_fs_exists(NODE_DATA "/releasing.unreadable"));
	const json_t *user;
	size_t i;
	json_array_foreach(json_object_get(record, "users"), i, user) unknown |=
		!json_object_get(user, "graceSeconds");
	if (unknown && until_ms > calm.phase_until_ms &&
	    sim.now_ms < calm.phase_ms + CALM_MS + GRACE_MS + UNLISTED_UNKNOWN_S * 1000)
		calm.phase_until_ms = until_ms;
}

/* And for a second grace, of who began to run only when the first was over. */
static void follow_late(void)
{
	int64_t until_ms = sim.now_ms + CALM_MS + GRACE_MS;

	if (programs.in_pod && sim_pods_ran() > calm.ran && until_ms > calm.phase_until_ms &&
	    sim.now_ms < calm.phase_ms + CALM_MS + GRACE_MS)
		calm.phase_until_ms = until_ms;
	calm.ran = sim_pods_ran();
}

/* On a machine a release waits for a pod that runs with a device of which its kubelet says nothing, for as long as
 * nobody ends the pod: bcd doesn't, as the kubelet must say who has the device. In a pod it does. */
static void somebody_ends_the_pods(void *arg UNUSED)
{
	for (uint64_t i = 1; i <= people.pods; i++)
		people_delete_pod(i);
	if (!calm.over)
		sim_schedule(NULL, ENDS_MS, somebody_ends_the_pods, NULL);
}

static void calm_look(void *arg UNUSED)
{
	char why[256] = "";
	bool rests = calm_at_rest(why, sizeof why);
	follow_unknown();
	follow_late();
	if (rests)
		calm_check_bills();
	if (rests && calm.phase == 1 && calm_has_releases()) {
		rests = false;
		snprintf(why, sizeof why, "releasing.json still has releases");
	}
	if (rests && calm.phase == 0) {
		sim_trace("at rest with what is booked; now everything ends");
		people_release_all();
		phase_next(1);
	} else if (rests) {
		sim_trace("at rest with nothing");
		calm.over = true;
	} else if (sim.now_ms > calm.phase_until_ms) {
		sim_broken("no rest after %lld s of calm (%s): %s",
			   (long long)(sim.now_ms - calm.phase_ms) / 1000,
			   calm.phase == 0 ? "with bookings" : "after everything ended", why);
		calm.over = true;
	}
	if (!calm.over) {
		if (!rests)
			sim_trace("no rest yet: %s", why);
		sim_schedule(NULL, LOOK_MS, calm_look, NULL);
	}
}

void calm_begin(bool restores)
{
	calm.restores = restores;
	sim_trace("calm");
	sim.calm = true;
	sim.crash_one_in = 0;
	trouble_ends();
	phase_next(0);
	if (kubelet_has_forgotten() && !programs.in_pod)
		sim_schedule(NULL, ENDS_MS, somebody_ends_the_pods, NULL);
	sim_schedule(NULL, LOOK_MS, calm_look, NULL);
}
