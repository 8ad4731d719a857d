/*
 * effects: one bind, one release or one reap, with every effect of bcd failing in turn, or every statement of the
 * control plane's.
 *
 * Twice     each: once, and for a minute together with all that fails for the same reason.
 * Shows     that every invariant holds; that what stays undone is told of in bcd's status, and as a
 *           condition at the control plane, with the file, folder or endpoint that fails; that it is over
 *           soon after the trouble is, without a restart, and ends as the undisturbed run does.
 */
#pragma once

#include "base/base.h"

struct effects_options {
	const char *scene; /* "bind", "release" or "reap" */
	uint64_t seed;
	bool in_pod;     /* as in world.h */
	bool statements; /* the control plane's fail, and its log must tell of them */
	uint64_t at;     /* only this effect; 0: all, one after the other */
	uint64_t first;  /* of all, */
	uint64_t every;  /* and of those after it each so many */
	unsigned jobs;   /* of those so many at a time */
	bool lasting;    /* with `at` */
	bool verbose;    /* with `at` */
	bool stop;       /* at the first that broke */
};

/* Prints how many effects of each kind failed, and each run that broke. The exit code: 0 none did, 2 no
 * such scene. */
int effects_run(const struct effects_options *options);
