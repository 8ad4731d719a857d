/*
 * ratelimit: how many calls somebody may make: token buckets, in a table of a fixed size (ADM-5).
 *
 * A bucket holds `burst` calls and fills by `per_second`. Who isn't in the table has a full one; a
 * table that is full forgets who has been quiet the longest, which can only be to their favour.
 * Pure     time is an argument.
 */
#pragma once

#include "base/base.h"

struct ratelimit;

#define RATELIMIT_ENTRIES 4096

struct ratelimit_rate {
	int64_t per_second; /* 0: any number of calls */
	int64_t burst;
};

struct ratelimit *ratelimit_create(void);
void ratelimit_destroy(struct ratelimit *limits); /* takes NULL */

/* Takes one call of `who` (a hash of what names them). False: *ret_wait_ms says when the next one
 * is free, and nothing was taken. */
bool ratelimit_take(struct ratelimit *limits, uint64_t who, struct ratelimit_rate rate,
		    struct mono now, int64_t *ret_wait_ms);
/* The same question, and nothing is taken. */
bool ratelimit_may(struct ratelimit *limits, uint64_t who, struct ratelimit_rate rate,
		   struct mono now, int64_t *ret_wait_ms);
/* Is `who` in the table? */
bool ratelimit_knows(const struct ratelimit *limits, uint64_t who);
