#include "sim/sim_changes.h"

#include "base/utc.h"
#include "sim/programs.h"
#include "text/tree.h"

#include <stdio.h>

#define FORGETS_ONE_IN 8

/* What of a pod's object changes. */
struct shown {
	bool there, over, failed, deleting;
	int64_t deleted_ms, grace_s;
	char uid[SIM_POD_NAME_SIZE];
};

struct known {
	struct shown shown;
	json_t *object; /* NULL: it isn't there */
};

static struct {
	VEC(struct known) known; /* by the pod's number in sim_pods_all() */
	VEC(json_t *) events;    /* the last ones */
	int64_t version;         /* of the last */
} changes;

void sim_changes_end(void)
{
	vec_each (&changes.known, struct known * known)
		json_decref(known->object);
	vec_each (&changes.events, json_t * *event)
		json_decref(*event);
	vec_deinit(&changes.known);
	vec_deinit(&changes.events);
	changes.version = 0;
}

json_t *sim_changes_object(const struct sim_pod *object)
{
	struct wall now = sim_true_wall();
	char time[UTC_SIZE];
	json_t *metadata = json_pack("{s:s, s:s, s:s}", "uid", sim_pod_uid(object), "namespace",
				     "default", "name", object->name);

	if (object->deleting) {
		utc_format(time, (struct wall){now.ms - sim.now_ms + object->deleted_ms +
					       object->grace_s * 1000});
		tree_set(metadata, "deletionTimestamp", tree_string(time));
		tree_set(metadata, "deletionGracePeriodSeconds", json_integer(object->grace_s));
	}
	if (*object->mirror) {
		tree_set(metadata, "annotations",
			 json_pack("{s:s, s:s}", "kubernetes.io/config.mirror", object->uid,
				   "kubernetes.io/config.source", "http"));
		tree_set(metadata, "ownerReferences",
			 json_pack("[{s:s, s:s, s:s, s:b}]", "apiVersion", "v1", "kind", "Node",
				   "name", "node-1", "controller", 1));
	}
	if (object->finalizer)
		tree_set(metadata, "finalizers", json_pack("[s]", "example.com/waits"));
	return json_pack("{s:o, s:{s:s, s:I}, s:{s:s, s:[{s:s, s:{s:{}}}]}}", "metadata", metadata,
			 "spec", "nodeName", "node-1", "terminationGracePeriodSeconds",
			 (json_int_t)object->spec_s, "status", "phase",
			 object->over || object->failed ? "Failed" : "Running", "containerStatuses",
			 "name", "main", "state", object->over ? "terminated" : "running");
}

static struct shown show(const struct sim_pod *pod)
{
	struct shown shown;

	memset(&shown, 0, sizeof shown);
	if (pod->gone)
		return shown;
	shown.there = true;
	shown.over = pod->over;
	shown.failed = pod->failed;
	shown.deleting = pod->deleting;
	shown.deleted_ms = pod->deleted_ms;
	shown.grace_s = pod->grace_s;
	str_copy(shown.uid, sizeof shown.uid, sim_pod_uid(pod));
	return shown;
}

/* The object gets its version. */
static void tell(const char *type, json_t *object)
{
	char version[24];

	snprintf(version, sizeof version, "%lld", (long long)++changes.version);
	tree_set(json_object_get(object, "metadata"), "resourceVersion", tree_string(version));
	*vec_push(&changes.events) = json_pack("{s:s, s:O}", "type", type, "object", object);
	if (changes.events.count <= SIM_CHANGES_KEPT)
		return;
	json_decref(changes.events.items[0]);
	vec_remove(&changes.events, 0);
}

static void tell_deleted(const struct known *known, const struct sim_pod *pod)
{
	bool same = str_equal(known->shown.uid, sim_pod_uid(pod));
	CLEANUP(tree)
	json_t *last =
		same && sim_below(2) ? sim_changes_object(pod) : json_deep_copy(known->object);

	tell("DELETED", last);
}

static void look_at(struct known *known, const struct sim_pod *pod)
{
	struct shown shown = show(pod);
	bool another;

	if (memcmp(&shown, &known->shown, sizeof shown) == 0)
		return;
	another = !str_equal(shown.uid, known->shown.uid);
	if (known->object && another)
		tell_deleted(known, pod);
	json_decref(known->object);
	known->object = shown.there ? sim_changes_object(pod) : NULL;
	known->shown = shown;
	if (shown.there)
		tell(another ? "ADDED" : "MODIFIED", known->object);
}

void sim_changes_look(void)
{
	const struct sim_pods *pods = sim_pods_all();

	if (!programs.in_pod)
		return;
	while (changes.known.count < pods->count)
		(void)vec_push(&changes.known);
	for (size_t i = 0; i < pods->count; i++)
		look_at(&changes.known.items[i], pods->items[i]);
}

json_t *sim_changes_all(void)
{
	json_t *events = json_array();

	sim_changes_look();
	vec_each (&changes.known, const struct known *known)
		if (known->object)
			tree_append(events, json_pack("{s:s, s:O}", "type", "ADDED", "object",
						      known->object));
	return events;
}

int64_t sim_changes_version(void)
{
	return changes.version;
}

const json_t *sim_changes_after(int64_t version)
{
	int64_t first = changes.version - (int64_t)changes.events.count;

	if (version < first || version >= changes.version)
		return NULL;
	return changes.events.items[version - first];
}

bool sim_changes_forgot(int64_t version)
{
	return version < changes.version - (int64_t)changes.events.count ||
	       (version < changes.version && sim_chance(FORGETS_ONE_IN));
}
