#include "standin/admission.h"

#include "proto/message.h"
#include "standin/cdi.h"

#include <stdio.h>

MESSAGE_TYPE(container_response, V1beta1__ContainerAllocateResponse,
	     v1beta1__container_allocate_response)

struct admission {
	struct registration *registration;
	struct manager *manager;
	struct pods *pods;
	const struct manager_ids *cdi;
	const struct admission_handlers *handlers;
	void *arg;
	char *uid;                    /* the pod that a plugin is asked about; NULL: none */
	struct manager_ids available; /* for that pod */
	struct manager_ids chosen;
	bool closed;
};

size_t admission_requested(const struct pods *pods, const char *resource)
{
	size_t requested = 0;
	vec_each (&pods->list, const struct pod *pod)
		if (pod_active(pod) && str_equal(pod->resource, resource))
			requested += pod->count;
	return requested;
}

void admission_forget(struct manager *manager, const struct pods *pods)
{
	for (size_t i = 0; i < manager->holds.count && !pods->unheard;) {
		CLEANUP(free) char *pod = mem_strdup(manager->holds.items[i].pod);

		if (pods_by_uid(pods, pod))
			i++;
		else
			manager_pod_remove(manager, pod);
	}
}

static struct manager_hold *hold_of(struct admission *admission, const struct pod *pod)
{
	return manager_hold_find(admission->manager, pod->uid, pod->container, pod->resource);
}

static void decide(struct admission *admission, struct pod *pod, enum pod_phase phase,
		   const char *reason, const char *message)
{
	if (pod->phase == phase && str_equal(pod->reason, reason) &&
	    str_equal(pod->message, message))
		return;
	pod_set(pod, phase, reason, message);
	admission->handlers->on_decided(admission->arg, pod);
}

/* --- the runtime's part --- */

static json_t *seen_create(const struct pod *pod,
			   const V1beta1__ContainerAllocateResponse *response)
{
	json_t *env = json_object(), *annotations = json_object(), *nodes = json_array();
	json_t *mounts = json_array(), *names = json_array();
	for (size_t i = 0; i < response->n_envs; i++)
		json_object_set_new(env, response->envs[i]->key,
				    json_string(response->envs[i]->value));
	json_object_update(env, pod->env); /* a pod's own wins over a plugin's */
	for (size_t i = 0; i < response->n_annotations; i++)
		json_object_set_new(annotations, response->annotations[i]->key,
				    json_string(response->annotations[i]->value));
	for (size_t i = 0; i < response->n_devices; i++)
		json_array_append_new(nodes,
				      json_pack("{s:s, s:s, s:s}", "path",
						response->devices[i]->container_path, "hostPath",
						response->devices[i]->host_path, "permissions",
						response->devices[i]->permissions));
	for (size_t i = 0; i < response->n_mounts; i++)
		json_array_append_new(mounts,
				      json_pack("{s:s, s:s, s:[s]}", "containerPath",
						response->mounts[i]->container_path, "hostPath",
						response->mounts[i]->host_path, "options",
						response->mounts[i]->read_only ? "ro" : "rw"));
	for (size_t i = 0; i < response->n_cdi_devices; i++)
		json_array_append_new(names, json_string(response->cdi_devices[i]->name));
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "env", env, "annotations", annotations,
			 "deviceNodes", nodes, "mounts", mounts, "cdiDevices", names);
}

static void container_make(struct admission *admission, struct pod *pod)
{
	static const V1beta1__ContainerAllocateResponse nothing =
		V1BETA1__CONTAINER_ALLOCATE_RESPONSE__INIT;
	struct manager_hold *hold = hold_of(admission, pod);
	CLEANUP(message) V1beta1__ContainerAllocateResponse *response = NULL;
	struct error error;
	if (hold && !container_response_unpack(hold->response.data, hold->response.length,
					       &response, &error)) {
		decide(admission, pod, POD_WAITING, "CreateContainerError", error.what);
		return;
	}
	const V1beta1__ContainerAllocateResponse *given = response ? response : &nothing;
	VEC(const char *) names = {0};
	for (size_t i = 0; i < given->n_cdi_devices; i++)
		*vec_push(&names) = given->cdi_devices[i]->name;
	json_t *seen = seen_create(pod, given);
	bool ok = cdi_inject((const char *const *)admission->cdi->items, admission->cdi->count,
			     names.items, names.count, seen, &error);
	vec_deinit(&names);
	if (!ok) {
		json_decref(seen);
		decide(admission, pod, POD_WAITING, "CreateContainerError", error.what);
		return;
	}
	json_decref(pod->seen);
	pod->seen = seen;
	decide(admission, pod, POD_RUNNING, "", "");
}

/* --- the device manager's part --- */

static void refuse(struct admission *admission, struct pod *pod, const char *message)
{
	manager_pod_remove(admission->manager, pod->uid);
	admission->handlers->on_held(admission->arg);
	decide(admission, pod, POD_FAILED, "UnexpectedAdmissionError", message);
}

static void refuse_status(struct admission *admission, struct pod *pod, const char *method,
			  const struct rpc_status *status)
{
	char message[ERROR_WHAT_SIZE];
	snprintf(message, sizeof message, "%s failed: %s: %.400s", method,
		 rpc_code_name(status->code), status->message);
	refuse(admission, pod, message);
}

