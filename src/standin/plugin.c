#include "standin/plugin.h"

#include "proto/message.h"
#include "proto/methods.h"

#include <stdio.h>

#define PLUGIN_RETRY_MS 1000

MESSAGE_TYPE(empty, V1beta1__Empty, v1beta1__empty)
MESSAGE_TYPE(options, V1beta1__DevicePluginOptions, v1beta1__device_plugin_options)
MESSAGE_TYPE(device_list, V1beta1__ListAndWatchResponse, v1beta1__list_and_watch_response)
MESSAGE_TYPE(preferred_request, V1beta1__PreferredAllocationRequest,
	     v1beta1__preferred_allocation_request)
MESSAGE_TYPE(preferred_response, V1beta1__PreferredAllocationResponse,
	     v1beta1__preferred_allocation_response)
MESSAGE_TYPE(allocate_request, V1beta1__AllocateRequest, v1beta1__allocate_request)
MESSAGE_TYPE(allocate_response, V1beta1__AllocateResponse, v1beta1__allocate_response)

struct plugin {
	struct loop *loop;
	uint64_t id;
	char *resource, *path, *address;
	const struct plugin_handlers *handlers;
	void *arg;
	struct rpc_client *client;
	struct loop_timer *timer; /* until it is connected: retries, and gives up */
	struct mono give_up;
	bool up, prefers, destroying;
};

static void client_create(struct plugin *plugin);

uint64_t plugin_id(const struct plugin *plugin)
{
	return plugin->id;
}

const char *plugin_resource(const struct plugin *plugin)
{
	return plugin->resource;
}

const char *plugin_path(const struct plugin *plugin)
{
	return plugin->path;
}

bool plugin_prefers(const struct plugin *plugin)
{
	return plugin->prefers;
}

/* An answer that can't be read counts as the plugin's failure. */
static struct rpc_status bad_answer(const struct error *error)
{
	return (struct rpc_status){RPC_INTERNAL, error->what};
}

/* --- connecting --- */

static void on_options(void *arg, const struct rpc_status *status, const uint8_t *data,
		       size_t length)
{
	struct plugin *plugin = arg;
	if (plugin->destroying)
		return;
	CLEANUP(message) V1beta1__DevicePluginOptions *options = NULL;
	struct error error;
	struct rpc_status outcome = *status;
	if (outcome.code == RPC_OK && !options_unpack(data, length, &options, &error))
		outcome = bad_answer(&error);
	if (options)
		plugin->prefers = options->get_preferred_allocation_available;
	plugin->handlers->on_connected(plugin->arg, plugin, &outcome);
}

static void on_up(void *arg)
{
	struct plugin *plugin = arg;
	plugin->up = true;
	loop_timer_stop(plugin->timer);
	rpc_unary(plugin->client, METHOD_DEVICE_PLUGIN_GET_OPTIONS, 0, 0, "", 0, on_options,
		  plugin);
}

static void on_down(void *arg, const struct error *error UNUSED)
{
	struct plugin *plugin = arg;
	if (!plugin->up && !plugin->destroying)
		loop_timer_start(plugin->timer, PLUGIN_RETRY_MS);
}

static void on_retry(void *arg)
{
	struct plugin *plugin = arg;
	if (mono_until(loop_now(plugin->loop), plugin->give_up) > 0) {
		rpc_client_destroy(plugin->client);
		client_create(plugin);
		return;
	}
	char message[ERROR_WHAT_SIZE];
	snprintf(message, sizeof message, "dial device plugin '%.300s': no answer in %d ms",
		 plugin->path, PLUGIN_CONNECT_MS);
	plugin->handlers->on_connected(plugin->arg, plugin,
				       &(struct rpc_status){RPC_UNKNOWN, message});
}

static void client_create(struct plugin *plugin)
{
	static const struct rpc_client_handlers handlers = {.on_up = on_up, .on_down = on_down};
	/* For a peer that takes the connection and then says nothing. */
	loop_timer_start(plugin->timer, mono_until(loop_now(plugin->loop), plugin->give_up));
	plugin->client =
		rpc_client_create(plugin->loop, plugin->address, NULL, 0, &handlers, plugin);
}

struct plugin *plugin_create(struct loop *loop, uint64_t id, const char *resource, const char *path,
			     const struct plugin_handlers *handlers, void *arg)
{
	struct plugin *plugin = mem_alloc(sizeof *plugin);
	CLEANUP(buf) struct buf address = {0};
	buf_printf(&address, "unix:%s", path);
	*plugin = (struct plugin){
		.loop = loop,
		.id = id,
		.resource = mem_strdup(resource),
		.path = mem_strdup(path),
		.address = buf_take_text(&address),
		.handlers = handlers,
		.arg = arg,
		.give_up = mono_after(loop_now(loop), PLUGIN_CONNECT_MS),
	};
	plugin->timer = loop_timer_create(loop, on_retry, plugin);
	client_create(plugin);
	return plugin;
}

void plugin_destroy(struct plugin *plugin)
{
	if (!plugin)
		return;
	plugin->destroying = true;
	rpc_client_destroy(plugin->client);
	loop_timer_destroy(plugin->timer);
	free(plugin->resource);
	free(plugin->path);
	free(plugin->address);
	free(plugin);
}

/* --- ListAndWatch --- */

static void device_add(const V1beta1__Device *from, struct manager_devices *devices)
{
	struct manager_device *device = vec_push(devices);
	device->id = mem_strdup(from->id);
	device->healthy = str_equal(from->health, "Healthy");
	for (size_t i = 0; from->topology && i < from->topology->n_nodes; i++)
		*vec_push(&device->numa) = from->topology->nodes[i]->id;
}

