#include "kube/client_internal.h"
#include "sys/random.h"

enum state {
	CALL_WAITING, /* for a place */
	CALL_FLYING,
	CALL_PAUSING, /* before the next try */
	CALL_ENDED,   /* `answer` is to be told */
};

/* An answer that a worker reads. */
struct reading {
	struct kube_call *call;      /* NULL: it has ended meanwhile */
	struct kube_request request; /* its subject and what it wants only */
	int status;
	int64_t retry_after_s;
	struct buf body;
	struct kube_answer answer;
};

struct kube_call {
	struct kube_client *kube;
	struct kube_request request;
	struct kube_call_options options;
	kube_fn *fn;
	void *arg;
	char *server; /* of its last try; NULL: none was made */
	enum state state;
	struct http_call *http; /* of CALL_FLYING, one of these two */
	struct reading *reading;
	struct loop_timer *timer; /* the deadline while waiting, else the pause's end */
	struct mono deadline;
	int tries;
	bool renewed, fresh;
	struct kube_answer answer;
	struct kube_call *next; /* in the order they came */
};

_Static_assert(KUBE_IN_FLIGHT <= HTTP_MULTI_CONNECTIONS,
	       "what may be under way must not wait for a connection");

/* A call of this priority is sent while fewer are under way. */
static const size_t PLACES[] = {
	[KUBE_URGENT] = KUBE_IN_FLIGHT,
	[KUBE_NORMAL] = KUBE_IN_FLIGHT - 2,
	[KUBE_LATER] = 3,
};

static void set_state(struct kube_call *call, enum state state)
{
	struct kube_client *kube = call->kube;

	kube->waiting -= call->state == CALL_WAITING;
	kube->flying -= call->state == CALL_FLYING;
	call->state = state;
	kube->waiting += state == CALL_WAITING;
	kube->flying += state == CALL_FLYING;
}

static void call_destroy(struct kube_call *call)
{
	struct kube_call **at = &call->kube->calls;

	while (*at != call)
		at = &(*at)->next;
	*at = call->next;
	http_call_cancel(call->http);
	if (call->reading)
		call->reading->call = NULL;
	set_state(call, CALL_ENDED);
	loop_timer_destroy(call->timer);
	kube_request_deinit(&call->request);
	kube_answer_deinit(&call->answer);
	free(call->server);
	free(call);
}

void kube_call_cancel(struct kube_call *call)
{
	if (!call)
		return;
	loop_defer_arm(call->kube->pump); /* its place is free */
	call_destroy(call);
}

/* --- a try's end --- */

static void end(struct kube_call *call)
{
	loop_timer_stop(call->timer);
	set_state(call, CALL_ENDED);
	loop_defer_arm(call->kube->pump);
}

static void set_unreached(struct kube_call *call, enum kube_way way, const struct error *error)
{
	kube_answer_deinit(&call->answer);
	call->answer = (struct kube_answer){
		.reason = KUBE_UNREACHED, .unknown = way == KUBE_WAY_BROKEN, .error = *error};
	error_wrap(&call->answer.error, "%s", call->request.subject);
}

/* What didn't reach it names the URL already; what it answered is its own word, and who it was is ours to say. */
static void name_server(struct kube_call *call)
{
	if (call->answer.error.code != ERROR_NONE)
		error_wrap(&call->answer.error, "'%s'", call->server);
}

static void try_ended(struct kube_call *call, enum kube_way way)
{
	struct kube_client *kube = call->kube;
	struct kube_try outcome = {
		.way = way,
		.answer = &call->answer,
		.repeatable = call->request.repeatable,
		.tries = call->tries,
		.renewed = call->renewed,
		.left_ms = mono_until(loop_now(kube->loop), call->deadline),
		.random = random_below(UINT64_MAX),
	};
	struct kube_next next = kube_try_decide(&outcome);

	if (way == KUBE_WAY_ANSWERED)
		name_server(call);
	if (next.step == KUBE_GIVE_UP) {
		end(call);
		return;
	}
	if (next.step == KUBE_AGAIN_RENEWED) {
		call->renewed = call->fresh = true;
		credentials_renew(kube->credentials);
	}
	set_state(call, CALL_PAUSING);
	loop_timer_start(call->timer, next.delay_ms);
	loop_defer_arm(kube->pump);
}

