/*
 * rpc: gRPC client and server over unix sockets and TLS, on one loop.
 *
 * Bytes in, bytes out: a message is an encoded protobuf (proto/message.h packs and unpacks with
 * bounds). Unary and streaming calls share one shape; a unary method gets exactly one message.
 *
 * Lifetimes  a call is valid until its on_done returned; on_done is the last callback and always
 *            comes, exactly once, also when the connection dies or the server is destroyed. Nothing
 *            is called from inside the caller's own call into rpc, except where said.
 * Threads    the loop's.
 * Simulated  by tests/sim/sim_rpc.c (same header; delays, losses and cuts by seed).
 * Source     grpc.io "gRPC over HTTP2"; bounds in RPC_*.
 */
#pragma once

#include "base/error.h"
#include "rpc/core/status.h" /* enum rpc_code, rpc_code_name() */
#include "sys/loop.h"

#include <sys/types.h>

#define RPC_MAX_MESSAGE_DEFAULT ((size_t)4 << 20)  /* what grpc takes by default */
#define RPC_MAX_HEADERS         ((size_t)16 << 10) /* names + values + 32 each */
#define RPC_MAX_STREAMS         128                /* concurrent, a connection */
#define RPC_MAX_CONNECTIONS     8192               /* a server; rpc_server_limit_connections() */

struct rpc_call;
struct rpc_server;
struct rpc_client;
struct rpc_tls; /* rpc/tls.h; NULL means plain (unix sockets, tests) */

struct rpc_status {
	enum rpc_code code;
	const char *message; /* never NULL; borrowed for the callback */
};

/* The status as an error: UNAVAILABLE etc. by error_code_from_grpc(). Returns false. */
bool rpc_status_to_error(const struct rpc_status *status, struct error *error);

/* --- server --- */

/* `arg` is the server's, given at rpc_server_create. Any callback but on_message may be NULL. */
struct rpc_method {
	const char *path;   /* "/v1beta1.DevicePlugin/Allocate" */
	bool unary;         /* one request: on_message is called once, at the peer's half-close; the
			       answer may have any number of messages all the same */
	size_t max_message; /* 0: RPC_MAX_MESSAGE_DEFAULT */
	void (*on_start)(struct rpc_call *call, void *arg); /* headers are in: metadata readable */
	void (*on_message)(struct rpc_call *call, void *arg, const uint8_t *data, size_t length);
	void (*on_half_close)(struct rpc_call *call, void *arg); /* streaming: the peer is done */
	void (*on_drain)(struct rpc_call *call, void *arg); /* what was sent has left the queue */
	void (*on_done)(struct rpc_call *call, void *arg, const struct rpc_status *status);
};

/* `methods` must outlive the server. */
struct rpc_server *rpc_server_create(struct loop *loop, const struct rpc_method *methods,
				     size_t count, void *arg);
MUST_CHECK bool rpc_server_listen_unix(struct rpc_server *server, const char *path, mode_t mode,
				       struct error *error);
/* `tls` is borrowed for the server's life. */
MUST_CHECK bool rpc_server_listen_tcp(struct rpc_server *server, const char *address,
				      struct rpc_tls *tls, struct error *error);
/* TLS of connections that come from now on; those that are there go on as they are. The one before
 * may be destroyed. Listeners without TLS stay so. */
void rpc_server_set_tls(struct rpc_server *server, struct rpc_tls *tls);
/* Above `limit` a new connection is closed at once; RPC_MAX_CONNECTIONS if never called. */
void rpc_server_limit_connections(struct rpc_server *server, size_t limit);
const char *rpc_server_address(const struct rpc_server *server); /* as bound, of the last listen */
/* Refuses new calls, lets running ones end (GOAWAY), then calls fn; streams that never end by
 * themselves are the caller's to finish. */
void rpc_server_drain(struct rpc_server *server, loop_fn *fn, void *arg);
void rpc_server_destroy(
	struct rpc_server *server); /* every call's on_done comes before it returns */

