#include "standin/registration.h"

#include "proto/message.h"
#include "proto/methods.h"
#include "sys/durable.h"
#include "sys/log.h"
#include "sys/net.h"

#include <stdio.h>

#define REGISTRATION_MAX_ENTRIES 65536

MESSAGE_TYPE(register_request, V1beta1__RegisterRequest, v1beta1__register_request)

struct client {
	struct plugin *plugin;
	uint64_t id;
	struct rpc_call *registering; /* its Register call, until that is answered or gone */
	bool known;   /* its end would be noticed; a refused twin of its path takes that away */
	bool closing; /* to be destroyed by the deferred function */
};

struct registration {
	struct loop *loop;
	char *folder;
	struct manager *manager;
	const struct registration_handlers *handlers;
	void *arg;
	struct rpc_server *server;
	struct loop_defer *sweep;
	VEC(struct client) clients;
	uint64_t last_id;
	bool destroying;
};

static struct client *client_by_plugin(struct registration *registration,
				       const struct plugin *plugin)
{
	vec_each (&registration->clients, struct client * client)
		if (client->plugin == plugin)
			return client;
	return NULL;
}

static void client_close(struct registration *registration, struct client *client)
{
	client->closing = true;
	client->known = false;
	loop_defer_arm(registration->sweep);
}

static void on_sweep(void *arg)
{
	struct registration *registration = arg;
	for (size_t i = registration->clients.count; i-- > 0;) {
		struct client client = registration->clients.items[i];
		if (!client.closing)
			continue;
		vec_remove(&registration->clients, i);
		plugin_destroy(client.plugin);
	}
}

/* --- what a plugin tells --- */

/* Forgets every client of this resource and path, as the kubelet does when one of them is refused:
 * the end of the others is not noticed any more. */
static void clients_forget(struct registration *registration, const struct plugin *plugin)
{
	vec_each (&registration->clients, struct client * client)
		if (str_equal(plugin_resource(client->plugin), plugin_resource(plugin)) &&
		    str_equal(plugin_path(client->plugin), plugin_path(plugin)))
			client->known = false;
}

static void on_connected(void *arg, struct plugin *plugin, const struct rpc_status *status)
{
	struct registration *registration = arg;
	struct client *client = client_by_plugin(registration, plugin);
	struct rpc_call *call = TAKE(client->registering);
	if (client->closing)
		return;
	struct error error = {0};
	bool ok = status->code == RPC_OK;
	if (!ok)
		error_set(&error, ERROR_UNAVAILABLE, "%s", status->message);
	else
		ok = manager_connected(registration->manager, plugin_resource(plugin),
				       plugin_id(plugin), plugin_path(plugin), &error);
	if (!ok) {
		log_warn("register", "a plugin is refused", "resource", plugin_resource(plugin),
			 "socket", plugin_path(plugin), "error", error.what, NULL);
		clients_forget(registration, plugin);
		client_close(registration, client);
		if (call)
			rpc_finish(call, RPC_UNKNOWN, error.what);
		return;
	}
	log_info("register", "device plugin registered", "resource", plugin_resource(plugin),
		 "socket", plugin_path(plugin), NULL);
	if (call) {
		rpc_send(call, "", 0);
		rpc_finish(call, RPC_OK, "");
	}
	plugin_watch(plugin);
}

static void on_devices(void *arg, struct plugin *plugin, struct manager_devices *devices)
{
	struct registration *registration = arg;
	if (client_by_plugin(registration, plugin)->closing)
		return;
	manager_update(registration->manager, plugin_resource(plugin), devices);
	registration->handlers->on_change(registration->arg);
}

static void on_ended(void *arg, struct plugin *plugin, const struct rpc_status *status)
{
	struct registration *registration = arg;
	struct client *client = client_by_plugin(registration, plugin);
	log_warn("plugin", "ListAndWatch ended", "resource", plugin_resource(plugin), "status",
		 rpc_code_name(status->code), "message", status->message, NULL);
	if (!client->known)
		return;
	client_close(registration, client);
	manager_disconnected(registration->manager, plugin_resource(plugin), plugin_path(plugin),
			     loop_now(registration->loop));
	registration->handlers->on_change(registration->arg);
}

/* --- Register --- */

