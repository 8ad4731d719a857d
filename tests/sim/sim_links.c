/* rpc/rpc.h's servers and clients, and rpc/tls.h: who listens, who is connected, what is on its way. */
#include "sim/sim_links.h"

#include "rpc/tls.h"
#include "sim/sim_faults.h"
#include "sim/sim_fs.h"
#include "sim/sim_rpc.h"
#include "text/base64.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LOCAL_MS   1 /* how long a message usually takes on a unix socket */
#define NETWORK_MS 5
#define BUSY_MS    1500 /* until a busy program looks at a connection that ended, at most */

struct rpc_tls {
	struct buf der; /* our certificate; empty: none */
};

struct binding {
	struct rpc_server *server;
	char *address; /* tcp, or the socket's path */
	uint64_t inode;
};

static struct {
	VEC(struct link *) all; /* by id - 1 */
	VEC(struct binding) bindings;
	bool apart;
} links;

/* --- frames --- */

struct link *links_get(uint64_t id)
{
	return id > 0 && id <= links.all.count ? links.all.items[id - 1] : NULL;
}

void frame_free(struct frame *frame)
{
	buf_deinit(&frame->data);
	free(frame);
}

static struct sim_process *receiver(const struct link *link, bool to_server)
{
	if (to_server)
		return link->server ? link->server->process : NULL;
	return link->client ? link->client->process : NULL;
}

/* A stream's end may still hear what the other said before the connection broke, long after that one
 * has gone on to another connection. */
static bool still_comes(const struct link *link, bool to_server)
{
	return receiver(link, to_server) && !link->lost[to_server] && !link->noticed[to_server];
}

static void on_frame(void *arg);

/* True: it comes later. In order: whatever would come until then waits for the same moment. */
static bool is_late(struct link *link, struct frame *frame)
{
	int64_t late_ms = link->late_ms[frame->to_server];
	if (!link->cut || !still_comes(link, frame->to_server) || sim.now_ms > late_ms ||
	    (sim.now_ms == late_ms && frame->late))
		return false;
	frame->late = true;
	sim_schedule(receiver(link, frame->to_server), late_ms - sim.now_ms, on_frame, frame)
		->is_work = true;
	return true;
}

static void on_frame(void *arg)
{
	struct frame *frame = arg;
	struct link *link = links_get(frame->link);
	if (sim_effective() && is_late(link, frame))
		return;
	if (sim_effective() && (!link->cut || still_comes(link, frame->to_server)))
		calls_take(link, frame);
	frame_free(frame);
}

void links_send(struct link *link, struct frame *frame)
{
	struct sim_process *to = frame->to_server ? link->server->process : link->client->process;
	int64_t *last = &link->last_ms[frame->to_server];
	int64_t at = sim.now_ms + sim_delay(link->local ? LOCAL_MS : NETWORK_MS);
	if (at < *last)
		at = *last;
	*last = at;
	frame->link = link->id;
	sim_schedule(to, at - sim.now_ms, on_frame, frame)->is_work = true;
}

/* --- connections --- */

struct notice {
	uint64_t link;
	bool to_server;
};

static void client_down(struct rpc_client *client, const char *why)
{
	struct error error;
	calls_of_client_fail(client, why);
	vec_each (&client->waiting, struct frame * *frame)
		frame_free(*frame);
	vec_clear(&client->waiting);
	client->up = false;
	client->down = true;
	error_set(&error, ERROR_UNAVAILABLE, "%s: %s", client->address, why);
	if (client->handlers.on_down)
		client->handlers.on_down(client->arg, &error);
}

static void on_notice(void *arg)
{
	struct notice notice = *(struct notice *)arg;
	free(arg);
	struct link *link = links_get(notice.link);
	if (!sim_effective())
		return;
	link->noticed[notice.to_server] = true;
	if (notice.to_server)
		calls_of_link_fail(link, "connection lost");
	else if (link->client && !link->client->down)
		client_down(link->client, "connection lost");
}

