#include "serve/gateway_internal.h"

#include "pki/envelope.h"
#include "proto/methods.h"
#include "sys/clock.h"
#include "sys/log.h"

#define SWEEP_MS 1000

/* --- what nodes say --- */

static bool admit(struct rpc_call *call, struct cert_node *ret_node, struct error *error)
{
	size_t length;
	const uint8_t *der = rpc_peer_certificate(call, &length);

	if (!der) {
		error_set(error, ERROR_UNAUTHENTICATED, "a node's certificate is needed");
		return error_hint(error, "Join first: bcd join.");
	}
	if (!cert_read_node(der, length, ret_node, error)) {
		error->code = ERROR_UNAUTHENTICATED;
		return false;
	}
	return true;
}

static void on_start(struct rpc_call *call, void *arg)
{
	struct gateway *gateway = arg;
	struct cert_node node;
	struct error error;

	if (!admit(call, &node, &error)) {
		log_warn("stream.refused", error.what, "peer", rpc_peer(call), NULL);
		rpc_finish_error(call, &error);
		return;
	}
	if (gateway->draining || gateway->streams.count == GATEWAY_MAX_STREAMS) {
		rpc_finish(call, RPC_UNAVAILABLE, "no room for another stream: try again");
		return;
	}
	gateway_stream_open(gateway, call, &node);
}

/* Is this message's kind in its place? */
static bool check_order(struct stream *stream, const Bettercompute__V1__Up *up)
{
	bool is_hello = up->body_case == BETTERCOMPUTE__V1__UP__BODY_HELLO;

	if (is_hello == !stream->hello) {
		stream->hello = true;
		return true;
	}
	gateway_stream_finish(stream, RPC_INVALID_ARGUMENT,
			      is_hello ? "a second Hello in one stream"
				       : "the first message must be a Hello");
	return false;
}

static void on_message(struct rpc_call *call, void *arg, const uint8_t *data, size_t length)
{
	struct gateway *gateway = arg;
	struct stream *stream = rpc_call_data(call);
	Bettercompute__V1__Up *up = NULL;
	struct error error;

	if (!stream || stream->finished)
		return;
	stream->heard = loop_now(gateway->loop);
	if (!wire_up_unpack(data, length, &up, &error)) {
		gateway_stream_finish_error(stream, &error);
		return;
	}
	if (up->body_case == BETTERCOMPUTE__V1__UP__BODY__NOT_SET && stream->hello) {
		log_debug("stream.unknown", "a message of a kind not known here", "node",
			  stream->node.node_id, NULL);
		message_free(up); /* of a newer bcd */
		return;
	}
	if (!check_order(stream, up)) {
		message_free(up);
		return;
	}
	gateway_inbox_push(&stream->inbox, up, length);
	if (stream->inbox.count > GATEWAY_MAX_INBOX || stream->inbox.size > GATEWAY_MAX_INBOX_SIZE)
		gateway_stream_finish(stream, RPC_RESOURCE_EXHAUSTED,
				      "more messages than can be taken in");
	else
		gateway_stream_pump(stream);
}

static void on_half_close(struct rpc_call *call, void *arg)
{
	struct stream *stream = rpc_call_data(call);

	(void)arg;
	if (stream)
		gateway_stream_finish(stream, RPC_OK, "the node closed the stream");
}

static void on_drain(struct rpc_call *call, void *arg)
{
	struct stream *stream = rpc_call_data(call);

	(void)arg;
	if (stream)
		gateway_stream_pump(stream);
}

static void on_done(struct rpc_call *call, void *arg, const struct rpc_status *status)
{
	struct stream *stream = rpc_call_data(call);

	(void)arg;
	if (!stream)
		return;
	if (!stream->finished)
		log_info("stream.ended", status->message, "node", stream->node.node_id, "code",
			 rpc_code_name(status->code), NULL);
	stream->call = NULL;
	gateway_inbox_clear(&stream->inbox);
	gateway_stream_pump(stream);
}

static void on_join_message(struct rpc_call *call, void *arg, const uint8_t *data, size_t length)
{
	struct gateway *gateway = arg;

	join_service_ask(gateway->join, call, data, length);
}

static void on_join_done(struct rpc_call *call, void *arg, const struct rpc_status *status)
{
	struct gateway *gateway = arg;

	(void)status;
	join_service_gone(gateway->join, call);
}