static bool request_check(const V1beta1__RegisterRequest *request, struct error *error)
{
	if (!str_equal(request->version, "v1beta1"))
		return error_field(error, "version", "'%s' is not supported, only 'v1beta1' is",
				   request->version);
	if (!manager_resource_name_valid(request->resource_name))
		return error_field(error, "resource_name",
				   "'%s' can't be the name of an extended resource",
				   request->resource_name);
	if (request->endpoint[0] == '\0' || strchr(request->endpoint, '/'))
		return error_field(error, "endpoint", "'%s' is not a socket's base name",
				   request->endpoint);
	return true;
}

static void on_register(struct rpc_call *call, void *arg, const uint8_t *data, size_t length)
{
	struct registration *registration = arg;
	CLEANUP(message) V1beta1__RegisterRequest *request = NULL;
	struct error error;
	if (!register_request_unpack(data, length, &request, &error)) {
		rpc_finish_error(call, &error);
		return;
	}
	registration->handlers->on_register(registration->arg, request->resource_name);
	if (!request_check(request, &error)) {
		rpc_finish(call, RPC_UNKNOWN, error.what);
		return;
	}
	static const struct plugin_handlers handlers = {on_connected, on_devices, on_ended};
	CLEANUP(buf) struct buf path = {0};
	buf_printf(&path, "%s/%s", registration->folder, request->endpoint);
	struct client *client = vec_push(&registration->clients);
	client->id = ++registration->last_id;
	client->known = true;
	client->registering = call;
	client->plugin = plugin_create(registration->loop, client->id, request->resource_name,
				       buf_text(&path), &handlers, registration);
}

/* Who stops waiting for Register is not connected to any more. */
static void on_register_done(struct rpc_call *call, void *arg,
			     const struct rpc_status *status UNUSED)
{
	struct registration *registration = arg;
	vec_each (&registration->clients, struct client * client) {
		if (client->registering != call)
			continue;
		client->registering = NULL;
		if (!registration->destroying)
			client_close(registration, client);
	}
}

/* --- life --- */

static bool sockets_remove(const char *folder, struct error *error)
{
	struct durable_names names = {0};
	if (!durable_list(folder, REGISTRATION_MAX_ENTRIES, &names, error))
		return false;
	bool ok = true;
	for (size_t i = 0; ok && i < names.count; i++) {
		CLEANUP(buf) struct buf path = {0};
		buf_printf(&path, "%s/%s", folder, names.names[i]);
		if (net_unix_is_socket(buf_text(&path)))
			ok = durable_remove(buf_text(&path), error);
	}
	durable_names_deinit(&names);
	return ok;
}

bool registration_create(struct loop *loop, const char *folder, struct manager *manager,
			 const struct registration_handlers *handlers, void *arg,
			 struct registration **ret_registration, struct error *error)
{
	static const struct rpc_method methods[] = {{
		.path = METHOD_REGISTRATION_REGISTER,
		.unary = true,
		.on_message = on_register,
		.on_done = on_register_done,
	}};
	if (!sockets_remove(folder, error))
		return false;
	struct registration *registration = mem_alloc(sizeof *registration);
	*registration = (struct registration){.loop = loop,
					      .folder = mem_strdup(folder),
					      .manager = manager,
					      .handlers = handlers,
					      .arg = arg};
	registration->sweep = loop_defer_create(loop, on_sweep, registration);
	registration->server = rpc_server_create(loop, methods, ARRAY_SIZE(methods), registration);
	CLEANUP(buf) struct buf path = {0};
	buf_printf(&path, "%s/kubelet.sock", folder);
	if (!rpc_server_listen_unix(registration->server, buf_text(&path), 0600, error)) {
		registration_destroy(registration);
		return false;
	}
	*ret_registration = registration;
	return true;
}

void registration_destroy(struct registration *registration)
{
	if (!registration)
		return;
	registration->destroying = true;
	rpc_server_destroy(registration->server);
	vec_each (&registration->clients, struct client * client)
		plugin_destroy(client->plugin);
	vec_deinit(&registration->clients);
	loop_defer_destroy(registration->sweep);
	free(registration->folder);
	free(registration);
}

struct plugin *registration_plugin(struct registration *registration, const char *name)
{
	struct manager_resource *resource = manager_find(registration->manager, name);
	if (!resource || resource->stopped)
		return NULL;
	vec_each (&registration->clients, struct client * client)
		if (client->id == resource->primary && !client->closing)
			return client->plugin;
	return NULL;
}
