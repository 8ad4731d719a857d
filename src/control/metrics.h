/*
 * metrics: what the database says about the fleet, counted for who watches it.
 *
 * Bounded: states and reasons are our own words, so a thousand pools make not one more line.
 */
#pragma once

#include "control/control.h"

#define CONTROL_MAX_COUNTS 32 /* lines of one table; more are left out */

/* One line: how many things are in this state. */
struct control_count {
	char state[32];
	bool connected; /* nodes only */
	int64_t count;
};

struct control_counts {
	struct control_count items[CONTROL_MAX_COUNTS];
	size_t count;
};

struct control_metrics {
	struct control_counts nodes, reservations, allocations;
	int64_t pools;                          /* active */
	int64_t gpus, gpus_healthy, gpus_taken; /* of nodes that are not gone */
	int64_t releases_overdue; /* asked for CONTROL_OVERDUE_MS ago, and not released yet */
	int64_t outbox_last;      /* the newest number in it */
	bool leads;               /* this replica holds the pass's lease */
	int64_t lease_left_ms;    /* whoever holds it; 0: nobody does */
	int64_t lease_fence;
};

#define CONTROL_OVERDUE_MS ((int64_t)5 * 60 * 1000)

/* One snapshot of all of it. */
MUST_CHECK bool control_metrics(struct control *control, struct control_metrics *ret_metrics,
				struct error *error);
