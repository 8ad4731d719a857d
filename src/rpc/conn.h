/*
 * conn: one connection: a socket, TLS or not, and a session on them; and the calls as their users
 * see them.
 *
 * Turn      what comes in is told at once; what goes out is gathered and sent once a turn.
 * Lifetime  conn_destroy() is legal at any moment, also within what the connection itself is
 * telling: the memory then goes when that has returned. Private   to src/rpc.
 */
#pragma once

#include "rpc/core/call.h"
#include "rpc/rpc.h"
#include "rpc/secure.h"
#include "sys/net.h"

struct conn;

struct conn_handlers {
	/* Server: a call's headers are in; returns who serves it. */
	struct rpc_call *(*on_start)(void *arg, struct conn *conn, struct call *call);
	void (*on_up)(void *arg, struct conn *conn); /* may be NULL */
	/* Once, after its last call's on_done; `conn` is still the caller's to destroy. */
	void (*on_end)(void *arg, struct conn *conn, const struct error *error);
};

/* `handlers` and `options` as of session_create(); they outlive the connection. */
struct conn *conn_create(struct loop *loop, struct rpc_tls *tls,
			 const struct session_options *options,
			 const struct conn_handlers *handlers, void *arg);
/* Takes the socket and starts talking. */
void conn_start(struct conn *conn, struct net_conn *net);
/* Ends it with this error, as if the socket had; later, from the loop. */
void conn_fail(struct conn *conn, const struct error *error);
void conn_drain(struct conn *conn);
bool conn_is_up(const struct conn *conn);
void conn_destroy(struct conn *conn); /* its calls' on_done come before it returns; no on_end */

struct rpc_call {
	struct conn *conn;
	struct call *call;
	uint64_t id;
	void *data;
	struct rpc_call_handlers handlers;
	void (*on_half_close)(struct rpc_call *call, void *arg); /* server; may be NULL */
	void *arg;
};

/* A client's call. */
struct rpc_call *conn_request(struct conn *conn, uint64_t id, const char *path, int64_t deadline_ms,
			      size_t max_message, const struct rpc_call_handlers *handlers,
			      void *arg);
