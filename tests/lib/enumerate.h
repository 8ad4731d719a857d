/*
 * enumerate: a test body that runs once for every combination of its choices.
 *
 *     struct enumerate all = {0};
 *     while (enumerate_next(&all)) {
 *             unsigned pods = enumerate_pick(&all, 5);         0 to 4
 *             for (unsigned i = 0; i < pods; i++)
 *                     holds[i] = enumerate_pick(&all, 4);      0 to 3 each
 *             ...
 *     }
 *
 * Like an odometer: what was picked in the last round is picked again, but for the last choice that
 * can still grow. Later choices may depend on earlier ones. `all.rounds` counts.
 */
#pragma once

#include "lib/test.h"

#define ENUMERATE_MAX_CHOICES 64

struct enumerate {
	unsigned picked[ENUMERATE_MAX_CHOICES], bound[ENUMERATE_MAX_CHOICES];
	unsigned count, at;
	unsigned long rounds;
};

static inline bool enumerate_next(struct enumerate *all)
{
	while (all->count > 0 && all->picked[all->count - 1] + 1 == all->bound[all->count - 1])
		all->count--;
	if (all->count == 0 && all->rounds > 0)
		return false;
	if (all->count > 0)
		all->picked[all->count - 1]++;
	all->at = 0;
	all->rounds++;
	return true;
}

/* 0 to bound - 1. */
static inline unsigned enumerate_pick(struct enumerate *all, unsigned bound)
{
	assert_true(bound > 0 && all->at < ENUMERATE_MAX_CHOICES);
	if (all->at == all->count) {
		all->picked[all->at] = 0;
		all->bound[all->at] = bound;
		all->count++;
	}
	assert_int_equal(all->bound[all->at], bound); /* the body is a function of its choices */
	return all->picked[all->at++];
}
