#include "rpc/conn.h"

#include "sys/log.h"

/* What is gathered for one write, and above what nothing more is taken until the socket has caught
 * up. */
#define CONN_WRITE_SIZE ((size_t)64 << 10)
#define CONN_WRITE_HIGH ((size_t)512 << 10)

static_assert(RPC_MAX_HEADERS == SESSION_MAX_HEADERS, "rpc.h says what core does");
static_assert(RPC_MAX_STREAMS == SESSION_MAX_STREAMS, "rpc.h says what core does");

struct conn {
	struct loop *loop;
	struct net_conn *net;  /* NULL before conn_start() and after the end */
	struct secure *secure; /* NULL: plain */
	struct session *session;
	struct loop_defer *flush;
	struct loop_timer *timer;
	const struct conn_handlers *handlers;
	void *arg;
	bool server, up, ended;
	struct error *failure; /* of conn_fail(); NULL: none */
	unsigned busy;         /* depth of our own functions on the stack */
	bool doomed;           /* destroyed while busy */
	int64_t peer_uid;
	char *peer;
	struct buf plain, out, cipher; /* scratch, without memory between turns */
};

static void on_flush(void *arg);
static void on_timer(void *arg);

/* --- life --- */

struct conn *conn_create(struct loop *loop, struct rpc_tls *tls,
			 const struct session_options *options,
			 const struct conn_handlers *handlers, void *arg)
{
	struct conn *conn = mem_alloc(sizeof *conn);
	conn->loop = loop;
	conn->secure = tls ? secure_create(tls) : NULL;
	conn->session = session_create(options, loop_now(loop));
	conn->flush = loop_defer_create(loop, on_flush, conn);
	conn->timer = loop_timer_create(loop, on_timer, conn);
	conn->handlers = handlers;
	conn->arg = arg;
	conn->server = options->server;
	conn->peer_uid = -1;
	conn->peer = mem_strdup("");
	loop_defer_arm(conn->flush); /* which sets the timer */
	return conn;
}

/* Connections are many and mostly idle. */
static void free_scratch(struct conn *conn)
{
	buf_deinit(&conn->plain);
	buf_deinit(&conn->out);
	buf_deinit(&conn->cipher);
}

static void conn_free(struct conn *conn)
{
	loop_defer_destroy(conn->flush);
	loop_timer_destroy(conn->timer);
	session_destroy(conn->session);
	secure_destroy(conn->secure);
	free_scratch(conn);
	free(conn->failure);
	free(conn->peer);
	free(conn);
}

static void enter(struct conn *conn)
{
	conn->busy++;
}

static void leave(struct conn *conn)
{
	if (--conn->busy > 0)
		return;
	if (conn->doomed)
		conn_free(conn);
	else
		free_scratch(conn);
}

/* --- telling what happened --- */

static void end_call(struct rpc_call *rpc)
{
	struct call *call = rpc->call;
	struct rpc_status status = {call_code(call), call_text(call)};
	if (rpc->handlers.on_done)
		rpc->handlers.on_done(rpc, rpc->arg, &status);
	call_destroy(call);
	free(rpc);
}

static void tell_call(struct conn *conn, const struct session_event *event)
{
	struct rpc_call *rpc = call_owner(event->call);
	switch (event->kind) {
	case SESSION_UP:
		break;
	case SESSION_START:
		rpc = conn->handlers->on_start(conn->arg, conn, event->call);
		break;
	case SESSION_MESSAGE:
		if (rpc->handlers.on_message)
			rpc->handlers.on_message(rpc, rpc->arg,
						 (const uint8_t *)buf_text(&event->message),
						 event->message.length);
		break;
	case SESSION_HALF_CLOSE:
		if (rpc->on_half_close)
			rpc->on_half_close(rpc, rpc->arg);
		break;
	case SESSION_DRAINED:
		if (rpc->handlers.on_drain)
			rpc->handlers.on_drain(rpc, rpc->arg);
		break;
	case SESSION_END:
		end_call(rpc);
		break;
	}
}

/* Whoever is told may destroy the connection: then only the ends of calls are told any more. */
static void tell(struct conn *conn)
{
	struct session_event event;
	while (session_next(conn->session, &event)) {
		if (event.kind == SESSION_UP) {
			conn->up = true;
			if (conn->handlers->on_up && !conn->doomed)
				conn->handlers->on_up(conn->arg, conn);
		} else if (event.kind == SESSION_END && !call_owner(event.call)) {
			call_destroy(event.call); /* its start was never told */
		} else if (event.kind == SESSION_END || !conn->doomed) {
			tell_call(conn, &event);
		}
		buf_deinit(&event.message);
	}
}

/* --- the end --- */

static void close_socket(struct conn *conn)
{
	struct net_conn *net = TAKE(conn->net);
	if (!net)
		return;
	if (conn->secure) {
		buf_clear(&conn->cipher);
		secure_end(conn->secure, &conn->cipher);
		net_write(net, buf_text(&conn->cipher), conn->cipher.length);
	}
	net_close(net);
}

