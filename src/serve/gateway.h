/*
 * gateway: the nodes' streams: one a node, newest Hello wins (GW-25 to GW-28).
 *
 * Owns      the order of things within a stream: Hello, then Welcome, then the Spec; a report is
 *           acknowledged only after its commit. Everything else is in the database, so any replica
 *           may hold any node's stream and none needs to know where another's is.
 * Pace      one job of a stream is under way at a time; what comes meanwhile waits in its inbox.
 *           An inbox that overflows, or a peer that doesn't read, ends its own stream and no other.
 *           Of Specs only the newest matters: one is loaded when there is room for it.
 * Serves    Gateway.Connect (a node's certificate is demanded) and Join.Join (serve/join.h).
 * Threads   the loop's; control's part runs on workers.
 * Source    proto/gateway.proto, docs/internals/gateway.md
 */
#pragma once

#include "base/error.h"
#include "serve/join.h"
#include "sys/loop.h"

struct gateway;
struct pki_folder;
struct rpc_tls;
struct workers;

#define GATEWAY_HELLO_MS       10000 /* from the stream's start to its Hello */
#define GATEWAY_SILENCE_MS     30000 /* without a message; nodes send each 10 s (GW-27) */
#define GATEWAY_MAX_STREAMS    16384
#define GATEWAY_JOINERS        512  /* connections beyond: those that join */
#define GATEWAY_MAX_BEATS      4096 /* heartbeats in one transaction, one a second */
#define GATEWAY_MAX_INBOX      4096 /* messages of one stream that wait */
#define GATEWAY_MAX_INBOX_SIZE ((size_t)16 << 20)
#define GATEWAY_MAX_QUEUED     ((size_t)4 << 20) /* bytes a node hasn't read: no more are made */
#define GATEWAY_MAX_MESSAGE    ((size_t)4 << 20)

/* Called on the loop when something was committed that control_tick() may act on. */
struct gateway_handlers {
	void (*on_look_again)(void *arg);
	void *arg;
};

struct gateway *gateway_create(struct loop *loop, struct workers *workers,
			       const struct pki_folder *pki, struct join_service *join,
			       const struct gateway_handlers *handlers);
/* `tls` NULL only in tests and in the simulation: then no stream has a certificate. */
MUST_CHECK bool gateway_listen(struct gateway *gateway, const char *address, struct rpc_tls *tls,
			       struct error *error);
const char *gateway_address(const struct gateway *gateway); /* as bound */

/* For connections and jobs that come from now on; the folder and settings before must last until
 * gateway_destroy(). */
void gateway_set_keys(struct gateway *gateway, const struct pki_folder *pki, struct rpc_tls *tls);

/* The node's Spec has at least this generation now: sends it if the stream is here. */
void gateway_push(struct gateway *gateway, const char *node, int64_t generation);

size_t gateway_streams(const struct gateway *gateway); /* open, or about to be */

/* Ends every stream (UNAVAILABLE: come back), then calls fn. */
void gateway_drain(struct gateway *gateway, loop_fn *fn, void *arg);
/* After workers_destroy(). Takes NULL. */
void gateway_destroy(struct gateway *gateway);
