#include "sim/sim_pods.h"

#include "base/id.h"
#include "node/core/holds.h"
#include "sim/kubelet.h"
#include "sim/programs.h"
#include "sim/sim_api.h"
#include "text/tree.h"

#include <stdio.h>

#define LATE_MS      100000 /* until a bad pod hears of its deletion */
#define FINALIZER_MS 70000
#define NEWCOMER_MS  80000
#define AGAIN_MS     15000 /* longer than a grace, which begins anew with it */
#define MIRROR_MS    1000
#define MANIFEST_MS  30000
#define GIVEN_UP_MS  200000

#define FINAL_MS   100   /* an object is there in its final phase for so long, */
#define FINAL_MORE 1900  /* and at most so much longer */
#define KILL_MS    4000  /* from the end of a grace to that of its processes, at most */
#define LOOKS_MS   6000  /* between two looks, 5 s, and what an answer takes */
#define STUCK_MS   90000 /* the same of one that its kubelet can't kill at once */
#define SHORT_S    2
#define ORPHAN_MS  12000 /* a kubelet that hears ends what it doesn't know, on a busy machine */

static struct {
	struct sim_pods all;
	uint64_t newcomers, mirrors, ran;
} pods;

void sim_pods_end(void)
{
	vec_each (&pods.all, struct sim_pod * *pod) {
		vec_each (&(*pod)->allocations, char **allocation)
			free(*allocation);
		vec_deinit(&(*pod)->allocations);
		free(*pod);
	}
	vec_deinit(&pods.all);
	pods.newcomers = pods.mirrors = pods.ran = 0;
}

uint64_t sim_pods_ran(void)
{
	return pods.ran;
}

bool sim_pods_runs(void)
{
	vec_each (&pods.all, struct sim_pod * *object)
		if ((*object)->runs && (*object)->has_run)
			return true;
	return false;
}

static struct sim_pod *by_uid(const char *uid)
{
	vec_each (&pods.all, struct sim_pod * *object)
		if (str_equal((*object)->uid, uid))
			return *object;
	return NULL;
}

/* The one that has the name now. */
const struct sim_pods *sim_pods_all(void)
{
	return &pods.all;
}

struct sim_pod *sim_pods_by_name(const char *name)
{
	vec_each (&pods.all, struct sim_pod * *object)
		if (!(*object)->gone && str_equal((*object)->name, name))
			return *object;
	return NULL;
}

bool sim_pods_is_gone(const char *name)
{
	vec_each (&pods.all, struct sim_pod * *object)
		if ((*object)->gone && str_equal((*object)->name, name))
			return true;
	return false;
}

bool sim_pods_knows(const char *uid)
{
	const struct sim_pod *object = by_uid(uid);

	return object && (object->runs || !object->gone);
}

static void note_asked(struct sim_pod *object)
{
	if (object->asked_ms == 0)
		object->asked_ms = sim.now_ms;
}

/* --- what lives on --- */

static bool lives(const struct sim_pod *object)
{
	return object->lives_until_ms > sim.now_ms;
}

bool sim_pods_outlived(void)
{
	vec_each (&pods.all, struct sim_pod * *object)
		if (lives(*object) && (*object)->lives_until_ms != INT64_MAX)
			return true;
	return false;
}

/* What the kubelet dropped: its object is gone, or its manifest. A deletion that the kubelet had heard of goes on; of
 * one that it hadn't, it never does. */
static int64_t ends_of_grace(const struct sim_pod *object)
{
	int64_t begun_ms = object->deleted_ms, heard_ms = kubelet_heard_ms();

	if (*object->mirror)
		return sim.now_ms + object->spec_s * 1000;
	if (object->orphan)
		return sim.now_ms + 1000;
	if (object->grace_s > 0 && object->heard_ms > 0)
		return (heard_ms > begun_ms ? heard_ms : begun_ms) + object->grace_s * 1000;
	return sim.now_ms + (sim_below(3) ? object->spec_s : SHORT_S) * 1000;
}

/* It came and went between two looks of bcd's (docs/internals/release.md). */
static bool was_overlooked(const struct sim_pod *object)
{
	return sim.now_ms - object->ran_ms < LOOKS_MS ||
	       sim.now_ms - programs.bcd.frozen_until_ms < LOOKS_MS;
}

