#include "serve/gateway_internal.h"

#include "control/control.h"
#include "serve/workers.h"
#include "sys/log.h"

/* One round of heartbeats. */
struct beats_job {
	bool ok; /* false until it has run */
	struct error error;
	size_t count;
	uint64_t *streams;
	struct control_beat *beats;
};

static struct beats_job *beats_create(size_t most)
{
	struct beats_job *job = mem_alloc(sizeof *job);

	job->streams = mem_alloc(most * sizeof *job->streams);
	job->beats = mem_alloc(most * sizeof *job->beats);
	return job;
}

static void beats_destroy(struct beats_job *job)
{
	free(job->streams);
	free(job->beats);
	free(job);
}

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
		struct stream *stream = gateway_find(gateway, job->streams[i]);

		if (!stream) /* it ended meanwhile */
			continue;
		if (!job->ok)
			stream->beat = true;
		else if (!job->beats[i].known)
			gateway_stream_finish(
				stream, RPC_ABORTED,
				"a newer stream of this node took over, or it was retired");
	}
	beats_destroy(job);
}

static bool has_beat(const struct stream *stream)
{
	return stream->beat && stream->call;
}

static size_t count_beats(const struct gateway *gateway)
{
	size_t count = 0;

	for (size_t i = 0; i < gateway->streams.count; i++)
		count += has_beat(gateway->streams.items[i]);
	return count < GATEWAY_MAX_BEATS ? count : GATEWAY_MAX_BEATS;
}

void gateway_note_beats(struct gateway *gateway)
{
	size_t count = count_beats(gateway);
	struct beats_job *job;

	if (gateway->beating || !gateway->workers || count == 0)
		return;
	job = beats_create(count);
	for (size_t i = 0; job->count < count; i++) {
		struct stream *stream = gateway->streams.items[i];

		if (!has_beat(stream))
			continue;
		str_copy(job->beats[job->count].node, ID_SIZE, stream->node.node_id);
		job->beats[job->count].epoch = stream->epoch;
		job->streams[job->count++] = stream->id;
	}
	gateway->beating = workers_submit(gateway->workers, beats_work, beats_done, gateway, job);
	for (size_t i = 0; gateway->beating && i < job->count; i++)
		gateway_find(gateway, job->streams[i])->beat = false;
	if (!gateway->beating)
		beats_destroy(job);
}
