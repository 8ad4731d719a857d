/*
 * listener: the HTTP API's socket and its connections: libmicrohttpd, driven by the loop.
 *
 * Owns      connections, their bounds and their ends; what goes on in one is exchange.h's. A request must be complete
 *           EXCHANGE_REQUEST_MS after its connection was opened or the answer before it was sent,
 *           however busily it trickles in. Once LISTENER_MAX_CONNECTIONS are open, whoever comes
 *           takes the place of the slowest. Plain HTTP is refused on any address but loopback.
 * Threads   the loop's; answers are made by workers while the connection is suspended.
 */
#pragma once

#include "base/error.h"
#include "serve/ratelimit.h"
#include "serve/router.h"
#include "sys/loop.h"

struct apitls;
struct listener;
struct metrics;
struct proxies;
struct workers;

#define LISTENER_MAX_CONNECTIONS 1024
#define LISTENER_MAX_HEADERS     ((size_t)32 << 10) /* of a connection, its buffers included */
#define LISTENER_FIRST_MS        500 /* what a new connection is left to ask, while draining */
#define LISTENER_IDLE_S          30  /* without a byte either way */

struct listener_options {
	const char *address;           /* "127.0.0.1:7480", "[::1]:0"; port 0 takes a free one */
	struct apitls *tls;            /* borrowed; NULL for plain HTTP */
	const struct proxies *proxies; /* whose word about who calls counts; NULL: nobody's */
	/* Calls of one key, and of one address whose callers show none that opens (ADM-5). */
	struct ratelimit_rate key_rate, address_rate;
	struct metrics *metrics; /* counts each answer; NULL: nobody does */
	/* Adds the process's own figures to an answer of GET /metrics; with `metrics`. */
	void (*add_metrics)(void *arg, struct buf *text);
};

/* `on_change` follows each call that changed something; `arg` is add_metrics' too. `router` and
 * `workers` are borrowed; without workers (NULL) only what router_answer_early() knows is answered
 * until listener_set_workers(). */
MUST_CHECK bool listener_create(struct loop *loop, const struct listener_options *options,
				const struct router *router, struct workers *workers,
				loop_fn *on_change, void *arg, struct listener **ret_listener,
				struct error *error);
void listener_set_workers(struct listener *listener, struct workers *workers);
/* Answers ask for no further request on their connection: the next one is better made elsewhere. */
void listener_turn_away(struct listener *listener);
const char *listener_address(const struct listener *listener); /* as bound */
/* Takes no new connection, ends idle ones, and calls fn when every answer under way is sent. */
void listener_drain(struct listener *listener, loop_fn *fn, void *arg);
/* After workers_destroy(): every answer that was asked for has come back by then. */
void listener_destroy(struct listener *listener); /* takes NULL */
