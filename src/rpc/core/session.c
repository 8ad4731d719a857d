#include "rpc/core/session_internal.h"

#include <stdarg.h>
#include <stdio.h>

/* --- life --- */

struct session *session_create(const struct session_options *options, struct mono now)
{
	struct session *session = mem_alloc(sizeof *session);
	session->server = options->server;
	session->methods = options->methods;
	session->methods_count = options->methods_count;
	session->scheme = mem_strdup(options->scheme);
	session->authority = mem_strdup(options->authority);
	session->keepalive_ms = options->keepalive_ms;
	session->now = session->heard = now;
	session->open_by = mono_after(now, SESSION_OPEN_MS);
	session->drain_by = NEVER;
	session->h2 = h2_create(session);
	return session;
}

void session_destroy(struct session *session)
{
	if (!session)
		return;
	/* Announced calls become events, the others are freed. */
	session_close(session, RPC_CANCELLED, "");
	struct session_event event;
	while (session_next(session, &event)) {
		buf_deinit(&event.message);
		if (event.kind == SESSION_END)
			call_destroy(event.call);
	}
	nghttp2_session_del(session->h2);
	vec_deinit(&session->calls);
	vec_deinit(&session->events);
	buf_deinit(&session->closed_text);
	free(session->reason);
	free(session->scheme);
	free(session->authority);
	free(session);
}

void session_close(struct session *session, enum rpc_code code, const char *message)
{
	if (!session->closed) {
		session->closed = true;
		session->closed_code = code;
		buf_add_text(&session->closed_text, message);
	}
	while (session->calls.count)
		call_end(session->calls.items[0], code, message);
}

bool session_is_over(const struct session *session)
{
	return !nghttp2_session_want_read(session->h2) && !nghttp2_session_want_write(session->h2);
}

bool session_reason(const struct session *session, struct error *ret_reason)
{
	if (!session->reason)
		return false;
	*ret_reason = *session->reason;
	return true;
}

struct error *session_own_reason(struct session *session)
{
	if (!session->reason)
		session->reason = mem_alloc(sizeof *session->reason);
	return session->reason;
}

void session_break(struct session *session, enum error_code code, const char *format, ...)
{
	if (session->broken)
		return;
	session->broken = true;
	va_list args;
	va_start(args, format);
	char what[ERROR_WHAT_SIZE];
	vsnprintf(what, sizeof what, format, args);
	va_end(args);
	error_set(session_own_reason(session), code, "%s", what);
}

bool session_checked(struct session *session, int status)
{
	if (status >= 0)
		return true;
	if (nghttp2_is_fatal(status))
		session_break(session, ERROR_INTERNAL, "HTTP/2: %s", nghttp2_strerror(status));
	return false;
}

/* --- calls by stream --- */

static int64_t order(const struct call *call)
{
	return call->stream ? call->stream : INT64_MAX;
}

struct call *session_find(const struct session *session, int32_t stream)
{
	struct call *const *calls = session->calls.items;
	size_t i = vec_lower(session->calls.count, at, order(calls[at]) < stream);

	return i < session->calls.count && order(calls[i]) == stream ? calls[i] : NULL;
}

void session_forget(struct session *session, struct call *call)
{
	for (size_t i = 0; i < session->calls.count; i++) {
		if (session->calls.items[i] != call)
			continue;
		vec_remove(&session->calls, i);
		return;
	}
	assert(false);
}

struct call *session_request(struct session *session, const char *path, struct mono deadline,
			     size_t max_message)
{
	assert(!session->server);
	struct call *call = call_create(session, 0);
	call->path = mem_strdup(path);
	call->deadline = deadline;
	call->reader.max = max_message;
	call->announced = true;
	call->waiting = true;
	session->unopened++;
	if (session->closed)
		call_end(call, session->closed_code, buf_text(&session->closed_text));
	else if (session->draining)
		call_end(call, RPC_UNAVAILABLE, "the server takes no new calls on this connection");
	return call;
}

/* --- events --- */

void session_event(struct session *session, enum session_event_kind kind, struct call *call)
{
	struct session_event *event = vec_push(&session->events);
	event->kind = kind;
	event->call = call;
}

bool session_next(struct session *session, struct session_event *ret_event)
{
	while (session->events_taken < session->events.count) {
		struct session_event event = session->events.items[session->events_taken++];
		if (event.call && event.call->quiet && event.kind != SESSION_END) {
			buf_deinit(&event.message);
			continue;
		}
		*ret_event = event;
		return true;
	}
	vec_deinit(&session->events); /* sessions are many and mostly idle */
	session->events_taken = 0;
	return false;
}

/* --- bytes --- */

