#include "serve/gateway_internal.h"

#include "serve/workers.h"
#include "sys/log.h"

#define RETRY_MS 50 /* after the workers had no room */

/* --- jobs come back --- */

static void on_hello_done(struct stream *stream, const struct stream_job *job)
{
	stream->epoch = job->welcome.epoch;
	stream->spec_wanted = true;
	gateway_end_older(stream);
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
	struct stream *stream = gateway_find(gateway, job->stream);

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
		gateway_stream_finish_error(stream, &job->error);
	else if (stream->call && !stream->finished && job->down.length > 0)
		rpc_send(stream->call, job->down.data, job->down.length);
	stream_job_destroy(job);
	gateway_stream_pump(stream);
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
		gateway_stream_destroy(stream);
		return;
	}
	if (submit(stream, STREAM_JOB_GONE, NULL))
		stream->gone = true;
	else if (stream->gateway->draining)
		gateway_stream_destroy(
			stream); /* the workers are stopping; silence says it as well */
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
		message_free(gateway_inbox_pop(&stream->inbox));
	}
}

void gateway_stream_pump(struct stream *stream)
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
			(void)gateway_inbox_pop(&stream->inbox); /* the job has the message now */
	} else {
		return;
	}
	if (!room)
		loop_timer_start(stream->gateway->retry, RETRY_MS);
}

/* Backwards: a stream may be destroyed on the way. */
void gateway_pump_all(void *arg)
{
	struct gateway *gateway = arg;

	for (size_t i = gateway->streams.count; i > 0; i--)
		gateway_stream_pump(gateway->streams.items[i - 1]);
}
