/* rpc/rpc.h and rpc/tls.h at the level of messages. */
#include "sim/sim_rpc.h"

#include "rpc/rpc.h"
#include "rpc/tls.h"
#include "sim/sim_fs.h"
#include "text/base64.h"

#include <stdio.h>

#define LOCAL_MS   1 /* how long a message usually takes on a unix socket */
#define NETWORK_MS 5

struct rpc_tls {
	struct buf der; /* our certificate; empty: none */
};

struct link {
	uint64_t id;
	struct rpc_client *client; /* NULL: destroyed */
	struct rpc_server *server;
	bool cut, local;
	int64_t last_ms[2]; /* the arrival of the last message; [1] is to the server */
	struct buf der;     /* the client's certificate */
};

enum frame_kind {
	FRAME_START,
	FRAME_MESSAGE,
	FRAME_HALF_CLOSE,
	FRAME_FINISH,
	FRAME_CANCEL,
};

struct frame {
	uint64_t link;
	uint64_t call; /* the client's id for it */
	bool to_server;
	enum frame_kind kind;
	struct buf data;
	enum rpc_code code;
	const char *path; /* FRAME_START: the client's, which outlives it here */
};

struct metadata {
	char *name;
	struct buf value;
};

struct rpc_call {
	uint64_t id;   /* of this side */
	uint64_t key;  /* the client's id, which both sides know it by */
	uint64_t link; /* 0: not up yet */
	char *path;
	struct rpc_client *client; /* one of both is NULL */
	struct rpc_server *server;
	const struct rpc_method *method;
	struct rpc_call_handlers handlers;
	void *arg, *data;
	struct buf unary;
	size_t queued;
	bool ended; /* on_done is on its way: nothing else comes */
	struct sim_event *deadline;
	VEC(struct metadata) metadata;
};

struct rpc_client {
	struct sim_process *process;
	char *address;
	struct buf der;
	struct rpc_client_handlers handlers;
	void *arg;
	uint64_t link;
	bool up, down;
	struct sim_event *event;     /* connecting, or up */
	VEC(struct frame *) waiting; /* until it is up */
};

struct binding {
	struct rpc_server *server;
	char *address; /* tcp, or the socket's path */
	uint64_t inode;
};

struct rpc_server {
	struct sim_process *process;
	const struct rpc_method *methods;
	size_t count;
	void *arg;
};

static struct {
	VEC(struct link *) links; /* by id - 1 */
	VEC(struct rpc_call *) calls;
	VEC(struct binding) bindings;
	uint64_t last_call;
	bool apart;
} rpc;

/* --- small things --- */

static struct link *link_get(uint64_t id)
{
	return id > 0 && id <= rpc.links.count ? rpc.links.items[id - 1] : NULL;
}

static struct sim_process *process_of(const struct rpc_call *call)
{
	return call->client ? call->client->process : call->server->process;
}

static struct rpc_call *call_by_id(uint64_t id)
{
	vec_each (&rpc.calls, struct rpc_call * *call)
		if ((*call)->id == id)
			return *call;
	return NULL;
}

static struct rpc_call *call_by_key(uint64_t link, uint64_t key, bool server)
{
	vec_each (&rpc.calls, struct rpc_call * *call)
		if ((*call)->link == link && (*call)->key == key && !(*call)->client == server)
			return *call;
	return NULL;
}

static void call_free(struct rpc_call *call)
{
	for (size_t i = 0; i < rpc.calls.count; i++) {
		if (rpc.calls.items[i] != call)
			continue;
		vec_remove(&rpc.calls, i);
		break;
	}
	sim_cancel(call->deadline);
	vec_each (&call->metadata, struct metadata * metadata) {
		free(metadata->name);
		buf_deinit(&metadata->value);
	}
	vec_deinit(&call->metadata);
	buf_deinit(&call->unary);
	free(call->path);
	free(call);
}

/* The call's last word to its owner. */
static void call_done(struct rpc_call *call, enum rpc_code code, const char *message)
{
	struct rpc_status status = {code, message};
	call->ended = true;
	if (call->client && call->handlers.on_done)
		call->handlers.on_done(call, call->arg, &status);
	if (call->server && call->method && call->method->on_done)
		call->method->on_done(call, call->server->arg, &status);
	call_free(call);
}

