/*
 * session: one gRPC connection, server's or client's, as bytes in, bytes out and events.
 *
 *     session_receive(bytes) → session_next(&event)…   what came in has happened
 *     call_send(), call_finish(), …                    what we want (call.h)
 *     session_send(&bytes)                             what is to go out
 *     session_wake(), session_tick(now)                deadlines, keepalive, and what must not last
 *
 * Nothing is ever called back: events wait in a queue until they are taken, so that whoever handles
 * one may do anything, session_close() and session_destroy() included.
 *
 * Owns      its calls, until their SESSION_END event is taken; then the taker owns the call.
 * Limits    SESSION_*; each is answered by a status, a reset stream or a GOAWAY, never by growing.
 * Pure      time is an argument.
 * Source    RFC 9113, grpc.io "gRPC over HTTP2"; HTTP/2 itself is nghttp2's.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "rpc/core/status.h"

struct session;
struct call;

#define SESSION_MAX_HEADERS ((size_t)16 << 10) /* names + values + 32 each, a block */
#define SESSION_MAX_STREAMS 128                /* of a peer, at once */
/* Bytes of messages that aren't whole yet; one message that its call allows may be longer. */
#define SESSION_MAX_BUFFERED  ((size_t)16 << 20)
#define SESSION_STREAM_WINDOW (256 << 10)
#define SESSION_WINDOW        (1 << 20) /* of the connection */
/* Of a server: above HIGH unsent bytes of a call its window stays shut, until LOW. */
#define SESSION_QUEUE_HIGH     ((size_t)256 << 10)
#define SESSION_QUEUE_LOW      ((size_t)64 << 10)
#define SESSION_OPEN_MS        20000 /* from the start to the peer's SETTINGS */
#define SESSION_PING_ANSWER_MS 20000
#define SESSION_DRAIN_MS       1000 /* from the first GOAWAY to the last, if the peer is silent */
/* A client may ping once in this time when we have sent nothing since; more is a strike. */
#define SESSION_PING_MIN_MS  5000
#define SESSION_PING_STRIKES 2

struct session_method {
	const char *path;
	bool one_request;   /* exactly one message comes in: it is told at the half-close */
	size_t max_message; /* of a request */
};

struct session_options {
	bool server;
	int64_t keepalive_ms; /* ping a peer that was silent so long; 0: never */
	/* Server: must outlive the session. */
	const struct session_method *methods;
	size_t methods_count;
	/* Client: copied. */
	const char *scheme;
	const char *authority;
};

struct session *session_create(const struct session_options *options, struct mono now);
void session_destroy(struct session *session); /* with all calls and events; takes NULL */

/* False: the connection is of no use any more. Send what session_send() still gives (a GOAWAY that
 * says why), session_close(), and end it. */
MUST_CHECK bool session_receive(struct session *session, const uint8_t *data, size_t length,
				struct mono now, struct error *error);

/* Appends bytes to `out` while there are any and `out` is shorter than `enough`. Works on a session
 * that session_receive() or _tick() called useless, for its last words. */
MUST_CHECK bool session_send(struct session *session, size_t enough, struct mono now,
			     struct buf *out, struct error *error);

/* Both sides are done: everything was said, nothing is expected. */
bool session_is_over(const struct session *session);

/* Why it is over, as far as a GOAWAY or a broken rule said so; else false. */
bool session_reason(const struct session *session, struct error *ret_reason);

/* The connection is gone: all calls end with this status, later ones at once. */
void session_close(struct session *session, enum rpc_code code, const char *message);

/* Server: no new calls after this, running ones go on (GOAWAY twice, a ping between them). */
void session_drain(struct session *session, struct mono now);

/* When session_tick() is due at the latest; ms is INT64_MAX for never. */
struct mono session_wake(const struct session *session);
/* False as of session_receive(). */
MUST_CHECK bool session_tick(struct session *session, struct mono now, struct error *error);

/* Client: a new call (call.h). It goes out once the peer's SETTINGS are in. `deadline` INT64_MAX:
 * none. */
struct call *session_request(struct session *session, const char *path, struct mono deadline,
			     size_t max_message);

enum session_event_kind {
	SESSION_UP,         /* the peer's SETTINGS are in; no call */
	SESSION_START,      /* server: a call's headers are in */
	SESSION_MESSAGE,    /* `message` is one, the taker's to free */
	SESSION_HALF_CLOSE, /* server: the peer sends no more */
	SESSION_DRAINED,    /* what was sent has left the call's queue */
	SESSION_END,        /* with code and text; the last, and the taker does call_destroy() */
};

struct session_event {
	enum session_event_kind kind;
	struct call *call;
	struct buf message;
};

/* Takes the next event; false: none. Of a call that we ended ourselves only SESSION_END comes; that
 * may be the first that is told of it. */
bool session_next(struct session *session, struct session_event *ret_event);
