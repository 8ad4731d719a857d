#include "serve/events.h"

#include "base/vec.h"
#include "control/control.h"
#include "serve/workers.h"

#include <stdio.h>

struct event_stream {
	struct events *events;
	int64_t number; /* what jobs know it by: it may be gone when they are done */
	char key[ID_SIZE];
	char request_id[ID_SIZE];
	char *authorization;
	int64_t after;
	struct buf text; /* what is to be sent, from `sent` on */
	size_t sent;
	bool asking, due, over;
	struct mono heartbeat; /* when one is due */
	loop_fn *wake;
	void *arg;
};

struct stream_list VEC_BODY(struct event_stream *);

struct events {
	struct loop *loop;
	struct workers *workers;
	const struct router *router;
	struct loop_timer *timer;
	struct stream_list streams;
	int64_t number;
	bool looking, look_again, ending;
};

/* One look, or one page of a stream. */
struct job {
	const struct router *router;
	bool ok;
	struct error error;
	int64_t end;    /* of a look */
	int64_t number; /* of a page: whose */
	char request_id[ID_SIZE];
	char *authorization;
	struct router_events page;
};

static struct job *job_create(const struct events *events)
{
	struct job *job = mem_alloc(sizeof *job);

	error_set(&job->error, ERROR_UNAVAILABLE, "the control plane is stopping");
	job->router = events->router;
	return job;
}

static void job_destroy(struct job *job)
{
	if (job->authorization)
		explicit_bzero(job->authorization, strlen(job->authorization));
	free(job->authorization);
	buf_deinit(&job->page.text);
	free(job);
}

/* --- pages --- */

static bool has_text(const struct event_stream *stream)
{
	return stream->sent < stream->text.length;
}

static void page_work(void *arg, struct control *control)
{
	struct job *job = arg;
	struct request request = {
		.method = "GET",
		.target = "/v1/events",
		.authorization = job->authorization,
	};

	str_copy(request.id, sizeof request.id, job->request_id);
	job->ok = router_events(control, &request, &job->page, &job->error);
}

static void ask_page(struct event_stream *stream);

/* A key that opens no more ends the stream; what may pass is asked again with the next look. */
static void take_page(struct event_stream *stream, struct job *job)
{
	stream->asking = false;
	if (!job->ok) {
		stream->over = job->error.code != ERROR_UNAVAILABLE;
	} else {
		stream->after = job->page.after;
		buf_add(&stream->text, job->page.text.data, job->page.text.length);
	}
	if (stream->over || has_text(stream))
		stream->wake(stream->arg);
	else if (stream->due)
		ask_page(stream);
}

static void page_done(void *context, void *arg)
{
	struct events *events = context;
	struct job *job = arg;

	for (size_t i = 0; i < events->streams.count; i++) {
		if (events->streams.items[i]->number == job->number) {
			take_page(events->streams.items[i], job);
			break;
		}
	}
	job_destroy(job);
}

static void ask_page(struct event_stream *stream)
{
	struct events *events = stream->events;
	struct job *job;

	stream->due = true;
	if (stream->asking || has_text(stream) || stream->over)
		return;
	stream->due = false;
	job = job_create(events);
	job->number = stream->number;
	job->page.after = stream->after;
	job->authorization = mem_strdup(stream->authorization);
	str_copy(job->request_id, sizeof job->request_id, stream->request_id);
	stream->asking = workers_submit(events->workers, page_work, page_done, events, job);
	if (!stream->asking)
		job_destroy(job);
}

/* --- looking --- */

static void look_work(void *arg, struct control *control)
{
	struct job *job = arg;

	job->ok = control_event_end(control, &job->end, &job->error);
}

static void look_done(void *context, void *arg)
{
	struct events *events = context;
	struct job *job = arg;

	events->looking = false;
	for (size_t i = 0; i < events->streams.count && job->ok; i++) {
		if (events->streams.items[i]->after < job->end)
			ask_page(events->streams.items[i]);
	}
	job_destroy(job);
	if (events->look_again)
		events_look(events);
}

void events_look(struct events *events)
{
	struct job *job;

	events->look_again = events->looking;
	if (events->looking || events->streams.count == 0 || events->ending)
		return;
	job = job_create(events);
	events->looking = workers_submit(events->workers, look_work, look_done, events, job);
	if (!events->looking)
		job_destroy(job);
}