static void on_list(struct rpc_call *call, void *arg, const uint8_t *data, size_t length)
{
	struct plugin *plugin = arg;
	CLEANUP(message) V1beta1__ListAndWatchResponse *list = NULL;
	struct error error;
	if (!device_list_unpack(data, length, &list, &error)) {
		rpc_cancel(call);
		return;
	}
	struct manager_devices devices = {0};
	for (size_t i = 0; i < list->n_devices; i++)
		device_add(list->devices[i], &devices);
	plugin->handlers->on_devices(plugin->arg, plugin, &devices);
	manager_devices_deinit(&devices);
}

static void on_list_done(struct rpc_call *call UNUSED, void *arg, const struct rpc_status *status)
{
	struct plugin *plugin = arg;
	if (!plugin->destroying)
		plugin->handlers->on_ended(plugin->arg, plugin, status);
}

void plugin_watch(struct plugin *plugin)
{
	static const struct rpc_call_handlers handlers = {.on_message = on_list,
							  .on_done = on_list_done};
	struct rpc_call *call = rpc_call_start(plugin->client, METHOD_DEVICE_PLUGIN_LIST_AND_WATCH,
					       0, 0, &handlers, plugin);
	rpc_send(call, "", 0);
	rpc_half_close(call);
}

/* --- GetPreferredAllocation and Allocate --- */

struct question {
	plugin_preferred_fn *on_preferred;
	plugin_allocate_fn *on_allocate;
	void *arg;
};

static struct question *question_create(plugin_preferred_fn *on_preferred,
					plugin_allocate_fn *on_allocate, void *arg)
{
	struct question *question = mem_alloc(sizeof *question);
	*question = (struct question){on_preferred, on_allocate, arg};
	return question;
}

static void on_preferred_answer(void *arg, const struct rpc_status *status, const uint8_t *data,
				size_t length)
{
	struct question *question = arg;
	CLEANUP(message) V1beta1__PreferredAllocationResponse *response = NULL;
	CLEANUP(manager_ids) struct manager_ids ids = {0};
	struct error error;
	struct rpc_status outcome = *status;
	if (outcome.code == RPC_OK && !preferred_response_unpack(data, length, &response, &error))
		outcome = bad_answer(&error);
	if (response && response->n_container_responses > 0) {
		V1beta1__ContainerPreferredAllocationResponse *first =
			response->container_responses[0];
		for (size_t i = 0; i < first->n_deviceids; i++)
			manager_ids_add(&ids, first->deviceids[i]);
	}
	question->on_preferred(question->arg, &outcome, &ids);
	free(question);
}

/* What we send is from a plugin's own list, which was checked when it came. */
#define MUST_PACK(call)                                                                            \
	do {                                                                                       \
		struct error error_;                                                               \
		bool packed_ = call;                                                               \
		assert(packed_);                                                                   \
	} while (0)

void plugin_preferred(struct plugin *plugin, const struct manager_ids *available, size_t count,
		      plugin_preferred_fn *fn, void *arg)
{
	V1beta1__ContainerPreferredAllocationRequest container =
		V1BETA1__CONTAINER_PREFERRED_ALLOCATION_REQUEST__INIT;
	V1beta1__ContainerPreferredAllocationRequest *containers[] = {&container};
	V1beta1__PreferredAllocationRequest request = V1BETA1__PREFERRED_ALLOCATION_REQUEST__INIT;
	container.available_deviceids = available->items;
	container.n_available_deviceids = available->count;
	container.allocation_size = (int32_t)count;
	request.container_requests = containers;
	request.n_container_requests = 1;
	CLEANUP(buf) struct buf bytes = {0};
	MUST_PACK(preferred_request_pack(&request, &bytes, &error_));
	rpc_unary(plugin->client, METHOD_DEVICE_PLUGIN_GET_PREFERRED_ALLOCATION, 0, 0, bytes.data,
		  bytes.length, on_preferred_answer, question_create(fn, NULL, arg));
}

static void on_allocate_answer(void *arg, const struct rpc_status *status, const uint8_t *data,
			       size_t length)
{
	struct question *question = arg;
	CLEANUP(message) V1beta1__AllocateResponse *response = NULL;
	struct error error;
	struct rpc_status outcome = *status;
	if (outcome.code == RPC_OK && !allocate_response_unpack(data, length, &response, &error))
		outcome = bad_answer(&error);
	if (response && response->n_container_responses == 0)
		outcome = (struct rpc_status){RPC_UNKNOWN, "the answer is for no container"};
	question->on_allocate(question->arg, &outcome,
			      outcome.code == RPC_OK ? response->container_responses[0] : NULL);
	free(question);
}

void plugin_allocate(struct plugin *plugin, const struct manager_ids *ids, plugin_allocate_fn *fn,
		     void *arg)
{
	V1beta1__ContainerAllocateRequest container = V1BETA1__CONTAINER_ALLOCATE_REQUEST__INIT;
	V1beta1__ContainerAllocateRequest *containers[] = {&container};
	V1beta1__AllocateRequest request = V1BETA1__ALLOCATE_REQUEST__INIT;
	container.devices_ids = ids->items;
	container.n_devices_ids = ids->count;
	request.container_requests = containers;
	request.n_container_requests = 1;
	CLEANUP(buf) struct buf bytes = {0};
	MUST_PACK(allocate_request_pack(&request, &bytes, &error_));
	rpc_unary(plugin->client, METHOD_DEVICE_PLUGIN_ALLOCATE, 0, 0, bytes.data, bytes.length,
		  on_allocate_answer, question_create(NULL, fn, arg));
}
