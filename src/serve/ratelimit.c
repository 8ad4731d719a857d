#include "serve/ratelimit.h"

#include "base/error.h"

#define WAYS  8 /* places that one hash may have */
#define SETS  (RATELIMIT_ENTRIES / WAYS)
#define MILLI 1000 /* parts of a call: what fills in a millisecond at one a second */

struct bucket {
	uint64_t who;
	bool used;
	struct mono at; /* when it was filled last */
	int64_t left;   /* in thousandths of a call */
};

struct ratelimit {
	struct bucket sets[SETS][WAYS];
};

struct ratelimit *ratelimit_create(void)
{
	return mem_alloc(sizeof(struct ratelimit));
}

void ratelimit_destroy(struct ratelimit *limits)
{
	free(limits);
}

static const struct bucket *find(const struct ratelimit *limits, uint64_t who)
{
	const struct bucket *set = limits->sets[who % SETS];

	for (size_t i = 0; i < WAYS; i++) {
		if (set[i].used && set[i].who == who)
			return &set[i];
	}
	return NULL;
}

bool ratelimit_knows(const struct ratelimit *limits, uint64_t who)
{
	return find(limits, who) != NULL;
}

/* Its bucket; a new one is full. */
static struct bucket *place(struct ratelimit *limits, uint64_t who, struct ratelimit_rate rate,
			    struct mono now)
{
	struct bucket *set = limits->sets[who % SETS], *quiet = &set[0];

	for (size_t i = 0; i < WAYS; i++) {
		if (set[i].used && set[i].who == who)
			return &set[i];
		if (quiet->used && (!set[i].used || mono_until(set[i].at, quiet->at) > 0))
			quiet = &set[i];
	}
	*quiet = (struct bucket){.who = who, .used = true, .at = now, .left = rate.burst * MILLI};
	return quiet;
}

/* What has filled since is in it. */
static void fill(struct bucket *bucket, struct ratelimit_rate rate, struct mono now)
{
	int64_t passed_ms = mono_until(bucket->at, now);
	int64_t room = rate.burst * MILLI - bucket->left;

	/* Compared before it is multiplied: long quiet doesn't overflow. */
	if (passed_ms > room / rate.per_second)
		bucket->left += room;
	else
		bucket->left += passed_ms * rate.per_second;
	bucket->at = now;
}

static bool look(struct bucket *bucket, struct ratelimit_rate rate, struct mono now,
		 int64_t *ret_wait_ms)
{
	if (rate.per_second == 0)
		return true;
	fill(bucket, rate, now);
	if (bucket->left >= MILLI)
		return true;
	*ret_wait_ms = (MILLI - bucket->left + rate.per_second - 1) / rate.per_second;
	return false;
}

bool ratelimit_take(struct ratelimit *limits, uint64_t who, struct ratelimit_rate rate,
		    struct mono now, int64_t *ret_wait_ms)
{
	struct bucket *bucket = place(limits, who, rate, now);

	if (!look(bucket, rate, now, ret_wait_ms))
		return false;
	bucket->left -= rate.per_second ? MILLI : 0;
	return true;
}

bool ratelimit_may(struct ratelimit *limits, uint64_t who, struct ratelimit_rate rate,
		   struct mono now, int64_t *ret_wait_ms)
{
	struct bucket *bucket = (struct bucket *)find(limits, who);

	return !bucket || look(bucket, rate, now, ret_wait_ms);
}
