#include "serve/exchange.h"

#include "control/control.h"
#include "serve/framing.h"
#include "serve/metrics.h"
#include "serve/workers.h"
#include "store/store.h"
#include "sys/clock.h"
#include "sys/random.h"

#include <stdatomic.h>
#include <stdio.h>
#include <strings.h>

#define STREAM_TYPE  "text/event-stream"
#define STREAM_BLOCK 4096
#define MARGIN_MS    250 /* the database is given up so much before the answer is due */

/* What a worker gets of a request, which may be over before the worker is: then nobody hears it.
 * While the worker is at it nobody else touches what follows `database_until`. */
struct job {
	struct exchanges *common;
	struct exchange *exchange; /* who waits; NULL: nobody any more */
	int users;                 /* the exchange, and the workers */
	struct request request;    /* its texts are the four below */
	char *method, *target, *authorization, *content_type;
	struct buf body;
	bool streams;         /* a stream of events is asked for */
	atomic_bool given_up; /* not begun yet, it never is */
	struct mono database_until;
	struct response response;
	bool opened; /* the stream's first page is there */
	struct router_events first;
	struct error stream_error;
};

struct exchange {
	struct exchanges *common;
	struct MHD_Connection *connection;
	struct peer *peer;
	struct job *job;
	struct response response; /* to be sent */
	int64_t began_us;
	struct address from; /* who calls */
	bool too_large;
	bool waits, answered;  /* for a worker; there is something to send */
	int64_t answer_ms;     /* may pass */
	struct mono answer_by; /* while it waits */
	struct caller caller;
	struct event_stream *stream;
	bool sleeps; /* the stream has nothing to send */
};

/* --- jobs --- */

static char *copy_of(const char *text)
{
	return text ? mem_strdup(text) : NULL;
}

static char *header_of(struct MHD_Connection *connection, const char *name)
{
	return copy_of(MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name));
}

static struct job *job_create(struct exchange *exchange, const char *method)
{
	struct job *job = mem_alloc(sizeof *job);
	struct MHD_Connection *connection = exchange->connection;

	job->common = exchange->common;
	job->exchange = exchange;
	job->users = 1;
	job->method = mem_strdup(method);
	job->target = mem_strdup(exchange->peer->target);
	job->authorization = header_of(connection, MHD_HTTP_HEADER_AUTHORIZATION);
	job->content_type = header_of(connection, MHD_HTTP_HEADER_CONTENT_TYPE);
	job->request = (struct request){
		.method = job->method,
		.target = job->target,
		.authorization = job->authorization,
		.content_type = job->content_type,
	};
	random_id(job->request.id, "req", clock_wall());
	return job;
}

static void job_unref(struct job *job)
{
	if (--job->users > 0)
		return;
	if (job->authorization)
		explicit_bzero(job->authorization, strlen(job->authorization));
	buf_wipe(&job->body); /* it may have held a secret */
	free(job->method);
	free(job->target);
	free(job->authorization);
	free(job->content_type);
	buf_deinit(&job->body);
	buf_deinit(&job->first.text);
	response_deinit(&job->response);
	free(job);
}

/* --- connections --- */

static struct peer *peer_of(struct MHD_Connection *connection)
{
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
		->socket_context;
}

/* Any server may be asked for "http://host/path" (RFC 9112, 3.2.2): what we know is the path. */
static const char *path_of(const char *target)
{
	const char *host = strncasecmp(target, "http://", 7) == 0    ? target + 7
			   : strncasecmp(target, "https://", 8) == 0 ? target + 8
								     : NULL;
	const char *end = host ? host + strcspn(host, "/?#") : target;

	return *end == '\0' ? "/" : end;
}

/* The only place that shows the target before it is decoded. */
void *exchange_on_target(void *cls, const char *target, struct MHD_Connection *connection)
{
	struct peer *peer = peer_of(connection);

	(void)cls;
	free(peer->target);
	peer->target = mem_strdup(path_of(target));
	peer->fresh = false;
	return NULL;
}

/* --- who calls --- */

static struct address peer_address(struct MHD_Connection *connection)
{
	return address_of(MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)
				  ->client_addr);
}

static enum MHD_Result add_hops(void *cls, enum MHD_ValueKind kind, const char *name,
				const char *value)
{
	struct buf *hops = cls;

	(void)kind;
	if (strcasecmp(name, "X-Forwarded-For") == 0)
		buf_printf(hops, "%s%s", hops->length ? "," : "", value ? value : "");
	return MHD_YES;
}

/* Whoever adds to the list may do so in a header of its own: all of them are one list. */
static struct address caller_address(const struct exchange *exchange)
{
	const struct address peer = peer_address(exchange->connection);
	CLEANUP(buf) struct buf hops = {0};

