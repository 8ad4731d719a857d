/* net's connects: a name is looked up on a worker, then its addresses are tried in turn. */
#include "sys/net.h"

#include "sys/net_uv.h"

#include <errno.h>
#include <unistd.h>

struct net_dial {
	struct loop *loop;
	net_connect_fn *fn; /* NULL once cancelled */
	void *arg;
	char *address;
	struct net_conn *conn; /* being connected */
	uv_connect_t connect;
	uv_getaddrinfo_t lookup;
	struct addrinfo *found, *next; /* `next` is tried after the one under way */
	int status;                    /* of the address tried last */
	struct loop_timer *failed;     /* tells an immediate failure from the loop */
	struct error error;            /* that failure */
};

static void dial_free(struct net_dial *dial)
{
	if (dial->found)
		uv_freeaddrinfo(dial->found);
	loop_timer_destroy(dial->failed);
	free(dial->address);
	free(dial);
}

static struct net_dial *dial_create(struct loop *loop, const char *address, net_connect_fn *fn,
				    void *arg)
{
	struct net_dial *dial = mem_alloc(sizeof *dial);

	dial->loop = loop;
	dial->fn = fn;
	dial->arg = arg;
	dial->address = mem_strdup(address);
	dial->connect.data = dial;
	dial->lookup.data = dial;
	return dial;
}

static void on_failed(void *arg)
{
	struct net_dial *dial = arg;
	struct error error = dial->error;
	net_connect_fn *fn = dial->fn;
	void *fn_arg = dial->arg;

	dial_free(dial);
	fn(fn_arg, NULL, &error);
}

static void fail(struct net_dial *dial, int status)
{
	net_error(&dial->error, status, "connect to", dial->address);
	on_failed(dial);
}

/* The callback never comes from inside net_connect_…(). */
static void fail_soon(struct net_dial *dial)
{
	dial->failed = loop_timer_create(dial->loop, on_failed, dial);
	loop_timer_start(dial->failed, 0);
}

static void dial_succeed(struct net_dial *dial)
{
	net_connect_fn *fn = dial->fn;
	struct net_conn *conn = TAKE(dial->conn);
	void *arg = dial->arg;

	dial_free(dial);
	net_conn_identify(conn);
	fn(arg, conn, NULL);
}

static void try_next(struct net_dial *dial);

static void on_connected(uv_connect_t *connect, int status)
{
	struct net_dial *dial = connect->data;

	if (!dial->fn) { /* cancelled: the connection is closing already */
		dial_free(dial);
		return;
	}
	if (status == 0) {
		dial_succeed(dial);
		return;
	}
	net_close(TAKE(dial->conn));
	dial->status = status;
	try_next(dial);
}

/* --- unix --- */

struct net_dial *net_connect_unix(struct loop *loop, const char *path, net_connect_fn *fn,
				  void *arg)
{
	struct net_dial *dial = dial_create(loop, path, fn, arg);
	struct net_unix_path opened;

	if (!net_unix_path_open(path, &opened)) {
		net_error(&dial->error, -errno, "connect to", path);
		fail_soon(dial);
		return dial;
	}
	dial->conn = net_conn_create(loop, true);
	/* The connect itself happens in here; only its outcome comes later. */
	uv_pipe_connect(&dial->connect, &dial->conn->uv.pipe, opened.short_path, on_connected);
	close(opened.folder);
	return dial;
}

/* --- TCP --- */

static void try_next(struct net_dial *dial)
{
	while (dial->next) {
		const struct sockaddr *address = dial->next->ai_addr;

		dial->next = dial->next->ai_next;
		dial->conn = net_conn_create(dial->loop, false);
		dial->status =
			uv_tcp_connect(&dial->connect, &dial->conn->uv.tcp, address, on_connected);
		if (dial->status == 0)
			return;
		net_close(TAKE(dial->conn));
	}
	fail(dial, dial->status);
}

static void on_found(uv_getaddrinfo_t *lookup, int status, struct addrinfo *found)
{
	struct net_dial *dial = lookup->data;

	dial->found = found;
	if (!dial->fn) {
		dial_free(dial);
		return;
	}
	if (status < 0) {
		fail(dial, status);
		return;
	}
	dial->next = found;
	try_next(dial);
}

struct net_dial *net_connect_tcp(struct loop *loop, const char *address, net_connect_fn *fn,
				 void *arg)
{
	struct net_dial *dial = dial_create(loop, address, fn, arg);
	struct addrinfo hints = {.ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
	struct net_address parts;
	int status;

	if (!net_address_parse(address, &parts, &dial->error)) {
		fail_soon(dial);
		return dial;
	}
	status = uv_getaddrinfo(loop_uv(loop), &dial->lookup, on_found, parts.host, parts.port,
				&hints);
	if (status < 0) {
		net_error(&dial->error, status, "connect to", address);
		fail_soon(dial);
	}
	return dial;
}

void net_dial_cancel(struct net_dial *dial)
{
	if (!dial)
		return;
	if (dial->failed) {
		dial_free(dial);
		return;
	}
	/* libuv still holds the request: its callback frees the dial. */
	dial->fn = NULL;
	if (dial->conn)
		net_close(TAKE(dial->conn));
	else
		uv_cancel((uv_req_t *)&dial->lookup);
}