static void end(struct conn *conn, const struct error *error)
{
	if (conn->ended)
		return;
	conn->ended = true;
	conn->up = false;
	loop_timer_stop(conn->timer);
	close_socket(conn);
	session_close(conn->session, conn->server ? RPC_CANCELLED : RPC_UNAVAILABLE, error->what);
	tell(conn);
	if (conn->server)
		log_debug("rpc_connection_ended", error->what, "peer", conn->peer, NULL);
	if (!conn->doomed)
		conn->handlers->on_end(conn->arg, conn, error);
}

void conn_destroy(struct conn *conn)
{
	if (!conn || conn->doomed)
		return;
	enter(conn);
	conn->doomed = true;
	struct error error;
	error_set(&error, ERROR_UNAVAILABLE, "the connection was closed on our side");
	end(conn, &error);
	tell(conn); /* what was left when it had ended before */
	leave(conn);
}

void conn_fail(struct conn *conn, const struct error *error)
{
	if (!conn->failure)
		conn->failure = mem_dup(error, sizeof *error);
	loop_defer_arm(conn->flush);
}

/* The session has nothing more to say or to hear. */
static void end_if_over(struct conn *conn)
{
	struct error error;
	if (!session_is_over(conn->session) || net_queued(conn->net))
		return;
	if (!session_reason(conn->session, &error))
		error_set(&error, ERROR_UNAVAILABLE, "the connection to %s has come to its end",
			  conn->peer);
	end(conn, &error);
}

/* --- bytes out --- */

static bool write_out(struct conn *conn, struct error *error)
{
	const struct buf *bytes = &conn->out;
	if (conn->secure) {
		buf_clear(&conn->cipher);
		if (!secure_send(conn->secure, conn->out.data, conn->out.length, &conn->cipher,
				 error))
			return false;
		bytes = &conn->cipher;
	}
	net_write(conn->net, bytes->data, bytes->length);
	return true;
}

/* Stops when the socket can't keep up: on_drain goes on. */
static bool send_all(struct conn *conn, struct error *error)
{
	while (net_queued(conn->net) < CONN_WRITE_HIGH) {
		buf_clear(&conn->out);
		bool fine = session_send(conn->session, CONN_WRITE_SIZE, loop_now(conn->loop),
					 &conn->out, error);
		if (conn->out.length == 0)
			return fine;
		if (!write_out(conn, error) || !fine)
			return false;
	}
	return true;
}

static bool can_send(const struct conn *conn)
{
	return conn->net && (!conn->secure || secure_is_ready(conn->secure));
}

/* The GOAWAY that says why; if that can't be sent either, the first reason counts. */
static void send_last_words(struct conn *conn)
{
	struct error unsent;
	if (can_send(conn) && !send_all(conn, &unsent))
		log_debug("rpc_last_words_unsent", unsent.what, NULL);
}

static void set_timer(struct conn *conn)
{
	struct mono wake = session_wake(conn->session);
	if (wake.ms == INT64_MAX) {
		loop_timer_stop(conn->timer);
		return;
	}
	int64_t delay = mono_until(loop_now(conn->loop), wake);
	loop_timer_start(conn->timer, delay > 0 ? delay : 0);
}

static void flush(struct conn *conn)
{
	struct error error;
	if (conn->ended) {
		tell(conn);
		return;
	}
	if (conn->failure) {
		end(conn, conn->failure);
		return;
	}
	if (can_send(conn)) {
		if (!send_all(conn, &error)) {
			end(conn, &error);
			return;
		}
		tell(conn);
		if (!conn->ended)
			end_if_over(conn);
	} else {
		tell(conn);
	}
	if (!conn->ended)
		set_timer(conn);
}

static void on_flush(void *arg)
{
	struct conn *conn = arg;
	enter(conn);
	flush(conn);
	leave(conn);
}

static void on_timer(void *arg)
{
	struct conn *conn = arg;
	struct error error;
	enter(conn);
	if (!session_tick(conn->session, loop_now(conn->loop), &error)) {
		send_last_words(conn);
		end(conn, &error);
	}
	if (!conn->doomed)
		flush(conn);
	leave(conn);
}

/* --- bytes in --- */

static bool receive(struct conn *conn, const uint8_t *data, size_t length, struct error *error)
{
	if (!conn->secure)
		return session_receive(conn->session, data, length, loop_now(conn->loop), error);
	buf_clear(&conn->plain);
	buf_clear(&conn->cipher);
	bool fine = secure_receive(conn->secure, data, length, &conn->plain, &conn->cipher, error);
	net_write(conn->net, conn->cipher.data, conn->cipher.length);
	if (conn->plain.length) {
		struct error broken;
		if (!session_receive(conn->session, conn->plain.data, conn->plain.length,
				     loop_now(conn->loop), fine ? error : &broken))
			return false;
	}
	return fine;
}

