#include "kube/watch.h"

#include "kube/client_internal.h"
#include "sys/random.h"

struct event {
	enum kube_watch_kind kind;
	json_t *object;
};

/* What has come and is being read, here or by a worker. */
struct reading {
	struct kube_watch *watch; /* NULL: it was stopped meanwhile */
	struct kube_watch_reader reader;
	struct buf bytes;
	VEC(struct event) events;
	bool goes_on;
	struct kube_answer end; /* when it doesn't */
};

struct kube_watch {
	struct kube_client *kube;
	const struct kube_resource *resource;
	char *namespace, *label_selector, *field_selector;
	kube_watch_fn *fn;
	kube_watch_state_fn *on_state;
	void *arg;
	struct kube_watch_reader reader; /* a reading has it while there is one */
	struct kube_watch_course course;
	char *server;           /* of the last answer, for messages */
	struct http_call *call; /* the answer that is open or asked for */
	bool open;              /* it has begun, at `begun` */
	struct mono begun;
	struct mono heard;      /* when it told something last, or began */
	int64_t silent_ms;      /* nothing was told for so long before this answer */
	struct mono tried, due; /* the last try, and the next while there is none */
	bool hasty;             /* that may come sooner */
	struct reading *reading;
	struct buf come;          /* meanwhile */
	struct kube_answer end;   /* of the answer */
	bool over;                /* it has ended so, and is still being read */
	struct loop_timer *timer; /* until the next try; of an open one, until it is steady */
	bool asking;              /* for credentials */
	bool fresh;               /* the next one is on a new connection */
	enum {
		TOLD_NOTHING,
		TOLD_OPEN,
		TOLD_FAILURE
	} told;
	enum kube_reason told_reason;
	struct kube_watch *next;
};

/* How long answers have been open since something was told. */
static int64_t silent_ms(const struct kube_watch *watch)
{
	struct mono now = loop_now(watch->kube->loop);

	return watch->silent_ms + (watch->open ? mono_until(watch->heard, now) : 0);
}

/* --- an answer's end --- */

static void tell_state(struct kube_watch *watch, const struct error *error)
{
	watch->told = error ? TOLD_FAILURE : TOLD_OPEN;
	if (watch->on_state)
		watch->on_state(watch->arg, error); /* it may be gone after this */
}

/* A version that has run out while nobody could be reached is what comes of it. */
static bool is_worth_telling(const struct kube_watch *watch, enum kube_reason reason,
			     const struct kube_watch_course *before)
{
	if (reason == KUBE_EXPIRED && !before->anew)
		return false;
	return watch->course.failures >= 2 &&
	       (watch->told != TOLD_FAILURE || watch->told_reason != reason);
}

/* As watch->end says. The watch may be gone after this. */
static void ended(struct kube_watch *watch)
{
	CLEANUP(kube_answer) struct kube_answer end = watch->end;
	const struct kube_watch_course before = watch->course;
	struct mono now = loop_now(watch->kube->loop);
	int64_t silent = silent_ms(watch);
	struct kube_watch_next next = kube_watch_decide(&(struct kube_watch_end){
		.reason = end.reason,
		.retry_after_s = end.retry_after_s,
		.lasted_ms = watch->open ? mono_until(watch->begun, now) : 0,
		.silent_ms = silent,
		.before = before,
		.random = random_below(UINT64_MAX),
	});

	watch->end = (struct kube_answer){0};
	watch->open = false;
	watch->over = false;
	watch->course = next.course;
	watch->silent_ms = next.anew ? 0 : silent;
	if (next.anew)
		watch->reader.version[0] = '\0';
	if (next.renew) {
		watch->fresh = true;
		credentials_renew(watch->kube->credentials);
	}
	watch->hasty = next.hasty;
	watch->due = mono_after(now, next.delay_ms);
	loop_timer_start(watch->timer, next.delay_ms);
	if (is_worth_telling(watch, end.reason, &before)) {
		watch->told_reason = end.reason;
		tell_state(watch, &end.error);
	}
}

static void end_unreached(struct kube_watch *watch, const struct error *error)
{
	watch->end = (struct kube_answer){.reason = KUBE_UNREACHED, .error = *error};
	error_wrap(&watch->end.error, "watch %ss", watch->resource->kind);
}

