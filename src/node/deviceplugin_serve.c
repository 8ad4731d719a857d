#include "base/arena.h"
#include "node/core/prefer.h"
#include "node/deviceplugin_internal.h"
#include "proto/deviceplugin.pb-c.h"
#include "proto/message.h"
#include "proto/methods.h"
#include "sys/clock.h"
#include "sys/log.h"

MESSAGE_TYPE(options, V1beta1__DevicePluginOptions, v1beta1__device_plugin_options)
MESSAGE_TYPE(list, V1beta1__ListAndWatchResponse, v1beta1__list_and_watch_response)
MESSAGE_TYPE(preferred_request, V1beta1__PreferredAllocationRequest,
	     v1beta1__preferred_allocation_request)
MESSAGE_TYPE(preferred_response, V1beta1__PreferredAllocationResponse,
	     v1beta1__preferred_allocation_response)
MESSAGE_TYPE(allocate_request, V1beta1__AllocateRequest, v1beta1__allocate_request)
MESSAGE_TYPE(allocate_response, V1beta1__AllocateResponse, v1beta1__allocate_response)
MESSAGE_TYPE(pre_start_response, V1beta1__PreStartContainerResponse,
	     v1beta1__pre_start_container_response)

static void answer(struct rpc_call *call, const struct buf *message)
{
	rpc_send(call, message->data, message->length);
	rpc_finish(call, RPC_OK, "");
}

/* --- GetDevicePluginOptions --- */

static void on_options(struct rpc_call *call, void *arg UNUSED, const uint8_t *data UNUSED,
		       size_t length UNUSED)
{
	V1beta1__DevicePluginOptions message = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
	CLEANUP(buf) struct buf out = {0};
	struct error error;

	message.get_preferred_allocation_available = true;
	if (options_pack(&message, &out, &error))
		answer(call, &out);
	else
		rpc_finish_error(call, &error);
}

/* --- ListAndWatch --- */

static V1beta1__Device *device_message(struct arena *arena, const struct offer_device *device)
{
	V1beta1__Device *message = arena_alloc(arena, sizeof *message);

	v1beta1__device__init(message);
	message->id = message_text(device->id);
	message->health = message_text(device->health.healthy ? "Healthy" : "Unhealthy");
	if (device->numa < 0) /* an empty topology would mean "on no node" to some consumers */
		return message;
	message->topology = arena_alloc(arena, sizeof *message->topology);
	v1beta1__topology_info__init(message->topology);
	message->topology->n_nodes = 1;
	message->topology->nodes = arena_alloc(arena, sizeof *message->topology->nodes);
	message->topology->nodes[0] = arena_alloc(arena, sizeof *message->topology->nodes[0]);
	v1beta1__numanode__init(message->topology->nodes[0]);
	message->topology->nodes[0]->id = device->numa;
	return message;
}

static bool pack_list(const struct offer *offer, struct buf *out, struct error *error)
{
	CLEANUP(arena) struct arena arena = {0};
	V1beta1__ListAndWatchResponse message = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;

	message.devices = arena_alloc(&arena, (offer->devices.count + 1) * sizeof *message.devices);
	for (size_t i = 0; i < offer->devices.count; i++)
		message.devices[message.n_devices++] =
			device_message(&arena, &offer->devices.items[i]);
	return list_pack(&message, out, error);
}

static void send_list(struct deviceplugin *plugin, struct deviceplugin_stream *stream)
{
	CLEANUP(buf) struct buf out = {0};
	struct error error;

	stream->behind = rpc_queued(stream->call) > DEVICEPLUGIN_MAX_QUEUED;
	if (stream->behind)
		return;
	if (pack_list(plugin->options.offer, &out, &error))
		rpc_send(stream->call, out.data, out.length);
	else
		log_failure(LOG_ERROR, "deviceplugin.list", &error,
			    "the kubelet keeps the list of before");
}

void deviceplugin_changed(struct deviceplugin *plugin)
{
	for (size_t i = 0; i < plugin->streams.count; i++)
		send_list(plugin, &plugin->streams.items[i]);
}

static void on_watch(struct rpc_call *call, void *arg, const uint8_t *data UNUSED,
		     size_t length UNUSED)
{
	struct deviceplugin *plugin = arg;
	struct deviceplugin_stream *stream = vec_push(&plugin->streams);

	stream->call = call;
	if (plugin->streams.count == 1) {
		plugin->streaming_since = loop_now(plugin->loop);
		plugin->registered_since = clock_wall();
	}
	send_list(plugin, stream);
	plugin->options.wake(plugin->options.arg);
}