struct ending {
	uint64_t call;
	enum rpc_code code;
	char message[512];
};

static void on_ending(void *arg)
{
	struct ending ending = *(struct ending *)arg;
	free(arg);
	struct rpc_call *call = call_by_id(ending.call);
	if (call)
		call_done(call, ending.code, ending.message);
}

/* on_done comes later, from the loop; until then the call hears nothing more. */
static void call_end_later(struct rpc_call *call, int64_t delay_ms, enum rpc_code code,
			   const char *message)
{
	struct ending *ending = mem_alloc(sizeof *ending);
	ending->call = call->id;
	ending->code = code;
	str_copy(ending->message, sizeof ending->message, message);
	call->ended = true;
	sim_schedule(process_of(call), delay_ms, on_ending, ending)->is_work = true;
}

/* --- frames --- */

static void frame_free(struct frame *frame)
{
	buf_deinit(&frame->data);
	free(frame);
}

static void on_drained(void *arg)
{
	uint64_t id = *(uint64_t *)arg;
	free(arg);
	struct rpc_call *call = call_by_id(id);
	if (!call || call->ended)
		return;
	if (call->client && call->handlers.on_drain)
		call->handlers.on_drain(call, call->arg);
	else if (call->server && call->method && call->method->on_drain)
		call->method->on_drain(call, call->server->arg);
}

/* The sender's queue is shorter by what arrived. */
static void arrived(const struct frame *frame)
{
	struct rpc_call *sender = call_by_key(frame->link, frame->call, !frame->to_server);
	if (!sender || sender->queued == 0)
		return;
	sender->queued -= frame->data.length;
	if (sender->queued > 0)
		return;
	uint64_t *id = mem_dup(&sender->id, sizeof sender->id);
	sim_schedule(process_of(sender), 0, on_drained, id)->is_work = true;
}

static void server_start(struct link *link, const struct frame *frame)
{
	struct rpc_server *server = link->server;
	struct rpc_call *call = mem_alloc(sizeof *call);
	struct rpc_call *sender = call_by_key(link->id, frame->call, false);
	*call = (struct rpc_call){.id = ++rpc.last_call,
				  .key = frame->call,
				  .link = link->id,
				  .path = mem_strdup(sender ? sender->path : ""),
				  .server = server};
	*vec_push(&rpc.calls) = call;
	for (size_t i = 0; i < server->count; i++)
		if (str_equal(server->methods[i].path, call->path))
			call->method = &server->methods[i];
	if (sender)
		vec_each (&sender->metadata, struct metadata * from) {
			struct metadata *to = vec_push(&call->metadata);
			to->name = mem_strdup(from->name);
			buf_add(&to->value, from->value.data, from->value.length);
		}
	if (!call->method)
		rpc_finish(call, RPC_UNIMPLEMENTED, "unknown method");
	else if (call->method->on_start)
		call->method->on_start(call, server->arg);
}

static void server_half_close(struct rpc_call *call)
{
	if (call->method->unary)
		call->method->on_message(call, call->server->arg,
					 (const uint8_t *)buf_text(&call->unary),
					 call->unary.length);
	else if (call->method->on_half_close)
		call->method->on_half_close(call, call->server->arg);
}

static void call_take(struct rpc_call *call, const struct frame *frame)
{
	switch (frame->kind) {
	case FRAME_START:
		break;
	case FRAME_MESSAGE:
		if (call->client)
			call->handlers.on_message(call, call->arg,
						  (const uint8_t *)buf_text(&frame->data),
						  frame->data.length);
		else if (call->method->unary)
			buf_add(&call->unary, frame->data.data, frame->data.length);
		else
			call->method->on_message(call, call->server->arg,
						 (const uint8_t *)buf_text(&frame->data),
						 frame->data.length);
		break;
	case FRAME_HALF_CLOSE:
		server_half_close(call);
		break;
	case FRAME_FINISH:
		call_done(call, frame->code, buf_text(&frame->data));
		break;
	case FRAME_CANCEL:
		call_done(call, RPC_CANCELLED, "the client cancelled");
		break;
	}
}

