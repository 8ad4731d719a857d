#include "sim/sim_api.h"

#include "base/id.h"
#include "kube/core/event.h"
#include "node/core/holds.h"
#include "sim/programs.h"
#include "sim/sim_fs.h"
#include "sys/clock.h"
#include "text/tree.h"

#include <stdio.h>

#define NAME_SIZE    64
#define LATE_MS      150000 /* until a bad pod hears of its deletion */
#define FINALIZER_MS 100000
#define NEWCOMER_MS  120000
#define MINUTE_MS    60000
#define AGAIN_MS     15000 /* longer than a grace, which begins anew with it */

struct object {
	char uid[NAME_SIZE], name[NAME_SIZE];
	VEC(char *) allocations; /* whose devices it has had */
	bool newcomer;           /* under an old name, holds nothing */
	bool finalizer, gone;    /* gone: the API server has it no more */
	bool runs;               /* the kubelet has it */
	bool deleting;
	int64_t deleted_ms, grace_s; /* of the gentlest deletion that is under way */
	int64_t late_ms;             /* the kubelet hears of a deletion so much later */
	int64_t told_s;              /* the grace that it hears of */
};

static struct {
	VEC(struct object *) objects;
	uint64_t deletions, newcomers;
} api;

void sim_api_end(void)
{
	vec_each (&api.objects, struct object * *object) {
		vec_each (&(*object)->allocations, char **allocation)
			free(*allocation);
		vec_deinit(&(*object)->allocations);
		free(*object);
	}
	vec_deinit(&api.objects);
	api.deletions = api.newcomers = 0;
}

uint64_t sim_api_deletions(void)
{
	return api.deletions;
}

static struct object *by_uid(const char *uid)
{
	vec_each (&api.objects, struct object * *object)
		if (str_equal((*object)->uid, uid))
			return *object;
	return NULL;
}

/* The one that has the name now. */
static struct object *by_name(const char *name)
{
	vec_each (&api.objects, struct object * *object)
		if (!(*object)->gone && str_equal((*object)->name, name))
			return *object;
	return NULL;
}

static struct object *add(const char *uid, const char *name)
{
	struct object *object = mem_alloc(sizeof *object);

	*vec_push(&api.objects) = object;
	str_copy(object->uid, sizeof object->uid, uid);
	str_copy(object->name, sizeof object->name, name);
	return object;
}

/* --- what the kubelet has --- */

static void note_device(struct object *object, const char *id)
{
	const char *allocation = holds_id_allocation(id);

	if (!allocation)
		return;
	vec_each (&object->allocations, char **known)
		if (str_equal(*known, allocation))
			return;
	*vec_push(&object->allocations) = mem_strdup(allocation);
}

static void note_pod(const json_t *pod)
{
	const char *uid = json_string_value(json_object_get(pod, "uid"));
	struct object *object = by_uid(uid);
	const json_t *device;
	size_t i;

	if (!object) {
		object = add(uid, json_string_value(json_object_get(pod, "name")));
		if (sim_chance(4))
			object->late_ms = (int64_t)sim_below(LATE_MS);
		object->finalizer = sim_chance(6);
	}
	object->runs = true;
	json_array_foreach(json_object_get(pod, "devices"), i, device)
		note_device(object, json_string_value(json_object_get(device, "id")));
	if (!object->deleting && json_is_true(json_object_get(pod, "deleting"))) {
		object->deleting = true;
		object->deleted_ms = sim.now_ms;
		object->grace_s = json_integer_value(json_object_get(pod, "graceMs")) / 1000;
	}
}

static void finalized(void *arg)
{
	struct object *object = arg;

	object->gone = true;
}

void sim_api_pods(const json_t *pods)
{
	const json_t *pod;
	size_t i;

	vec_each (&api.objects, struct object * *object) {
		bool there = false;

		json_array_foreach(pods, i, pod) there =
			there ||
			str_equal(json_string_value(json_object_get(pod, "uid")), (*object)->uid);
		if ((*object)->runs && !there) {
			(*object)->runs = false;
			if ((*object)->finalizer)
				sim_schedule(NULL, FINALIZER_MS, finalized, *object);
			else
				(*object)->gone = true;
		}
	}
	json_array_foreach(pods, i, pod) note_pod(pod);
}

/* --- deletions --- */

/* Again and again until it is over: a kubelet that starts asks what it should run. */
static void kubelet_hears(void *arg)
{
	struct object *object = arg;

	if (!object->runs)
		return;
	sim_world_pod_ends(object->name, object->told_s);
	sim_schedule(NULL, AGAIN_MS, kubelet_hears, object);
}

