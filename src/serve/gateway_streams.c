#include "serve/gateway_internal.h"

#include "base/hash.h"
#include "sys/log.h"

#include <stdio.h>

/* --- the set of streams --- */

static size_t index_of(const struct gateway *gateway, uint64_t id)
{
	return vec_lower(gateway->streams.count, at, gateway->streams.items[at]->id < id);
}

struct stream *gateway_find(const struct gateway *gateway, uint64_t id)
{
	size_t index = index_of(gateway, id);

	if (index == gateway->streams.count || gateway->streams.items[index]->id != id)
		return NULL;
	return gateway->streams.items[index];
}

struct stream **gateway_bucket_of(struct gateway *gateway, const char *node)
{
	uint64_t hash = hash_text(node);

	return &gateway->by_node[(hash ^ hash >> 32) % GATEWAY_NODE_BUCKETS];
}

static void leave_bucket(struct stream *stream)
{
	struct stream **slot = gateway_bucket_of(stream->gateway, stream->node.node_id);

	while (*slot != stream)
		slot = &(*slot)->next_of_bucket;
	*slot = stream->next_of_bucket;
}

void gateway_tell_drained(struct gateway *gateway)
{
	loop_fn *fn = gateway->on_drained;

	if (!gateway->draining || gateway->streams.count > 0)
		return;
	gateway->on_drained = NULL;
	if (fn)
		fn(gateway->drained_arg);
}

/* --- inboxes --- */

void gateway_inbox_push(struct inbox *inbox, Bettercompute__V1__Up *up, size_t size)
{
	struct letter *letter = mem_alloc(sizeof *letter);

	*letter = (struct letter){.up = up, .size = size};
	*inbox->last = letter;
	inbox->last = &letter->next;
	inbox->count++;
	inbox->size += size;
}

Bettercompute__V1__Up *gateway_inbox_pop(struct inbox *inbox)
{
	struct letter *letter = inbox->first;
	Bettercompute__V1__Up *up;

	if (!letter)
		return NULL;
	inbox->first = letter->next;
	if (!inbox->first)
		inbox->last = &inbox->first;
	inbox->count--;
	inbox->size -= letter->size;
	up = letter->up;
	free(letter);
	return up;
}

void gateway_inbox_clear(struct inbox *inbox)
{
	Bettercompute__V1__Up *up;

	while ((up = gateway_inbox_pop(inbox)))
		message_free(up);
}

/* --- a stream's life --- */

void gateway_stream_open(struct gateway *gateway, struct rpc_call *call,
			 const struct cert_node *node)
{
	struct stream *stream = mem_alloc(sizeof *stream);

	stream->id = rpc_call_id(call);
	stream->gateway = gateway;
	stream->call = call;
	stream->node = *node;
	stream->started = stream->heard = loop_now(gateway->loop);
	stream->inbox.last = &stream->inbox.first;
	stream->beat_generation = -1;
	assert(index_of(gateway, stream->id) == gateway->streams.count);
	*vec_push(&gateway->streams) = stream;
	stream->next_of_bucket = *gateway_bucket_of(gateway, node->node_id);
	*gateway_bucket_of(gateway, node->node_id) = stream;
	rpc_call_set_data(call, stream);
}

void gateway_stream_destroy(struct stream *stream)
{
	struct gateway *gateway = stream->gateway;

	gateway_inbox_clear(&stream->inbox);
	leave_bucket(stream);
	vec_remove(&gateway->streams, index_of(gateway, stream->id));
	free(stream);
	gateway_tell_drained(gateway);
}

void gateway_stream_finish(struct stream *stream, enum rpc_code code, const char *why)
{
	if (!stream->call || stream->finished)
		return;
	stream->finished = true;
	gateway_inbox_clear(&stream->inbox);
	log_info("stream.ended", why, "node", stream->node.node_id, "code", rpc_code_name(code),
		 NULL);
	rpc_finish(stream->call, code, why);
}

/* With what to do about it, for the node's own people. */
static void finish_saying(struct stream *stream, const struct error *error)
{
	char why[ERROR_WHAT_SIZE + ERROR_HINT_SIZE];

	snprintf(why, sizeof why, "%s%s%s", error->what, *error->hint ? ". " : "", error->hint);
	gateway_stream_finish(stream, (enum rpc_code)error_grpc_status(error->code), why);
}

void gateway_stream_finish_error(struct stream *stream, const struct error *error)
{
	/* The epoch is void: somebody said Hello after us, perhaps on another replica. */
	if (error->code == ERROR_CONFLICT)
		gateway_stream_finish(stream, RPC_ABORTED, "a newer stream of this node took over");
	else
		finish_saying(stream, error);
}

void gateway_end_older(struct stream *newest)
{
	struct stream *other = *gateway_bucket_of(newest->gateway, newest->node.node_id);

	for (; other; other = other->next_of_bucket) {
		if (other != newest && other->epoch > 0 && other->epoch < newest->epoch &&
		    str_equal(other->node.node_id, newest->node.node_id))
			gateway_stream_finish(other, RPC_ABORTED,
					      "a newer stream of this node took over");
	}
}