static void on_end(void *arg, enum http_way way, struct http_answer *answer,
		   const struct error *error)
{
	struct kube_watch *watch = arg;
	CLEANUP(kube_request)
	struct kube_request request =
		kube_watch(watch->resource, &(struct kube_list_options){0}, "", 1);

	watch->call = NULL;
	if (way != HTTP_ANSWERED) {
		end_unreached(watch, error);
	} else if (answer->status == 200) {
		error_set(&watch->end.error, ERROR_UNAVAILABLE, "'%s': %s: it ends at once",
			  watch->server, request.subject);
	} else {
		kube_answer_read(&request, answer->status, answer->retry_after_s, answer->body.data,
				 answer->body.length, &watch->end);
		error_wrap(&watch->end.error, "'%s'", watch->server);
	}
	if (watch->reading)
		watch->over = true;
	else
		ended(watch);
}

/* --- its events --- */

static void read_on(struct kube_watch *watch, const void *bytes, size_t length);

static void reading_destroy(struct reading *reading)
{
	kube_watch_reader_deinit(&reading->reader);
	buf_deinit(&reading->bytes);
	vec_each (&reading->events, const struct event *event)
		json_decref(event->object);
	vec_deinit(&reading->events);
	kube_answer_deinit(&reading->end);
	free(reading);
}

static void take_event(void *arg, enum kube_watch_kind kind, json_t **object)
{
	struct reading *reading = arg;

	*vec_push(&reading->events) = (struct event){kind, TAKE(*object)};
}

static void reading_work(void *arg)
{
	struct reading *reading = arg;

	reading->goes_on =
		kube_watch_read(&reading->reader, buf_text(&reading->bytes), reading->bytes.length,
				take_event, reading, &reading->end);
}

/* What is read says that this answer is of no more use. */
static void end_reading(struct kube_watch *watch, struct reading *reading)
{
	http_call_cancel(TAKE(watch->call));
	buf_clear(&watch->come);
	kube_answer_deinit(&watch->end);
	watch->end = reading->end;
	reading->end = (struct kube_answer){0};
	error_wrap(&watch->end.error, "'%s'", watch->server);
	ended(watch);
}

static void note_heard(struct kube_watch *watch)
{
	if (!watch->reader.heard)
		return;
	watch->reader.heard = false;
	watch->heard = loop_now(watch->kube->loop);
	watch->silent_ms = 0;
}

static void reading_done(void *arg)
{
	struct reading *reading = arg;
	struct kube_watch *watch = reading->watch;

	if (watch) {
		watch->reader = reading->reader;
		reading->reader = (struct kube_watch_reader){0};
		note_heard(watch);
	}
	vec_each (&reading->events, const struct event *event)
		if (reading->watch)
			watch->fn(watch->arg, event->kind, event->object);
	if (reading->watch) {
		CLEANUP(buf) struct buf come = watch->come;

		watch->come = (struct buf){0};
		watch->reading = NULL;
		if (!reading->goes_on)
			end_reading(watch, reading);
		else if (come.length > 0)
			read_on(watch, come.data, come.length);
		else if (watch->over)
			ended(watch);
	}
	reading_destroy(reading);
}

/* The watch may be gone after this. */
static void read_on(struct kube_watch *watch, const void *bytes, size_t length)
{
	struct reading *reading = mem_alloc(sizeof *reading);
	bool inline_read = watch->reader.line.length + length <= KUBE_INLINE_MAX;

	reading->watch = watch;
	reading->reader = watch->reader;
	watch->reader = (struct kube_watch_reader){.resource = watch->resource};
	buf_add(&reading->bytes, bytes, length);
	watch->reading = reading;
	if (inline_read) {
		reading_work(reading);
		reading_done(reading);
	} else {
		loop_work(watch->kube->loop, reading_work, reading_done, reading);
	}
}

static bool on_data(void *arg, const char *data, size_t length, struct error *error)
{
	struct kube_watch *watch = arg;

	if (length == 0) {
		watch->open = true;
		watch->begun = watch->heard = loop_now(watch->kube->loop);
		loop_timer_start(watch->timer, KUBE_WATCH_STEADY_MS);
	} else if (!watch->reading) {
		read_on(watch, data, length);
	} else if (length > KUBE_WATCH_MAX_BEHIND - watch->come.length) {
		return error_set(error, ERROR_RESOURCES_EXHAUSTED,
				 "'%s': events come faster than they are read", watch->server);
	} else {
		buf_add(&watch->come, data, length);
	}
	return true;
}