static enum kube_way way_of(enum http_way way)
{
	switch (way) {
	case HTTP_ANSWERED:
		return KUBE_WAY_ANSWERED;
	case HTTP_UNSENT:
		return KUBE_WAY_UNSENT;
	case HTTP_BROKEN:
		return KUBE_WAY_BROKEN;
	case HTTP_CREDENTIALS:
		return KUBE_WAY_CREDENTIALS;
	case HTTP_HOPELESS:
		return KUBE_WAY_HOPELESS;
	}
	abort();
}

static void reading_work(void *arg)
{
	struct reading *reading = arg;

	kube_answer_read(&reading->request, reading->status, reading->retry_after_s,
			 reading->body.data, reading->body.length, &reading->answer);
}

static void reading_done(void *arg)
{
	struct reading *reading = arg;
	struct kube_call *call = reading->call;

	if (call) {
		call->reading = NULL;
		call->answer = reading->answer;
		reading->answer = (struct kube_answer){0};
		try_ended(call, KUBE_WAY_ANSWERED);
	}
	kube_answer_deinit(&reading->answer);
	buf_deinit(&reading->body);
	free(reading);
}

/* Takes the body over. */
static void read_on_worker(struct kube_call *call, struct http_answer *answer)
{
	struct reading *reading = mem_alloc(sizeof *reading);

	reading->call = call;
	memcpy(reading->request.subject, call->request.subject, sizeof reading->request.subject);
	reading->request.wanted = call->request.wanted;
	reading->status = answer->status;
	reading->retry_after_s = answer->retry_after_s;
	reading->body = answer->body;
	answer->body = (struct buf){0};
	call->reading = reading;
	loop_work(call->kube->loop, reading_work, reading_done, reading);
}

static void on_http(void *arg, enum http_way way, struct http_answer *answer,
		    const struct error *error)
{
	struct kube_call *call = arg;

	call->http = NULL;
	kube_answer_deinit(&call->answer);
	if (answer && answer->body.length > KUBE_INLINE_MAX) {
		read_on_worker(call, answer);
		return;
	}
	if (answer)
		kube_answer_read(&call->request, answer->status, answer->retry_after_s,
				 answer->body.data, answer->body.length, &call->answer);
	else
		set_unreached(call, way_of(way), error);
	try_ended(call, way_of(way));
}

/* --- a try's beginning --- */

/* The outcome of its last try stands, if there was one. */
static void end_waiting(struct kube_call *call)
{
	struct error error;

	error_set(&error, ERROR_UNAVAILABLE, "its time was over before it could be sent");
	if (call->tries == 0)
		set_unreached(call, KUBE_WAY_UNSENT, &error);
	end(call);
}

static void try_start(struct kube_call *call)
{
	struct kube_client *kube = call->kube;
	CLEANUP(kube_identity) struct kube_identity identity = {0};
	CLEANUP(buf) struct buf url = {0};
	int64_t left_ms = mono_until(loop_now(kube->loop), call->deadline);
	bool ready = true;
	struct error error;
	bool loaded;

	/* Its timer counts by another clock and may come a millisecond later; no time would be any. */
	if (left_ms <= 0) {
		end_waiting(call);
		return;
	}
	loaded = credentials_load(kube->credentials, &ready, &identity, &error);
	if (loaded && !ready) {
		kube->asking = true;
		return;
	}
	call->tries++;
	set_state(call, CALL_FLYING);
	if (!loaded) {
		set_unreached(call, KUBE_WAY_CREDENTIALS, &error);
		try_ended(call, KUBE_WAY_CREDENTIALS);
		return;
	}
	free(call->server);
	call->server = mem_strdup(identity.server);
	buf_printf(&url, "%s%s", identity.server, buf_text(&call->request.path));
	/* On a connection that has gone stale nobody could tell whether it was sent. */
	const struct http_identity who =
		kube_who(&identity, call->fresh || !call->request.repeatable);
	const struct http_request request = {
		.method = call->request.method,
		.url = buf_text(&url),
		.body = call->request.content_type ? call->request.body.data : NULL,
		.body_length = call->request.body.length,
		.content_type = call->request.content_type,
		.max_answer = KUBE_MAX_ANSWER,
		.timeout_ms = left_ms < KUBE_TRY_MS ? left_ms : KUBE_TRY_MS,
	};
	call->fresh = false;
	call->http = http_multi_start(kube->multi, &who, &request, on_http, call);
}

