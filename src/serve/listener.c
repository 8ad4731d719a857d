#include "serve/listener.h"

#include "base/vec.h"
#include "serve/callers.h"
#include "serve/events.h"
#include "serve/metrics.h"
#include "serve/workers.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "sys/random.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG      1024
#define SPARE_PLACES 64 /* for whoever comes while those that make room for it go */
#define SWEEP_MS     1000
#define DRAIN_MS     50 /* the same while draining */
#define STREAM_TYPE  "text/event-stream"
#define STREAM_BLOCK 4096
#define TLS_PRIORITY "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

/* One open connection. */
struct peer {
	struct listener *listener;
	int socket;
	char *target;         /* of the request under way, as it came */
	bool fresh;           /* has asked nothing yet */
	bool busy;            /* its request is complete: the time is ours now */
	bool ours;            /* waits for us, not we for it */
	bool shut;            /* its end is on its way */
	struct mono deadline; /* when its request must be complete, or its answer should be read */
};

/* One request, from its first header to the end of its answer. It is also the worker's job: while
 * the connection is suspended nobody but the worker touches it. */
struct exchange {
	struct listener *listener;
	struct MHD_Connection *connection;
	struct peer *peer;
	struct request request;
	struct response response;
	struct buf body;
	int64_t began_us;
	bool too_large, answered;
	struct caller caller;
	/* Of a request for a stream of events. */
	bool streams, opened, waiting; /* asked for; its first page is there; has nothing to send */
	struct router_events first;
	struct error stream_error;
	struct event_stream *stream;
};

struct peer_list VEC_BODY(struct peer *);

struct listener {
	struct loop *loop;
	struct MHD_Daemon *daemon;
	const struct router *router;
	struct workers *workers;
	loop_fn *on_change;
	void *change_arg;
	struct events *events;
	struct callers *callers;
	struct metrics *metrics;
	void (*add_metrics)(void *arg, struct buf *text);
	struct loop_poll *poll;
	struct loop_timer *timer; /* when the library wants to run again */
	struct loop_timer *sweep;
	struct loop_defer *run;
	struct peer_list peers;
	char address[ADDRESS_SIZE];
	bool turning_away, draining;
	loop_fn *on_drained;
	void *drained_arg;
};

static bool listen_on(const char *text, bool plain, int *ret_fd, char out[ADDRESS_SIZE],
		      struct error *error)
{
	struct address address;

	if (!address_parse(text, &address, error))
		return false;
	if (plain && !address_is_loopback(&address)) {
		error_set(error, ERROR_INVALID_CONFIG,
			  "'%s' is not a loopback address, and there plain HTTP isn't served",
			  text);
		return error_hint(error, "Give --tls-cert and --tls-key, or listen on 127.0.0.1.");
	}
	return address_listen(&address, BACKLOG, ret_fd, out, error);
}

/* --- driving the library --- */

static void run(void *arg)
{
	struct listener *listener = arg;
	MHD_UNSIGNED_LONG_LONG wait_ms;

	MHD_run(listener->daemon);
	if (MHD_get_timeout(listener->daemon, &wait_ms) == MHD_YES)
		loop_timer_start(listener->timer, (int64_t)wait_ms);
	else
		loop_timer_stop(listener->timer);
}

static void on_readable(void *arg, int events)
{
	(void)events;
	run(arg);
}

/* May the connection be ended, now that no other is taken? The request of a fresh one is perhaps on
 * its way, and whoever sent it would read a reset. */
static bool is_over(const struct peer *peer, struct mono now)
{
	return !peer->busy && (!peer->fresh || mono_until(now, peer->deadline) <=
						       LISTENER_REQUEST_MS - LISTENER_FIRST_MS);
}

