#include "standin/pods.h"

#include "text/tree.h"

#define PODS_VERSION 1
#define POD_MAX_NAME 253

static const char *const phase_names[] = {
	/* A pod whose container can't be made is Pending too; its reason tells them apart. */
	[POD_PENDING] = "Pending",
	[POD_WAITING] = "Pending",
	[POD_RUNNING] = "Running",
	[POD_FAILED] = "Failed",
};
static const char *const stored_names[] = {
	[POD_PENDING] = "pending",
	[POD_WAITING] = "waiting",
	[POD_RUNNING] = "running",
	[POD_FAILED] = "failed",
	NULL,
};

const char *pod_phase_name(enum pod_phase phase)
{
	return phase_names[phase];
}

static void pod_deinit(struct pod *pod)
{
	free(pod->namespace);
	free(pod->name);
	free(pod->uid);
	free(pod->container);
	free(pod->resource);
	free(pod->reason);
	free(pod->message);
	json_decref(pod->env);
	json_decref(pod->seen);
}

void pods_deinit(struct pods *pods)
{
	vec_each (&pods->list, struct pod * pod)
		pod_deinit(pod);
	vec_deinit(&pods->list);
}

bool pod_active(const struct pod *pod)
{
	return pod->phase == POD_WAITING || pod->phase == POD_RUNNING;
}

void pod_set(struct pod *pod, enum pod_phase phase, const char *reason, const char *message)
{
	free(pod->reason);
	free(pod->message);
	pod->phase = phase;
	pod->reason = mem_strdup(reason);
	pod->message = mem_strdup(message);
}

struct pod *pods_find(const struct pods *pods, const char *namespace, const char *name)
{
	vec_each (&pods->list, struct pod * pod)
		if (str_equal(pod->namespace, namespace) && str_equal(pod->name, name))
			return pod;
	return NULL;
}

struct pod *pods_by_uid(const struct pods *pods, const char *uid)
{
	vec_each (&pods->list, struct pod * pod)
		if (str_equal(pod->uid, uid))
			return pod;
	return NULL;
}

void pods_remove(struct pods *pods, struct pod *pod)
{
	size_t index = (size_t)(pod - pods->list.items);
	pod_deinit(pod);
	vec_remove(&pods->list, index);
}

/* --- from JSON --- */

static bool env_check(json_t *env, struct error *error)
{
	const char *key;
	json_t *value;
	json_object_foreach(env, key, value) if (!json_is_string(value)) return error_field(
		error, "env", "'%s' is not a text", key);
	return true;
}

/* `pod` is empty; what it holds after a failure is the caller's to free. */
static bool pod_parse(json_t *from, struct pod *pod, struct error *error)
{
	const char *namespace = "default", *name, *container = "main", *resource = NULL;
	int64_t count = 0;
	json_t *env = NULL;
	if (!tree_opt_string(from, "namespace", "", POD_MAX_NAME, &namespace, error) ||
	    !tree_get_string(from, "name", "", POD_MAX_NAME, &name, error) ||
	    !tree_opt_string(from, "container", "", POD_MAX_NAME, &container, error) ||
	    !tree_opt_string(from, "resource", "", 2 * POD_MAX_NAME, &resource, error) ||
	    !tree_opt_int(from, "count", "", 0, PODS_MAX_COUNT, &count, error) ||
	    !tree_opt_bool(from, "bound", "", &pod->bound, error) ||
	    !tree_opt_bool(from, "stubborn", "", &pod->stubborn, error) ||
	    !tree_opt_object(from, "env", "", &env, error) || !env_check(env, error))
		return false;
	if ((count > 0) != (resource != NULL))
		return error_field(error, "count", "resource and count go together");
	pod->namespace = mem_strdup(namespace);
	pod->name = mem_strdup(name);
	pod->container = mem_strdup(container);
	pod->resource = mem_strdup(resource ? resource : "");
	pod->count = (size_t)count;
	pod->env = env ? json_incref(env) : json_object();
	return true;
}

