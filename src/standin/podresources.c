#include "standin/podresources.h"

#include "base/arena.h"
#include "proto/message.h"
#include "proto/methods.h"
#include "proto/podresources.pb-c.h"
#include "rpc/rpc.h"
#include "sys/durable.h"

MESSAGE_TYPE(list_response, V1__ListPodResourcesResponse, v1__list_pod_resources_response)
MESSAGE_TYPE(allocatable_response, V1__AllocatableResourcesResponse,
	     v1__allocatable_resources_response)
MESSAGE_TYPE(get_request, V1__GetPodResourcesRequest, v1__get_pod_resources_request)
MESSAGE_TYPE(get_response, V1__GetPodResourcesResponse, v1__get_pod_resources_response)

struct podresources {
	const struct manager *manager;
	const struct pods *pods;
	struct rpc_server *server;
};

struct entries VEC_BODY(V1__ContainerDevices *);

/* One entry a device and NUMA node; one without topology when the node is unknown. */
static void entries_add(struct arena *arena, const char *resource,
			const struct manager_device *device, struct entries *entries)
{
	size_t nodes = device->numa.count ? device->numa.count : 1;
	for (size_t i = 0; i < nodes; i++) {
		V1__ContainerDevices *entry = arena_alloc(arena, sizeof *entry);
		v1__container_devices__init(entry);
		entry->resource_name = message_text(resource);
		entry->device_ids = arena_alloc(arena, sizeof *entry->device_ids);
		entry->device_ids[0] = device->id;
		entry->n_device_ids = 1;
		*vec_push(entries) = entry;
		if (device->numa.count == 0)
			continue;
		entry->topology = arena_alloc(arena, sizeof *entry->topology);
		v1__topology_info__init(entry->topology);
		entry->topology->nodes = arena_alloc(arena, sizeof *entry->topology->nodes);
		entry->topology->nodes[0] = arena_alloc(arena, sizeof **entry->topology->nodes);
		v1__numanode__init(entry->topology->nodes[0]);
		entry->topology->nodes[0]->id = device->numa.items[i];
		entry->topology->n_nodes = 1;
	}
}

/* Moves the list into the arena, where the message may point to it. */
static V1__ContainerDevices **entries_take(struct arena *arena, struct entries *entries)
{
	size_t size = entries->count * sizeof *entries->items;
	V1__ContainerDevices **items = arena_alloc(arena, size);
	if (size > 0)
		memcpy(items, entries->items, size);
	vec_deinit(entries);
	return items;
}

static V1__PodResources *pod_message(struct podresources *podresources, struct arena *arena,
				     const struct pod *pod)
{
	V1__PodResources *message = arena_alloc(arena, sizeof *message);
	V1__ContainerResources *container = arena_alloc(arena, sizeof *container);
	v1__pod_resources__init(message);
	v1__container_resources__init(container);
	message->name = pod->name;
	message->namespace_ = pod->namespace;
	message->containers = arena_alloc(arena, sizeof *message->containers);
	message->containers[0] = container;
	message->n_containers = 1;
	container->name = pod->container;
	struct entries entries = {0};
	vec_each (&podresources->manager->holds, const struct manager_hold *hold)
		if (str_equal(hold->pod, pod->uid))
			vec_each (&hold->devices, const struct manager_device *device)
				entries_add(arena, hold->resource, device, &entries);
	container->n_devices = entries.count;
	container->devices = entries_take(arena, &entries);
	return message;
}

/* --- methods --- */

static void answer(struct rpc_call *call, bool packed, const struct buf *bytes,
		   const struct error *error)
{
	if (!packed) {
		rpc_finish_error(call, error);
		return;
	}
	rpc_send(call, bytes->data, bytes->length);
	rpc_finish(call, RPC_OK, "");
}