static bool outcome(const struct session *session, struct error *error)
{
	if (!session->broken)
		return true;
	*error = *session->reason;
	return false;
}

bool session_receive(struct session *session, const uint8_t *data, size_t length, struct mono now,
		     struct error *error)
{
	session->now = session->heard = now;
	ssize_t taken = nghttp2_session_mem_recv(session->h2, data, length);
	if (taken == NGHTTP2_ERR_BAD_CLIENT_MAGIC)
		session_break(session, ERROR_INVALID_INPUT, "the peer does not speak HTTP/2");
	else if (taken < 0)
		session_break(session, ERROR_INVALID_INPUT, "HTTP/2: %s",
			      nghttp2_strerror((int)taken));
	else
		assert((size_t)taken == length); /* we never pause it */
	return outcome(session, error);
}

static void open_waiting(struct session *session)
{
	if (!session->server && !session->up)
		return;
	for (size_t i = 0; session->unopened && i < session->calls.count;) {
		struct call *call = session->calls.items[i];
		if (call->waiting)
			call_open(call);
		if (i < session->calls.count && session->calls.items[i] == call)
			i++;
	}
}

bool session_send(struct session *session, size_t enough, struct mono now, struct buf *out,
		  struct error *error)
{
	session->now = now;
	open_waiting(session);
	while (out->length < enough) {
		const uint8_t *bytes;
		ssize_t length = nghttp2_session_mem_send(session->h2, &bytes);
		if (length == 0)
			return true;
		if (!session_checked(session, (int)length)) {
			*error = *session->reason;
			return false;
		}
		buf_add(out, bytes, (size_t)length);
	}
	return true;
}

/* --- what happens by time --- */

static struct mono earlier(struct mono a, struct mono b)
{
	return a.ms < b.ms ? a : b;
}

static struct mono keepalive_due(const struct session *session)
{
	if (!session->up || !session->keepalive_ms || session->closed)
		return NEVER;
	if (!session->ping_out)
		return mono_after(session->heard, session->keepalive_ms);
	struct mono since = mono_later(session->heard, session->pinged);
	return mono_after(since, SESSION_PING_ANSWER_MS);
}

struct mono session_wake(const struct session *session)
{
	struct mono wake = earlier(keepalive_due(session), session->drain_by);
	if (!session->up && !session->closed)
		wake = earlier(wake, session->open_by);
	for (size_t i = 0; i < session->calls.count; i++)
		wake = earlier(wake, session->calls.items[i]->deadline);
	return wake;
}

static void keepalive(struct session *session)
{
	if (session->ping_out) {
		session_break(session, ERROR_UNAVAILABLE, "no answer to a ping for %d s",
			      SESSION_PING_ANSWER_MS / 1000);
		return;
	}
	session->ping_out = true;
	session->pinged = session->now;
	session_checked(session, nghttp2_submit_ping(session->h2, NGHTTP2_FLAG_NONE,
						     (const uint8_t *)H2_KEEPALIVE_PING));
}

bool session_tick(struct session *session, struct mono now, struct error *error)
{
	session->now = now;
	for (size_t i = 0; i < session->calls.count;) {
		struct call *call = session->calls.items[i];
		if (call->deadline.ms <= now.ms)
			call_expire(call);
		if (i < session->calls.count && session->calls.items[i] == call)
			i++;
	}
	if (session->drain_by.ms <= now.ms)
		session_goaway(session, NGHTTP2_NO_ERROR, "");
	if (keepalive_due(session).ms <= now.ms)
		keepalive(session);
	if (!session->up && !session->closed && session->open_by.ms <= now.ms)
		session_break(session, ERROR_UNAVAILABLE, "the peer said nothing for %d s",
			      SESSION_OPEN_MS / 1000);
	return outcome(session, error);
}

/* --- the way to the end --- */

void session_goaway(struct session *session, uint32_t http2_error, const char *why)
{
	session->drain_by = NEVER;
	int32_t last = nghttp2_session_get_last_proc_stream_id(session->h2);
	session_checked(session,
			nghttp2_submit_goaway(session->h2, NGHTTP2_FLAG_NONE, last, http2_error,
					      (const uint8_t *)why, strlen(why)));
}

void session_drain(struct session *session, struct mono now)
{
	assert(session->server);
	if (session->draining || session->closed)
		return;
	session->draining = true;
	session->drain_by = mono_after(now, SESSION_DRAIN_MS);
	session_checked(session, nghttp2_submit_shutdown_notice(session->h2));
	session_checked(session, nghttp2_submit_ping(session->h2, NGHTTP2_FLAG_NONE,
						     (const uint8_t *)H2_DRAIN_PING));
}