/* A connection whose request isn't complete in time is shut; the library sees its end. */
static void on_sweep(void *arg)
{
	struct listener *listener = arg;
	struct mono now = loop_now(listener->loop);
	bool all_over = true;
	loop_fn *fn;

	for (size_t i = 0; i < listener->peers.count; i++) {
		struct peer *peer = listener->peers.items[i];
		bool over = listener->draining && is_over(peer, now);

		if (over || (!peer->busy && mono_until(now, peer->deadline) <= 0))
			shutdown(peer->socket, SHUT_RDWR);
		all_over = all_over && over;
	}
	loop_timer_start(listener->sweep, listener->draining ? DRAIN_MS : SWEEP_MS);
	if (!listener->draining || !all_over)
		return;
	fn = listener->on_drained;
	listener->on_drained = NULL;
	if (fn)
		fn(listener->drained_arg);
}

/* Ends the connection that we have waited for longest: nobody takes all places by being slow. */
static void make_room(struct listener *listener)
{
	struct peer *slowest = NULL;

	for (size_t i = 0; i < listener->peers.count; i++) {
		struct peer *peer = listener->peers.items[i];

		if (!peer->ours && !peer->shut &&
		    (!slowest || peer->deadline.ms < slowest->deadline.ms))
			slowest = peer;
	}
	if (!slowest)
		return;
	slowest->shut = true;
	shutdown(slowest->socket, SHUT_RDWR);
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct listener *listener = cls;
	struct peer *peer;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		if (listener->peers.count >= LISTENER_MAX_CONNECTIONS)
			make_room(listener);
		peer = mem_alloc(sizeof *peer);
		peer->listener = listener;
		peer->fresh = true;
		peer->socket =
			MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
				->connect_fd;
		peer->deadline = mono_after(loop_now(listener->loop), LISTENER_REQUEST_MS);
		*vec_push(&listener->peers) = peer;
		*context = peer;
		return;
	}
	peer = *context;
	for (size_t i = 0; i < listener->peers.count; i++) {
		if (listener->peers.items[i] == peer) {
			vec_remove(&listener->peers, i);
			break;
		}
	}
	free(peer->target);
	free(peer);
}

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
static void *on_target(void *cls, const char *target, struct MHD_Connection *connection)
{
	struct peer *peer = peer_of(connection);

	(void)cls;
	free(peer->target);
	peer->target = mem_strdup(path_of(target));
	peer->fresh = false;
	return NULL;
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **context,
			 enum MHD_RequestTerminationCode code)
{
	struct exchange *exchange = *context;

	(void)cls, (void)connection, (void)code;
	if (!exchange)
		return;
	exchange->peer->busy = exchange->peer->ours = false;
	exchange->peer->deadline =
		mono_after(loop_now(exchange->listener->loop), LISTENER_REQUEST_MS);
	event_stream_close(exchange->stream);
	buf_deinit(&exchange->first.text);
	buf_deinit(&exchange->body);
	response_deinit(&exchange->response);
	free(exchange);
	*context = NULL;
}

/* --- who calls --- */

static struct address caller_address(struct MHD_Connection *connection)
{
	return address_of(MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)
				  ->client_addr);
}

/* A proxy on this machine asks for others, and says so. */
static bool is_from_here(struct MHD_Connection *connection)
{
	const struct address address = caller_address(connection);

	return address_is_loopback(&address) &&
	       !MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "X-Forwarded-For") &&
	       !MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Forwarded");
}

static bool may_ask(struct exchange *exchange, int64_t *ret_wait_ms)
{
	struct listener *listener = exchange->listener;
	const struct address address = caller_address(exchange->connection);

	return callers_may(listener->callers, exchange->request.authorization, &address,
			   loop_now(listener->loop), &exchange->caller, ret_wait_ms);
}

static void note_key(const struct exchange *exchange)
{
	const struct response *response = &exchange->response;
	struct listener *listener = exchange->listener;

	callers_note(listener->callers, &exchange->caller,
		     response->opened          ? CALLERS_OPENED
		     : response->status == 401 ? CALLERS_REFUSED
					       : CALLERS_UNASKED,
		     loop_now(listener->loop));
}

/* --- requests and answers --- */

static void add_header(struct MHD_Response *out, const char *name, const char *value)
{
	if (MHD_add_response_header(out, name, value) != MHD_YES)
		abort(); /* out of memory: names and values are our own */
}