static void mirror_is_gone(void *arg)
{
	struct sim_pod *object = arg;

	object->gone |= !object->runs;
}

/* Whoever removes a manifest may delete the mirror as well, with any grace: that isn't the pod's. */
static void delete_mirror(struct sim_pod *object)
{
	sim_trace("the mirror of %s is deleted", object->name);
	note_asked(object);
	object->deleting = true;
	object->deleted_ms = sim.now_ms;
	object->grace_s = 1;
	sim_schedule(NULL, MIRROR_MS, mirror_is_gone, object);
}

bool sim_pods_lives_on(const char *uid)
{
	struct sim_pod *object = by_uid(uid);
	int64_t until_ms;

	if (!object || object->lives_until_ms > 0)
		return object && lives(object);
	if (!(object->gone || *object->mirror) || object->finalizer || was_overlooked(object))
		return false;
	until_ms = ends_of_grace(object) + (int64_t)sim_below(KILL_MS);
	if (until_ms > sim.now_ms && sim_below(3) == 0)
		until_ms = sim.now_ms + (int64_t)sim_below((uint64_t)(until_ms - sim.now_ms));
	/* Its mirror stays until it is over, so that is known. */
	object->stuck = *object->mirror && !object->gone && programs.in_pod && sim_below(2);
	if (object->stuck)
		until_ms += (int64_t)sim_below(STUCK_MS);
	object->lives_until_ms = until_ms > sim.now_ms ? until_ms : sim.now_ms;
	if (lives(object))
		sim_trace("%s lives on for %lld ms", object->name,
			  (long long)(until_ms - sim.now_ms));
	if (lives(object) && *object->mirror && programs.in_pod && !object->stuck && sim_below(2))
		delete_mirror(object);
	return lives(object);
}

/* --- small things --- */

/* As the API server has it. */
const char *sim_pod_uid(const struct sim_pod *object)
{
	return *object->mirror ? object->mirror : object->uid;
}

static struct sim_pod *add(const char *uid, const char *name)
{
	static const int64_t graces[] = {1, 30, 600};
	struct sim_pod *object = mem_alloc(sizeof *object);

	*vec_push(&pods.all) = object;
	str_copy(object->uid, sizeof object->uid, uid);
	str_copy(object->name, sizeof object->name, name);
	object->spec_s = graces[programs.in_pod ? sim_below(ARRAY_SIZE(graces)) : 1];
	return object;
}

/* --- what the kubelet has --- */

static void note_device(struct sim_pod *object, const char *id)
{
	const char *allocation = holds_id_allocation(id);

	if (!allocation)
		return;
	vec_each (&object->allocations, char **known)
		if (str_equal(*known, allocation))
			return;
	*vec_push(&object->allocations) = mem_strdup(allocation);
}

/* The kubelet makes it; the UID is the API server's. */
static void make_mirror(struct sim_pod *object)
{
	snprintf(object->mirror, sizeof object->mirror, "mirror-%llu",
		 (unsigned long long)++pods.mirrors);
	object->gone = object->deleting = false;
}

static void give_habits(struct sim_pod *object)
{
	if (sim_chance(4))
		object->late_ms = (int64_t)sim_below(LATE_MS);
	if (!strchr(object->uid, '-')) /* as a kubelet makes them */
		make_mirror(object);
	else if (sim_chance(6))
		object->finalizer = true;
	object->stays = object->finalizer && sim_chance(3);
}

/* What is under way goes on, unless it is only said to be so. */
static void note_forced(struct sim_pod *object)
{
	if (object->deleting)
		return;
	object->deleting = true;
	object->deleted_ms = sim.now_ms;
	object->grace_s = 0;
}