	if (!proxies_trust(exchange->common->proxies, &peer))
		return peer;
	MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, add_hops, &hops);
	return proxies_caller(exchange->common->proxies, &peer, buf_text(&hops));
}

/* A proxy on this machine asks for others: it says so, or we were told. */
static bool is_from_here(const struct exchange *exchange)
{
	static const char *const forwarded[] = {
		"X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Forwarded", "Via",
	};
	const struct address peer = peer_address(exchange->connection);

	for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++) {
		if (MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND,
						forwarded[i]))
			return false;
	}
	return address_is_loopback(&peer) && !proxies_trust(exchange->common->proxies, &peer);
}

static bool may_ask(struct exchange *exchange, int64_t *ret_wait_ms)
{
	struct exchanges *common = exchange->common;

	return callers_may(common->callers, exchange->job->authorization, &exchange->from,
			   loop_now(common->loop), &exchange->caller, ret_wait_ms);
}

static void note_key(const struct exchange *exchange)
{
	const struct response *response = &exchange->response;
	struct exchanges *common = exchange->common;

	callers_note(common->callers, &exchange->caller,
		     response->opened          ? CALLERS_OPENED
		     : response->status == 401 ? CALLERS_REFUSED
					       : CALLERS_UNASKED,
		     loop_now(common->loop));
}

/* --- streams of events --- */

/* "text/event-stream" among what it accepts. */
static bool wants_stream(const struct exchange *exchange)
{
	const char *accept = MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND,
							 MHD_HTTP_HEADER_ACCEPT);
	const char *target = exchange->job->target;

	return str_equal(exchange->job->method, "GET") && accept &&
	       strcasestr(accept, STREAM_TYPE) && str_starts(target, "/v1/events") &&
	       strcspn(target, "?") == strlen("/v1/events");
}

/* Whoever comes back says so; anything but a number begins as the query says. */
static int64_t last_event(struct MHD_Connection *connection)
{
	const char *text =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Last-Event-ID");
	size_t digits = text ? strspn(text, "0123456789") : 0;

	return digits > 0 && digits <= 18 && text[digits] == '\0' ? strtoll(text, NULL, 10) : -1;
}

/* Runs when the connection takes bytes; one that has none sleeps until on_wake(). */
static ssize_t read_stream(void *cls, uint64_t position, char *out, size_t size)
{
	struct exchange *exchange = cls;
	ssize_t length = event_stream_read(exchange->stream, out, size);

	(void)position;
	if (length < 0)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (length == 0) {
		exchange->sleeps = true;
		MHD_suspend_connection(exchange->connection);
	}
	return length;
}

static void on_wake(void *arg)
{
	struct exchange *exchange = arg;

	if (!exchange->sleeps)
		return;
	exchange->sleeps = false;
	MHD_resume_connection(exchange->connection);
	loop_defer_arm(exchange->common->run);
}

static void open_stream(struct exchange *exchange, struct job *job)
{
	if (job->opened && events_open(exchange->common->events, &job->request, &job->first,
				       on_wake, exchange, &exchange->stream, &job->stream_error))
		exchange->response.content_type = STREAM_TYPE;
	else
		response_error(&exchange->response, &job->stream_error, job->request.id);
}

/* --- answers --- */

static void add_header(struct MHD_Response *out, const char *name, const char *value)
{
	if (MHD_add_response_header(out, name, value) != MHD_YES)
		abort(); /* out of memory: names and values are our own */
}

static void count(const struct exchange *exchange)
{
	const char *method, *route;

	if (!exchange->common->metrics)
		return;
	router_label(&exchange->job->request, &method, &route);
	metrics_count_request(exchange->common->metrics, method, route, exchange->response.status,
			      clock_us() - exchange->began_us);
}

static struct MHD_Response *make_response(struct exchange *exchange)
{
	struct response *response = &exchange->response;

	if (exchange->stream)
		return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK,
							 read_stream, exchange, NULL);
	return MHD_create_response_from_buffer(response->body.length, response->body.data,
					       MHD_RESPMEM_MUST_COPY);
}

static enum MHD_Result send_answer(struct exchange *exchange)
{
	struct response *response = &exchange->response;
	struct MHD_Response *out = make_response(exchange);
	enum MHD_Result result;
	char seconds[16];

