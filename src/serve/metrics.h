/*
 * metrics: what Prometheus reads from GET /metrics, as text.
 *
 * Owns      the counters of this process since its start, and the text of everything.
 * Names     better_compute_*; units are seconds; counters end in _total. `promtool check metrics`
 *           has nothing to say about them (tests/peer/ops).
 * Bounds    labels are our own words: a route is its pattern in routes.c, a state one of control's.
 *           Neither pools nor nodes nor tenants are labels.
 * Threads   metrics_count_request() and metrics_add_process() are the loop's;
 *           metrics_add_fleet() touches nothing but its arguments.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "store/store.h"

struct control_metrics;
struct metrics;

#define METRICS_MAX_ROUTES 256 /* methods and patterns; more are counted as "other" */
#define METRICS_MAX_CODES  32  /* status codes of one; more are not told apart from the last */

struct metrics *metrics_create(void);
void metrics_destroy(struct metrics *metrics); /* takes NULL */

/* `method` and `route` are constant texts, kept as pointers; NULL for what is in no table. */
void metrics_count_request(struct metrics *metrics, const char *method, const char *route,
			   int status, int64_t took_us);

/* What the process is now; gathered by serve.c. */
struct metrics_process {
	const char *state; /* "starting", "ready" or "draining" */
	size_t streams;
	size_t jobs, jobs_max;
	int64_t outbox_end;       /* this replica has looked at it so far */
	int64_t passes, failures; /* of the leader's pass, here */
	struct wall serving_ca_end, node_ca_end, gateway_end; /* 0: unknown */
	const struct store *store;                            /* NULL while starting */
};
void metrics_add_process(const struct metrics *metrics, const struct metrics_process *process,
			 struct buf *text);

/* What the database says; NULL when it doesn't answer. */
void metrics_add_fleet(const struct control_metrics *fleet, struct buf *text);