static void note_pod(const json_t *pod)
{
	const char *uid = json_string_value(json_object_get(pod, "uid"));
	struct sim_pod *object = by_uid(uid);
	const json_t *device;
	size_t i;

	if (!object) {
		object = add(uid, json_string_value(json_object_get(pod, "name")));
		if (!str_equal(object->name, KUBELET_BCD))
			give_habits(object);
	}
	object->runs = true;
	object->lives_until_ms = 0;
	object->over = str_equal(json_string_value(json_object_get(pod, "phase")), "Failed");
	if (!object->has_run && json_array_size(json_object_get(pod, "devices")) > 0 &&
	    str_equal(json_string_value(json_object_get(pod, "phase")), "Running")) {
		object->has_run = true;
		object->ran_ms = sim.now_ms;
		pods.ran++;
	}
	json_array_foreach(json_object_get(pod, "devices"), i, device)
		note_device(object, json_string_value(json_object_get(device, "id")));
	if (!object->deleting && json_is_true(json_object_get(pod, "deleting"))) {
		object->deleting = true;
		object->deleted_ms = sim.now_ms;
		note_asked(object);
		object->grace_s = json_integer_value(json_object_get(pod, "graceMs")) / 1000;
	}
}

static void finalized(void *arg)
{
	struct sim_pod *object = arg;

	object->gone = true;
	kubelet_folders_go();
}

/* Its processes are over. The kubelet says so, and the object goes when its volumes have. */
static void ends_well(void *arg)
{
	struct sim_pod *object = arg;

	if (lives(object)) {
		if (object->lives_until_ms != INT64_MAX)
			sim_schedule(NULL, object->lives_until_ms - sim.now_ms, ends_well, object);
		return;
	}
	object->over = true;
	if (object->gone || object->stays)
		return;
	sim_schedule(NULL,
		     object->finalizer ? FINALIZER_MS : FINAL_MS + (int64_t)sim_below(FINAL_MORE),
		     finalized, object);
}

/* Who waits for the grace of a container is the kubelet. */
void sim_pods_kubelet_goes(void)
{
	vec_each (&pods.all, struct sim_pod * *object) {
		if (lives(*object))
			(*object)->lives_until_ms = INT64_MAX;
		/* Whoever collects the pods of nodes that are away. */
		if ((*object)->runs && programs.in_pod && !*(*object)->mirror && sim_below(2))
			(*object)->failed = true;
	}
}

static void set_lives(struct sim_pod *object, int64_t until_ms)
{
	object->lives_until_ms = until_ms;
	ends_well(object);
}

/* What it doesn't know it ends, and it takes back the mirrors of that. */
void sim_pods_kubelet_hears(void)
{
	vec_each (&pods.all, struct sim_pod * *object) {
		if ((*object)->gone && (*object)->runs && programs.in_pod) {
			(*object)->orphan = true;
			sim_world_pod_ends((*object)->name, 0);
		}
		if (lives(*object)) {
			(*object)->gone = true;
			set_lives(*object, sim.now_ms + 1 + (int64_t)sim_below(ORPHAN_MS));
		}
	}
}

void sim_pods_bcd_ends(void)
{
	vec_each (&pods.all, struct sim_pod * *object)
		(*object)->untold |=
			(*object)->has_run && sim.now_ms - (*object)->ran_ms < LOOKS_MS;
}

bool sim_pods_untold(const char *uid)
{
	const struct sim_pod *object = by_uid(uid);

	return object && object->untold;
}

void sim_pods_power_cut(void)
{
	vec_each (&pods.all, struct sim_pod * *object)
		if (lives(*object))
			set_lives(*object, sim.now_ms);
}

void sim_pods_seen(const json_t *list)
{
	const json_t *pod;
	size_t i;

	vec_each (&pods.all, struct sim_pod * *object) {
		bool there = false;

		json_array_foreach(list, i, pod) there =
			there ||
			str_equal(json_string_value(json_object_get(pod, "uid")), (*object)->uid);
		if ((*object)->runs && !there) {
			(*object)->runs = false;
			ends_well(*object);
		}
	}
	json_array_foreach(list, i, pod) note_pod(pod);
}

/* --- deletions --- */

/* Again and again until it is over: a kubelet that starts asks what it should run. */
static void ends(void *arg)
{
	struct sim_pod *object = arg;

	if (!object->runs)
		return;
	if (object->heard_s == object->told_s && object->heard_ms > 0 &&
	    sim.now_ms - object->heard_ms < AGAIN_MS)
		return; /* another deletion's turn comes: a grace that begins anew each time would have no end */
	object->heard_s = object->told_s;
	object->heard_ms = sim.now_ms;
	sim_world_pod_ends(object->name, object->told_s);
	sim_schedule(NULL, AGAIN_MS, ends, object);
}

