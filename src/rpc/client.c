#include "rpc/conn.h"

#include "sys/random.h"

struct rpc_client {
	struct loop *loop;
	struct conn *conn;
	struct net_dial *dial; /* NULL once connected, or failed */
	char *address;
	uint64_t next_id;
	struct rpc_client_handlers handlers;
	void *arg;
};

static void on_up(void *arg, struct conn *conn)
{
	(void)conn;
	struct rpc_client *client = arg;
	if (client->handlers.on_up)
		client->handlers.on_up(client->arg);
}

static void on_end(void *arg, struct conn *conn, const struct error *error)
{
	(void)conn; /* stays: later calls end on it */
	struct rpc_client *client = arg;
	struct error told = *error;
	if (client->dial) /* it took too long */
		net_dial_cancel(TAKE(client->dial));
	error_wrap(&told, "connection to '%s'", client->address);
	if (client->handlers.on_down)
		client->handlers.on_down(client->arg, &told);
}

static void on_connect(void *arg, struct net_conn *net, const struct error *error)
{
	struct rpc_client *client = arg;
	client->dial = NULL;
	if (net) {
		conn_start(client->conn, net);
		return;
	}
	struct error told = *error;
	told.code = ERROR_UNAVAILABLE; /* whatever it is now, it may be there later */
	conn_fail(client->conn, &told);
}

struct rpc_client *rpc_client_create(struct loop *loop, const char *address, struct rpc_tls *tls,
				     int64_t keepalive_ms,
				     const struct rpc_client_handlers *handlers, void *arg)
{
	static const struct conn_handlers conn_handlers = {.on_up = on_up, .on_end = on_end};
	struct rpc_client *client = mem_alloc(sizeof *client);
	bool is_unix = str_starts(address, "unix:");
	const struct session_options options = {
		.keepalive_ms = keepalive_ms,
		.scheme = tls ? "https" : "http",
		/* A socket's path is no authority: strict peers refuse it. */
		.authority = tls       ? tls->server_name
			     : is_unix ? "localhost"
				       : address,
	};
	client->loop = loop;
	client->address = mem_strdup(address);
	client->handlers = *handlers;
	client->arg = arg;
	random_bytes(&client->next_id, sizeof client->next_id);
	client->conn = conn_create(loop, tls, &options, &conn_handlers, client);
	client->dial =
		is_unix ? net_connect_unix(loop, address + strlen("unix:"), on_connect, client)
			: net_connect_tcp(loop, address, on_connect, client);
	return client;
}

bool rpc_client_is_up(const struct rpc_client *client)
{
	return conn_is_up(client->conn);
}

void rpc_client_destroy(struct rpc_client *client)
{
	if (!client)
		return;
	if (client->dial)
		net_dial_cancel(client->dial);
	conn_destroy(client->conn);
	free(client->address);
	free(client);
}

struct rpc_call *rpc_call_start(struct rpc_client *client, const char *path, int64_t deadline_ms,
				size_t max_message, const struct rpc_call_handlers *handlers,
				void *arg)
{
	return conn_request(client->conn, client->next_id++, path, deadline_ms, max_message,
			    handlers, arg);
}
