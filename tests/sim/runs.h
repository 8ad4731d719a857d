/*
 * runs: many runs, each in a process of its own, side by side.
 *
 * Begins    every one as a copy of this process, with the world that it has prepared: what is the same
 *           for all seeds is done once. A run that crashes is a broken run and ends nothing else.
 * Order     results are told in the order in which the runs were asked for.
 * Inline    without jobs everything happens in this process, one run after another: for debuggers, and
 *           for tools that look for leaks.
 */
#pragma once

#include "sim/world.h"

#define RUNS_MAX_JOBS 256

struct runs {
	unsigned jobs; /* at a time; 0: inline */
	bool cold;     /* each begins with the programs' first start (world_prepare) */
	bool (*next)(void *arg, struct world_options *ret_options); /* false: no more */
	bool (*done)(void *arg, const struct world_options *options,
		     const struct world_result *result); /* false: enough, no more is begun */
	void *arg;
};

void runs_go(const struct runs *runs);
