#include "node/deviceplugin_internal.h"
#include "proto/deviceplugin.pb-c.h"
#include "proto/message.h"
#include "proto/methods.h"
#include "sys/log.h"
#include "sys/net.h"
#include "sys/random.h"

#include <errno.h>

#define MAX_ENTRIES 4096
#define API_VERSION "v1beta1"

MESSAGE_TYPE(register_request, V1beta1__RegisterRequest, v1beta1__register_request)

static char *path_in(const char *folder, const char *prefix, const char *name)
{
	struct buf path = {0};

	buf_printf(&path, "%s%s/%s", prefix, folder, name);
	return buf_take_text(&path);
}

struct deviceplugin *deviceplugin_create(struct loop *loop,
					 const struct deviceplugin_options *options)
{
	struct deviceplugin *plugin = mem_alloc(sizeof *plugin);

	plugin->loop = loop;
	plugin->options = *options;
	plugin->kubelet_path = path_in(options->folder, "", "kubelet.sock");
	plugin->kubelet_address = path_in(options->folder, "unix:", "kubelet.sock");
	plugin->why = "not offered";
	return plugin;
}

static void end_call(struct deviceplugin *plugin)
{
	rpc_client_destroy(TAKE(plugin->client));
	plugin->calling = plugin->answered = false;
}

/* Ends the streams and takes the socket away. */
static void stop(struct deviceplugin *plugin)
{
	end_call(plugin);
	rpc_server_destroy(TAKE(plugin->server));
	vec_clear(&plugin->streams);
	free(TAKE(plugin->path));
	plugin->name[0] = '\0';
	plugin->accepted = false;
}

void deviceplugin_destroy(struct deviceplugin *plugin)
{
	if (!plugin)
		return;
	stop(plugin);
	vec_deinit(&plugin->streams);
	free(plugin->kubelet_path);
	free(plugin->kubelet_address);
	free(plugin);
}

void deviceplugin_clean(const char *folder)
{
	struct durable_names names = {0};
	struct error error; /* an absent folder has no leftovers; the rest is tried again */

	if (!durable_list(folder, MAX_ENTRIES, &names, &error))
		return;
	for (size_t i = 0; i < names.count; i++) {
		CLEANUP(free) char *path = path_in(folder, "", names.names[i]);

		if (!registration_is_name(names.names[i]) || !net_unix_is_socket(path) ||
		    net_unix_alive(path))
			continue;
		if (!durable_remove(path, &error))
			log_failure(LOG_WARN, "deviceplugin.leftover", &error, "it stays");
	}
	durable_names_deinit(&names);
}

/* --- registering --- */

static void failed(struct deviceplugin *plugin, const struct error *error)
{
	if (plugin->failures == 0 || !str_equal(plugin->error, error->what))
		log_failure(LOG_WARN, "deviceplugin.register", error, "it is tried again");
	str_copy(plugin->error, sizeof plugin->error, error->what);
	plugin->failures++;
	plugin->accepted = false;
}

static void on_registered(void *arg, const struct rpc_status *status, const uint8_t *data UNUSED,
			  size_t length UNUSED)
{
	struct deviceplugin *plugin = arg;
	char resource[OFFER_RESOURCE_SIZE];
	struct error error = {0};

	plugin->answered = true; /* the turn takes the client away */
	plugin->tried = loop_now(plugin->loop);
	plugin->options.wake(plugin->options.arg);
	if (status->code != RPC_OK) {
		rpc_status_to_error(status, &error);
		error_wrap(&error, "register with '%s'", plugin->kubelet_path);
		failed(plugin, &error);
		return;
	}
	offer_resource(resource, plugin->options.class);
	plugin->accepted = true;
	plugin->error[0] = '\0';
	log_info("deviceplugin.registered", "registered with the kubelet", "resource", resource,
		 "socket", plugin->name, NULL);
}

static bool make_request(const struct deviceplugin *plugin, struct buf *out, struct error *error)
{
	V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
	V1beta1__RegisterRequest message = V1BETA1__REGISTER_REQUEST__INIT;
	char resource[OFFER_RESOURCE_SIZE];

	offer_resource(resource, plugin->options.class);
	options.get_preferred_allocation_available = true;
	message.version = message_text(API_VERSION);
	message.endpoint = message_text(plugin->name);
	message.resource_name = resource;
	message.options = &options;
	return register_request_pack(&message, out, error);
}

/* A new server on a new socket: it answers before the kubelet hears of it. */
static bool serve(struct deviceplugin *plugin, struct error *error)
{
	uint32_t random;

	random_bytes(&random, sizeof random);
	registration_name(plugin->name, atom_class_name(plugin->options.class), random);
	plugin->path = path_in(plugin->options.folder, "", plugin->name);
	plugin->server = rpc_server_create(plugin->loop, deviceplugin_methods,
					   deviceplugin_method_count, plugin);
	if (!rpc_server_listen_unix(plugin->server, plugin->path, 0600, error))
		return false;
	plugin->own = durable_stamp(plugin->path);
	return true;
}

