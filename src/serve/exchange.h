/*
 * exchange: one request of the HTTP API, from its first header to the end of its answer.
 *
 * Owns      what is read of a request, who made it, whether it may be made, and that each is
 *           answered in time: when no worker has an answer, because the database says nothing or
 *           others wait for it too, it is UNAVAILABLE, and what no worker has begun is dropped.
 * Threads   the loop's; answers are made by workers while the connection is suspended.
 * Tests     tests/unit/serve/listener_test.c
 */
#pragma once

#include "serve/callers.h"
#include "serve/events.h"
#include "serve/proxies.h"
#include "serve/router.h"
#include "sys/loop.h"

#include <microhttpd.h>

struct apitls_pair;
struct exchange;
struct metrics;
struct workers;

/* From the complete request to its answer; a probe is told sooner. */
#define EXCHANGE_ANSWER_MS  10000
#define EXCHANGE_READY_MS   1500  /* GET /readyz */
#define EXCHANGE_METRICS_MS 5000  /* GET /metrics: without the database it still has figures */
#define EXCHANGE_REQUEST_MS 30000 /* from a connection, or the answer before, to a whole request */

/* What all requests have in common; the listener's. */
struct exchanges {
	struct loop *loop;
	const struct router *router;
	struct workers *workers; /* NULL: not yet */
	struct events *events;
	struct callers *callers;
	const struct proxies *proxies;
	struct metrics *metrics; /* NULL: nobody counts */
	void (*add_metrics)(void *arg, struct buf *text);
	loop_fn *on_change;     /* something was changed here */
	void *arg;              /* of the two */
	struct loop_defer *run; /* the library has something to do */
	bool turning_away, draining;
};

/* One open connection. */
struct peer {
	int socket;
	char *target;         /* of the request under way, as it came */
	bool fresh;           /* has asked nothing yet */
	bool busy;            /* its request is complete: the time is ours now */
	bool ours;            /* waits for us, not we for it */
	bool shut;            /* its end is on its way */
	struct mono deadline; /* when its request must be complete, or its answer should be read */
	struct exchange *exchange; /* under way; NULL: none */
	struct apitls_pair *tls;   /* what it was greeted with; NULL without TLS */
};

/* The library's callbacks; `cls` is the struct exchanges, a connection's context its peer. */
void *exchange_on_target(void *cls, const char *target, struct MHD_Connection *connection);
enum MHD_Result exchange_on_request(void *cls, struct MHD_Connection *connection, const char *url,
				    const char *method, const char *version, const char *data,
				    size_t *size, void **context);
void exchange_on_completed(void *cls, struct MHD_Connection *connection, void **context,
			   enum MHD_RequestTerminationCode code);

/* Answers what has waited too long for its worker. Takes NULL. */
void exchange_look(struct exchange *exchange, struct mono now);
