/* The stand-in on real sockets, with a device plugin in the same loop. */
#include "standin/control.h"

#include "lib/folder.h"
#include "lib/test.h"
#include "proto/deviceplugin.pb-c.h"
#include "proto/message.h"
#include "proto/methods.h"
#include "rpc/rpc.h"
#include "sys/durable.h"
#include "text/tree.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define GPU "bcd.dev/gpu"

MESSAGE_TYPE(options, V1beta1__DevicePluginOptions, v1beta1__device_plugin_options)
MESSAGE_TYPE(device_list, V1beta1__ListAndWatchResponse, v1beta1__list_and_watch_response)
MESSAGE_TYPE(allocate_request, V1beta1__AllocateRequest, v1beta1__allocate_request)
MESSAGE_TYPE(allocate_response, V1beta1__AllocateResponse, v1beta1__allocate_response)
MESSAGE_TYPE(register_request, V1beta1__RegisterRequest, v1beta1__register_request)

struct bench {
	void *folder; /* lib/folder.h: a path */
	struct loop *loop;
	struct standin *standin;
	struct rpc_server *server; /* the plugin's */
	struct rpc_client *kubelet;
	bool refuse; /* Allocate fails */
	/* the last answers */
	json_t *answer;
	bool registered;
	enum rpc_code code;
	char message[512];
	bool late;
	pid_t caller; /* of `kubelet-standin ctl` */
	int status;
};

/* --- a plugin with two devices --- */

static void answer(struct rpc_call *call, const struct buf *bytes)
{
	rpc_send(call, bytes->data, bytes->length);
	rpc_finish(call, RPC_OK, "");
}

static void on_options(struct rpc_call *call, void *arg UNUSED, const uint8_t *data UNUSED,
		       size_t length UNUSED)
{
	V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
	CLEANUP(buf) struct buf bytes = {0};
	struct error error;
	expect_ok(options_pack(&options, &bytes, &error), &error);
	answer(call, &bytes);
}

static void on_watch(struct rpc_call *call, void *arg UNUSED, const uint8_t *data UNUSED,
		     size_t length UNUSED)
{
	V1beta1__Device a = V1BETA1__DEVICE__INIT, b = V1BETA1__DEVICE__INIT;
	V1beta1__Device *devices[] = {&a, &b};
	V1beta1__ListAndWatchResponse list = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;
	CLEANUP(buf) struct buf bytes = {0};
	struct error error;
	a.id = message_text("a@alc");
	b.id = message_text("b@alc");
	a.health = b.health = message_text("Healthy");
	list.devices = devices;
	list.n_devices = 2;
	expect_ok(device_list_pack(&list, &bytes, &error), &error);
	rpc_send(call, bytes.data, bytes.length);
}

static void on_allocate(struct rpc_call *call, void *arg, const uint8_t *data, size_t length)
{
	struct bench *bench = arg;
	CLEANUP(message) V1beta1__AllocateRequest *request = NULL;
	V1beta1__ContainerAllocateResponse container = V1BETA1__CONTAINER_ALLOCATE_RESPONSE__INIT;
	V1beta1__ContainerAllocateResponse *containers[] = {&container};
	V1beta1__ContainerAllocateResponse__EnvsEntry env =
		V1BETA1__CONTAINER_ALLOCATE_RESPONSE__ENVS_ENTRY__INIT;
	V1beta1__ContainerAllocateResponse__EnvsEntry *envs[] = {&env};
	V1beta1__AllocateResponse response = V1BETA1__ALLOCATE_RESPONSE__INIT;
	CLEANUP(buf) struct buf bytes = {0};
	struct error error;
	if (bench->refuse) {
		rpc_finish(call, RPC_UNKNOWN, "device isn't bound");
		return;
	}
	expect_ok(allocate_request_unpack(data, length, &request, &error), &error);
	env.key = message_text("FIRST");
	env.value = request->container_requests[0]->devices_ids[0];
	container.envs = envs;
	container.n_envs = 1;
	response.container_responses = containers;
	response.n_container_responses = 1;
	expect_ok(allocate_response_pack(&response, &bytes, &error), &error);
	answer(call, &bytes);
}

