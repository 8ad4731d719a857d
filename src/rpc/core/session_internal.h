/*
 * session_internal: what session.c, call.c and h2.c share; nobody else includes it.
 */
#pragma once

#include "base/vec.h"
#include "rpc/core/call.h"
#include "rpc/core/frame.h"
#include "rpc/core/session.h"

#include <nghttp2/nghttp2.h>

#define NEVER ((struct mono){INT64_MAX})

/* A stream that carries no gRPC at all is answered by plain HTTP, once the peer has finished
 * speaking: an earlier answer would be mistaken for the one to something else it did wrong. */
enum call_input {
	CALL_INPUT_OPEN,
	CALL_INPUT_DEAF, /* what still comes is not looked at */
	CALL_INPUT_CLOSED,
};

struct call {
	struct session *session; /* NULL once ended */
	int32_t stream;          /* 0: the request hasn't gone out */
	void *owner;
	const struct session_method *method; /* server; NULL while refused or unknown */
	bool announced;                      /* server: SESSION_START was queued */

	/* coming in */
	enum call_input input;
	struct metadata received;
	size_t header_bytes;
	int http_status;           /* client */
	int refuse_http;           /* server: the plain HTTP status to answer with; 0 for gRPC */
	bool is_post;              /* server */
	bool is_grpc;              /* by content-type */
	bool headers_seen;         /* client: the answer's headers were judged */
	enum rpc_code bad_headers; /* RPC_OK, or what is wrong with them, and why */
	const char *bad_headers_why;
	struct frame_reader reader;
	struct buf held; /* the one request, until the half-close */
	bool has_held;
	size_t counted;  /* of reader and held, in session->buffered */
	size_t withheld; /* received bytes whose window we don't give back yet */

	/* going out */
	char *path;
	struct metadata initial, trailing;
	struct buf out;
	size_t out_offset;
	bool out_used;           /* something was queued since the last SESSION_DRAINED */
	bool out_closed;         /* finished or half-closed: `out` is all that follows */
	bool out_ended;          /* trailers were submitted, or END_STREAM was given to nghttp2 */
	bool waiting;            /* headers are to be submitted by the next session_send() */
	bool opened;             /* headers were submitted */
	bool reset;              /* RST_STREAM was submitted */
	bool refuse_compression; /* server: say which encodings we take: none */

	/* the end */
	struct mono deadline;
	bool quiet;  /* we ended it: only SESSION_END is told */
	bool failed; /* server: by call_fail(); the status is ours, however the stream closes */
	bool has_status;
	enum rpc_code code;
	struct buf text;
};

struct session {
	nghttp2_session *h2;
	bool server;
	const struct session_method *methods;
	size_t methods_count;
	char *scheme, *authority;

	/* Sorted by stream; those that haven't one yet are at the end, oldest first. */
	VEC(struct call *) calls;
	size_t unopened; /* calls whose headers wait for session_send() */
	size_t buffered;

	VEC(struct session_event) events;
	size_t events_taken;

	struct mono now; /* of the session_receive(), _send() or _tick() under way */
	struct mono open_by;
	bool up;
	bool closed; /* session_close() was called, with this: */
	enum rpc_code closed_code;
	struct buf closed_text;
	bool draining;        /* server: the first GOAWAY is out. client: the peer sent one */
	struct mono drain_by; /* server: when the last GOAWAY goes out at the latest; else NEVER */
	bool broken;
	struct error *reason; /* NULL: unknown */

	int64_t keepalive_ms;
	struct mono heard, pinged;
	bool ping_out;
	bool ping_seen; /* server: the peer pinged, at last_ping, and we have sent nothing since */
	struct mono last_ping;
	unsigned strikes;
};

/* session.c */
struct call *session_find(const struct session *session, int32_t stream);
void session_forget(struct session *session, struct call *call);
void session_event(struct session *session, enum session_event_kind kind, struct call *call);
/* Room for the reason why the connection ends, made when there is one: connections are many. */
struct error *session_own_reason(struct session *session);
/* The connection can't go on; the first reason stays. */
void session_break(struct session *session, enum error_code code, const char *format, ...)
	PRINTF(3, 4);
/* Every nghttp2 return value comes by here: a fatal one breaks the session. */
bool session_checked(struct session *session, int status);

void session_goaway(struct session *session, uint32_t http2_error, const char *why);

/* call.c */
struct call *call_create(struct session *session, int32_t stream);
void call_end(struct call *call, enum rpc_code code, const char *text);
/* Gives the call up with this status: trailers at once as a server, a reset stream as a client. */
void call_fail(struct call *call, enum rpc_code code, const char *text);
void call_expire(struct call *call);
void call_reset(struct call *call, uint32_t http2_error);
void call_open(struct call *call); /* submits its headers; it may have ended instead */
/* Bytes of DATA that came in. */
void call_receive(struct call *call, const uint8_t *data, size_t length);
void call_receive_end(struct call *call); /* END_STREAM */
/* nghttp2 asks for DATA; fills `buffer` and *flags. */
ssize_t call_read(struct call *call, uint8_t *buffer, size_t length, uint32_t *flags);

void call_refuse_http(struct call *call); /* the plain HTTP answer, call->refuse_http */

/* h2.c: nghttp2's callbacks */
nghttp2_session *h2_create(struct session *session);
nghttp2_data_provider h2_body(void); /* DATA from call_read() of the stream's call */
#define H2_DRAIN_PING     "draining" /* the eight bytes of our pings */
#define H2_KEEPALIVE_PING "keepaliv"
