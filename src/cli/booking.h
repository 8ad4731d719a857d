/*
 * booking: what `reserve` and `capacity --preview` share: the request made from flags, and waiting
 * for a reservation to get somewhere.
 */
#pragma once

#include "cli/api.h"
#include "cli/cli.h"

#define BOOKING_MAX_DEVICES 1024                          /* RES-49 */
#define BOOKING_MIN_MS      (INT64_C(60) * 1000)          /* RES-49: one minute */
#define BOOKING_MAX_MS      (INT64_C(366) * 86400 * 1000) /* RES-49: 366 days */

#define BOOKING_MAX_NODES 1024

extern const char *const BOOKING_SAME[]; /* topologies of a gang (GANG-8) */

/* Rows of the flags; put them into the command's table. */
#define BOOKING_OPTIONS                                                                              \
	{"gpus", 0, OPTION_NUMBER, "N", "whole GPUs", 1, BOOKING_MAX_DEVICES, NULL},                 \
		{"mig", 0, OPTION_LIST, "PROFILE=N", "MIG instances, such as 1g.10gb=2",             \
		 0,     0, NULL},                                                                    \
		{"slots", 0, OPTION_NUMBER, "N", "shares of a GPU", 1, BOOKING_MAX_DEVICES, NULL},   \
		{"for",                                                                              \
		 0,                                                                                  \
		 OPTION_DURATION,                                                                    \
		 "D",                                                                                \
		 "how long, such as 8h or 1h30m",                                                    \
		 BOOKING_MIN_MS,                                                                     \
		 BOOKING_MAX_MS,                                                                     \
		 NULL},                                                                              \
		{"start", 0, OPTION_TEXT, "TIME", "start then: RFC 3339, or 8h from now",            \
		 0,       0, NULL},                                                                  \
		{"nodes",                                                                            \
		 0,                                                                                  \
		 OPTION_NUMBER,                                                                      \
		 "N",                                                                                \
		 "a gang: the same on each of N nodes, all or none",                                 \
		 1,                                                                                  \
		 BOOKING_MAX_NODES,                                                                  \
		 NULL},                                                                              \
		{"same",                                                                             \
		 0,                                                                                  \
		 OPTION_TEXT,                                                                        \
		 "WHAT",                                                                             \
		 "the gang's nodes share a rack, block or nvlinkDomain",                             \
		 0,                                                                                  \
		 0,                                                                                  \
		 BOOKING_SAME},                                                                      \
		{"spot", 0, OPTION_FLAG, NULL, "may be taken away; spot nodes will do", 0, 0, NULL}, \
		{"kubernetes", 0, OPTION_FLAG, NULL, "give them to the node's kubelet", 0, 0, NULL}, \
		{"cpus", 0,       OPTION_NUMBER, "C", "host CPUs (default: the devices' share)",     \
		 1,      1 << 20, NULL},                                                             \
		{"memory", 0,       OPTION_NUMBER, "GIB", "host memory in GiB (default: the share)", \
		 1,        1 << 24, NULL},                                                           \
		{"hugepages-2mi", 0,   OPTION_NUMBER, "GIB", "huge pages of 2Mi, in GiB", 1,         \
		 1 << 20,         NULL},                                                             \
		{"hugepages-1gi", 0,   OPTION_NUMBER, "GIB", "huge pages of 1Gi, in GiB", 1,         \
		 1 << 20,         NULL},                                                             \
		{"tenant", 0, OPTION_TEXT, "TENANT", "book for this tenant", 0, 0, NULL},            \
	{                                                                                            \
		"pool", 0, OPTION_TEXT, "POOL", "book in this pool", 0, 0, NULL                      \
	}

/* What can be said of the flags without a control plane: a check of the command's row. */
MUST_CHECK bool booking_check(struct cli *cli, struct error *error);

/* The body of POST /v1/reservations and /v1/capacity/preview, a new reference. */
MUST_CHECK bool booking_body(struct cli *cli, json_t **ret_body, struct error *error);

/* "in 2 h (2026-11-30 00:12 UTC)": when a request that doesn't fit now first would, as things stand;
 * NULL when nobody can tell. In the arena. */
const char *booking_first_fit(struct cli *cli, const json_t *body);
/* The same of one that waits: NULL of a gang, which the nodes are kept for already. */
const char *booking_first_fit_of(struct cli *cli, const json_t *reservation);
/* Asks the preview and prints its answer; exit status 3 when it doesn't fit now. */
MUST_CHECK bool booking_preview(struct cli *cli, const json_t *body, struct error *error);

struct wait_together;
enum booking_goal {
	BOOKING_ACTIVE,   /* active, or a state that never will be */
	BOOKING_RELEASED, /* nothing of it is held any more */
};

/* Polls until the goal, a state that excludes it, --timeout, or Ctrl-C; prints each state as it
 * changes. *ret_reservation is its last state, a new reference; *ret_reached tells whether it got
 * there. Why not has been said then, and cli->exit_status is set. `together` (wait.h) is NULL for
 * one alone. */
MUST_CHECK bool booking_wait(struct cli *cli, const char *id, enum booking_goal goal,
			     struct wait_together *together, json_t **ret_reservation,
			     bool *ret_reached, struct error *error);

/* Has it got there? Pure. */
bool booking_reached(const json_t *reservation, enum booking_goal goal);