static void on_frame(void *arg)
{
	struct frame *frame = arg;
	struct link *link = link_get(frame->link);
	if (!link->cut && sim_effective()) {
		if (frame->kind == FRAME_MESSAGE)
			arrived(frame);
		if (frame->kind == FRAME_START)
			server_start(link, frame);
		struct rpc_call *call = call_by_key(link->id, frame->call, frame->to_server);
		if (call && !call->ended)
			call_take(call, frame);
	}
	frame_free(frame);
}

static void frame_send(struct link *link, struct frame *frame)
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

static void call_frame(struct rpc_call *call, enum frame_kind kind, const void *data, size_t length,
		       enum rpc_code code)
{
	if (!sim_effective())
		return;
	struct link *link = link_get(call->link);
	if (link && link->cut)
		return;
	struct frame *frame = mem_alloc(sizeof *frame);
	*frame = (struct frame){
		.call = call->key, .to_server = call->client != NULL, .kind = kind, .code = code};
	buf_add(&frame->data, data, length);
	if (kind == FRAME_MESSAGE) {
		call->queued += length;
		sim_world_message(call->path, frame->to_server,
				  (const uint8_t *)buf_text(&frame->data), length);
	}
	if (link)
		frame_send(link, frame);
	else
		*vec_push(&call->client->waiting) = frame;
}

/* --- links --- */

struct notice {
	uint64_t link;
	bool to_server;
};

static void client_down(struct rpc_client *client, const char *why)
{
	struct error error;
	for (size_t i = rpc.calls.count; i-- > 0;) {
		if (i >= rpc.calls.count || rpc.calls.items[i]->client != client)
			continue;
		struct rpc_call *call = rpc.calls.items[i];
		if (!call->ended)
			call_done(call, RPC_UNAVAILABLE, why);
	}
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
	struct link *link = link_get(notice.link);
	if (!sim_effective())
		return;
	if (!notice.to_server) {
		if (link->client && !link->client->down)
			client_down(link->client, "connection lost");
		return;
	}
	for (size_t i = rpc.calls.count; i-- > 0;) {
		if (i >= rpc.calls.count)
			continue;
		struct rpc_call *call = rpc.calls.items[i];
		if (call->server && call->link == link->id && !call->ended)
			call_done(call, RPC_UNAVAILABLE, "connection lost");
	}
}

static void notify(struct link *link, bool to_server, int64_t delay_ms)
{
	struct notice *notice = mem_alloc(sizeof *notice);
	*notice = (struct notice){link->id, to_server};
	struct sim_process *process = to_server ? link->server->process : link->client->process;
	sim_schedule(process, delay_ms, on_notice, notice)->is_work = true;
}

static void link_cut(struct link *link, int64_t client_ms, int64_t server_ms)
{
	if (link->cut)
		return;
	link->cut = true;
	if (link->client && client_ms >= 0)
		notify(link, false, client_ms);
	if (link->server && server_ms >= 0)
		notify(link, true, server_ms);
}

void sim_rpc_process_died(struct sim_process *process, enum sim_death death)
{
	vec_each (&rpc.links, struct link * *slot) {
		struct link *link = *slot;
		bool client = link->client && link->client->process == process;
		bool server = link->server && link->server->process == process;
		if (!client && !server)
			continue;
		int64_t delay = link->local || death == SIM_KILLED
					? sim_delay(2)
					: (int64_t)sim_below(SIM_RPC_SILENCE_MS);
		link_cut(link, client ? -1 : delay, server ? -1 : delay);
	}
}

void sim_rpc_cut_network(bool apart)
{
	rpc.apart = apart;
	vec_each (&rpc.links, struct link * *link)
		if (!(*link)->local)
			link_cut(*link, (int64_t)sim_below(SIM_RPC_SILENCE_MS),
				 (int64_t)sim_below(SIM_RPC_SILENCE_MS));
}