static void notify(struct link *link, bool to_server, int64_t delay_ms)
{
	struct notice *notice = mem_alloc(sizeof *notice);
	*notice = (struct notice){link->id, to_server};
	struct sim_process *process = to_server ? link->server->process : link->client->process;
	sim_schedule(process, delay_ms, on_notice, notice)->is_work = true;
}

/* Half of the time what is on its way is lost; else it comes, by and by: after `late_ms` at most. */
static void leave_on_its_way(struct link *link, bool to_server, int64_t late_ms)
{
	link->lost[to_server] = link->local || sim_below(2) == 0;
	link->late_ms[to_server] = sim.now_ms;
	if (late_ms > 0 && sim_chance(2))
		link->late_ms[to_server] += (int64_t)sim_below((uint64_t)late_ms);
}

/* Each side hears of it after so long; -1: it knows. */
static void link_cut(struct link *link, int64_t client_ms, int64_t server_ms)
{
	if (link->cut)
		return;
	link->cut = true;
	leave_on_its_way(link, false, client_ms);
	leave_on_its_way(link, true, server_ms);
	if (link->client && client_ms >= 0)
		notify(link, false, client_ms);
	if (link->server && server_ms >= 0)
		notify(link, true, server_ms);
}

/* What a machine without power had said on a connection that was cut before is lost; and so is what waits
 * in a frozen replica's sockets: a Hello from there may be of the boot before the last, which nobody could
 * tell. */
static void nobody_sends_again(struct link *link, const struct sim_process *process, bool was_cut)
{
	for (int to_server = 0; to_server < 2; to_server++) {
		const struct sim_process *peer = link->ends[to_server];
		if (link->ends[!to_server] == process &&
		    (was_cut || peer->frozen_until_ms > sim.now_ms))
			link->lost[to_server] = true;
	}
}

void sim_rpc_process_died(struct sim_process *process, enum sim_death death)
{
	vec_each (&links.all, struct link * *slot) {
		struct link *link = *slot;
		bool client = link->client && link->client->process == process;
		bool server = link->server && link->server->process == process;
		bool was_cut = link->cut;
		if (was_cut && death == SIM_POWER_CUT)
			nobody_sends_again(link, process, true);
		if (!client && !server)
			continue;
		int64_t delay = !link->local && (death == SIM_POWER_CUT || sim_chance(4))
					? (int64_t)sim_below(SIM_RPC_SILENCE_MS)
					: sim_delay(2);
		link_cut(link, client ? -1 : delay, server ? -1 : delay);
		if (was_cut || death != SIM_POWER_CUT)
			continue;
		link->late_ms[client] = sim.now_ms;
		nobody_sends_again(link, process, false);
	}
}

static void go_silent(struct link *link)
{
	if (!link->local)
		link_cut(link, (int64_t)sim_below(SIM_RPC_SILENCE_MS),
			 (int64_t)sim_below(SIM_RPC_SILENCE_MS));
}

static bool is_of(const struct link *link, const struct sim_process *process)
{
	return receiver(link, false) == process || receiver(link, true) == process;
}

void sim_rpc_cut_network(bool apart)
{
	links.apart = apart;
	vec_each (&links.all, struct link * *link)
		go_silent(*link);
}

void sim_rpc_cut_off(struct sim_process *process, bool off)
{
	process->cut_off = off;
	vec_each (&links.all, struct link * *link)
		if (off && is_of(*link, process))
			go_silent(*link);
}

void sim_rpc_process_frozen(struct sim_process *process, int64_t for_ms)
{
	vec_each (&links.all, struct link * *link)
		if (for_ms > SIM_RPC_SILENCE_MS && is_of(*link, process))
			go_silent(*link);
}

void sim_rpc_begin(void)
{
	links.apart = false;
	calls_begin();
}

void sim_rpc_end(void)
{
	assert(links.bindings.count == 0);
	calls_end();
	vec_each (&links.all, struct link * *link) {
		buf_deinit(&(*link)->der);
		free(*link);
	}
	vec_deinit(&links.all);
	vec_deinit(&links.bindings);
}