static void plugin_start(struct bench *bench, const char *name)
{
	static const struct rpc_method methods[] = {
		{.path = METHOD_DEVICE_PLUGIN_GET_OPTIONS, .unary = true, .on_message = on_options},
		{.path = METHOD_DEVICE_PLUGIN_LIST_AND_WATCH,
		 .unary = true,
		 .on_message = on_watch},
		{.path = METHOD_DEVICE_PLUGIN_ALLOCATE, .unary = true, .on_message = on_allocate},
	};
	char path[512];
	struct error error;
	snprintf(path, sizeof path, "%s/%s", folder_path(&bench->folder, "device-plugins"), name);
	bench->server = rpc_server_create(bench->loop, methods, ARRAY_SIZE(methods), bench);
	expect_ok(rpc_server_listen_unix(bench->server, path, 0600, &error), &error);
}

static void on_registered(void *arg, const struct rpc_status *status, const uint8_t *data UNUSED,
			  size_t length UNUSED)
{
	struct bench *bench = arg;
	bench->registered = true;
	bench->code = status->code;
	str_copy(bench->message, sizeof bench->message, status->message);
}

static void plugin_register(struct bench *bench, const char *endpoint)
{
	static const struct rpc_client_handlers handlers = {0};
	V1beta1__RegisterRequest request = V1BETA1__REGISTER_REQUEST__INIT;
	CLEANUP(buf) struct buf bytes = {0};
	char address[512];
	struct error error;
	rpc_client_destroy(bench->kubelet);
	snprintf(address, sizeof address, "unix:%s/kubelet.sock",
		 folder_path(&bench->folder, "device-plugins"));
	bench->kubelet = rpc_client_create(bench->loop, address, NULL, 0, &handlers, NULL);
	request.version = message_text("v1beta1");
	request.endpoint = message_text(endpoint);
	request.resource_name = message_text(GPU);
	expect_ok(register_request_pack(&request, &bytes, &error), &error);
	bench->registered = false;
	rpc_unary(bench->kubelet, METHOD_REGISTRATION_REGISTER, 0, 0, bytes.data, bytes.length,
		  on_registered, bench);
}

/* --- asking and waiting --- */

static void on_answer(void *arg, json_t *given)
{
	struct bench *bench = arg;
	json_decref(bench->answer);
	bench->answer = json_incref(given);
}

static void on_late(void *arg)
{
	struct bench *bench = arg;
	bench->late = true;
	loop_stop(bench->loop);
}

struct wait {
	struct bench *bench;
	bool (*over)(struct bench *bench);
	struct loop_timer *timer;
};

static void on_look(void *arg)
{
	struct wait *wait = arg;
	if (wait->over(wait->bench))
		loop_stop(wait->bench->loop);
	else
		loop_timer_start(wait->timer, 5);
}

static void wait_for(struct bench *bench, bool (*over)(struct bench *bench))
{
	struct wait wait = {bench, over, NULL};
	struct loop_timer *late = loop_timer_create(bench->loop, on_late, bench);
	wait.timer = loop_timer_create(bench->loop, on_look, &wait);
	loop_timer_start(late, TEST_PATIENCE_MS);
	loop_timer_start(wait.timer, 0);
	loop_run(bench->loop);
	loop_timer_destroy(late);
	loop_timer_destroy(wait.timer);
	assert_false(bench->late);
}

static bool is_registered(struct bench *bench)
{
	return bench->registered;
}

static bool is_answered(struct bench *bench)
{
	return bench->answer != NULL;
}

/* The answer is the bench's until the next request. */
static json_t *ask(struct bench *bench, json_t *request)
{
	json_decref(TAKE(bench->answer));
	standin_request(bench->standin, request, on_answer, bench);
	json_decref(request);
	wait_for(bench, is_answered);
	return bench->answer;
}

static json_int_t allocatable(struct bench *bench)
{
	json_t *resources = json_object_get(
		json_object_get(ask(bench, json_pack("{s:s}", "verb", "node")), "node"),
		"resources");
	return json_integer_value(json_object_get(json_object_get(resources, GPU), "allocatable"));
}

/* Without a loop of its own: for wait_for(). */
static json_int_t allocatable_now(struct bench *bench)
{
	CLEANUP(tree) json_t *request = json_pack("{s:s}", "verb", "node");
	standin_request(bench->standin, request, on_answer, bench);
	json_t *node = json_object_get(bench->answer, "node");
	return json_integer_value(json_object_get(
		json_object_get(json_object_get(node, "resources"), GPU), "allocatable"));
}