/* --- an answer's beginning --- */

static void ask(struct kube_watch *watch, const struct kube_identity *identity)
{
	int time_s = KUBE_WATCH_TIME_S + (int)random_below(KUBE_WATCH_JITTER_S + 1);
	CLEANUP(kube_request)
	struct kube_request request =
		kube_watch(watch->resource,
			   &(struct kube_list_options){.namespace = watch->namespace,
						       .label_selector = watch->label_selector,
						       .field_selector = watch->field_selector},
			   watch->reader.version, time_s);
	CLEANUP(buf) struct buf url = {0};
	const struct http_identity who = kube_who(identity, watch->fresh);

	free(watch->server);
	watch->server = mem_strdup(identity->server);
	buf_printf(&url, "%s%s", identity->server, buf_text(&request.path));
	kube_watch_reader_begin(&watch->reader);
	watch->fresh = false;
	watch->call = http_multi_stream(
		watch->kube->multi, &who,
		&(struct http_request){.method = request.method,
				       .url = buf_text(&url),
				       .max_answer = KUBE_WATCH_MAX_SAID,
				       .timeout_ms = time_s * 1000 + KUBE_WATCH_GRACE_MS},
		on_data, on_end, watch);
}

static void attempt(struct kube_watch *watch)
{
	CLEANUP(kube_identity) struct kube_identity identity = {0};
	bool ready = true;
	struct error error;

	watch->hasty = false;
	watch->tried = loop_now(watch->kube->loop);
	if (!credentials_load(watch->kube->credentials, &ready, &identity, &error)) {
		end_unreached(watch, &error);
		ended(watch);
	} else if (ready) {
		ask(watch, &identity);
	} else {
		watch->asking = true;
	}
}

static void on_time(void *arg)
{
	struct kube_watch *watch = arg;

	if (!watch->open)
		attempt(watch);
	else if (watch->told != TOLD_OPEN)
		tell_state(watch, NULL);
}

void kube_watches_ready(struct kube_client *kube)
{
	for (struct kube_watch *watch = kube->watches; watch; watch = watch->next) {
		if (watch->asking)
			loop_timer_start(watch->timer, 0);
		watch->asking = false;
	}
}

/* --- the whole of it --- */

struct kube_watch *kube_watch_start(struct kube_client *kube, const struct kube_resource *resource,
				    const struct kube_list_options *query, kube_watch_fn *fn,
				    kube_watch_state_fn *on_state, void *arg)
{
	struct kube_watch *watch = mem_alloc(sizeof *watch);

	*watch = (struct kube_watch){
		.kube = kube,
		.resource = resource,
		.namespace = mem_strdup(query->namespace),
		.label_selector = mem_strdup(query->label_selector),
		.field_selector = mem_strdup(query->field_selector),
		.reader = {.resource = resource},
		.fn = fn,
		.on_state = on_state,
		.arg = arg,
		.timer = loop_timer_create(kube->loop, on_time, watch),
		.next = kube->watches,
	};
	kube->watches = watch;
	loop_timer_start(watch->timer, 0);
	return watch;
}

void kube_watch_stop(struct kube_watch *watch)
{
	struct kube_watch **at;

	if (!watch)
		return;
	at = &watch->kube->watches;
	while (*at != watch)
		at = &(*at)->next;
	*at = watch->next;
	http_call_cancel(watch->call);
	if (watch->reading)
		watch->reading->watch = NULL;
	loop_timer_destroy(watch->timer);
	kube_watch_reader_deinit(&watch->reader);
	kube_answer_deinit(&watch->end);
	buf_deinit(&watch->come);
	free(watch->namespace);
	free(watch->label_selector);
	free(watch->field_selector);
	free(watch->server);
	free(watch);
}

bool kube_watch_live(const struct kube_watch *watch)
{
	return watch && watch->call && watch->open && silent_ms(watch) < KUBE_WATCH_SILENT_MS;
}

void kube_watch_hurry(struct kube_watch *watch)
{
	struct mono now, soonest;

	if (!watch || !watch->hasty)
		return;
	now = loop_now(watch->kube->loop);
	soonest = mono_later(now, mono_after(watch->tried, KUBE_WATCH_HURRY_MS));
	if (soonest.ms >= watch->due.ms)
		return;
	watch->due = soonest;
	loop_timer_start(watch->timer, mono_until(now, soonest));
}