/* Answers: any number of messages (one when unary), then one finish. */
void rpc_send(struct rpc_call *call, const void *data, size_t length);
void rpc_finish(struct rpc_call *call, enum rpc_code code, const char *message);
void rpc_finish_error(struct rpc_call *call, const struct error *error); /* mapped, what + hint */
size_t rpc_queued(const struct rpc_call *call); /* bytes sent but not yet handed to the socket */

void rpc_call_set_data(struct rpc_call *call, void *data);
void *rpc_call_data(const struct rpc_call *call);
uint64_t rpc_call_id(const struct rpc_call *call); /* never reused in this process */
/* The first value of this metadata (lower-case name) or NULL; "-bin" values come decoded. A server
 * sees the request's; a client the answer's headers, and in on_done its trailers too. A NUL follows
 * it. */
const char *rpc_metadata(const struct rpc_call *call, const char *name, size_t *ret_length);
/* Adds to the answer's (or request's) metadata; "-bin" values are encoded, in others what isn't
 * printable ASCII becomes '?'. Trailing: server only. In time within the turn of the first
 * rpc_send(). */
void rpc_add_metadata(struct rpc_call *call, bool trailing, const char *name, const void *value,
		      size_t length);
/* The peer's verified certificate as DER, or NULL without one. Borrowed for the call's life. */
const uint8_t *rpc_peer_certificate(const struct rpc_call *call, size_t *ret_length);
int64_t rpc_peer_uid(const struct rpc_call *call); /* unix sockets; else -1 */
const char *rpc_peer(const struct rpc_call *call); /* for logs */

/* --- client --- */

/* One connection to one address: connects at once, tells up and down; reconnecting is the caller's
 * (with its own backoff), by destroy and create. Up means: the peer's SETTINGS have arrived, so
 * with TLS the server has judged our certificate. */
struct rpc_client_handlers {
	void (*on_up)(void *arg); /* may be NULL */
	void (*on_down)(void *arg,
			const struct error *error); /* once; calls have ended before it */
};

/* "unix:/path" or "host:port"; `tls` NULL for plain. Keepalive pings each `keepalive_ms` (0: none).
 */
struct rpc_client *rpc_client_create(struct loop *loop, const char *address, struct rpc_tls *tls,
				     int64_t keepalive_ms,
				     const struct rpc_client_handlers *handlers, void *arg);
bool rpc_client_is_up(const struct rpc_client *client);
void rpc_client_destroy(
	struct rpc_client *client); /* every call's on_done comes before it returns */

struct rpc_call_handlers {
	void (*on_message)(struct rpc_call *call, void *arg, const uint8_t *data, size_t length);
	void (*on_drain)(struct rpc_call *call, void *arg); /* may be NULL */
	void (*on_done)(struct rpc_call *call, void *arg, const struct rpc_status *status);
};

/* Starts a call; may be called before the client is up (it then waits). `deadline_ms` from now, 0
 * for none. Always returns a call: one that can't be made ends by on_done(UNAVAILABLE), later. */
struct rpc_call *rpc_call_start(struct rpc_client *client, const char *path, int64_t deadline_ms,
				size_t max_message, const struct rpc_call_handlers *handlers,
				void *arg);
void rpc_half_close(struct rpc_call *call); /* we send no more */
void rpc_cancel(struct rpc_call *call);     /* on_done(CANCELLED) comes later, from the loop;
					       a server may, too */

/* A unary call in one line: sends one message, half-closes; fn gets the answer (data NULL unless
 * OK). */
typedef void rpc_unary_fn(void *arg, const struct rpc_status *status, const uint8_t *data,
			  size_t length);
struct rpc_call *rpc_unary(struct rpc_client *client, const char *path, int64_t deadline_ms,
			   size_t max_message, const void *request, size_t length, rpc_unary_fn *fn,
			   void *arg);