static bool offers_two(struct bench *bench)
{
	return allocatable_now(bench) == 2;
}

static bool offers_none(struct bench *bench)
{
	return allocatable_now(bench) == 0;
}

static json_t *run_pod(struct bench *bench, const char *name, int count, bool bound)
{
	return json_object_get(
		ask(bench, json_pack("{s:s, s:s, s:s, s:i, s:b}", "verb", "run-pod", "name", name,
				     "resource", GPU, "count", count, "bound", bound)),
		"pod");
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

static void bench_start(struct bench *bench)
{
	struct error error;
	*bench = (struct bench){.folder = bench->folder, .loop = loop_create()};
	expect_ok(standin_create(bench->loop, &(struct standin_options){.root = bench->folder},
				 &bench->standin, &error),
		  &error);
}

static void bench_stop(struct bench *bench)
{
	rpc_client_destroy(bench->kubelet);
	rpc_server_destroy(bench->server);
	standin_destroy(bench->standin);
	json_decref(bench->answer);
	loop_destroy(bench->loop);
}

static int setup(void **state)
{
	struct bench *bench = mem_alloc(sizeof *bench);
	assert_int_equal(folder_make(&bench->folder), 0);
	bench_start(bench);
	*state = bench;
	return 0;
}

static int teardown(void **state)
{
	struct bench *bench = *state;
	bench_stop(bench);
	assert_int_equal(folder_remove(&bench->folder), 0);
	free(bench);
	return 0;
}

#define BENCH_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

/* The plugin is there, and known. */
static void plugin_offers(struct bench *bench, const char *name)
{
	plugin_start(bench, name);
	plugin_register(bench, name);
	wait_for(bench, offers_two);
}

/* --- tests --- */

static void test_pod_runs_waits_and_fails(void **state)
{
	struct bench *bench = *state;
	plugin_start(bench, "one.sock");
	plugin_register(bench, "one.sock");
	wait_for(bench, is_registered);
	assert_int_equal(bench->code, RPC_OK);
	wait_for(bench, offers_two);

	json_t *pod = run_pod(bench, "runs", 1, false);
	assert_string_equal(text_of(pod, "phase"), "Running");
	assert_string_equal(text_of(json_object_get(json_object_get(pod, "seen"), "env"), "FIRST"),
			    "a@alc");
	pod = run_pod(bench, "waits", 2, false);
	assert_string_equal(text_of(pod, "phase"), "Pending");
	assert_string_equal(text_of(pod, "reason"), "Unschedulable");
	pod = run_pod(bench, "too-many", 2, true);
	assert_string_equal(text_of(pod, "phase"), "Failed");
	bench->refuse = true;
	pod = run_pod(bench, "refused", 1, false);
	assert_string_equal(text_of(pod, "reason"), "UnexpectedAdmissionError");
	assert_non_null(strstr(text_of(pod, "message"), "device isn't bound"));
}

static bool caller_ended(struct bench *bench)
{
	return waitpid(bench->caller, &bench->status, WNOHANG) == bench->caller;
}

/* What a script sees of a pod that nothing can be given to. */
static void test_caller_tells_unschedulable(void **state)
{
	struct bench *bench = *state;
	struct standin_control *control;
	struct error error;
	expect_ok(control_listen(bench->loop, bench->folder, bench->standin, &control, &error),
		  &error);
	bench->caller = fork();
	assert_true(bench->caller >= 0);
	if (bench->caller == 0) {
		json_t *request = json_pack("{s:s, s:s, s:s, s:i}", "verb", "run-pod", "name",
					    "waits", "resource", GPU, "count", 1);
		_exit(control_call(bench->folder, request, TEST_PATIENCE_MS));
	}
	wait_for(bench, caller_ended);
	assert_true(WIFEXITED(bench->status));
	assert_int_equal(WEXITSTATUS(bench->status), 3);
	control_destroy(control);
}

/* Pods keep their devices over a restart; the plugin has to come back. */
static void test_restart(void **state)
{
	struct bench *bench = *state;
	plugin_offers(bench, "one.sock");
	run_pod(bench, "stays", 1, false);
	ask(bench, json_pack("{s:s}", "verb", "restart"));
	assert_int_equal(allocatable(bench), 0);
	assert_false(durable_stamp(folder_path(&bench->folder, "device-plugins/one.sock")).exists);
	json_t *pods = json_object_get(ask(bench, json_pack("{s:s}", "verb", "list")), "pods");
	json_t *stays = json_array_get(pods, json_array_size(pods) - 1);
	assert_string_equal(text_of(stays, "phase"), "Running");
	assert_int_equal(json_array_size(json_object_get(stays, "devices")), 1);
}

static void boot_forget(struct bench *bench)
{
	const char *path = folder_path(&bench->folder, "standin-pods.json");
	CLEANUP(buf) struct buf text = {0};
	struct error error;
	expect_ok(durable_read(path, 65536, &text, &error), &error);
	buf_add_char(&text, '\0');
	char *id = strstr((char *)text.data, "bootId");
	assert_non_null(id);
	id[strlen("bootId\": \"")] = 'x';
	expect_ok(durable_replace(path, text.data, text.length - 1, 0600, &error), &error);
}

/* After a boot no plugin is there yet when what ran is admitted again: the kubelet refuses it. */
static void test_boot(void **state)
{
	struct bench *bench = *state;
	plugin_offers(bench, "one.sock");
	run_pod(bench, "stays", 1, false);
	bench_stop(bench);
	boot_forget(bench);
	bench_start(bench);
	wait_for(bench, offers_none);
	json_t *pods = json_object_get(ask(bench, json_pack("{s:s}", "verb", "list")), "pods");
	json_t *pod = json_array_get(pods, 0);
	assert_string_equal(text_of(pod, "reason"), "UnexpectedAdmissionError");
	assert_int_equal(json_array_size(json_object_get(pod, "devices")), 0);
}

static void test_plugin_ends(void **state)
{
	struct bench *bench = *state;
	plugin_offers(bench, "one.sock");
	rpc_server_destroy(TAKE(bench->server));
	wait_for(bench, offers_none);
	/* Its path is free again. */
	plugin_offers(bench, "one.sock");
}

/* As kubelet 1.37.2: a path on record is refused, and with that the end of the first is missed. */
static void test_path_on_record(void **state)
{
	struct bench *bench = *state;
	plugin_offers(bench, "one.sock");
	plugin_register(bench, "one.sock");
	wait_for(bench, is_registered);
	assert_int_equal(bench->code, RPC_UNKNOWN);
	assert_non_null(strstr(bench->message, "device plugin already connected"));
	rpc_server_destroy(TAKE(bench->server));
	plugin_start(bench, "one.sock");
	plugin_register(bench, "one.sock");
	wait_for(bench, is_registered);
	assert_int_equal(bench->code, RPC_UNKNOWN);
	assert_int_equal(allocatable(bench), 2);
	/* A new name is what helps. */
	plugin_register(bench, "two.sock");
	rpc_server_destroy(TAKE(bench->server));
	plugin_start(bench, "two.sock");
	wait_for(bench, is_registered);
	assert_int_equal(bench->code, RPC_OK);
}

static void test_one_a_root(void **state)
{
	struct bench *bench = *state;
	struct standin *second;
	struct error error;
	expect_error(standin_create(bench->loop, &(struct standin_options){.root = bench->folder},
				    &second, &error),
		     &error, ERROR_CONFLICT, "standin.lock");
}

static void test_bad_requests(void **state)
{
	static const char *const requests[] = {
		"{}",
		"{\"verb\":\"dance\"}",
		"{\"verb\":\"run-pod\"}",
		"{\"verb\":\"delete-pod\",\"name\":\"nobody\"}",
		"{\"verb\":\"restart\",\"downMs\":-1}",
	};
	struct bench *bench = *state;
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		json_t *request;
		struct error error;
		expect_ok(tree_parse(requests[i], strlen(requests[i]), 4096, "test", &request,
				     &error),
			  &error);
		json_t *given = ask(bench, request);
		assert_true(json_is_false(json_object_get(given, "ok")));
		assert_true(strlen(text_of(given, "error")) > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BENCH_TEST(test_pod_runs_waits_and_fails),
		BENCH_TEST(test_caller_tells_unschedulable),
		BENCH_TEST(test_restart),
		BENCH_TEST(test_boot),
		BENCH_TEST(test_plugin_ends),
		BENCH_TEST(test_path_on_record),
		BENCH_TEST(test_one_a_root),
		BENCH_TEST(test_bad_requests),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