/* --- servers --- */

struct rpc_server *rpc_server_create(struct loop *loop UNUSED, const struct rpc_method *methods,
				     size_t count, void *arg)
{
	struct rpc_server *server = mem_alloc(sizeof *server);
	*server = (struct rpc_server){sim.current, methods, count, arg};
	return server;
}

bool rpc_server_listen_unix(struct rpc_server *server, const char *path, mode_t mode UNUSED,
			    struct error *error)
{
	uint64_t inode = 0;
	int failed = sim_fault(SIM_LISTEN, path);
	if (failed) {
		errno = failed;
		return error_os(error, "listen on '%s'", path);
	}
	if (!sim_fs_socket_make(path, &inode))
		return error_set(error, ERROR_CONFLICT, "listen on '%s': it is in use", path);
	*vec_push(&links.bindings) = (struct binding){server, mem_strdup(path), inode};
	return true;
}

bool rpc_server_listen_tcp(struct rpc_server *server, const char *address,
			   struct rpc_tls *tls UNUSED, struct error *error UNUSED)
{
	*vec_push(&links.bindings) = (struct binding){server, mem_strdup(address), 0};
	return true;
}

void rpc_server_set_tls(struct rpc_server *server UNUSED, struct rpc_tls *tls UNUSED)
{
}

void rpc_server_limit_connections(struct rpc_server *server UNUSED, size_t limit UNUSED)
{
}

const char *rpc_server_address(const struct rpc_server *server)
{
	const char *address = "";
	vec_each (&links.bindings, struct binding * binding)
		if (binding->server == server)
			address = binding->address;
	return address;
}

void rpc_server_drain(struct rpc_server *server UNUSED, loop_fn *fn UNUSED, void *arg UNUSED)
{
	abort(); /* programs of the simulation die without a word */
}

void rpc_server_destroy(struct rpc_server *server)
{
	if (!server)
		return;
	for (size_t i = links.bindings.count; i-- > 0;) {
		struct binding *binding = &links.bindings.items[i];
		if (binding->server != server)
			continue;
		if (binding->inode)
			sim_fs_socket_remove(binding->address, binding->inode);
		free(binding->address);
		vec_remove(&links.bindings, i);
	}
	vec_each (&links.all, struct link * *link) {
		if ((*link)->server != server)
			continue;
		/* What comes on a newer connection may be looked at before it. */
		link_cut(*link, sim_chance(8) ? (int64_t)sim_below(BUSY_MS) : sim_delay(1), -1);
		(*link)->server = NULL;
	}
	calls_of_server_end(server);
	free(server);
}

bool sim_rpc_listens(uint64_t inode)
{
	vec_each (&links.bindings, struct binding * binding)
		if (inode && binding->inode == inode)
			return true;
	return false;
}

/* --- clients --- */

static struct rpc_server *server_at(const char *address, bool *ret_local)
{
	*ret_local = str_starts(address, "unix:");
	if (!*ret_local && links.apart)
		return NULL;
	const char *path = *ret_local ? address + strlen("unix:") : address;
	uint64_t inode = *ret_local ? sim_fs_socket(path) : 0;
	vec_each (&links.bindings, struct binding * binding)
		if (*ret_local ? inode && binding->inode == inode
			       : !binding->inode && str_equal(binding->address, path))
			return binding->server->process->cut_off ? NULL : binding->server;
	return NULL;
}

static void on_client_up(void *arg)
{
	struct rpc_client *client = arg;
	client->event = NULL;
	if (links_get(client->link)->cut)
		return; /* the notice of that is on its way */
	client->up = true;
	vec_each (&client->waiting, struct frame * *frame)
		links_send(links_get(client->link), *frame);
	vec_clear(&client->waiting);
	calls_of_client_begin(client);
	if (client->handlers.on_up)
		client->handlers.on_up(client->arg);
}