static void on_watch_drain(struct rpc_call *call, void *arg)
{
	struct deviceplugin *plugin = arg;

	for (size_t i = 0; i < plugin->streams.count; i++)
		if (plugin->streams.items[i].call == call && plugin->streams.items[i].behind)
			send_list(plugin, &plugin->streams.items[i]);
}

static void on_watch_done(struct rpc_call *call, void *arg, const struct rpc_status *status UNUSED)
{
	struct deviceplugin *plugin = arg;

	for (size_t i = 0; i < plugin->streams.count; i++) {
		if (plugin->streams.items[i].call != call)
			continue;
		vec_remove(&plugin->streams, i);
		break;
	}
	/* A stream that hardly lived counts as a failed try, so a kubelet that drops us at once
	 * isn't met with a storm. */
	if (plugin->streams.count == 0) {
		plugin->accepted = false;
		plugin->tried = loop_now(plugin->loop);
		if (mono_until(plugin->streaming_since, plugin->tried) < 1000)
			plugin->failures++;
		else
			plugin->failures = 0;
	}
	plugin->options.wake(plugin->options.arg);
}

/* --- GetPreferredAllocation: never an error of ours --- */

static V1beta1__ContainerPreferredAllocationResponse *
prefer(const struct deviceplugin *plugin, struct arena *arena,
       const V1beta1__ContainerPreferredAllocationRequest *asked)
{
	V1beta1__ContainerPreferredAllocationResponse *message =
		arena_alloc(arena, sizeof *message);
	size_t size = asked->allocation_size > 0 ? (size_t)asked->allocation_size : 0;
	struct prefer_request request = {
		.available = (const char *const *)asked->available_deviceids,
		.available_count = asked->n_available_deviceids,
		.must = (const char *const *)asked->must_include_deviceids,
		.must_count = asked->n_must_include_deviceids,
		.size = size < asked->n_available_deviceids ? size : asked->n_available_deviceids,
	};
	const char **ids = arena_alloc(arena, (request.size + 1) * sizeof *ids);

	v1beta1__container_preferred_allocation_response__init(message);
	message->n_deviceids = prefer_decide(&request, plugin->options.offer, ids);
	message->deviceids = (char **)ids;
	return message;
}

static void on_prefer(struct rpc_call *call, void *arg, const uint8_t *data, size_t length)
{
	CLEANUP(arena) struct arena arena = {0};
	CLEANUP(message) V1beta1__PreferredAllocationRequest *request = NULL;
	V1beta1__PreferredAllocationResponse message = V1BETA1__PREFERRED_ALLOCATION_RESPONSE__INIT;
	CLEANUP(buf) struct buf out = {0};
	struct error error;

	if (!preferred_request_unpack(data, length, &request, &error)) {
		rpc_finish_error(call, &error);
		return;
	}
	message.container_responses = arena_alloc(
		&arena, (request->n_container_requests + 1) * sizeof *message.container_responses);
	for (size_t i = 0; i < request->n_container_requests; i++)
		message.container_responses[message.n_container_responses++] =
			prefer(arg, &arena, request->container_requests[i]);
	if (preferred_response_pack(&message, &out, &error))
		answer(call, &out);
	else
		rpc_finish_error(call, &error);
}

/* --- Allocate --- */

static void put_env(struct arena *arena, V1beta1__ContainerAllocateResponse *message,
		    const char *name, const char *value)
{
	V1beta1__ContainerAllocateResponse__EnvsEntry *entry = arena_alloc(arena, sizeof *entry);

	v1beta1__container_allocate_response__envs_entry__init(entry);
	entry->key = message_text(name);
	entry->value = arena_strdup(arena, value);
	message->envs[message->n_envs++] = entry;
}

static void put_annotation(struct arena *arena, V1beta1__ContainerAllocateResponse *message,
			   const char *name, const char *value)
{
	V1beta1__ContainerAllocateResponse__AnnotationsEntry *entry =
		arena_alloc(arena, sizeof *entry);

	v1beta1__container_allocate_response__annotations_entry__init(entry);
	entry->key = message_text(name);
	entry->value = arena_strdup(arena, value);
	message->annotations[message->n_annotations++] = entry;
}

static void put_cdi(struct arena *arena, V1beta1__ContainerAllocateResponse *message,
		    const char *name)
{
	V1beta1__CDIDevice *device = arena_alloc(arena, sizeof *device);

	v1beta1__cdidevice__init(device);
	device->name = arena_strdup(arena, name);
	message->cdi_devices[message->n_cdi_devices++] = device;
}