static void count(const struct exchange *exchange)
{
	const char *method, *route;

	if (!exchange->listener->metrics)
		return;
	router_label(&exchange->request, &method, &route);
	metrics_count_request(exchange->listener->metrics, method, route, exchange->response.status,
			      clock_us() - exchange->began_us);
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
		exchange->waiting = true;
		MHD_suspend_connection(exchange->connection);
	}
	return length;
}

static void on_wake(void *arg)
{
	struct exchange *exchange = arg;

	if (!exchange->waiting)
		return;
	exchange->waiting = false;
	MHD_resume_connection(exchange->connection);
	loop_defer_arm(exchange->listener->run);
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
	add_header(out, "X-Request-Id", exchange->request.id);
	if (response->allow[0])
		add_header(out, MHD_HTTP_HEADER_ALLOW, response->allow);
	if (response->status == 401)
		add_header(out, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
	if (response->retry_after_s) {
		snprintf(seconds, sizeof seconds, "%d", response->retry_after_s);
		add_header(out, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
	}
	if (exchange->listener->turning_away)
		add_header(out, MHD_HTTP_HEADER_CONNECTION, "close");
	result = MHD_queue_response(exchange->connection, (unsigned)response->status, out);
	MHD_destroy_response(out);
	exchange->peer->busy = true; /* what is left is to be written */
	exchange->peer->ours = exchange->stream != NULL;
	exchange->peer->deadline =
		mono_after(loop_now(exchange->listener->loop), LISTENER_REQUEST_MS);
	count(exchange);
	return result;
}

static enum MHD_Result refuse(struct exchange *exchange, int status, enum error_code code,
			      const char *why)
{
	struct error error;

	error_set(&error, code, "%s", why);
	response_http_error(&exchange->response, status, &error, exchange->request.id);
	return send_answer(exchange);
}

static void work(void *job, struct control *control)
{
	struct exchange *exchange = job;

	if (exchange->streams) {
		exchange->opened = router_events(control, &exchange->request, &exchange->first,
						 &exchange->stream_error);
		exchange->response.status = 200;
		exchange->response.opened = exchange->first.key[0] != '\0';
		return;
	}
	router_answer(exchange->listener->router, control, &exchange->request, &exchange->response);
}

static void changed_here(struct listener *listener)
{
	listener->on_change(listener->change_arg);
	events_look(listener->events);
}

static bool changed(const struct exchange *exchange)
{
	return !str_equal(exchange->request.method, "GET") &&
	       !str_equal(exchange->request.method, "HEAD") && exchange->response.status < 300;
}

static void open_stream(struct exchange *exchange)
{
	if (exchange->opened &&
	    events_open(exchange->listener->events, &exchange->request, &exchange->first, on_wake,
			exchange, &exchange->stream, &exchange->stream_error))
		exchange->response.content_type = STREAM_TYPE;
	else
		response_error(&exchange->response, &exchange->stream_error, exchange->request.id);
}

/* Until it is resumed, libmicrohttpd keeps a suspended connection whatever its peer does. */
static void on_answered(void *context, void *job)
{
	struct listener *listener = context;
	struct exchange *exchange = job;
	struct error error;

	if (exchange->response.status == 0) {
		error_set(&error, ERROR_UNAVAILABLE, "the control plane is stopping");
		response_error(&exchange->response, &error, exchange->request.id);
	}
	if (exchange->streams && exchange->response.status == 200)
		open_stream(exchange);
	note_key(exchange);
	if (exchange->response.metrics && listener->add_metrics)
		listener->add_metrics(listener->change_arg, &exchange->response.body);
	exchange->answered = true;
	MHD_resume_connection(exchange->connection);
	loop_defer_arm(listener->run);
	if (changed(exchange) && !listener->draining)
		changed_here(listener);
}

/* "text/event-stream" among what it accepts. */
static bool wants_stream(const struct exchange *exchange)
{
	const char *accept = MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND,
							 MHD_HTTP_HEADER_ACCEPT);
	const char *target = exchange->request.target;

	return str_equal(exchange->request.method, "GET") && accept &&
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

static enum MHD_Result refuse_often(struct exchange *exchange, int64_t wait_ms)
{
	struct error error;

	error_set(&error, ERROR_RATE_LIMITED, "too many calls");
	error_hint(&error, "Wait for as many seconds as Retry-After says.");
	response_error(&exchange->response, &error, exchange->request.id);
	exchange->response.retry_after_s = (int)((wait_ms + 999) / 1000);
	return send_answer(exchange);
}

static struct exchange *begin(struct listener *listener, struct MHD_Connection *connection,
			      const char *method)
{
	struct exchange *exchange = mem_alloc(sizeof *exchange);
	struct peer *peer = peer_of(connection);

	exchange->listener = listener;
	exchange->connection = connection;
	exchange->peer = peer;
	exchange->request = (struct request){
		.method = method,
		.target = peer->target,
		.authorization = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
							     MHD_HTTP_HEADER_AUTHORIZATION),
		.content_type = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
							    MHD_HTTP_HEADER_CONTENT_TYPE),
		.loopback = is_from_here(connection),
	};
	exchange->began_us = clock_us();
	random_id(exchange->request.id, "req", clock_wall());
	return exchange;
}