static void on_client_connect(void *arg)
{
	struct rpc_client *client = arg;
	bool local;
	struct rpc_server *server = server_at(client->address, &local);
	client->event = NULL;
	int failed = sim_fault(SIM_CONNECT, client->address);
	if (failed == SIM_FAULT_SILENT)
		return; /* until whoever waits has waited enough */
	if (failed) {
		client_down(client, strerror(failed));
		return;
	}
	if (!server) {
		client_down(client, "connection refused");
		return;
	}
	if (sim_fault_of(server->process, SIM_ACCEPT, client->address)) {
		client_down(client, "connection reset by peer");
		return;
	}
	struct link *link = mem_alloc(sizeof *link);
	*link = (struct link){.id = links.all.count + 1,
			      .client = client,
			      .server = server,
			      .ends = {client->process, server->process},
			      .local = local};
	buf_add(&link->der, client->der.data, client->der.length);
	*vec_push(&links.all) = link;
	client->link = link->id;
	client->event = sim_schedule(client->process, sim_delay(local ? LOCAL_MS : NETWORK_MS),
				     on_client_up, client);
}

struct rpc_client *rpc_client_create(struct loop *loop UNUSED, const char *address,
				     struct rpc_tls *tls, int64_t keepalive_ms UNUSED,
				     const struct rpc_client_handlers *handlers, void *arg)
{
	struct rpc_client *client = mem_alloc(sizeof *client);
	*client = (struct rpc_client){.process = sim.current,
				      .address = mem_strdup(address),
				      .handlers = *handlers,
				      .arg = arg};
	if (tls)
		buf_add(&client->der, tls->der.data, tls->der.length);
	bool local = str_starts(address, "unix:");
	client->event = sim_schedule(client->process, sim_delay(local ? LOCAL_MS : NETWORK_MS),
				     on_client_connect, client);
	return client;
}

bool rpc_client_is_up(const struct rpc_client *client)
{
	return client->up;
}

void rpc_client_destroy(struct rpc_client *client)
{
	if (!client)
		return;
	sim_cancel(client->event);
	calls_of_client_end(client);
	struct link *link = links_get(client->link);
	if (link) {
		/* The other end hears of it after what was said before. */
		link_cut(link, -1,
			 !link->local && sim_chance(4) ? (int64_t)sim_below(SIM_RPC_SILENCE_MS)
						       : sim_delay(1));
		link->client = NULL;
	}
	vec_each (&client->waiting, struct frame * *frame)
		frame_free(*frame);
	vec_deinit(&client->waiting);
	buf_deinit(&client->der);
	free(client->address);
	free(client);
}

/* --- TLS: only whose certificate it is --- */

bool rpc_tls_server_create(const struct rpc_tls_server_options *options UNUSED,
			   struct rpc_tls **ret_tls, struct error *error UNUSED)
{
	*ret_tls = mem_alloc(sizeof **ret_tls);
	return true;
}

static void der_from_pem(const char *pem, struct buf *der)
{
	static const char begin[] = "-----BEGIN CERTIFICATE-----";
	CLEANUP(buf) struct buf text = {0};
	const char *at = strstr(pem, begin);
	assert(at);
	for (at += strlen(begin); *at && *at != '-'; at++)
		if (*at != '\n' && *at != '\r')
			buf_add_char(&text, *at);
	bool decoded = base64_decode(buf_text(&text), der);
	assert(decoded);
}

bool rpc_tls_client_create(const struct rpc_tls_client_options *options, struct rpc_tls **ret_tls,
			   struct error *error UNUSED)
{
	struct rpc_tls *tls = mem_alloc(sizeof *tls);
	if (options->certificate_pem)
		der_from_pem(options->certificate_pem, &tls->der);
	*ret_tls = tls;
	return true;
}

void rpc_tls_destroy(struct rpc_tls *tls)
{
	if (!tls)
		return;
	buf_deinit(&tls->der);
	free(tls);
}