/* Each that was quiet for so long hears something; one whose client left ends by it. */
static void beat(struct events *events, int64_t quiet_ms)
{
	struct mono now = loop_now(events->loop);

	for (size_t i = 0; i < events->streams.count; i++) {
		struct event_stream *stream = events->streams.items[i];

		if (has_text(stream) ||
		    mono_until(now, stream->heartbeat) > EVENTS_HEARTBEAT_MS - quiet_ms)
			continue;
		buf_add_text(&stream->text, ": heartbeat\n\n");
		stream->wake(stream->arg);
	}
}

static void on_timer(void *arg)
{
	struct events *events = arg;

	beat(events, EVENTS_HEARTBEAT_MS);
	events_look(events);
	if (events->streams.count > 0)
		loop_timer_start(events->timer, EVENTS_LOOK_MS);
}

/* --- streams --- */

static bool check_room(const struct events *events, const char *key, struct error *error)
{
	size_t own = 0;

	for (size_t i = 0; i < events->streams.count; i++)
		own += str_equal(events->streams.items[i]->key, key);
	if (own < EVENTS_MAX_PER_KEY && events->streams.count < EVENTS_MAX_STREAMS)
		return true;
	if (own >= EVENTS_MAX_PER_KEY)
		error_set(error, ERROR_RATE_LIMITED, "the key has %zu event streams already", own);
	else
		error_set(error, ERROR_RATE_LIMITED, "there are %zu event streams already",
			  events->streams.count);
	return error_hint(error, "End one of them, or ask without Accept: text/event-stream.");
}

bool events_open(struct events *events, const struct request *request, struct router_events *first,
		 loop_fn *wake, void *arg, struct event_stream **ret_stream, struct error *error)
{
	struct event_stream *stream;

	if (!check_room(events, first->key, error)) {
		beat(events, EVENTS_LOOK_MS); /* some may be gone, and nobody noticed yet */
		return false;
	}
	stream = mem_alloc(sizeof *stream);
	*stream = (struct event_stream){
		.events = events,
		.number = ++events->number,
		.authorization = mem_strdup(request->authorization),
		.after = first->after,
		.over = events->ending,
		.heartbeat = mono_after(loop_now(events->loop), EVENTS_HEARTBEAT_MS),
		.wake = wake,
		.arg = arg,
	};
	str_copy(stream->key, sizeof stream->key, first->key);
	str_copy(stream->request_id, sizeof stream->request_id, request->id);
	buf_printf(&stream->text, "retry: %d\n\n", EVENTS_LOOK_MS);
	buf_add(&stream->text, first->text.data, first->text.length);
	buf_clear(&first->text);
	*vec_push(&events->streams) = stream;
	if (!loop_timer_running(events->timer))
		loop_timer_start(events->timer, EVENTS_LOOK_MS);
	*ret_stream = stream;
	return true;
}

ssize_t event_stream_read(struct event_stream *stream, char *out, size_t size)
{
	size_t left = stream->text.length - stream->sent;
	size_t length = left < size ? left : size;

	if (length == 0)
		return stream->over ? -1 : 0;
	memcpy(out, stream->text.data + stream->sent, length);
	stream->sent += length;
	stream->heartbeat = mono_after(loop_now(stream->events->loop), EVENTS_HEARTBEAT_MS);
	if (!has_text(stream)) {
		buf_clear(&stream->text);
		stream->sent = 0;
		ask_page(stream); /* there may be more than one page */
	}
	return (ssize_t)length;
}

void event_stream_close(struct event_stream *stream)
{
	struct stream_list *streams;

	if (!stream)
		return;
	streams = &stream->events->streams;
	for (size_t i = 0; i < streams->count; i++) {
		if (streams->items[i] == stream) {
			vec_remove(streams, i);
			break;
		}
	}
	explicit_bzero(stream->authorization, strlen(stream->authorization));
	free(stream->authorization);
	buf_deinit(&stream->text);
	free(stream);
}

/* --- life --- */

struct events *events_create(struct loop *loop, const struct router *router)
{
	struct events *events = mem_alloc(sizeof *events);

	events->loop = loop;
	events->router = router;
	events->timer = loop_timer_create(loop, on_timer, events);
	return events;
}

void events_set_workers(struct events *events, struct workers *workers)
{
	events->workers = workers;
}

void events_end(struct events *events)
{
	events->ending = true;
	for (size_t i = 0; i < events->streams.count; i++) {
		events->streams.items[i]->over = true;
		events->streams.items[i]->wake(events->streams.items[i]->arg);
	}
}

void events_destroy(struct events *events)
{
	if (!events)
		return;
	assert(events->streams.count == 0);
	loop_timer_destroy(events->timer);
	vec_deinit(&events->streams);
	free(events);
}