	if (!out)
		abort();
	add_header(out, MHD_HTTP_HEADER_CONTENT_TYPE, response->content_type);
	add_header(out, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	add_header(out, "X-Request-Id", exchange->job->request.id);
	if (response->allow[0])
		add_header(out, MHD_HTTP_HEADER_ALLOW, response->allow);
	if (response->status == 401)
		add_header(out, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
	if (response->retry_after_s) {
		snprintf(seconds, sizeof seconds, "%d", response->retry_after_s);
		add_header(out, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
	}
	if (exchange->common->turning_away)
		add_header(out, MHD_HTTP_HEADER_CONNECTION, "close");
	result = MHD_queue_response(exchange->connection, (unsigned)response->status, out);
	MHD_destroy_response(out);
	exchange->peer->busy = true; /* what is left is to be written */
	exchange->peer->ours = exchange->stream != NULL;
	exchange->peer->deadline =
		mono_after(loop_now(exchange->common->loop), EXCHANGE_REQUEST_MS);
	count(exchange);
	return result;
}

static enum MHD_Result refuse(struct exchange *exchange, int status, enum error_code code,
			      const char *why)
{
	struct error error;

	error_set(&error, code, "%s", why);
	response_http_error(&exchange->response, status, &error, exchange->job->request.id);
	return send_answer(exchange);
}

static enum MHD_Result refuse_often(struct exchange *exchange, int64_t wait_ms)
{
	struct error error;

	error_set(&error, ERROR_RATE_LIMITED, "too many calls");
	error_hint(&error, "Wait for as many seconds as Retry-After says.");
	response_error(&exchange->response, &error, exchange->job->request.id);
	exchange->response.retry_after_s = (int)((wait_ms + 999) / 1000);
	return send_answer(exchange);
}

/* --- at the workers --- */

static void work(void *arg, struct control *control)
{
	struct job *job = arg;

	if (job->given_up)
		return;
	store_set_deadline(control->connection, job->database_until);
	if (job->streams) {
		job->opened =
			router_events(control, &job->request, &job->first, &job->stream_error);
		job->response.status = 200;
		job->response.opened = job->first.key[0] != '\0';
	} else {
		router_answer(job->common->router, control, &job->request, &job->response);
	}
	store_set_deadline(control->connection, (struct mono){0});
}

static bool changed(const struct job *job)
{
	return !str_equal(job->method, "GET") && !str_equal(job->method, "HEAD") &&
	       job->response.status >= 200 && job->response.status < 300;
}

static void changed_here(struct exchanges *common)
{
	common->on_change(common->arg);
	events_look(common->events);
}

/* There is something to send: the library asks for it when it runs. */
static void answer(struct exchange *exchange)
{
	exchange->waits = false;
	exchange->answered = true;
	MHD_resume_connection(exchange->connection);
	loop_defer_arm(exchange->common->run);
}

static void take_answer(struct exchange *exchange, struct job *job)
{
	struct exchanges *common = exchange->common;
	struct error error;

	exchange->response = job->response;
	job->response.body = (struct buf){0};
	if (exchange->response.status == 0) {
		error_set(&error, ERROR_UNAVAILABLE, "the control plane is stopping");
		response_error(&exchange->response, &error, job->request.id);
	}
	if (job->streams && exchange->response.status == 200)
		open_stream(exchange, job);
	note_key(exchange);
	if (exchange->response.metrics && common->add_metrics)
		common->add_metrics(common->arg, &exchange->response.body);
	answer(exchange);
}

/* Until it is resumed, libmicrohttpd keeps a suspended connection whatever its peer does. */
static void on_answered(void *context, void *arg)
{
	struct exchanges *common = context;
	struct job *job = arg;

	if (job->exchange)
		take_answer(job->exchange, job);
	if (changed(job) && !common->draining)
		changed_here(common);
	job_unref(job);
}

static bool path_is(const struct job *job, const char *path)
{
	return str_starts(job->target, path) && strcspn(job->target, "?") == strlen(path);
}

static int64_t answer_time(const struct job *job)
{
	return path_is(job, "/readyz")    ? EXCHANGE_READY_MS
	       : path_is(job, "/metrics") ? EXCHANGE_METRICS_MS
					  : EXCHANGE_ANSWER_MS;
}

static bool submit(struct exchange *exchange)
{
	struct exchanges *common = exchange->common;
	struct job *job = exchange->job;

	exchange->answer_ms = answer_time(job);
	exchange->answer_by = mono_after(loop_now(common->loop), exchange->answer_ms);
	job->streams = wants_stream(exchange);
	job->first.after = last_event(exchange->connection);
	job->database_until = mono_after(loop_now(common->loop), exchange->answer_ms - MARGIN_MS);
	exchange->waits = workers_submit(common->workers, work, on_answered, common, job);
	job->users += exchange->waits;
	return exchange->waits;
}

/* What a worker has begun may still happen. */
void exchange_look(struct exchange *exchange, struct mono now)
{
	struct error error;
	struct job *job;

	if (!exchange || !exchange->waits || mono_until(now, exchange->answer_by) > 0)
		return;
	job = exchange->job;
	error_set(&error, ERROR_UNAVAILABLE, "the database didn't answer within %lld ms",
		  (long long)exchange->answer_ms);
	if (!str_equal(job->method, "GET") && !str_equal(job->method, "HEAD"))
		error_hint(&error, "Look whether it happened before you try again.");
	response_error(&exchange->response, &error, job->request.id);
	job->given_up = true;
	job->exchange = NULL;
	answer(exchange);
}

/* --- requests --- */

static struct exchange *begin(struct exchanges *common, struct MHD_Connection *connection,
			      const char *method)
{
	struct exchange *exchange = mem_alloc(sizeof *exchange);

	exchange->common = common;
	exchange->connection = connection;
	exchange->peer = peer_of(connection);
	exchange->peer->exchange = exchange;
	exchange->job = job_create(exchange, method);
	exchange->from = caller_address(exchange);
	address_text(&exchange->from, exchange->job->request.address);
	exchange->job->request.loopback = is_from_here(exchange);
	exchange->began_us = clock_us();
	return exchange;
}

/* A length that is announced too large is refused before anything of it is read. */
static bool announced_too_large(struct MHD_Connection *connection)
{
	const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
							 MHD_HTTP_HEADER_CONTENT_LENGTH);

	return length && strtoull(length, NULL, 10) > ROUTER_MAX_BODY;
}

static enum MHD_Result take_body(struct exchange *exchange, const char *data, size_t *size)
{
	struct buf *body = &exchange->job->body;

	if (body->length + *size > ROUTER_MAX_BODY)
		exchange->too_large = true;
	else
		buf_add(body, data, *size);
	*size = 0;
	return MHD_YES;
}

/* It needs no key and no database, but it is long: each counts as a guess would. */
static bool may_read_document(struct exchange *exchange, int64_t *ret_wait_ms)
{
	struct exchanges *common = exchange->common;

	if (!may_ask(exchange, ret_wait_ms))
		return false;
	callers_note(common->callers, &exchange->caller, CALLERS_REFUSED, loop_now(common->loop));
	return true;
}

/* It is complete. */
static enum MHD_Result ask(struct exchange *exchange)
{
	struct exchanges *common = exchange->common;
	struct job *job = exchange->job;
	int64_t wait_ms;

	job->request.body = job->body.data;
	job->request.body_length = job->body.length;
	if (path_is(job, "/v1/openapi.json") && !may_read_document(exchange, &wait_ms))
		return refuse_often(exchange, wait_ms);
	if (router_answer_early(common->router, &job->request, &exchange->response))
		return send_answer(exchange);
	if (!may_ask(exchange, &wait_ms))
		return refuse_often(exchange, wait_ms);
	if (!submit(exchange))
		return refuse(exchange, 503, ERROR_UNAVAILABLE,
			      "too many requests are under way: try again");
	exchange->peer->busy = exchange->peer->ours = true;
	MHD_suspend_connection(exchange->connection);
	return MHD_YES;
}

enum MHD_Result exchange_on_request(void *cls, struct MHD_Connection *connection, const char *url,
				    const char *method, const char *version, const char *data,
				    size_t *size, void **context)
{
	struct exchange *exchange = *context;
	const char *complaint;

	(void)url, (void)version;
	if (!exchange) {
		*context = exchange = begin(cls, connection, method);
		complaint = framing_complaint(connection);
		if (complaint)
			return refuse(exchange, 400, ERROR_INVALID_INPUT, complaint);
		if (strlen(exchange->job->target) > ROUTER_MAX_TARGET)
			return refuse(exchange, 414, ERROR_INVALID_INPUT, "the path is too long");
		if (announced_too_large(connection))
			return refuse(exchange, 413, ERROR_INVALID_INPUT,
				      "the request body is over 1048576 bytes");
		return MHD_YES;
	}
	if (*size > 0)
		return take_body(exchange, data, size);
	if (exchange->answered)
		return send_answer(exchange);
	if (exchange->too_large)
		return refuse(exchange, 413, ERROR_INVALID_INPUT,
			      "the request body is over 1048576 bytes");
	return ask(exchange);
}

void exchange_on_completed(void *cls, struct MHD_Connection *connection, void **context,
			   enum MHD_RequestTerminationCode code)
{
	struct exchange *exchange = *context;

	(void)cls, (void)connection, (void)code;
	if (!exchange)
		return;
	exchange->peer->exchange = NULL;
	exchange->peer->busy = exchange->peer->ours = false;
	exchange->peer->deadline =
		mono_after(loop_now(exchange->common->loop), EXCHANGE_REQUEST_MS);
	event_stream_close(exchange->stream);
	response_deinit(&exchange->response);
	exchange->job->exchange = NULL;
	job_unref(exchange->job);
	free(exchange);
	*context = NULL;
}
