#include "serve/gateway.h"

#include "base/vec.h"
#include "control/control.h"
#include "pki/cert.h"
#include "pki/envelope.h"
#include "proto/methods.h"
#include "rpc/rpc.h"
#include "serve/stream_job.h"
#include "serve/workers.h"
#include "sys/clock.h"
#include "sys/log.h"

#define SWEEP_MS     1000
#define NODE_BUCKETS 16384 /* GATEWAY_MAX_STREAMS: about one a bucket */
#define RETRY_MS     50    /* after the workers had no room */

/* A message that waits for its turn. */
struct letter {
	struct letter *next;
	Bettercompute__V1__Up *up;
	size_t size;
};

struct inbox {
	struct letter *first, **last;
	size_t count, size;
};

/*
 * One call of Gateway.Connect. It outlives the call until its last job is done and the database
 * knows that it is gone.
 */
struct stream {
	uint64_t id;
	struct stream *next_of_bucket; /* of its node's */
	struct gateway *gateway;
	struct rpc_call *call; /* NULL: ended */
	struct cert_node node;
	struct mono started, heard;
	struct inbox inbox;
	int64_t epoch;           /* 0: no Welcome yet */
	int64_t spec_generation; /* sent last */
	int64_t beat_generation; /* a heartbeat said this, and it is committed; -1: none did */
	bool beat;               /* one came since that says the same: for the next round */
	bool hello;              /* has come */
	bool spec_wanted;
	bool working;  /* a job is under way */
	bool finished; /* we ended the call: what still comes is dropped */
	bool gone;     /* the database was told */
};

struct gateway {
	struct loop *loop;
	struct workers *workers;
	const struct pki_folder *pki;
	struct join_service *join;
	struct gateway_handlers handlers;
	struct rpc_server *server;
	struct loop_timer *sweep, *retry;
	VEC(struct stream *) streams; /* by id, which only grows */
	struct stream *by_node[NODE_BUCKETS];
	bool beating; /* a round of heartbeats is under way */
	bool draining;
	loop_fn *on_drained;
	void *drained_arg;
};

static void pump(struct stream *stream);

/* --- the set of streams --- */

