/* rpc/rpc.h's calls at the level of messages. */
#include "sim/sim_faults.h"
#include "sim/sim_links.h"
#include "sim/sim_rpc.h"

#include <string.h>

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
	bool mute;  /* nothing of it gets through */
	struct sim_event *deadline;
	VEC(struct metadata) metadata;
};

static struct {
	VEC(struct rpc_call *) all;
	uint64_t last; /* id */
} calls;

/* --- small things --- */

static struct sim_process *process_of(const struct rpc_call *call)
{
	return call->client ? call->client->process : call->server->process;
}

static struct rpc_call *call_by_id(uint64_t id)
{
	vec_each (&calls.all, struct rpc_call * *call)
		if ((*call)->id == id)
			return *call;
	return NULL;
}

static struct rpc_call *call_by_key(uint64_t link, uint64_t key, bool server)
{
	vec_each (&calls.all, struct rpc_call * *call)
		if ((*call)->link == link && (*call)->key == key && !(*call)->client == server)
			return *call;
	return NULL;
}

static void call_free(struct rpc_call *call)
{
	for (size_t i = 0; i < calls.all.count; i++) {
		if (calls.all.items[i] != call)
			continue;
		vec_remove(&calls.all, i);
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

/* --- what arrives --- */

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
	*call = (struct rpc_call){.id = ++calls.last,
				  .key = frame->call,
				  .link = link->id,
				  .path = mem_strdup(buf_text(&frame->data)),
				  .server = server};
	*vec_push(&calls.all) = call;
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

void calls_take(struct link *link, const struct frame *frame)
{
	if (frame->kind == FRAME_MESSAGE)
		arrived(frame);
	if (frame->kind == FRAME_START)
		server_start(link, frame);
	struct rpc_call *call = call_by_key(link->id, frame->call, frame->to_server);
	if (call && !call->ended)
		call_take(call, frame);
}

/* --- what becomes of them with their connection --- */

void calls_begin(void)
{
	calls.last = 0;
}

void calls_end(void)
{
	assert(calls.all.count == 0);
	vec_deinit(&calls.all);
}

void calls_of_client_begin(struct rpc_client *client)
{
	vec_each (&calls.all, struct rpc_call * *call)
		if ((*call)->client == client)
			(*call)->link = client->link;
}

typedef bool is_of_fn(const struct rpc_call *call, const void *whose);

/* The newest first. What its owner hears may end others, or begin new ones. */
static void end_all(is_of_fn *is_of, const void *whose, enum rpc_code code, const char *why)
{
	for (size_t i = calls.all.count; i-- > 0;)
		if (i < calls.all.count && is_of(calls.all.items[i], whose))
			call_done(calls.all.items[i], code, why);
}

static bool is_of_client(const struct rpc_call *call, const void *client)
{
	return call->client == client;
}

static bool runs_of_client(const struct rpc_call *call, const void *client)
{
	return call->client == client && !call->ended;
}

static bool is_of_server(const struct rpc_call *call, const void *server)
{
	return call->server == server;
}

static bool runs_on_link(const struct rpc_call *call, const void *link)
{
	return call->server && call->link == ((const struct link *)link)->id && !call->ended;
}

void calls_of_client_fail(struct rpc_client *client, const char *why)
{
	end_all(runs_of_client, client, RPC_UNAVAILABLE, why);
}

void calls_of_link_fail(struct link *link, const char *why)
{
	end_all(runs_on_link, link, RPC_UNAVAILABLE, why);
}

void calls_of_client_end(struct rpc_client *client)
{
	end_all(is_of_client, client, RPC_CANCELLED, "the client is gone");
}

void calls_of_server_end(struct rpc_server *server)
{
	end_all(is_of_server, server, RPC_UNAVAILABLE, "the server is gone");
}

/* --- making them --- */

static void call_frame(struct rpc_call *call, enum frame_kind kind, const void *data, size_t length,
		       enum rpc_code code)
{
	if (!sim_effective() || call->mute)
		return;
	struct link *link = links_get(call->link);
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
		links_send(link, frame);
	else
		*vec_push(&call->client->waiting) = frame;
}

bool sim_rpc_inject(const char *path, bool to_server, const void *data, size_t length)
{
	vec_each (&calls.all, struct rpc_call * *slot) {
		struct rpc_call *call = *slot;
		struct link *link = links_get(call->link);
		if (!call->client || call->ended || !link || link->cut ||
		    !str_equal(call->path, path))
			continue;
		struct frame *frame = mem_alloc(sizeof *frame);
		*frame = (struct frame){
			.call = call->key, .kind = FRAME_MESSAGE, .to_server = to_server};
		buf_add(&frame->data, data, length);
		links_send(link, frame);
		return true;
	}
	return false;
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
	*call = (struct rpc_call){.id = ++calls.last,
				  .path = mem_strdup(path),
				  .link = client->up ? client->link : 0,
				  .client = client,
				  .handlers = *handlers,
				  .arg = arg};
	call->key = call->id;
	*vec_push(&calls.all) = call;
	if (deadline_ms > 0)
		call->deadline = sim_schedule(client->process, deadline_ms, on_deadline, call);
	int failed = client->down ? 0 : sim_fault(SIM_CALL, client->address);
	call->mute = failed == SIM_FAULT_SILENT;
	if (client->down)
		call_end_later(call, 0, RPC_UNAVAILABLE, "the connection is down");
	else if (failed == SIM_FAULT_REFUSE)
		call_end_later(call, 0, RPC_UNAVAILABLE, "the server has no time for this");
	else
		call_frame(call, FRAME_START, call->path, strlen(call->path), RPC_OK);
	return call;
}

/* --- using them --- */

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
	const struct buf *der = &links_get(call->link)->der;
	*ret_length = der->length;
	return der->length > 0 ? der->data : NULL;
}

int64_t rpc_peer_uid(const struct rpc_call *call)
{
	return links_get(call->link)->local ? 0 : -1;
}

const char *rpc_peer(const struct rpc_call *call)
{
	return links_get(call->link)->local ? "unix" : "network";
}
