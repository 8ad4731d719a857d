#include "serve/listener.h"

#include "base/vec.h"
#include "serve/apitls.h"
#include "serve/exchange.h"
#include "sys/log.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG      1024
#define SPARE_PLACES 64 /* for whoever comes while those that make room for it go */
#define SWEEP_MS     250
#define DRAIN_MS     50 /* the same while draining */
#define TLS_PRIORITY "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

struct peer_list VEC_BODY(struct peer *);

struct listener {
	struct loop *loop;
	struct MHD_Daemon *daemon;
	struct exchanges exchanges;
	struct proxies *proxies;
	struct apitls *tls; /* NULL: plain HTTP */
	struct loop_poll *poll;
	struct loop_timer *timer; /* when the library wants to run again */
	struct loop_timer *sweep;
	struct peer_list peers;
	char address[ADDRESS_SIZE];
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
						       EXCHANGE_REQUEST_MS - LISTENER_FIRST_MS);
}

/* A connection whose request isn't complete in time is shut; the library sees its end. One whose
 * answer isn't there in time is told so. */
static void on_sweep(void *arg)
{
	struct listener *listener = arg;
	struct mono now = loop_now(listener->loop);
	bool draining = listener->exchanges.draining, all_over = true;
	loop_fn *fn;

	for (size_t i = 0; i < listener->peers.count; i++) {
		struct peer *peer = listener->peers.items[i];
		bool over = draining && is_over(peer, now);

		exchange_look(peer->exchange, now);
		if (over || (!peer->busy && mono_until(now, peer->deadline) <= 0))
			shutdown(peer->socket, SHUT_RDWR);
		all_over = all_over && over;
	}
	loop_timer_start(listener->sweep, draining ? DRAIN_MS : SWEEP_MS);
	if (!draining || !all_over)
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

/* Before its handshake. */
static struct peer *peer_create(struct listener *listener, struct MHD_Connection *connection)
{
	struct peer *peer = mem_alloc(sizeof *peer);

	peer->fresh = true;
	peer->socket =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	peer->deadline = mono_after(loop_now(listener->loop), EXCHANGE_REQUEST_MS);
	if (listener->tls)
		peer->tls = apitls_greet(
			listener->tls,
			MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION)
				->tls_session);
	return peer;
}

static void peer_destroy(struct peer *peer)
{
	apitls_give_back(peer->tls);
	free(peer->target);
	free(peer);
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct listener *listener = cls;
	struct peer *peer;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		if (listener->peers.count >= LISTENER_MAX_CONNECTIONS)
			make_room(listener);
		*context = peer = peer_create(listener, connection);
		*vec_push(&listener->peers) = peer;
		return;
	}
	peer = *context;
	for (size_t i = 0; i < listener->peers.count; i++) {
		if (listener->peers.items[i] == peer) {
			vec_remove(&listener->peers, i);
			break;
		}
	}
	peer_destroy(peer);
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

/* Nobody is greeted by the library's own credentials: peer_create() gives each session its own. */
static int no_certificate(gnutls_session_t session, const gnutls_datum_t *names, int names_count,
			  const gnutls_pk_algorithm_t *algorithms, int algorithms_count,
			  gnutls_pcert_st **ret_chain, unsigned *ret_length,
			  gnutls_privkey_t *ret_key)
{
	(void)session, (void)names, (void)names_count, (void)algorithms, (void)algorithms_count;
	(void)ret_chain, (void)ret_length, (void)ret_key;
	return -1;
}

static struct MHD_Daemon *start(struct listener *listener, int fd)
{
	struct MHD_OptionItem tls[] = {
		{MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)(uintptr_t)no_certificate},
		{MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITY},
		{MHD_OPTION_END, 0, NULL},
	};
	struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;

	if (listener->tls)
		flags |= MHD_USE_TLS;
	return MHD_start_daemon(
		flags, 0, NULL, NULL, exchange_on_request, &listener->exchanges,
		MHD_OPTION_EXTERNAL_LOGGER, log_library, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)(LISTENER_MAX_CONNECTIONS + SPARE_PLACES),
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, LISTENER_MAX_HEADERS,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)LISTENER_IDLE_S,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
		listener, MHD_OPTION_NOTIFY_COMPLETED, exchange_on_completed, &listener->exchanges,
		MHD_OPTION_URI_LOG_CALLBACK, exchange_on_target, &listener->exchanges,
		MHD_OPTION_ARRAY, listener->tls ? tls : none, MHD_OPTION_END);
}

static void destroy_parts(struct listener *listener)
{
	events_destroy(listener->exchanges.events);
	callers_destroy(listener->exchanges.callers);
	free(listener->proxies);
	vec_deinit(&listener->peers);
	free(listener);
}

bool listener_create(struct loop *loop, const struct listener_options *options,
		     const struct router *router, struct workers *workers, loop_fn *on_change,
		     void *arg, struct listener **ret_listener, struct error *error)
{
	static const struct proxies none;
	struct listener *listener;
	int fd;

	listener = mem_alloc(sizeof *listener);
	listener->loop = loop;
	listener->tls = options->tls;
	listener->proxies =
		mem_dup(options->proxies ? options->proxies : &none, sizeof *listener->proxies);
	listener->exchanges = (struct exchanges){
		.loop = loop,
		.router = router,
		.workers = workers,
		.events = events_create(loop, router),
		.callers = callers_create(options->key_rate, options->address_rate),
		.proxies = listener->proxies,
		.metrics = options->metrics,
		.add_metrics = options->add_metrics,
		.on_change = on_change,
		.arg = arg,
	};
	events_set_workers(listener->exchanges.events, workers);
	if (!listen_on(options->address, !options->tls, &fd, listener->address, error)) {
		destroy_parts(listener);
		return false;
	}
	listener->daemon = start(listener, fd);
	if (!listener->daemon) {
		close(fd);
		destroy_parts(listener);
		return error_set(error, ERROR_INTERNAL, "start HTTP on '%s'", options->address);
	}
	listener->timer = loop_timer_create(loop, run, listener);
	listener->sweep = loop_timer_create(loop, on_sweep, listener);
	listener->exchanges.run = loop_defer_create(loop, run, listener);
	listener->poll = loop_poll_create(
		loop, MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
		LOOP_READABLE, on_readable, listener);
	loop_timer_start(listener->sweep, SWEEP_MS);
	*ret_listener = listener;
	return true;
}

void listener_set_workers(struct listener *listener, struct workers *workers)
{
	listener->exchanges.workers = workers;
	events_set_workers(listener->exchanges.events, workers);
}

void listener_turn_away(struct listener *listener)
{
	listener->exchanges.turning_away = true;
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
	listener->exchanges.turning_away = listener->exchanges.draining = true;
	events_end(listener->exchanges.events);
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
	events_end(listener->exchanges.events); /* a suspended connection can't be stopped */
	loop_defer_destroy(listener->exchanges.run);
	MHD_run(listener->daemon);
	MHD_stop_daemon(listener->daemon);
	destroy_parts(listener);
}