/* A length that is announced too large is refused before anything of it is read. */
static bool announced_too_large(struct MHD_Connection *connection)
{
	const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
							 MHD_HTTP_HEADER_CONTENT_LENGTH);

	return length && strtoull(length, NULL, 10) > ROUTER_MAX_BODY;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *size, void **context)
{
	struct listener *listener = cls;
	struct exchange *exchange = *context;
	int64_t wait_ms;

	(void)url, (void)version;
	if (!exchange) {
		*context = exchange = begin(listener, connection, method);
		if (strlen(exchange->request.target) > ROUTER_MAX_TARGET)
			return refuse(exchange, 414, ERROR_INVALID_INPUT, "the path is too long");
		if (announced_too_large(connection))
			return refuse(exchange, 413, ERROR_INVALID_INPUT,
				      "the request body is over 1048576 bytes");
		return MHD_YES;
	}
	if (*size > 0) {
		if (exchange->body.length + *size > ROUTER_MAX_BODY)
			exchange->too_large = true;
		else
			buf_add(&exchange->body, data, *size);
		*size = 0;
		return MHD_YES;
	}
	if (exchange->answered)
		return send_answer(exchange);
	if (exchange->too_large)
		return refuse(exchange, 413, ERROR_INVALID_INPUT,
			      "the request body is over 1048576 bytes");
	exchange->request.body = exchange->body.data;
	exchange->request.body_length = exchange->body.length;
	if (router_answer_early(listener->router, &exchange->request, &exchange->response))
		return send_answer(exchange);
	if (!may_ask(exchange, &wait_ms))
		return refuse_often(exchange, wait_ms);
	exchange->streams = wants_stream(exchange);
	exchange->first.after = last_event(connection);
	if (!workers_submit(listener->workers, work, on_answered, listener, exchange))
		return refuse(exchange, 503, ERROR_UNAVAILABLE,
			      "too many requests are under way: try again");
	exchange->peer->busy = exchange->peer->ours = true;
	MHD_suspend_connection(connection);
	return MHD_YES;
}

/* --- life --- */

static PRINTF(2, 0) void log_library(void *cls, const char *format, va_list args)
{
	char text[256];

	(void)cls;
	vsnprintf(text, sizeof text, format, args);
	text[strcspn(text, "\n")] = '\0';
	log_debug("http.connection", text, NULL);
}

static struct MHD_Daemon *start(struct listener *listener, const struct listener_options *options,
				int fd)
{
	struct MHD_OptionItem tls[] = {
		{MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)options->certificate_pem},
		{MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)options->key_pem},
		{MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITY},
		{MHD_OPTION_END, 0, NULL},
	};
	struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;

	if (options->certificate_pem)
		flags |= MHD_USE_TLS;
	return MHD_start_daemon(
		flags, 0, NULL, NULL, on_request, listener, MHD_OPTION_EXTERNAL_LOGGER, log_library,
		NULL, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)(LISTENER_MAX_CONNECTIONS + SPARE_PLACES),
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, LISTENER_MAX_HEADERS,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)LISTENER_IDLE_S,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
		listener, MHD_OPTION_NOTIFY_COMPLETED, on_completed, listener,
		MHD_OPTION_URI_LOG_CALLBACK, on_target, listener, MHD_OPTION_ARRAY,
		options->certificate_pem ? tls : none, MHD_OPTION_END);
}