static size_t index_of(const struct gateway *gateway, uint64_t id)
{
	size_t low = 0, high = gateway->streams.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (gateway->streams.items[middle]->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct stream *find(const struct gateway *gateway, uint64_t id)
{
	size_t index = index_of(gateway, id);

	if (index == gateway->streams.count || gateway->streams.items[index]->id != id)
		return NULL;
	return gateway->streams.items[index];
}

/* Where the streams of a node are found; others may be there too. */
static struct stream **bucket_of(struct gateway *gateway, const char *node)
{
	uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */

	for (; *node; node++)
		hash = (hash ^ (unsigned char)*node) * 0x100000001b3;
	return &gateway->by_node[(hash ^ hash >> 32) % NODE_BUCKETS];
}

static void leave_bucket(struct stream *stream)
{
	struct stream **slot = bucket_of(stream->gateway, stream->node.node_id);

	while (*slot != stream)
		slot = &(*slot)->next_of_bucket;
	*slot = stream->next_of_bucket;
}

static void tell_drained(struct gateway *gateway)
{
	loop_fn *fn = gateway->on_drained;

	if (!gateway->draining || gateway->streams.count > 0)
		return;
	gateway->on_drained = NULL;
	if (fn)
		fn(gateway->drained_arg);
}

/* --- inboxes --- */

static void inbox_push(struct inbox *inbox, Bettercompute__V1__Up *up, size_t size)
{
	struct letter *letter = mem_alloc(sizeof *letter);

	*letter = (struct letter){.up = up, .size = size};
	*inbox->last = letter;
	inbox->last = &letter->next;
	inbox->count++;
	inbox->size += size;
}

/* The caller's to message_free(); NULL when empty. */
static Bettercompute__V1__Up *inbox_pop(struct inbox *inbox)
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

static void inbox_clear(struct inbox *inbox)
{
	Bettercompute__V1__Up *up;

	while ((up = inbox_pop(inbox)))
		message_free(up);
}

/* --- a stream's life --- */

static void destroy(struct stream *stream)
{
	struct gateway *gateway = stream->gateway;

	inbox_clear(&stream->inbox);
	leave_bucket(stream);
	vec_remove(&gateway->streams, index_of(gateway, stream->id));
	free(stream);
	tell_drained(gateway);
}

/* Ends the call from our side; on_done() follows. */
static void finish(struct stream *stream, enum rpc_code code, const char *why)
{
	if (!stream->call || stream->finished)
		return;
	stream->finished = true;
	inbox_clear(&stream->inbox);
	log_info("stream.ended", why, "node", stream->node.node_id, "code", rpc_code_name(code),
		 NULL);
	rpc_finish(stream->call, code, why);
}

static void finish_error(struct stream *stream, const struct error *error)
{
	/* The epoch is void: somebody said Hello after us, perhaps on another replica. */
	if (error->code == ERROR_CONFLICT)
		finish(stream, RPC_ABORTED, "a newer stream of this node took over");
	else
		finish(stream, (enum rpc_code)error_grpc_status(error->code), error->what);
}

/* Of two streams of one node the one with the newer epoch stays. */
static void end_older(struct stream *newest)
{
	struct stream *other = *bucket_of(newest->gateway, newest->node.node_id);

	for (; other; other = other->next_of_bucket) {
		if (other != newest && other->epoch > 0 && other->epoch < newest->epoch &&
		    str_equal(other->node.node_id, newest->node.node_id))
			finish(other, RPC_ABORTED, "a newer stream of this node took over");
	}
}

/* --- jobs come back --- */

static void on_hello_done(struct stream *stream, const struct stream_job *job)
{
	stream->epoch = job->welcome.epoch;
	stream->spec_wanted = true;
	end_older(stream);
	log_info("stream.open", "node connected", "node", stream->node.node_id, NULL);
}

static void on_spec_done(struct stream *stream, const struct stream_job *job)
{
	stream->spec_generation = job->spec_generation;
}

static void on_job_done(void *context, void *arg)
{
	struct gateway *gateway = context;
	struct stream_job *job = arg;
	struct stream *stream = find(gateway, job->stream);

	assert(stream); /* it waits for its job */
	stream->working = false;
	if (job->ok && job->kind == STREAM_JOB_HELLO)
		on_hello_done(stream, job);
	if (job->ok && job->kind == STREAM_JOB_SPEC)
		on_spec_done(stream, job);
	if (job->ok && job->kind == STREAM_JOB_HEARTBEAT)
		stream->beat_generation = job->up->heartbeat->spec_generation;
	if (job->ok && job->look_again)
		gateway->handlers.on_look_again(gateway->handlers.arg);
	if (!job->ok && job->kind != STREAM_JOB_GONE)
		finish_error(stream, &job->error);
	else if (stream->call && !stream->finished && job->down.length > 0)
		rpc_send(stream->call, job->down.data, job->down.length);
	stream_job_destroy(job);
	pump(stream);
}

/* --- jobs go out --- */

static bool submit(struct stream *stream, enum stream_job_kind kind, Bettercompute__V1__Up *up)
{
	struct gateway *gateway = stream->gateway;
	struct stream_job *job;

	if (!gateway->workers)
		return false;
	job = stream_job_create(kind, stream->id, &stream->node, stream->epoch, gateway->pki, up);
	if (!workers_submit(gateway->workers, stream_job_work, on_job_done, gateway, job)) {
		job->up = NULL; /* stays in the inbox */
		stream_job_destroy(job);
		return false;
	}
	stream->working = true;
	return true;
}

static enum stream_job_kind kind_of(const Bettercompute__V1__Up *up)
{
	switch (up->body_case) {
	case BETTERCOMPUTE__V1__UP__BODY_HELLO:
		return STREAM_JOB_HELLO;
	case BETTERCOMPUTE__V1__UP__BODY_REPORT:
		return STREAM_JOB_REPORT;
	case BETTERCOMPUTE__V1__UP__BODY_HEARTBEAT:
		return STREAM_JOB_HEARTBEAT;
	case BETTERCOMPUTE__V1__UP__BODY_SECRET_REQUEST:
		return STREAM_JOB_SECRET;
	case BETTERCOMPUTE__V1__UP__BODY_RENEW:
		return STREAM_JOB_RENEW;
	case BETTERCOMPUTE__V1__UP__BODY__NOT_SET:
	case _BETTERCOMPUTE__V1__UP__BODY__CASE_IS_INT_SIZE:
		break;
	}
	abort(); /* on_message() lets no other in */
}

/* The last thing a stream does. */
static void pump_ended(struct stream *stream)
{
	if (stream->epoch == 0 || stream->gone) {
		destroy(stream);
		return;
	}
	if (submit(stream, STREAM_JOB_GONE, NULL))
		stream->gone = true;
	else if (stream->gateway->draining)
		destroy(stream); /* the workers are stopping; silence says it as well */
	else
		loop_timer_start(stream->gateway->retry, RETRY_MS);
}

/* Most heartbeats say what is committed already: they wait for the next round, all together. */
static void take_beats(struct stream *stream)
{
	while (stream->inbox.first) {
		const Bettercompute__V1__Up *up = stream->inbox.first->up;

		if (up->body_case != BETTERCOMPUTE__V1__UP__BODY_HEARTBEAT ||
		    up->heartbeat->spec_generation != stream->beat_generation)
			return;
		stream->beat = true;
		message_free(inbox_pop(&stream->inbox));
	}
}

/* Starts the stream's next job, if it has one and may. */
static void pump(struct stream *stream)
{
	bool room;

	if (stream->working)
		return;
	if (!stream->call) {
		pump_ended(stream);
		return;
	}
	if (stream->finished || rpc_queued(stream->call) > GATEWAY_MAX_QUEUED)
		return;
	take_beats(stream);
	if (stream->epoch > 0 && stream->spec_wanted) {
		room = submit(stream, STREAM_JOB_SPEC, NULL);
		stream->spec_wanted = !room;
	} else if (stream->inbox.first) {
		struct letter *letter = stream->inbox.first;

		room = submit(stream, kind_of(letter->up), letter->up);
		if (room)
			(void)inbox_pop(&stream->inbox); /* the job has the message now */
	} else {
		return;
	}
	if (!room)
		loop_timer_start(stream->gateway->retry, RETRY_MS);
}

/* Backwards: a stream may be destroyed on the way. */
static void on_retry(void *arg)
{
	struct gateway *gateway = arg;

	for (size_t i = gateway->streams.count; i > 0; i--)
		pump(gateway->streams.items[i - 1]);
}

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
	struct stream *stream;
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
	stream = mem_alloc(sizeof *stream);
	stream->id = rpc_call_id(call);
	stream->gateway = gateway;
	stream->call = call;
	stream->node = node;
	stream->started = stream->heard = loop_now(gateway->loop);
	stream->inbox.last = &stream->inbox.first;
	stream->beat_generation = -1;
	assert(index_of(gateway, stream->id) == gateway->streams.count);
	*vec_push(&gateway->streams) = stream;
	stream->next_of_bucket = *bucket_of(gateway, node.node_id);
	*bucket_of(gateway, node.node_id) = stream;
	rpc_call_set_data(call, stream);
}

/* Is this message's kind in its place? */
static bool check_order(struct stream *stream, const Bettercompute__V1__Up *up)
{
	bool is_hello = up->body_case == BETTERCOMPUTE__V1__UP__BODY_HELLO;

	if (is_hello == !stream->hello) {
		stream->hello = true;
		return true;
	}
	finish(stream, RPC_INVALID_ARGUMENT,
	       is_hello ? "a second Hello in one stream" : "the first message must be a Hello");
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
		finish_error(stream, &error);
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
	inbox_push(&stream->inbox, up, length);
	if (stream->inbox.count > GATEWAY_MAX_INBOX || stream->inbox.size > GATEWAY_MAX_INBOX_SIZE)
		finish(stream, RPC_RESOURCE_EXHAUSTED, "more messages than can be taken in");
	else
		pump(stream);
}

static void on_half_close(struct rpc_call *call, void *arg)
{
	struct stream *stream = rpc_call_data(call);

	(void)arg;
	if (stream)
		finish(stream, RPC_OK, "the node closed the stream");
}

static void on_drain(struct rpc_call *call, void *arg)
{
	struct stream *stream = rpc_call_data(call);

	(void)arg;
	if (stream)
		pump(stream);
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
	inbox_clear(&stream->inbox);
	pump(stream);
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
		finish(stream, RPC_DEADLINE_EXCEEDED, "no Hello came");
	else if (mono_until(stream->heard, now) >= GATEWAY_SILENCE_MS)
		finish(stream, RPC_DEADLINE_EXCEEDED, "no heartbeat for 30 s");
	else if (wall.ms > stream->node.info.not_after.ms)
		finish(stream, RPC_UNAUTHENTICATED, "the node's certificate has expired");
}

/* One round of heartbeats. */
struct beats_job {
	bool ok; /* false until it has run */
	struct error error;
	size_t count;
	uint64_t streams[GATEWAY_MAX_BEATS];
	struct control_beat beats[GATEWAY_MAX_BEATS];
};

static void beats_work(void *arg, struct control *control)
{
	struct beats_job *job = arg;

	job->ok = control_nodes_seen(control, job->beats, job->count, &job->error);
}

static void beats_done(void *context, void *arg)
{
	struct gateway *gateway = context;
	struct beats_job *job = arg;

	gateway->beating = false;
	if (!job->ok && job->error.code != ERROR_NONE)
		log_failure(LOG_WARN, "stream.heartbeats", &job->error, "they are noted in 1 s");
	for (size_t i = 0; i < job->count; i++) {
		struct stream *stream = find(gateway, job->streams[i]);

		if (!stream) /* it ended meanwhile */
			continue;
		if (!job->ok)
			stream->beat = true;
		else if (!job->beats[i].known)
			finish(stream, RPC_ABORTED, "a newer stream of this node took over");
	}
	free(job);
}

static void note_beats(struct gateway *gateway)
{
	struct beats_job *job;

	if (gateway->beating || !gateway->workers)
		return;
	job = mem_alloc(sizeof *job);
	for (size_t i = 0; i < gateway->streams.count && job->count < GATEWAY_MAX_BEATS; i++) {
		struct stream *stream = gateway->streams.items[i];

		if (!stream->beat || !stream->call)
			continue;
		str_copy(job->beats[job->count].node, ID_SIZE, stream->node.node_id);
		job->beats[job->count].epoch = stream->epoch;
		job->streams[job->count++] = stream->id;
	}
	gateway->beating = job->count > 0 &&
			   workers_submit(gateway->workers, beats_work, beats_done, gateway, job);
	for (size_t i = 0; gateway->beating && i < job->count; i++)
		find(gateway, job->streams[i])->beat = false;
	if (!gateway->beating)
		free(job);
}

static void on_sweep(void *arg)
{
	struct gateway *gateway = arg;
	struct mono now = loop_now(gateway->loop);
	struct wall wall = clock_wall();

	for (size_t i = 0; i < gateway->streams.count; i++)
		sweep_one(gateway->streams.items[i], now, wall);
	note_beats(gateway);
	loop_timer_start(gateway->sweep, SWEEP_MS);
}

/* --- for the rest of serve --- */

void gateway_push(struct gateway *gateway, const char *node, int64_t generation)
{
	struct stream *stream, *next;

	for (stream = *bucket_of(gateway, node); stream; stream = next) {
		next = stream->next_of_bucket; /* pump() may end the stream */
		if (stream->call && str_equal(stream->node.node_id, node) &&
		    generation > stream->spec_generation) {
			stream->spec_wanted = true;
			pump(stream);
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
	gateway->retry = loop_timer_create(loop, on_retry, gateway);
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
		finish(gateway->streams.items[i], RPC_UNAVAILABLE,
		       "the control plane is restarting");
	tell_drained(gateway);
}

void gateway_destroy(struct gateway *gateway)
{
	if (!gateway)
		return;
	gateway->draining = true;
	gateway->on_drained = NULL;
	gateway->workers = NULL;             /* gone by now */
	rpc_server_destroy(gateway->server); /* ends what is left */
	on_retry(gateway);                   /* and what waited for the workers to have room */
	assert(gateway->streams.count == 0);
	loop_timer_destroy(gateway->sweep);
	loop_timer_destroy(gateway->retry);
	vec_deinit(&gateway->streams);
	free(gateway);
}