static void on_data(void *arg, const uint8_t *data, size_t length)
{
	struct conn *conn = arg;
	struct error error;
	enter(conn);
	bool fine = receive(conn, data, length, &error);
	if (!fine)
		send_last_words(conn);
	tell(conn);
	if (!fine)
		end(conn, &error);
	else if (!conn->ended)
		loop_defer_arm(conn->flush);
	leave(conn);
}

static void on_drain(void *arg)
{
	struct conn *conn = arg;
	loop_defer_arm(conn->flush);
}

static void on_close(void *arg, const struct error *error)
{
	struct conn *conn = arg;
	struct error ended;
	conn->net = NULL;
	enter(conn);
	if (session_reason(conn->session, &ended))
		error = &ended;
	if (!error) {
		error_set(&ended, ERROR_UNAVAILABLE, "the peer closed the connection");
		error = &ended;
	}
	end(conn, error);
	leave(conn);
}

/* --- start, drain --- */

void conn_start(struct conn *conn, struct net_conn *net)
{
	static const struct net_handlers handlers = {
		.on_data = on_data, .on_drain = on_drain, .on_close = on_close};
	struct error error;
	conn->net = net;
	conn->peer_uid = net_peer_uid(net);
	free(conn->peer);
	conn->peer = mem_strdup(net_peer(net));
	net_start(net, &handlers, conn);
	loop_defer_arm(conn->flush);
	if (!conn->secure)
		return;
	buf_clear(&conn->cipher);
	if (!secure_start(conn->secure, &conn->cipher, &error))
		conn_fail(conn, &error);
	net_write(net, conn->cipher.data, conn->cipher.length);
}

void conn_drain(struct conn *conn)
{
	if (!conn->up) {
		struct error error;
		error_set(&error, ERROR_UNAVAILABLE, "the server is stopping");
		conn_fail(conn, &error);
		return;
	}
	session_drain(conn->session, loop_now(conn->loop));
	loop_defer_arm(conn->flush);
}

bool conn_is_up(const struct conn *conn)
{
	return conn->up;
}

/* --- calls --- */

struct rpc_call *conn_request(struct conn *conn, uint64_t id, const char *path, int64_t deadline_ms,
			      size_t max_message, const struct rpc_call_handlers *handlers,
			      void *arg)
{
	struct rpc_call *rpc = mem_alloc(sizeof *rpc);
	struct mono deadline = {INT64_MAX};
	if (deadline_ms > 0)
		deadline = mono_after(loop_now(conn->loop), deadline_ms);
	rpc->conn = conn;
	rpc->id = id;
	rpc->handlers = *handlers;
	rpc->arg = arg;
	rpc->call = session_request(conn->session, path, deadline,
				    max_message ? max_message : RPC_MAX_MESSAGE_DEFAULT);
	call_set_owner(rpc->call, rpc);
	loop_defer_arm(conn->flush);
	return rpc;
}

void rpc_send(struct rpc_call *rpc, const void *data, size_t length)
{
	call_send(rpc->call, data, length);
	loop_defer_arm(rpc->conn->flush);
}

void rpc_finish(struct rpc_call *rpc, enum rpc_code code, const char *message)
{
	call_finish(rpc->call, code, message ? message : "");
	loop_defer_arm(rpc->conn->flush);
}

void rpc_half_close(struct rpc_call *rpc)
{
	call_half_close(rpc->call);
	loop_defer_arm(rpc->conn->flush);
}

void rpc_cancel(struct rpc_call *rpc)
{
	call_cancel(rpc->call);
	loop_defer_arm(rpc->conn->flush);
}

size_t rpc_queued(const struct rpc_call *rpc)
{
	return call_queued(rpc->call);
}

void rpc_call_set_data(struct rpc_call *rpc, void *data)
{
	rpc->data = data;
}

void *rpc_call_data(const struct rpc_call *rpc)
{
	return rpc->data;
}

uint64_t rpc_call_id(const struct rpc_call *rpc)
{
	return rpc->id;
}

const char *rpc_metadata(const struct rpc_call *rpc, const char *name, size_t *ret_length)
{
	const struct metadata_entry *entry = metadata_find(call_metadata(rpc->call), name);
	if (!entry)
		return NULL;
	*ret_length = entry->length;
	return (const char *)entry->value;
}

void rpc_add_metadata(struct rpc_call *rpc, bool trailing, const char *name, const void *value,
		      size_t length)
{
	call_add_metadata(rpc->call, trailing, name, value, length);
}

const uint8_t *rpc_peer_certificate(const struct rpc_call *rpc, size_t *ret_length)
{
	if (rpc->conn->secure)
		return secure_peer_certificate(rpc->conn->secure, ret_length);
	*ret_length = 0;
	return NULL;
}

int64_t rpc_peer_uid(const struct rpc_call *rpc)
{
	return rpc->conn->peer_uid;
}

const char *rpc_peer(const struct rpc_call *rpc)
{
	return rpc->conn->peer;
}
