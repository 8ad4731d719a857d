/*
 * wait: looks at one thing until it has got somewhere, and shows each state on the way:
 *
 *     rsv_01kb7…  pending → placed on node_01kb… → active  (0.4 s)
 *
 * Of what is mostly over at once, and else takes long for a reason, that reason is a remark of its own, after
 * two seconds and whenever it is another; the line has the last state alone:
 *
 *     rsv_01kb7…  released  (0.4 s)
 *
 * Ends      when `judge` says so, by --timeout, or by Ctrl-C: the work goes on then, and that is
 *           said. A control plane that restarts is waited for.
 * Output    the line goes to stdout, or to stderr where stdout is for JSON.
 * Several   one after the other have one beginning, one --timeout and one Ctrl-C: wait_together.
 */
#pragma once

#include "base/arena.h"
#include "cli/cli.h"
#include "sys/clock.h"

enum wait_verdict {
	WAIT_ON,
	WAIT_REACHED,
	WAIT_NEVER, /* it will not get there any more */
};

/* What waits that follow each other have in common. The caller's, {.start = clock_mono()}. */
struct wait_together {
	struct mono start; /* --timeout and the times that are shown count from here */
	bool told;         /* that Ctrl-C ends the waiting alone */
	bool interrupted;  /* set by wait_run(): then there shall be no further wait */
};

struct wait_for {
	const char *path;    /* of the thing, for GET */
	const char *id;      /* what its line begins with */
	const char *goes_on; /* what does when nobody waits: "the release" */
	const char *see;     /* the command that shows it: "reservations show" */
	const void *arg;     /* the functions' */
	/* The state as one step of the line; in the arena, which lives for one look. */
	const char *(*step)(const struct wait_for *wait, struct arena *arena, const json_t *item);
	/* Why it isn't there yet; in the arena. NULL: its steps say enough. */
	const char *(*remark)(struct arena *arena, const json_t *item);
	enum wait_verdict (*judge)(const struct wait_for *wait, const json_t *item);
	/* Why it never will; in the arena, NULL for nothing to say. */
	const char *(*why_never)(struct arena *arena, const json_t *item);
	int never_status;               /* the exit status then; 0: as for what has no place */
	struct wait_together *together; /* NULL: it is the only one */
};

/* The flags of waiting; `goal` says until when. */
#define WAIT_MAX_MS (INT64_C(366) * 86400 * 1000)
#define WAIT_OPTIONS(goal)                                                                         \
	{"wait", 'w', OPTION_FLAG, NULL, goal, 0, 0, NULL},                                        \
	{                                                                                          \
		"timeout", 0, OPTION_PATIENCE, "D",                                                \
			"wait no longer than this (default: no limit)", 1000, WAIT_MAX_MS, NULL    \
	}

/* A check of the row: --timeout means nothing without --wait. */
MUST_CHECK bool wait_check(struct cli *cli, struct error *error);

/* *ret_item is its last state, a new reference, NULL when it was never read; *ret_reached tells
 * whether it got there. Why not has been said then, and cli->exit_status is set. */
MUST_CHECK bool wait_run(struct cli *cli, const struct wait_for *wait_for, json_t **ret_item,
			 bool *ret_reached, struct error *error);