static void on_list(struct rpc_call *call, void *arg, const uint8_t *data UNUSED,
		    size_t length UNUSED)
{
	struct podresources *podresources = arg;
	CLEANUP(arena) struct arena arena = {0};
	CLEANUP(buf) struct buf bytes = {0};
	struct error error;
	V1__ListPodResourcesResponse response = V1__LIST_POD_RESOURCES_RESPONSE__INIT;
	response.pod_resources = arena_alloc(&arena, podresources->pods->list.count *
							     sizeof *response.pod_resources);
	vec_each (&podresources->pods->list, const struct pod *pod)
		if (pod_active(pod) && !podresources->pods->unheard)
			response.pod_resources[response.n_pod_resources++] =
				pod_message(podresources, &arena, pod);
	answer(call, list_response_pack(&response, &bytes, &error), &bytes, &error);
}

static void on_allocatable(struct rpc_call *call, void *arg, const uint8_t *data UNUSED,
			   size_t length UNUSED)
{
	struct podresources *podresources = arg;
	CLEANUP(arena) struct arena arena = {0};
	CLEANUP(buf) struct buf bytes = {0};
	struct error error;
	struct entries entries = {0};
	vec_each (&podresources->manager->resources, const struct manager_resource *resource)
		vec_each (&resource->devices, const struct manager_device *device)
			if (device->healthy)
				entries_add(&arena, resource->name, device, &entries);
	V1__AllocatableResourcesResponse response = V1__ALLOCATABLE_RESOURCES_RESPONSE__INIT;
	response.n_devices = entries.count;
	response.devices = entries_take(&arena, &entries);
	answer(call, allocatable_response_pack(&response, &bytes, &error), &bytes, &error);
}

static void on_get(struct rpc_call *call, void *arg, const uint8_t *data, size_t length)
{
	struct podresources *podresources = arg;
	CLEANUP(message) V1__GetPodResourcesRequest *request = NULL;
	CLEANUP(arena) struct arena arena = {0};
	CLEANUP(buf) struct buf bytes = {0};
	struct error error;
	if (!get_request_unpack(data, length, &request, &error)) {
		rpc_finish_error(call, &error);
		return;
	}
	struct pod *pod = pods_find(podresources->pods, request->pod_namespace, request->pod_name);
	if (!pod || podresources->pods->unheard) {
		error_set(&error, ERROR_NOT_FOUND, "pod '%s' in namespace '%s' not found",
			  request->pod_name, request->pod_namespace);
		rpc_finish(call, RPC_UNKNOWN, error.what);
		return;
	}
	V1__GetPodResourcesResponse response = V1__GET_POD_RESOURCES_RESPONSE__INIT;
	response.pod_resources = pod_message(podresources, &arena, pod);
	answer(call, get_response_pack(&response, &bytes, &error), &bytes, &error);
}

/* --- life --- */

bool podresources_create(struct loop *loop, const char *path, const struct manager *manager,
			 const struct pods *pods, struct podresources **ret_podresources,
			 struct error *error)
{
	static const struct rpc_method methods[] = {
		{.path = METHOD_POD_RESOURCES_LIST, .unary = true, .on_message = on_list},
		{.path = METHOD_POD_RESOURCES_GET_ALLOCATABLE,
		 .unary = true,
		 .on_message = on_allocatable},
		{.path = METHOD_POD_RESOURCES_GET, .unary = true, .on_message = on_get},
	};
	if (!durable_remove(path, error))
		return false;
	struct podresources *podresources = mem_alloc(sizeof *podresources);
	*podresources = (struct podresources){.manager = manager, .pods = pods};
	podresources->server = rpc_server_create(loop, methods, ARRAY_SIZE(methods), podresources);
	if (!rpc_server_listen_unix(podresources->server, path, 0600, error)) {
		podresources_destroy(podresources);
		return false;
	}
	*ret_podresources = podresources;
	return true;
}

void podresources_destroy(struct podresources *podresources)
{
	if (!podresources)
		return;
	rpc_server_destroy(podresources->server);
	free(podresources);
}
