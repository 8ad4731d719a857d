#include "rpc/conn.h"

#include "base/vec.h"
#include "sys/random.h"

/* A peer that went away without a word is found out; on one machine the kernel tells. */
#define SERVER_KEEPALIVE_MS 60000

struct listener {
	struct rpc_server *server;
	struct net_listener *net;
	struct rpc_tls *tls; /* NULL: plain */
	bool is_unix;
};

struct rpc_server {
	struct loop *loop;
	const struct rpc_method *methods;
	struct session_method *session_methods; /* one each, in the same order */
	size_t count;
	void *arg;
	uint64_t next_id;
	size_t max_connections;
	VEC(struct listener *) listeners;
	VEC(struct conn *) conns;
	char *address;
	struct loop_defer *drained; /* tells on_drained; NULL unless draining */
	loop_fn *on_drained;
	void *on_drained_arg;
};

/* --- calls --- */

static struct rpc_call *on_start(void *arg, struct conn *conn, struct call *call)
{
	struct rpc_server *server = arg;
	size_t index = (size_t)(call_method(call) - server->session_methods);
	const struct rpc_method *method = &server->methods[index];
	struct rpc_call *rpc = mem_alloc(sizeof *rpc);
	rpc->conn = conn;
	rpc->call = call;
	rpc->id = server->next_id++;
	rpc->handlers =
		(struct rpc_call_handlers){method->on_message, method->on_drain, method->on_done};
	rpc->on_half_close = method->on_half_close;
	rpc->arg = server->arg;
	call_set_owner(call, rpc);
	if (method->on_start)
		method->on_start(rpc, server->arg);
	return rpc;
}

/* --- connections --- */

static void tell_if_drained(struct rpc_server *server)
{
	if (server->drained && server->conns.count == 0)
		loop_defer_arm(server->drained);
}

static void on_end(void *arg, struct conn *conn, const struct error *error)
{
	(void)error; /* the calls were told; nobody else is concerned */
	struct rpc_server *server = arg;
	for (size_t i = 0; i < server->conns.count; i++)
		if (server->conns.items[i] == conn) {
			vec_remove(&server->conns, i);
			break;
		}
	conn_destroy(conn);
	tell_if_drained(server);
}

static void on_accept(void *arg, struct net_conn *net)
{
	static const struct conn_handlers handlers = {.on_start = on_start, .on_end = on_end};
	struct listener *listener = arg;
	struct rpc_server *server = listener->server;
	if (!net)
		return; /* the socket is broken for good; whoever watches it makes a new server */
	if (server->conns.count >= server->max_connections) {
		net_close(net);
		return;
	}
	const struct session_options options = {
		.server = true,
		.keepalive_ms = listener->is_unix ? 0 : SERVER_KEEPALIVE_MS,
		.methods = server->session_methods,
		.methods_count = server->count,
	};
	struct conn *conn = conn_create(server->loop, listener->tls, &options, &handlers, server);
	*vec_push(&server->conns) = conn;
	conn_start(conn, net);
}

/* --- life --- */

struct rpc_server *rpc_server_create(struct loop *loop, const struct rpc_method *methods,
				     size_t count, void *arg)
{
	struct rpc_server *server = mem_alloc(sizeof *server);
	server->loop = loop;
	server->methods = methods;
	server->count = count;
	server->arg = arg;
	server->max_connections = RPC_MAX_CONNECTIONS;
	random_bytes(&server->next_id, sizeof server->next_id);
	server->session_methods = mem_alloc(count * sizeof *server->session_methods);
	for (size_t i = 0; i < count; i++)
		server->session_methods[i] = (struct session_method){
			.path = methods[i].path,
			.one_request = methods[i].unary,
			.max_message = methods[i].max_message ? methods[i].max_message
							      : RPC_MAX_MESSAGE_DEFAULT,
		};
	return server;
}

void rpc_server_limit_connections(struct rpc_server *server, size_t limit)
{
	server->max_connections = limit;
}

static struct listener *listener_add(struct rpc_server *server, struct rpc_tls *tls, bool is_unix)
{
	struct listener *listener = mem_alloc(sizeof *listener);
	listener->server = server;
	listener->tls = tls;
	listener->is_unix = is_unix;
	return *vec_push(&server->listeners) = listener;
}

static bool listening(struct rpc_server *server, struct listener *listener, bool done)
{
	if (!done) {
		server->listeners.count--;
		free(listener);
		return false;
	}
	free(server->address);
	server->address = mem_strdup(net_listener_address(listener->net));
	return true;
}

bool rpc_server_listen_unix(struct rpc_server *server, const char *path, mode_t mode,
			    struct error *error)
{
	struct listener *listener = listener_add(server, NULL, true);
	return listening(server, listener,
			 net_listen_unix(server->loop, path, mode, on_accept, listener,
					 &listener->net, error));
}

bool rpc_server_listen_tcp(struct rpc_server *server, const char *address, struct rpc_tls *tls,
			   struct error *error)
{
	struct listener *listener = listener_add(server, tls, false);
	return listening(
		server, listener,
		net_listen_tcp(server->loop, address, on_accept, listener, &listener->net, error));
}

void rpc_server_set_tls(struct rpc_server *server, struct rpc_tls *tls)
{
	for (size_t i = 0; i < server->listeners.count; i++) {
		if (server->listeners.items[i]->tls)
			server->listeners.items[i]->tls = tls;
	}
}

const char *rpc_server_address(const struct rpc_server *server)
{
	return server->address ? server->address : "";
}

static void stop_listening(struct rpc_server *server)
{
	for (size_t i = 0; i < server->listeners.count; i++) {
		net_listener_destroy(server->listeners.items[i]->net);
		free(server->listeners.items[i]);
	}
	vec_deinit(&server->listeners);
}

static void on_drained(void *arg)
{
	struct rpc_server *server = arg;
	server->on_drained(server->on_drained_arg); /* and it may be gone now */
}

void rpc_server_drain(struct rpc_server *server, loop_fn *fn, void *arg)
{
	server->on_drained = fn;
	server->on_drained_arg = arg;
	if (!server->drained)
		server->drained = loop_defer_create(server->loop, on_drained, server);
	stop_listening(server);
	for (size_t i = 0; i < server->conns.count; i++)
		conn_drain(server->conns.items[i]);
	tell_if_drained(server);
}

void rpc_server_destroy(struct rpc_server *server)
{
	if (!server)
		return;
	stop_listening(server);
	/* Whoever is told of a call's end may look at the server, not change it. */
	while (server->conns.count) {
		struct conn *conn = server->conns.items[server->conns.count - 1];
		server->conns.count--;
		conn_destroy(conn);
	}
	vec_deinit(&server->conns);
	loop_defer_destroy(server->drained);
	free(server->session_methods);
	free(server->address);
	free(server);
}