bool sim_rpc_inject(const char *path, const void *data, size_t length)
{
	vec_each (&rpc.calls, struct rpc_call * *slot) {
		struct rpc_call *call = *slot;
		struct link *link = link_get(call->link);
		if (!call->client || call->ended || !link || link->cut ||
		    !str_equal(call->path, path))
			continue;
		struct frame *frame = mem_alloc(sizeof *frame);
		*frame = (struct frame){.call = call->key, .kind = FRAME_MESSAGE};
		buf_add(&frame->data, data, length);
		frame_send(link, frame);
		return true;
	}
	return false;
}

void sim_rpc_begin(void)
{
	rpc.apart = false;
	rpc.last_call = 0;
}

void sim_rpc_end(void)
{
	assert(rpc.calls.count == 0 && rpc.bindings.count == 0);
	vec_each (&rpc.links, struct link * *link) {
		buf_deinit(&(*link)->der);
		free(*link);
	}
	vec_deinit(&rpc.links);
	vec_deinit(&rpc.calls);
	vec_deinit(&rpc.bindings);
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
	if (!sim_fs_socket_make(path, &inode))
		return error_set(error, ERROR_CONFLICT, "listen on '%s': it is in use", path);
	*vec_push(&rpc.bindings) = (struct binding){server, mem_strdup(path), inode};
	return true;
}

bool rpc_server_listen_tcp(struct rpc_server *server, const char *address,
			   struct rpc_tls *tls UNUSED, struct error *error UNUSED)
{
	*vec_push(&rpc.bindings) = (struct binding){server, mem_strdup(address), 0};
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
	vec_each (&rpc.bindings, struct binding * binding)
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
	for (size_t i = rpc.bindings.count; i-- > 0;) {
		struct binding *binding = &rpc.bindings.items[i];
		if (binding->server != server)
			continue;
		if (binding->inode)
			sim_fs_socket_remove(binding->address, binding->inode);
		free(binding->address);
		vec_remove(&rpc.bindings, i);
	}
	vec_each (&rpc.links, struct link * *link) {
		if ((*link)->server != server)
			continue;
		link_cut(*link, sim_delay(1), -1);
		(*link)->server = NULL;
	}
	for (size_t i = rpc.calls.count; i-- > 0;)
		if (i < rpc.calls.count && rpc.calls.items[i]->server == server)
			call_done(rpc.calls.items[i], RPC_UNAVAILABLE, "the server is gone");
	free(server);
}

bool sim_rpc_listens(uint64_t inode)
{
	vec_each (&rpc.bindings, struct binding * binding)
		if (inode && binding->inode == inode)
			return true;
	return false;
}

/* --- clients --- */

static struct rpc_server *server_at(const char *address, bool *ret_local)
{
	*ret_local = str_starts(address, "unix:");
	if (!*ret_local && rpc.apart)
		return NULL;
	const char *path = *ret_local ? address + strlen("unix:") : address;
	uint64_t inode = *ret_local ? sim_fs_socket(path) : 0;
	vec_each (&rpc.bindings, struct binding * binding)
		if (*ret_local ? inode && binding->inode == inode
			       : !binding->inode && str_equal(binding->address, path))
			return binding->server;
	return NULL;
}

static void on_client_up(void *arg)
{
	struct rpc_client *client = arg;
	client->event = NULL;
	if (link_get(client->link)->cut)
		return; /* the notice of that is on its way */
	client->up = true;
	vec_each (&client->waiting, struct frame * *frame)
		frame_send(link_get(client->link), *frame);
	vec_clear(&client->waiting);
	vec_each (&rpc.calls, struct rpc_call * *call)
		if ((*call)->client == client)
			(*call)->link = client->link;
	if (client->handlers.on_up)
		client->handlers.on_up(client->arg);
}

static void on_client_connect(void *arg)
{
	struct rpc_client *client = arg;
	bool local;
	struct rpc_server *server = server_at(client->address, &local);
	client->event = NULL;
	if (!server) {
		client_down(client, "connection refused");
		return;
	}
	struct link *link = mem_alloc(sizeof *link);
	*link = (struct link){
		.id = rpc.links.count + 1, .client = client, .server = server, .local = local};
	buf_add(&link->der, client->der.data, client->der.length);
	*vec_push(&rpc.links) = link;
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
	for (size_t i = rpc.calls.count; i-- > 0;)
		if (i < rpc.calls.count && rpc.calls.items[i]->client == client)
			call_done(rpc.calls.items[i], RPC_CANCELLED, "the client is gone");
	struct link *link = link_get(client->link);
	if (link) {
		link_cut(link, -1, sim_delay(1));
		link->client = NULL;
	}
	vec_each (&client->waiting, struct frame * *frame)
		frame_free(*frame);
	vec_deinit(&client->waiting);
	buf_deinit(&client->der);
	free(client->address);
	free(client);
}