bool pods_add(struct pods *pods, json_t *request, const char *uid, struct pod **ret_pod,
	      struct error *error)
{
	struct pod pod = {0};
	bool ok = pod_parse(request, &pod, error);
	if (ok && pods_find(pods, pod.namespace, pod.name))
		ok = error_set(error, ERROR_CONFLICT, "pod '%s' in namespace '%s' exists already",
			       pod.name, pod.namespace);
	if (ok && pods->list.count >= PODS_MAX)
		ok = error_set(error, ERROR_RESOURCES_EXHAUSTED, "there are %d pods already",
			       PODS_MAX);
	if (!ok) {
		pod_deinit(&pod);
		return false;
	}
	pod.uid = mem_strdup(uid);
	pod_set(&pod, POD_PENDING, "Unscheduled", "not looked at yet");
	*vec_push(&pods->list) = pod;
	*ret_pod = &pods->list.items[pods->list.count - 1];
	return true;
}

static bool stored_parse(json_t *from, struct pod *pod, struct error *error)
{
	const char *uid, *reason, *message;
	size_t phase;
	json_t *seen = NULL;
	if (!pod_parse(from, pod, error) ||
	    !tree_get_string(from, "uid", "", POD_MAX_NAME, &uid, error) ||
	    !tree_get_choice(from, "phase", "", stored_names, &phase, error) ||
	    !tree_get_text(from, "reason", "", PODS_MAX_SIZE, &reason, error) ||
	    !tree_get_text(from, "message", "", PODS_MAX_SIZE, &message, error) ||
	    !tree_opt_object(from, "seen", "", &seen, error) ||
	    !tree_get_bool(from, "deleting", "", &pod->deleting, error) ||
	    !tree_get_int(from, "graceMs", "", 0, INT32_MAX, &pod->grace_ms, error))
		return false;
	pod->uid = mem_strdup(uid);
	pod->seen = json_incref(seen);
	pod_set(pod, (enum pod_phase)phase, reason, message);
	return true;
}

static bool list_parse(json_t *root, struct pods *pods, struct error *error)
{
	int64_t version;
	const char *boot;
	json_t *list, *item;
	if (!tree_get_int(root, "version", "", PODS_VERSION, PODS_VERSION, &version, error) ||
	    !tree_get_text(root, "bootId", "", PODS_BOOT_SIZE - 1, &boot, error) ||
	    !tree_get_array(root, "pods", "", PODS_MAX, &list, error))
		return false;
	str_copy(pods->boot, sizeof pods->boot, boot);
	for (size_t i = 0; i < json_array_size(list); i++)
		if (!tree_item_object(list, i, "pods", "", &item, error) ||
		    !stored_parse(item, vec_push(&pods->list), error))
			return false;
	return true;
}

bool pods_parse(const void *data, size_t length, struct pods *pods, struct error *error)
{
	assert(pods->list.count == 0);
	CLEANUP(tree) json_t *root = NULL;
	if (tree_parse(data, length, PODS_MAX_SIZE, "standin-pods.json", &root, error) &&
	    list_parse(root, pods, error))
		return true;
	pods_deinit(pods);
	*pods = (struct pods){0};
	return false;
}

/* --- to JSON --- */

static json_t *pod_pack(const struct pod *pod, const char *phase)
{
	json_t *json = json_pack(
		"{s:s, s:s, s:s, s:s, s:I, s:O, s:s, s:s, s:o, s:b, s:b, s:b, s:I}", "namespace",
		pod->namespace, "name", pod->name, "uid", pod->uid, "container", pod->container,
		"count", (json_int_t)pod->count, "env", pod->env, "phase", phase, "reason",
		pod->reason, "message", tree_string(pod->message), "bound", pod->bound, "stubborn",
		pod->stubborn, "deleting", pod->deleting, "graceMs", (json_int_t)pod->grace_ms);
	if (pod->count > 0)
		tree_set(json, "resource", tree_string(pod->resource));
	if (pod->seen)
		tree_set(json, "seen", json_incref(pod->seen));
	return json;
}

json_t *pod_to_json(const struct pod *pod)
{
	return pod_pack(pod, phase_names[pod->phase]);
}

void pods_format(const struct pods *pods, struct buf *out)
{
	json_t *list = json_array();
	vec_each (&pods->list, const struct pod *pod)
		tree_append(list, pod_pack(pod, stored_names[pod->phase]));
	CLEANUP(tree)
	json_t *root = json_pack("{s:i, s:s, s:o}", "version", PODS_VERSION, "bootId", pods->boot,
				 "pods", list);
	tree_dump_pretty(out, root);
}
