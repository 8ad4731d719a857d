/*
 * seed: random test inputs that can be had again.
 *
 * seed_init() takes BC_TEST_SEED, else a fresh one, and prints it, so that a failing run's output
 * says how to repeat it: BC_TEST_SEED=123 ./the-test
 */
#pragma once

#include "lib/test.h"

#include <stdio.h>
#include <time.h>

/* xoshiro256**, filled by splitmix64. */
struct seed {
	uint64_t state[4];
};

static inline void seed_set(struct seed *seed, uint64_t value)
{
	for (int i = 0; i < 4; i++) {
		uint64_t mixed = (value += 0x9e3779b97f4a7c15);

		mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
		mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
		seed->state[i] = mixed ^ mixed >> 31;
	}
}

static inline uint64_t seed_init(struct seed *seed)
{
	const char *given = getenv("BC_TEST_SEED");
	struct timespec now;
	uint64_t value;

	clock_gettime(CLOCK_REALTIME, &now);
	value = given ? strtoull(given, NULL, 10)
		      : ((uint64_t)now.tv_sec * 1000000007 + (uint64_t)now.tv_nsec) % 1000000000;
	printf("BC_TEST_SEED=%llu\n", (unsigned long long)value);
	seed_set(seed, value);
	return value;
}

static inline uint64_t seed_next(struct seed *seed)
{
	uint64_t *s = seed->state, shifted = s[1] << 17, five = s[1] * 5;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= shifted;
	s[3] = s[3] << 45 | s[3] >> 19;
	return (five << 7 | five >> 57) * 9;
}

/* 0 to bound - 1; a bias that no test can see. */
static inline uint64_t seed_below(struct seed *seed, uint64_t bound)
{
	return seed_next(seed) % bound;
}

/* True in `percent` of a hundred cases. */
static inline bool seed_chance(struct seed *seed, unsigned percent)
{
	return seed_below(seed, 100) < percent;
}