/* The first of the highest priority that waits. */
static struct kube_call *next_waiting(const struct kube_client *kube)
{
	struct kube_call *found = NULL;

	for (struct kube_call *call = kube->calls; call; call = call->next)
		if (call->state == CALL_WAITING &&
		    (!found || call->options.priority < found->options.priority))
			found = call;
	return found;
}

static struct kube_call *next_ended(const struct kube_client *kube)
{
	struct kube_call *call = kube->calls;

	while (call && call->state != CALL_ENDED)
		call = call->next;
	return call;
}

/* False when the client is gone after it. */
static bool tell(struct kube_client *kube, struct kube_call *call)
{
	CLEANUP(kube_answer) struct kube_answer answer = call->answer;
	kube_fn *fn = call->fn;
	void *arg = call->arg;
	bool gone = false;

	call->answer = (struct kube_answer){0};
	call_destroy(call);
	kube->gone = &gone;
	fn(arg, &answer);
	if (!gone)
		kube->gone = NULL;
	return !gone;
}

static void pump(void *arg)
{
	struct kube_client *kube = arg;
	struct kube_call *call;

	while ((call = next_ended(kube)))
		if (!tell(kube, call))
			return;
	while (!kube->asking && (call = next_waiting(kube)) &&
	       kube->flying < PLACES[call->options.priority])
		try_start(call);
}

/* The deadline of one that waits, or the end of a pause. */
static void on_time(void *arg)
{
	struct kube_call *call = arg;
	struct kube_client *kube = call->kube;
	int64_t left_ms = mono_until(loop_now(kube->loop), call->deadline);

	if (call->state == CALL_WAITING && left_ms <= 0)
		end_waiting(call);
	if (call->state != CALL_PAUSING)
		return;
	set_state(call, CALL_WAITING);
	loop_timer_start(call->timer, left_ms);
	loop_defer_arm(kube->pump);
}

/* --- calls --- */

struct kube_call *kube_send(struct kube_client *kube, struct kube_request *request,
			    struct kube_call_options options, kube_fn *fn, void *arg)
{
	struct kube_call *call = mem_alloc(sizeof *call), **at = &kube->calls;
	int64_t timeout_ms = options.timeout_ms > 0 ? options.timeout_ms : KUBE_TIMEOUT_MS;
	bool full = kube->waiting >= KUBE_WAITING;

	*call = (struct kube_call){.kube = kube,
				   .request = *request,
				   .options = options,
				   .fn = fn,
				   .arg = arg,
				   .state = CALL_ENDED,
				   .deadline = mono_after(loop_now(kube->loop), timeout_ms)};
	*request = (struct kube_request){0};
	call->timer = loop_timer_create(kube->loop, on_time, call);
	while (*at)
		at = &(*at)->next;
	*at = call;
	if (full) {
		struct error error;

		error_set(&error, ERROR_RESOURCES_EXHAUSTED,
			  "%d calls wait for the API server already", KUBE_WAITING);
		set_unreached(call, KUBE_WAY_UNSENT, &error);
	} else {
		set_state(call, CALL_WAITING);
		loop_timer_start(call->timer, timeout_ms);
	}
	loop_defer_arm(kube->pump);
	return call;
}

static void on_ready(void *arg)
{
	struct kube_client *kube = arg;

	kube->asking = false;
	loop_defer_arm(kube->pump);
	kube_watches_ready(kube);
}

struct kube_client *kube_client_create(struct loop *loop, const struct credentials_options *options)
{
	struct kube_client *kube = mem_alloc(sizeof *kube);

	kube->loop = loop;
	kube->multi = http_multi_create(loop);
	kube->credentials = credentials_create(loop, options, on_ready, kube);
	kube->pump = loop_defer_create(loop, pump, kube);
	return kube;
}

void kube_client_destroy(struct kube_client *kube)
{
	if (!kube)
		return;
	assert(!kube->watches);
	if (kube->gone)
		*kube->gone = true;
	while (kube->calls)
		call_destroy(kube->calls);
	http_multi_destroy(kube->multi);
	credentials_destroy(kube->credentials);
	loop_defer_destroy(kube->pump);
	free(kube);
}