static void on_deadline(void *arg)
{
	struct rpc_call *call = arg;
	call->deadline = NULL;
	if (call->ended)
		return;
	call_frame(call, FRAME_CANCEL, NULL, 0, RPC_OK);
	call_done(call, RPC_DEADLINE_EXCEEDED, "the deadline has passed");
}

struct rpc_call *rpc_call_start(struct rpc_client *client, const char *path, int64_t deadline_ms,
				size_t max_message UNUSED, const struct rpc_call_handlers *handlers,
				void *arg)
{
	struct rpc_call *call = mem_alloc(sizeof *call);
	*call = (struct rpc_call){.id = ++rpc.last_call,
				  .path = mem_strdup(path),
				  .link = client->up ? client->link : 0,
				  .client = client,
				  .handlers = *handlers,
				  .arg = arg};
	call->key = call->id;
	*vec_push(&rpc.calls) = call;
	if (deadline_ms > 0)
		call->deadline = sim_schedule(client->process, deadline_ms, on_deadline, call);
	if (client->down)
		call_end_later(call, 0, RPC_UNAVAILABLE, "the connection is down");
	else
		call_frame(call, FRAME_START, NULL, 0, RPC_OK);
	return call;
}

/* --- calls --- */

void rpc_half_close(struct rpc_call *call)
{
	if (!call->ended)
		call_frame(call, FRAME_HALF_CLOSE, NULL, 0, RPC_OK);
}

void rpc_cancel(struct rpc_call *call)
{
	if (call->ended)
		return;
	if (call->client)
		call_frame(call, FRAME_CANCEL, NULL, 0, RPC_OK);
	else
		call_frame(call, FRAME_FINISH, NULL, 0, RPC_CANCELLED);
	call_end_later(call, 0, RPC_CANCELLED, "cancelled");
}

void rpc_send(struct rpc_call *call, const void *data, size_t length)
{
	if (!call->ended)
		call_frame(call, FRAME_MESSAGE, data, length, RPC_OK);
}

void rpc_finish(struct rpc_call *call, enum rpc_code code, const char *message)
{
	if (call->ended)
		return;
	call_frame(call, FRAME_FINISH, message, strlen(message), code);
	call_end_later(call, sim_delay(1), code, message);
}

size_t rpc_queued(const struct rpc_call *call)
{
	return call->queued;
}

void rpc_call_set_data(struct rpc_call *call, void *data)
{
	call->data = data;
}

void *rpc_call_data(const struct rpc_call *call)
{
	return call->data;
}

uint64_t rpc_call_id(const struct rpc_call *call)
{
	return call->id;
}

const char *rpc_metadata(const struct rpc_call *call, const char *name, size_t *ret_length)
{
	vec_each (&call->metadata, const struct metadata *metadata) {
		if (call->client || !str_equal(metadata->name, name))
			continue;
		*ret_length = metadata->value.length;
		return buf_text(&metadata->value);
	}
	return NULL;
}

void rpc_add_metadata(struct rpc_call *call, bool trailing UNUSED, const char *name,
		      const void *value, size_t length)
{
	struct metadata *metadata = vec_push(&call->metadata);
	metadata->name = mem_strdup(name);
	buf_add(&metadata->value, value, length);
}

const uint8_t *rpc_peer_certificate(const struct rpc_call *call, size_t *ret_length)
{
	const struct buf *der = &link_get(call->link)->der;
	*ret_length = der->length;
	return der->length > 0 ? der->data : NULL;
}

int64_t rpc_peer_uid(const struct rpc_call *call)
{
	return link_get(call->link)->local ? 0 : -1;
}

const char *rpc_peer(const struct rpc_call *call)
{
	return link_get(call->link)->local ? "unix" : "network";
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
