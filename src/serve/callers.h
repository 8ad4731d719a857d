/*
 * callers: how often somebody may call (ADM-5).
 *
 * A key that opened lately has a bucket of its own. All other callers are let in while their
 * address hasn't shown too many keys that don't open: guessing is slow, and whoever comes with a
 * good key in the first moment isn't counted among the guesses.
 * Pure      time is an argument.
 * Tests     tests/unit/serve/callers_test.c
 */
#pragma once

#include "serve/address.h"
#include "serve/ratelimit.h"

struct callers;

/* One call's. Hashes; 0: no key is shown; the address of a known key isn't looked at. */
struct caller {
	uint64_t key, address;
};

struct callers *callers_create(struct ratelimit_rate key_rate, struct ratelimit_rate address_rate);
void callers_destroy(struct callers *callers); /* takes NULL */

/* False: too often, and *ret_wait_ms says when the next call is free. `shown` is the key as it was
 * shown, or NULL. */
bool callers_may(struct callers *callers, const char *shown, const struct address *from,
		 struct mono now, struct caller *ret_caller, int64_t *ret_wait_ms);

enum callers_key {
	CALLERS_UNASKED, /* the answer didn't depend on it */
	CALLERS_OPENED,
	CALLERS_REFUSED, /* or it cost as much as a guess */
};
/* What came of the key: counts a guess, or gives the key its bucket. */
void callers_note(struct callers *callers, const struct caller *caller, enum callers_key key,
		  struct mono now);
