#include "kubelet.h"

#include "lib/leap.h"
#include "node/core/given.h"
#include "proto/deviceplugin.pb-c.h"
#include "proto/message.h"
#include "proto/methods.h"
#include "proto/podresources.pb-c.h"
#include "sys/clock.h"
#include "sys/durable.h"

#include <dlfcn.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

MESSAGE_TYPE(register_request, V1beta1__RegisterRequest, v1beta1__register_request)
MESSAGE_TYPE(list, V1beta1__ListAndWatchResponse, v1beta1__list_and_watch_response)
MESSAGE_TYPE(allocate_request, V1beta1__AllocateRequest, v1beta1__allocate_request)
MESSAGE_TYPE(allocate_response, V1beta1__AllocateResponse, v1beta1__allocate_response)
MESSAGE_TYPE(pods, V1__ListPodResourcesResponse, v1__list_pod_resources_response)

/* --- running the loop --- */

struct until {
	struct loop *loop;
	kubelet_until_fn *fn;
	void *arg;
	struct loop_timer *timer;
	struct mono end, patience; /* by the clocks, and by the machine's own */
	bool leaps;
	bool reached;
};

/* --- time --- */

/* Whatever was leapt. */
static struct mono own_clock(void)
{
	struct timespec time;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
	return (struct mono){(int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000};
}

/* --- what the workers do --- */

/* What a disk that isn't slow takes at most; what takes longer than the other hangs, and the clocks go on. */
#define QUICK_MS 10
#define WORK_MS  300

static _Atomic int at_work;
static uv_after_work_cb after_work; /* sys/loop.c's: the only one there is */

static void on_work_over(uv_work_t *work, int status)
{
	at_work--;
	after_work(work, status);
}

/* The loop's, counted. */
__attribute__((visibility("default"))) int uv_queue_work(uv_loop_t *loop, uv_work_t *request,
							 uv_work_cb work, uv_after_work_cb after)
{
	int (*queue)(uv_loop_t *, uv_work_t *, uv_work_cb, uv_after_work_cb);

	*(void **)&queue = dlsym(RTLD_NEXT, "uv_queue_work");
	after_work = after;
	at_work++;
	return queue(loop, request, work, on_work_over);
}

static bool is_slow(void)
{
	static struct mono idle; /* by the machine's own clock: when nobody was at work last */
	int64_t ms;

	if (at_work == 0)
		idle = own_clock();
	ms = mono_until(idle, own_clock());
	return ms >= QUICK_MS && ms < WORK_MS;
}

static void on_look(void *arg)
{
	struct until *until = arg;
	bool waits = until->leaps && is_slow(); /* a slow disk takes no longer by these clocks */

	until->reached = until->fn && until->fn(until->arg);
	if (until->reached ||
	    (clock_mono().ms >= until->end.ms && mono_until(own_clock(), until->patience) <= 0))
		loop_stop(until->loop);
	else
		loop_timer_start(until->timer, 5);
	leapt_ms += until->leaps && !waits ? KUBELET_LEAP_MS : 0;
}

static bool run(struct loop *loop, kubelet_until_fn *fn, void *arg, int64_t ms, bool leaps)
{
	struct until until = {.loop = loop, .fn = fn, .arg = arg, .leaps = leaps};

	until.end = mono_after(clock_mono(), ms);
	until.patience = mono_after(own_clock(), fn ? TEST_PATIENCE_MS : 0);
	until.timer = loop_timer_create(loop, on_look, &until);
	loop_timer_start(until.timer, 0);
	loop_run(loop);
	loop_timer_destroy(until.timer);
	return until.reached;
}

void kubelet_until(struct loop *loop, kubelet_until_fn *fn, void *arg, int64_t ms, const char *what)
{
	if (!run(loop, fn, arg, ms, false))
		fail_msg("not within %lld ms: %s", (long long)ms, what);
}

void kubelet_run(struct loop *loop, int64_t ms)
{
	run(loop, NULL, NULL, ms, false);
}

#define WORKERS 4 /* libuv's own number of threads */

static _Atomic int resting, rested;

/* Once all of them do this, none does what came before. */
static void rest(void *arg UNUSED)
{
	resting++;
	while (resting < WORKERS)
		usleep(500);
}

static void on_rested(void *arg UNUSED)
{
	rested++;
}

static bool all_rested(void *arg UNUSED)
{
	return rested == WORKERS;
}

void kubelet_rest(struct loop *loop)
{
	resting = rested = 0;
	for (int i = 0; i < WORKERS; i++)
		loop_work(loop, rest, on_rested, NULL);
	kubelet_until(loop, all_rested, NULL, TEST_PATIENCE_MS, "the workers are done");
}

void kubelet_pass(struct loop *loop, int64_t ms)
{
	run(loop, NULL, NULL, ms, true);
}

void kubelet_pass_until(struct loop *loop, kubelet_until_fn *fn, void *arg, int64_t ms,
			const char *what)
{
	if (!run(loop, fn, arg, ms, true))
		fail_msg("not within %lld ms: %s", (long long)ms, what);
}

struct ending {
	pid_t child;
	int status;
};

static bool has_ended(void *arg)
{
	struct ending *ending = arg;

	return waitpid(ending->child, &ending->status, WNOHANG) == ending->child;
}

int kubelet_until_ended(struct loop *loop, pid_t child, int64_t ms, const char *what)
{
	struct ending ending = {.child = child};

	kubelet_until(loop, has_ended, &ending, ms, what);
	return ending.status;
}

/* --- a plugin, as dialled --- */

static void on_list(struct rpc_call *call UNUSED, void *arg, const uint8_t *data, size_t length)
{
	CLEANUP(message) V1beta1__ListAndWatchResponse *message = NULL;
	struct kubelet_plugin *plugin = arg;
	struct error error;

	expect_ok(list_unpack(data, length, &message, &error), &error);
	assert_true(message->n_devices <= KUBELET_MAX_DEVICES);
	plugin->lists++;
	plugin->device_count = message->n_devices;
	for (size_t i = 0; i < message->n_devices; i++) {
		const V1beta1__Device *device = message->devices[i];

		str_copy(plugin->devices[i].id, sizeof plugin->devices[i].id, device->id);
		plugin->devices[i].healthy = str_equal(device->health, "Healthy");
		plugin->devices[i].numa =
			device->topology ? (int)device->topology->nodes[0]->id : -1;
	}
}

static void on_list_done(struct rpc_call *call UNUSED, void *arg,
			 const struct rpc_status *status UNUSED)
{
	struct kubelet_plugin *plugin = arg;

	plugin->alive = false;
	plugin->stream = NULL;
}

/* The kubelet connects inside Register: a plugin that doesn't serve yet would fail here. */
static void dial(struct kubelet *kubelet, const char *resource, const char *endpoint)
{
	static const struct rpc_client_handlers client_handlers = {0};
	static const struct rpc_call_handlers handlers = {.on_message = on_list,
							  .on_done = on_list_done};
	struct kubelet_plugin *plugin = mem_alloc(sizeof *plugin);
	char address[512];

	str_copy(plugin->resource, sizeof plugin->resource, resource);
	str_copy(plugin->endpoint, sizeof plugin->endpoint, endpoint);
	plugin->alive = true;
	*vec_push(&kubelet->plugins) = plugin;
	snprintf(address, sizeof address, "unix:%s/device-plugins/%s", kubelet->folder, endpoint);
	plugin->client = rpc_client_create(kubelet->loop, address, NULL, 0, &client_handlers, NULL);
	plugin->stream = rpc_call_start(plugin->client, METHOD_DEVICE_PLUGIN_LIST_AND_WATCH, 0, 0,
					&handlers, plugin);
	rpc_send(plugin->stream, "", 0);
	rpc_half_close(plugin->stream);
}

static void on_register(struct rpc_call *call, void *arg, const uint8_t *data, size_t length)
{
	CLEANUP(message) V1beta1__RegisterRequest *request = NULL;
	struct kubelet *kubelet = arg;
	struct error error;

	kubelet->register_calls++;
	expect_ok(register_request_unpack(data, length, &request, &error), &error);
	assert_string_equal(request->version, "v1beta1");
	assert_true(request->options->get_preferred_allocation_available);
	assert_false(request->options->pre_start_required);
	if (kubelet->refuse) {
		rpc_finish(call, RPC_UNKNOWN, "device plugin already connected");
		return;
	}
	rpc_send(call, "", 0);
	rpc_finish(call, RPC_OK, "");
	dial(kubelet, request->resource_name, request->endpoint);
}

static void on_pods(struct rpc_call *call, void *arg, const uint8_t *data UNUSED,
		    size_t length UNUSED)
{
	struct kubelet *kubelet = arg;
	V1__ListPodResourcesResponse message = V1__LIST_POD_RESOURCES_RESPONSE__INIT;
	V1__PodResources pod = V1__POD_RESOURCES__INIT, *pods[] = {&pod};
	V1__ContainerResources container = V1__CONTAINER_RESOURCES__INIT,
			       *containers[] = {&container};
	V1__ContainerDevices devices = V1__CONTAINER_DEVICES__INIT, *device_list[] = {&devices};
	V1__DynamicResource claim = V1__DYNAMIC_RESOURCE__INIT, *claims[] = {&claim};
	V1__ClaimResource resource = V1__CLAIM_RESOURCE__INIT,
			  *resources[] = {&resource, &resource};
	CLEANUP(buf) struct buf out = {0}, padding = {0};
	struct error error;

	kubelet->list_calls++;
	if (kubelet->pods_hang)
		return;
	if (kubelet->pods_fail) {
		rpc_finish(call, RPC_RESOURCE_EXHAUSTED, "rejected by rate limit");
		return;
	}
	pod.name = message_text("p");
	pod.namespace_ = message_text("default");
	pod.n_containers = 1;
	pod.containers = containers;
	container.name = message_text("main");
	container.n_devices = 1;
	container.devices = device_list;
	devices.resource_name = message_text("bcd.dev/gpu");
	devices.device_ids = (char **)(uintptr_t)kubelet->held;
	while (kubelet->held[devices.n_device_ids])
		devices.n_device_ids++;
	claim.claim_namespace = message_text("default");
	claim.claim_name = message_text("gpus");
	claim.n_claim_resources = 2;
	claim.claim_resources = resources;
	resource.driver_name = message_text("gpu.bcd.dev");
	resource.pool_name = message_text("n1");
	resource.device_name = message_text(kubelet->claimed ? kubelet->claimed : "");
	container.n_dynamic_resources = kubelet->claimed != NULL;
	container.dynamic_resources = claims;
	message.pod_resources = pods;
	message.n_pod_resources =
		devices.n_device_ids > 0 || kubelet->claimed || kubelet->padding > 0;
	if (kubelet->padding > 0) {
		memset(buf_extend(&padding, kubelet->padding), 'x', kubelet->padding);
		container.name = (char *)(uintptr_t)buf_text(&padding);
	}
	expect_ok(pods_pack(&message, &out, &error), &error);
	rpc_send(call, out.data, out.length);
	rpc_finish(call, RPC_OK, "");
}

static const struct rpc_method registration_methods[] = {
	{.path = METHOD_REGISTRATION_REGISTER, .unary = true, .on_message = on_register},
};
static const struct rpc_method pod_resources_methods[] = {
	{.path = METHOD_POD_RESOURCES_LIST, .unary = true, .on_message = on_pods},
};

/* --- life --- */

void kubelet_start(struct kubelet *kubelet, struct loop *loop, const char *root)
{
	struct error error;
	char path[512];

	kubelet->loop = loop;
	kubelet->folder = mem_strdup(root);
	snprintf(path, sizeof path, "%s/device-plugins", root);
	expect_ok(durable_make_folder(path, 0755, &error), &error);
	snprintf(path, sizeof path, "%s/pod-resources", root);
	expect_ok(durable_make_folder(path, 0755, &error), &error);
	snprintf(path, sizeof path, "%s/device-plugins/kubelet.sock", root);
	kubelet->registration = rpc_server_create(loop, registration_methods, 1, kubelet);
	expect_ok(rpc_server_listen_unix(kubelet->registration, path, 0600, &error), &error);
	snprintf(path, sizeof path, "%s/pod-resources/kubelet.sock", root);
	kubelet->pod_resources = rpc_server_create(loop, pod_resources_methods, 1, kubelet);
	expect_ok(rpc_server_listen_unix(kubelet->pod_resources, path, 0600, &error), &error);
}

void kubelet_stop(struct kubelet *kubelet)
{
	for (size_t i = 0; i < kubelet->plugins.count; i++) {
		rpc_client_destroy(kubelet->plugins.items[i]->client);
		free(kubelet->plugins.items[i]);
	}
	vec_deinit(&kubelet->plugins);
	rpc_server_destroy(TAKE(kubelet->registration));
	rpc_server_destroy(TAKE(kubelet->pod_resources));
	free(TAKE(kubelet->folder));
}

struct kubelet_plugin *kubelet_find(const struct kubelet *kubelet, const char *resource)
{
	for (size_t i = kubelet->plugins.count; i-- > 0;) {
		struct kubelet_plugin *plugin = kubelet->plugins.items[i];

		if (plugin->alive && str_equal(plugin->resource, resource) && plugin->lists > 0)
			return plugin;
	}
	return NULL;
}

size_t kubelet_alive(const struct kubelet *kubelet, const char *resource)
{
	size_t count = 0;

	for (size_t i = 0; i < kubelet->plugins.count; i++)
		count += kubelet->plugins.items[i]->alive &&
			 str_equal(kubelet->plugins.items[i]->resource, resource);
	return count;
}

void kubelet_write_checkpoint(const struct kubelet *kubelet, const char *uid, const char *id)
{
	CLEANUP(buf) struct buf path = {0}, text = {0};
	struct error error;

	buf_printf(&path, "%s/" GIVEN_FILE, kubelet->folder);
	buf_add_text(&text, "{\"Data\":{\"PodDeviceEntries\":[");
	if (uid)
		buf_printf(&text,
			   "{\"PodUID\":\"%s\",\"ContainerName\":\"main\","
			   "\"ResourceName\":\"bcd.dev/gpu\",\"DeviceIDs\":{\"0\":[\"%s\"]}}",
			   uid, id);
	buf_add_text(&text, "]},\"Checksum\":0}");
	expect_ok(durable_replace(buf_text(&path), text.data, text.length, 0600, &error), &error);
}

/* --- Allocate --- */

struct allocating {
	bool over;
	enum rpc_code code;
	char *names, *message;
	size_t size, message_size;
};

static void on_allocated(void *arg, const struct rpc_status *status, const uint8_t *data,
			 size_t length)
{
	CLEANUP(message) V1beta1__AllocateResponse *response = NULL;
	struct allocating *allocating = arg;
	struct error error;
	size_t at = 0;

	allocating->over = true;
	allocating->code = status->code;
	str_copy(allocating->message, allocating->message_size, status->message);
	if (status->code != RPC_OK)
		return;
	expect_ok(allocate_response_unpack(data, length, &response, &error), &error);
	assert_int_equal(response->n_container_responses, 1);
	assert_int_equal(response->container_responses[0]->n_devices, 0);
	assert_int_equal(response->container_responses[0]->n_mounts, 0);
	for (size_t i = 0; i < response->container_responses[0]->n_cdi_devices; i++)
		at += (size_t)snprintf(allocating->names + at, allocating->size - at, "%s%s",
				       i ? "," : "",
				       response->container_responses[0]->cdi_devices[i]->name);
}

static bool is_over(void *arg)
{
	return ((struct allocating *)arg)->over;
}

enum rpc_code kubelet_allocate(struct kubelet *kubelet, struct kubelet_plugin *plugin,
			       const char *const *ids, size_t count, char *names, size_t size,
			       char *message, size_t message_size)
{
	struct allocating allocating = {
		.names = names, .size = size, .message = message, .message_size = message_size};
	V1beta1__AllocateRequest request = V1BETA1__ALLOCATE_REQUEST__INIT;
	V1beta1__ContainerAllocateRequest container = V1BETA1__CONTAINER_ALLOCATE_REQUEST__INIT,
					  *containers[] = {&container};
	CLEANUP(buf) struct buf bytes = {0};
	struct error error;

	container.devices_ids = (char **)(uintptr_t)ids;
	container.n_devices_ids = count;
	request.container_requests = containers;
	request.n_container_requests = 1;
	names[0] = '\0';
	expect_ok(allocate_request_pack(&request, &bytes, &error), &error);
	rpc_unary(plugin->client, METHOD_DEVICE_PLUGIN_ALLOCATE, 5000, 0, bytes.data, bytes.length,
		  on_allocated, &allocating);
	kubelet_until(kubelet->loop, is_over, &allocating, 6000, "Allocate is answered");
	return allocating.code;
}