/* The pod that was asked about; NULL when it is gone or nothing is to happen any more. */
static struct pod *pod_take(struct admission *admission)
{
	CLEANUP(free) char *uid = TAKE(admission->uid);
	struct pod *pod = pods_by_uid(admission->pods, uid);
	return admission->closed || !pod || pod->deleting ? NULL : pod;
}

static void on_allocated(void *arg, const struct rpc_status *status,
			 const V1beta1__ContainerAllocateResponse *response)
{
	struct admission *admission = arg;
	struct pod *pod = pod_take(admission);
	if (!pod)
		return;
	CLEANUP(buf) struct buf bytes = {0};
	struct error error;
	if (status->code != RPC_OK) {
		refuse_status(admission, pod, "Allocate", status);
		return;
	}
	if (!container_response_pack(response, &bytes, &error)) {
		refuse(admission, pod, error.what);
		return;
	}
	manager_hold_add(admission->manager, pod->uid, pod->container, pod->resource,
			 &admission->chosen, bytes.data, bytes.length);
	admission->handlers->on_held(admission->arg);
	container_make(admission, pod);
}

static void allocate(struct admission *admission, struct pod *pod,
		     const struct manager_ids *preferred)
{
	struct plugin *plugin = registration_plugin(admission->registration, pod->resource);
	if (!plugin) {
		refuse(admission, pod, "the device plugin's endpoint has stopped");
		return;
	}
	manager_ids_deinit(&admission->chosen);
	manager_choose(&admission->available, preferred, pod->count, &admission->chosen);
	admission->uid = mem_strdup(pod->uid);
	plugin_allocate(plugin, &admission->chosen, on_allocated, admission);
}

static void on_preferred(void *arg, const struct rpc_status *status, const struct manager_ids *ids)
{
	struct admission *admission = arg;
	struct pod *pod = pod_take(admission);
	if (!pod)
		return;
	if (status->code != RPC_OK)
		refuse_status(admission, pod, "GetPreferredAllocation", status);
	else
		allocate(admission, pod, ids);
}

static void admit(struct admission *admission, struct pod *pod)
{
	struct error error;
	struct manager_hold *hold = hold_of(admission, pod);
	if (hold && !manager_hold_is_healthy(admission->manager, hold)) {
		refuse(admission, pod, "previously allocated devices are no longer healthy");
		return;
	}
	if (hold || pod->count == 0) {
		container_make(admission, pod);
		return;
	}
	admission_forget(admission->manager, admission->pods);
	if (!manager_available(admission->manager, pod->resource, pod->count, &admission->available,
			       &error)) {
		refuse(admission, pod, error.what);
		return;
	}
	struct plugin *plugin = registration_plugin(admission->registration, pod->resource);
	if (!plugin || !plugin_prefers(plugin)) {
		allocate(admission, pod, &(struct manager_ids){0});
		return;
	}
	admission->uid = mem_strdup(pod->uid);
	plugin_preferred(plugin, &admission->available, pod->count, on_preferred, admission);
}

/* --- the scheduler's part --- */

static bool fits(struct admission *admission, const struct pod *pod, char *why, size_t why_size)
{
	if (pod->bound || pod->count == 0 || hold_of(admission, pod))
		return true; /* no scheduler was asked, or it has placed the pod already */
	struct manager_resource *resource = manager_find(admission->manager, pod->resource);
	size_t allocatable = 0;
	if (resource)
		vec_each (&resource->devices, const struct manager_device *device)
			allocatable += device->healthy;
	size_t requested = admission_requested(admission->pods, pod->resource);
	if (requested + pod->count <= allocatable)
		return true;
	snprintf(why, why_size, "Insufficient %.200s: %zu requested, %zu allocatable, %zu in use",
		 pod->resource, pod->count, allocatable, requested);
	return false;
}

bool admission_turn(struct admission *admission)
{
	bool waiting = false;
	for (size_t i = 0; i < admission->pods->list.count && !admission->uid; i++) {
		struct pod *pod = &admission->pods->list.items[i];
		char why[ERROR_WHAT_SIZE];
		if (pod->deleting)
			continue;
		if (pod->phase == POD_WAITING)
			container_make(admission, pod);
		else if (pod->phase == POD_PENDING && fits(admission, pod, why, sizeof why))
			admit(admission, pod);
		else if (pod->phase == POD_PENDING)
			decide(admission, pod, POD_PENDING, "Unschedulable", why);
		waiting |= pod->phase == POD_WAITING;
	}
	return waiting;
}

/* --- life --- */

struct admission *admission_create(struct registration *registration, struct manager *manager,
				   struct pods *pods, const struct manager_ids *cdi,
				   const struct admission_handlers *handlers, void *arg)
{
	struct admission *admission = mem_alloc(sizeof *admission);
	*admission = (struct admission){
		.registration = registration,
		.manager = manager,
		.pods = pods,
		.cdi = cdi,
		.handlers = handlers,
		.arg = arg,
	};
	return admission;
}

void admission_close(struct admission *admission)
{
	admission->closed = true;
}

void admission_destroy(struct admission *admission)
{
	if (!admission)
		return;
	assert(!admission->uid);
	manager_ids_deinit(&admission->available);
	manager_ids_deinit(&admission->chosen);
	free(admission);
}