static V1beta1__ContainerAllocateResponse *container_message(struct arena *arena,
							     const struct allocate_answer *from)
{
	V1beta1__ContainerAllocateResponse *message = arena_alloc(arena, sizeof *message);

	v1beta1__container_allocate_response__init(message);
	message->envs = arena_alloc(arena, 2 * sizeof *message->envs);
	message->annotations = arena_alloc(arena, sizeof *message->annotations);
	message->cdi_devices =
		arena_alloc(arena, (from->cdi_names.count + 1) * sizeof *message->cdi_devices);
	put_env(arena, message, ALLOCATE_ENV_VISIBLE, buf_text(&from->visible));
	put_env(arena, message, ALLOCATE_ENV_ALLOCATIONS, buf_text(&from->allocations));
	put_annotation(arena, message, ALLOCATE_ANNOTATION, buf_text(&from->allocations));
	for (size_t i = 0; i < from->cdi_names.count; i++)
		put_cdi(arena, message, from->cdi_names.items[i]);
	return message;
}

static bool allocate(struct deviceplugin *plugin, const V1beta1__AllocateRequest *request,
		     struct buf *out, struct error *error)
{
	CLEANUP(arena) struct arena arena = {0};
	V1beta1__AllocateResponse message = V1BETA1__ALLOCATE_RESPONSE__INIT;

	if (plugin->options.withheld->code != ERROR_NONE) {
		*error = *plugin->options.withheld;
		return false;
	}
	message.container_responses = arena_alloc(
		&arena, (request->n_container_requests + 1) * sizeof *message.container_responses);
	for (size_t i = 0; i < request->n_container_requests; i++) {
		const V1beta1__ContainerAllocateRequest *asked = request->container_requests[i];
		struct allocate_answer one = {0};

		if (!allocator_allocate(plugin->options.allocator,
					source_inventory(plugin->options.gpus),
					plugin->options.strays, plugin->options.class,
					(const char *const *)asked->devices_ids,
					asked->n_devices_ids, &one, error))
			return false;
		message.container_responses[message.n_container_responses++] =
			container_message(&arena, &one);
		allocate_answer_deinit(&one);
	}
	return allocate_response_pack(&message, out, error);
}

static void on_allocate(struct rpc_call *call, void *arg, const uint8_t *data, size_t length)
{
	struct deviceplugin *plugin = arg;
	CLEANUP(message) V1beta1__AllocateRequest *request = NULL;
	CLEANUP(buf) struct buf out = {0};
	struct error error = {0};

	if (allocate_request_unpack(data, length, &request, &error) &&
	    allocate(plugin, request, &out, &error)) {
		/* Not as of this wake-up, which may have begun long before: the kubelet has it from now on. */
		plugin->given = clock_mono();
		answer(call, &out);
		return;
	}
	log_failure(LOG_WARN, "allocate.refused", &error, "the kubelet fails the pod's admission");
	rpc_finish_error(call, &error);
}

struct mono deviceplugin_given(const struct deviceplugin *plugin)
{
	return plugin->given;
}

/* --- PreStartContainer: not asked for, answered all the same --- */

static void on_pre_start(struct rpc_call *call, void *arg UNUSED, const uint8_t *data UNUSED,
			 size_t length UNUSED)
{
	V1beta1__PreStartContainerResponse message = V1BETA1__PRE_START_CONTAINER_RESPONSE__INIT;
	CLEANUP(buf) struct buf out = {0};
	struct error error;

	if (pre_start_response_pack(&message, &out, &error))
		answer(call, &out);
	else
		rpc_finish_error(call, &error);
}

const struct rpc_method deviceplugin_methods[] = {
	{.path = METHOD_DEVICE_PLUGIN_GET_OPTIONS, .unary = true, .on_message = on_options},
	{.path = METHOD_DEVICE_PLUGIN_LIST_AND_WATCH,
	 .unary = true,
	 .on_message = on_watch,
	 .on_drain = on_watch_drain,
	 .on_done = on_watch_done},
	{.path = METHOD_DEVICE_PLUGIN_GET_PREFERRED_ALLOCATION,
	 .unary = true,
	 .on_message = on_prefer},
	{.path = METHOD_DEVICE_PLUGIN_ALLOCATE, .unary = true, .on_message = on_allocate},
	{.path = METHOD_DEVICE_PLUGIN_PRE_START_CONTAINER,
	 .unary = true,
	 .on_message = on_pre_start},
};
const size_t deviceplugin_method_count = ARRAY_SIZE(deviceplugin_methods);