/* Its mirror was deleted: that is all the kubelet hears of it. */
static void mirror_comes_back(void *arg)
{
	struct sim_pod *object = arg;

	if (!object->runs)
		return;
	if (!kubelet_is_well()) {
		sim_schedule(NULL, AGAIN_MS, mirror_comes_back, object);
		return;
	}
	make_mirror(object);
	sim_trace("%s has a new mirror, %s", object->name, object->mirror);
}

static void tell_kubelet(struct sim_pod *object, int64_t grace_s)
{
	if (*object->mirror) {
		sim_schedule(NULL, MIRROR_MS, mirror_comes_back, object);
		return;
	}
	object->told_s = grace_s;
	sim_schedule(NULL, object->late_ms, ends, object);
}

/* Whoever made the pod has made another of its name, and the old one ends. */
void sim_pod_newcomer_takes(struct sim_pod *old)
{
	char uid[SIM_POD_NAME_SIZE];
	struct sim_pod *object;

	snprintf(uid, sizeof uid, "newcomer-%llu", (unsigned long long)++pods.newcomers);
	sim_trace("%s is a newcomer's name now", old->name);
	old->gone = true;
	tell_kubelet(old, 0);
	object = add(uid, old->name);
	object->newcomer = true;
	sim_schedule(NULL, NEWCOMER_MS, finalized, object);
}

/* A grace that is running is only ever shortened. */
static void delete_with(struct sim_pod *object, int64_t grace_s)
{
	if (object->deleting && object->grace_s <= grace_s)
		return;
	sim_trace("somebody deletes %s with %lld s", object->name, (long long)grace_s);
	object->deleting = true;
	object->deleted_ms = sim.now_ms;
	object->grace_s = grace_s;
	tell_kubelet(object, grace_s);
}

void sim_pods_force_one(void)
{
	vec_each (&pods.all, struct sim_pod * *object)
		if ((*object)->runs && (*object)->has_run && !*(*object)->mirror) {
			sim_pods_force((*object)->name);
			return;
		}
}

/* By somebody who doesn't wait for the kubelet. */
void sim_pods_force(const char *name)
{
	struct sim_pod *object = sim_pods_by_name(name);

	/* Nothing would tell of one that is stuck. */
	if (!object || object->newcomer || object->stuck || sim_api_is_away())
		return;
	note_asked(object);
	if (object->spec_s > SHORT_S && !*object->mirror && sim_below(3) == 0) {
		delete_with(object, 1 + (int64_t)sim_below((uint64_t)object->spec_s));
		return;
	}
	sim_trace("somebody deletes %s by force", name);
	note_forced(object);
	object->gone = !object->finalizer;
	tell_kubelet(object, 0);
}

/* Who looks at what bcd says removes what only that can end. */
static void manifest_goes(void *arg)
{
	struct sim_pod *object = arg;

	sim_trace("the manifest of %s is removed", object->name);
	object->told_s = 0;
	ends(object);
}

void sim_pod_delete(struct sim_pod *object, int64_t grace_s)
{
	note_asked(object);
	if (grace_s == 0 && *object->mirror)
		sim_schedule(NULL, MANIFEST_MS, manifest_goes, object);
	if (!object->deleting) {
		object->deleting = true;
		object->deleted_ms = sim.now_ms;
		object->grace_s = grace_s;
	}
	if (grace_s == 0 && !object->finalizer)
		object->gone = true;
	if (object->gone && object->stuck && lives(object)) /* nothing would tell of it */
		object->lives_until_ms = sim.now_ms;
	tell_kubelet(object, grace_s);
}

/* bcd says that it waits for it, and nobody but its owner ends a pod that the kubelet gave nothing; in a pod, a static one. */
static void is_given_up(void *arg)
{
	struct sim_pod *object = arg;

	if (object->runs)
		sim_trace("%s is given up by its owner", object->name);
	object->told_s = 0;
	ends(object);
}

void sim_pods_devices_forgotten(void)
{
	vec_each (&pods.all, struct sim_pod * *object)
		if ((*object)->runs && (*object)->has_run &&
		    (!programs.in_pod || *(*object)->mirror))
			sim_schedule(NULL, (int64_t)sim_below(GIVEN_UP_MS), is_given_up, *object);
}