static const struct rpc_method methods[] = {
	{
		.path = METHOD_GATEWAY_CONNECT,
		.max_message = GATEWAY_MAX_MESSAGE,
		.on_start = on_start,
		.on_message = on_message,
		.on_half_close = on_half_close,
		.on_drain = on_drain,
		.on_done = on_done,
	},
	{
		.path = METHOD_JOIN_JOIN,
		.unary = true,
		.max_message = JOIN_ENVELOPE_MAX + 64,
		.on_message = on_join_message,
		.on_done = on_join_done,
	},
};

/* --- time --- */

static void sweep_one(struct stream *stream, struct mono now, struct wall wall)
{
	if (!stream->hello && mono_until(stream->started, now) >= GATEWAY_HELLO_MS)
		gateway_stream_finish(stream, RPC_DEADLINE_EXCEEDED, "no Hello came");
	else if (mono_until(stream->heard, now) >= GATEWAY_SILENCE_MS)
		gateway_stream_finish(stream, RPC_DEADLINE_EXCEEDED, "no heartbeat for 30 s");
	else if (wall.ms > stream->node.info.not_after.ms)
		gateway_stream_finish(stream, RPC_UNAUTHENTICATED,
				      "the node's certificate has expired");
}

static void on_sweep(void *arg)
{
	struct gateway *gateway = arg;
	struct mono now = loop_now(gateway->loop);
	struct wall wall = clock_wall();

	for (size_t i = 0; i < gateway->streams.count; i++)
		sweep_one(gateway->streams.items[i], now, wall);
	gateway_note_beats(gateway);
	loop_timer_start(gateway->sweep, SWEEP_MS);
}

/* --- for the rest of serve --- */

void gateway_push(struct gateway *gateway, const char *node, int64_t generation)
{
	struct stream *stream, *next;

	for (stream = *gateway_bucket_of(gateway, node); stream; stream = next) {
		next = stream->next_of_bucket; /* gateway_stream_pump() may end the stream */
		if (stream->call && str_equal(stream->node.node_id, node) &&
		    generation > stream->spec_generation) {
			stream->spec_wanted = true;
			gateway_stream_pump(stream);
		}
	}
}

struct gateway *gateway_create(struct loop *loop, struct workers *workers,
			       const struct pki_folder *pki, struct join_service *join,
			       const struct gateway_handlers *handlers)
{
	struct gateway *gateway = mem_alloc(sizeof *gateway);

	gateway->loop = loop;
	gateway->workers = workers;
	gateway->pki = pki;
	gateway->join = join;
	gateway->handlers = *handlers;
	gateway->server = rpc_server_create(loop, methods, ARRAY_SIZE(methods), gateway);
	rpc_server_limit_connections(gateway->server, GATEWAY_MAX_STREAMS + GATEWAY_JOINERS);
	gateway->sweep = loop_timer_create(loop, on_sweep, gateway);
	gateway->retry = loop_timer_create(loop, gateway_pump_all, gateway);
	loop_timer_start(gateway->sweep, SWEEP_MS);
	return gateway;
}

void gateway_set_keys(struct gateway *gateway, const struct pki_folder *pki, struct rpc_tls *tls)
{
	gateway->pki = pki;
	rpc_server_set_tls(gateway->server, tls);
}

bool gateway_listen(struct gateway *gateway, const char *address, struct rpc_tls *tls,
		    struct error *error)
{
	return rpc_server_listen_tcp(gateway->server, address, tls, error);
}

size_t gateway_streams(const struct gateway *gateway)
{
	return gateway->streams.count;
}

const char *gateway_address(const struct gateway *gateway)
{
	return rpc_server_address(gateway->server);
}

static void on_server_drained(void *arg)
{
	(void)arg; /* the streams tell when they are gone */
}

void gateway_drain(struct gateway *gateway, loop_fn *fn, void *arg)
{
	gateway->draining = true;
	gateway->on_drained = fn;
	gateway->drained_arg = arg;
	rpc_server_drain(gateway->server, on_server_drained, gateway);
	for (size_t i = 0; i < gateway->streams.count; i++)
		gateway_stream_finish(gateway->streams.items[i], RPC_UNAVAILABLE,
				      "the control plane is restarting");
	gateway_tell_drained(gateway);
}

void gateway_destroy(struct gateway *gateway)
{
	if (!gateway)
		return;
	gateway->draining = true;
	gateway->on_drained = NULL;
	gateway->workers = NULL;             /* gone by now */
	rpc_server_destroy(gateway->server); /* ends what is left */
	gateway_pump_all(gateway);           /* and what waited for the workers to have room */
	assert(gateway->streams.count == 0);
	loop_timer_destroy(gateway->sweep);
	loop_timer_destroy(gateway->retry);
	vec_deinit(&gateway->streams);
	free(gateway);
}
