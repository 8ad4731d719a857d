#include "node/teller.h"

#include "base/vec.h"
#include "node/identity.h"
#include "sys/durable.h"
#include "sys/net.h"
#include "text/tree.h"

#define MAX_CONNECTIONS 64

struct listening {
	struct teller *teller;
	struct net_conn *conn;
};

struct teller {
	struct net_listener *listener;
	teller_fn *fn;
	void *arg;
	VEC(struct listening *) conns;
};

static void drop(struct listening *conn)
{
	struct teller *teller = conn->teller;

	for (size_t i = 0; i < teller->conns.count; i++) {
		if (teller->conns.items[i] != conn)
			continue;
		vec_remove(&teller->conns, i);
		break;
	}
	free(conn);
}

static void on_data(void *arg UNUSED, const uint8_t *data UNUSED, size_t length UNUSED)
{
	/* whatever is asked, there is one answer */
}

static void on_drain(void *arg)
{
	struct listening *conn = arg;

	net_close(conn->conn);
	drop(conn);
}

static void on_close(void *arg, const struct error *error UNUSED)
{
	drop(arg);
}

static void on_accept(void *arg, struct net_conn *net)
{
	static const struct net_handlers handlers = {
		.on_data = on_data, .on_drain = on_drain, .on_close = on_close};
	struct teller *teller = arg;
	CLEANUP(tree) json_t *tree = NULL;
	CLEANUP(buf) struct buf text = {0};
	struct listening *conn;

	if (!net)
		return;
	if (teller->conns.count >= MAX_CONNECTIONS) {
		net_close(net);
		return;
	}
	conn = mem_alloc(sizeof *conn);
	conn->teller = teller;
	conn->conn = net;
	*vec_push(&teller->conns) = conn;
	tree = teller->fn(teller->arg);
	tree_dump_pretty(&text, tree);
	net_start(net, &handlers, conn);
	net_write(net, text.data, text.length);
	if (net_queued(net) == 0)
		on_drain(conn);
}

bool teller_create(struct loop *loop, const char *folder, const char *name, teller_fn *fn,
		   void *arg, struct teller **ret_teller, struct error *error)
{
	CLEANUP(free) char *path = identity_path(folder, name);
	struct teller *teller;

	if (!durable_make_folder(folder, 0700, error))
		return error_wrap(error, "the run folder");
	if (net_unix_is_socket(path) && !net_unix_alive(path) && !durable_remove(path, error))
		return false;
	teller = mem_alloc(sizeof *teller);
	teller->fn = fn;
	teller->arg = arg;
	if (!net_listen_unix(loop, path, 0600, on_accept, teller, &teller->listener, error)) {
		free(teller);
		return false;
	}
	*ret_teller = teller;
	return true;
}

void teller_destroy(struct teller *teller)
{
	if (!teller)
		return;
	while (teller->conns.count > 0) {
		struct listening *conn = teller->conns.items[0];

		net_close(conn->conn);
		drop(conn);
	}
	vec_deinit(&teller->conns);
	net_listener_destroy(teller->listener);
	free(teller);
}