static void try_to_register(struct deviceplugin *plugin, struct mono now)
{
	static const struct rpc_client_handlers handlers = {0};
	CLEANUP(buf) struct buf request = {0};
	struct error error = {0};

	stop(plugin);
	deviceplugin_clean(plugin->options.folder);
	plugin->kubelet = durable_stamp(plugin->kubelet_path);
	plugin->ever_tried = true;
	plugin->tried = now;
	random_bytes(&plugin->jitter, sizeof plugin->jitter);
	if (!serve(plugin, &error) || !make_request(plugin, &request, &error)) {
		failed(plugin, &error);
		stop(plugin);
		return;
	}
	plugin->calling = true;
	plugin->client = rpc_client_create(plugin->loop, plugin->kubelet_address, NULL, 0,
					   &handlers, plugin);
	rpc_unary(plugin->client, METHOD_REGISTRATION_REGISTER, REGISTRATION_CALL_MS, 0,
		  request.data, request.length, on_registered, plugin);
}

/* One that can't be looked at is taken for what it was: a kubelet that is started again, or a socket that goes,
 * isn't noticed then. */
static void note_unseen(struct deviceplugin *plugin, int kubelet_os, int own_os)
{
	struct error error = {0};

	errno = kubelet_os ? kubelet_os : own_os;
	if (errno)
		error_os(&error, "stat '%s'", kubelet_os ? plugin->kubelet_path : plugin->path);
	if (errno && !str_equal(plugin->unseen, error.what))
		log_failure(LOG_WARN, "deviceplugin.look", &error, "it is taken for what it was");
	str_copy(plugin->unseen, sizeof plugin->unseen, error.what);
}

static void note_failing(struct deviceplugin *plugin, bool kubelet_present, struct mono now)
{
	bool unregistered = plugin->streams.count == 0 && *plugin->error;
	bool failing = plugin->options.offer->served && kubelet_present &&
		       (unregistered || *plugin->unseen);

	if (failing && !plugin->failing)
		plugin->failing_since = now;
	plugin->failing = failing;
}

/* Is it the same file? Its times change when somebody links or chmods it; the inode does not. */
static bool same_file(struct durable_stamp a, struct durable_stamp b)
{
	return a.exists && b.exists && a.device == b.device && a.inode == b.inode;
}

static bool same_socket(struct durable_stamp a, struct durable_stamp b)
{
	return same_file(a, b) && a.mtime_ns == b.mtime_ns;
}

struct mono deviceplugin_step(struct deviceplugin *plugin, struct mono now, bool *ret_timed)
{
	struct durable_stamp kubelet = durable_stamp(plugin->kubelet_path);
	struct durable_stamp own =
		plugin->server ? durable_stamp(plugin->path) : (struct durable_stamp){0};
	struct registration_view view;
	struct registration_plan plan;

	if (plugin->answered)
		end_call(plugin);
	note_unseen(plugin, kubelet.os, own.os);
	note_failing(plugin, kubelet.exists || kubelet.os, now);
	view = (struct registration_view){
		.wanted = plugin->options.offer->served,
		.kubelet_present = kubelet.exists || kubelet.os,
		.kubelet_new = kubelet.exists && !same_socket(kubelet, plugin->kubelet),
		.up = plugin->server,
		.own_lost = plugin->server && !own.os && !same_file(own, plugin->own),
		.calling = plugin->calling,
		.streaming = plugin->streams.count > 0,
		.accepted = plugin->accepted,
		.tried = plugin->tried,
		.ever_tried = plugin->ever_tried,
		.failures = plugin->failures,
		.jitter = plugin->jitter,
	};
	if (view.kubelet_new)
		view.failures = 0;
	plan = registration_decide(&view, now);
	plugin->why = plan.why;
	switch (plan.step) {
	case REGISTRATION_NOTHING:
		break;
	case REGISTRATION_STOP:
		stop(plugin);
		break;
	case REGISTRATION_REGISTER:
		if (view.kubelet_new)
			plugin->failures = 0;
		try_to_register(plugin, now);
		break;
	}
	*ret_timed = plan.timed;
	return plan.again;
}

struct deviceplugin_state deviceplugin_state(const struct deviceplugin *plugin)
{
	return (struct deviceplugin_state){
		.registered = plugin->streams.count > 0,
		.socket = plugin->name,
		.why = plugin->why,
		.error = *plugin->unseen ? plugin->unseen : plugin->error,
		.failing = plugin->failing,
		.failing_since = plugin->failing_since,
		.since = plugin->registered_since,
	};
}