static void tell_kubelet(struct object *object, int64_t grace_s)
{
	object->told_s = grace_s;
	sim_schedule(NULL, object->late_ms, kubelet_hears, object);
}

/* Whoever made the pod has made another of its name, and the old one ends. */
static void newcomer_takes(struct object *old)
{
	char uid[NAME_SIZE];
	struct object *object;

	snprintf(uid, sizeof uid, "newcomer-%llu", (unsigned long long)++api.newcomers);
	sim_trace("%s is a newcomer's name now", old->name);
	old->gone = true;
	tell_kubelet(old, 0);
	object = add(uid, old->name);
	object->newcomer = true;
	sim_schedule(NULL, NEWCOMER_MS, finalized, object);
}

static bool is_bound(const char *allocation)
{
	CLEANUP(buf) struct buf path = {0};

	buf_printf(&path, NODE_CDI "/bcd.dev-%s.json", allocation);
	return sim_fs_exists(buf_text(&path));
}

/* proves: REL-25 REL-51 */
static void check_deletion(const struct object *object, int64_t grace_s)
{
	bool released = false;

	vec_each (&object->allocations, char **allocation)
		released = released || !is_bound(*allocation);
	if (object->newcomer)
		sim_broken("a newcomer of the name %s was deleted", object->name);
	else if (!released)
		sim_broken("pod %s was deleted, all it holds is bound", object->name);
	if (grace_s == 0 &&
	    !(object->deleting && sim.now_ms - object->deleted_ms >= MINUTE_MS - 1000))
		sim_broken("pod %s was deleted by force before its minute was over", object->name);
}

static json_t *status_of(const char *reason)
{
	return json_pack("{s:s, s:s, s:s, s:s}", "kind", "Status", "apiVersion", "v1", "reason",
			 reason, "message", "simulated");
}

static int answer_delete(const char *name, const json_t *body, json_t **ret_body)
{
	struct object *object = by_name(name);
	const char *uid =
		json_string_value(json_object_get(json_object_get(body, "preconditions"), "uid"));
	int64_t grace_s = json_integer_value(json_object_get(body, "gracePeriodSeconds"));

	if (object && !object->newcomer && object->runs && sim_chance(6)) {
		newcomer_takes(object);
		object = by_name(name);
	}
	if (!object) {
		*ret_body = status_of("NotFound");
		return 404;
	}
	if (uid && !str_equal(uid, object->uid)) {
		*ret_body = status_of("Conflict");
		return 409;
	}
	check_deletion(object, grace_s);
	sim_trace("pod %s is deleted, grace %lld s", name, (long long)grace_s);
	api.deletions++;
	if (!object->deleting) {
		object->deleting = true;
		object->deleted_ms = sim.now_ms;
		object->grace_s = grace_s;
	}
	if (grace_s == 0 && !object->finalizer)
		object->gone = true;
	tell_kubelet(object, grace_s);
	*ret_body = json_pack("{s:s}", "kind", "Pod");
	return 200;
}

/* --- the list --- */

static json_t *object_json(const struct object *object)
{
	struct wall now = clock_wall();
	char time[KUBE_TIME_SIZE];
	json_t *metadata = json_pack("{s:s, s:s, s:s}", "uid", object->uid, "namespace", "default",
				     "name", object->name);

	if (object->deleting) {
		kube_time_format((struct wall){now.ms - sim.now_ms + object->deleted_ms +
					       object->grace_s * 1000},
				 time);
		tree_set(metadata, "deletionTimestamp", tree_string(time));
		tree_set(metadata, "deletionGracePeriodSeconds", json_integer(object->grace_s));
	}
	return json_pack("{s:o}", "metadata", metadata);
}

static int answer_list(json_t **ret_body)
{
	json_t *items = json_array();

	vec_each (&api.objects, struct object * *object)
		if (!(*object)->gone)
			tree_append(items, object_json(*object));
	*ret_body = json_pack("{s:s, s:{}, s:o}", "kind", "PodList", "metadata", "items", items);
	return 200;
}

int sim_api_answer(const char *method, const char *path, const json_t *body, json_t **ret_body)
{
	static const char pods[] = "/api/v1/namespaces/default/pods/";

	if (str_equal(method, "GET") && str_starts(path, "/api/v1/pods?"))
		return answer_list(ret_body);
	if (str_equal(method, "DELETE") && str_starts(path, pods))
		return answer_delete(path + strlen(pods), body, ret_body);
	if (!strstr(path, "/events"))
		sim_broken("the API server is asked for %s %s", method, path);
	*ret_body = json_object();
	return 201;
}