static void destroy_parts(struct listener *listener)
{
	events_destroy(listener->events);
	callers_destroy(listener->callers);
	vec_deinit(&listener->peers);
	free(listener);
}

bool listener_create(struct loop *loop, const struct listener_options *options,
		     const struct router *router, struct workers *workers, loop_fn *on_change,
		     void *arg, struct listener **ret_listener, struct error *error)
{
	struct listener *listener;
	int fd;

	assert(!options->certificate_pem == !options->key_pem);
	listener = mem_alloc(sizeof *listener);
	*listener = (struct listener){
		.loop = loop,
		.router = router,
		.workers = workers,
		.on_change = on_change,
		.change_arg = arg,
		.events = events_create(loop, router),
		.callers = callers_create(options->key_rate, options->address_rate),
		.metrics = options->metrics,
		.add_metrics = options->add_metrics,
	};
	events_set_workers(listener->events, workers);
	if (!listen_on(options->address, !options->certificate_pem, &fd, listener->address,
		       error)) {
		destroy_parts(listener);
		return false;
	}
	listener->daemon = start(listener, options, fd);
	if (!listener->daemon) {
		close(fd);
		destroy_parts(listener);
		return error_set(error, ERROR_INVALID_CONFIG,
				 "start HTTP on '%s': the certificate or its key was not taken",
				 options->address);
	}
	listener->timer = loop_timer_create(loop, run, listener);
	listener->sweep = loop_timer_create(loop, on_sweep, listener);
	listener->run = loop_defer_create(loop, run, listener);
	listener->poll = loop_poll_create(
		loop, MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
		LOOP_READABLE, on_readable, listener);
	loop_timer_start(listener->sweep, SWEEP_MS);
	*ret_listener = listener;
	return true;
}

void listener_set_workers(struct listener *listener, struct workers *workers)
{
	listener->workers = workers;
	events_set_workers(listener->events, workers);
}

void listener_turn_away(struct listener *listener)
{
	listener->turning_away = true;
}

const char *listener_address(const struct listener *listener)
{
	return listener->address;
}

/* Who has connected already is heard: the kernel would reset those that nobody took, and the
 * library takes a few at a time. */
static void take_the_last(struct listener *listener, int fd)
{
	struct pollfd more = {.fd = fd, .events = POLLIN};

	while (poll(&more, 1, 0) > 0 && more.revents & POLLIN) {
		struct sockaddr_storage address = {0};
		socklen_t length = sizeof address;
		int taken = accept4(fd, (struct sockaddr *)&address, &length,
				    SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (taken < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (taken < 0)
			break;
		/* Closes it when it can't be served. */
		(void)MHD_add_connection(listener->daemon, taken, (struct sockaddr *)&address,
					 length);
	}
}

void listener_drain(struct listener *listener, loop_fn *fn, void *arg)
{
	int fd = MHD_quiesce_daemon(listener->daemon);

	if (fd >= 0) {
		take_the_last(listener, fd);
		close(fd);
	}
	run(listener);
	listener->turning_away = listener->draining = true;
	events_end(listener->events);
	listener->on_drained = fn;
	listener->drained_arg = arg;
	loop_timer_start(listener->sweep, 0);
}

void listener_destroy(struct listener *listener)
{
	if (!listener)
		return;
	loop_poll_destroy(listener->poll);
	loop_timer_destroy(listener->timer);
	loop_timer_destroy(listener->sweep);
	events_end(listener->events); /* a suspended connection can't be stopped */
	loop_defer_destroy(listener->run);
	MHD_run(listener->daemon);
	MHD_stop_daemon(listener->daemon);
	destroy_parts(listener);
}
