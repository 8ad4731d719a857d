/*
 * histogram: how long things took, in buckets that grow by about 2.5.
 *
 * Owns      the bounds, one set for the whole product, so that figures can be laid side by side.
 * Pure.
 */
#pragma once

#include "base/base.h"

#define HISTOGRAM_BUCKETS 16 /* the last has no upper bound */

/* Plain data; `{0}` is empty. */
struct histogram {
	uint64_t counts[HISTOGRAM_BUCKETS]; /* of each bucket alone */
	uint64_t sum_us;
};

/* Upper bounds, microseconds; the last bucket's is absent. */
extern const int64_t HISTOGRAM_BOUNDS_US[HISTOGRAM_BUCKETS - 1];

/* Which bucket a time falls into; a bound belongs to the bucket below it. */
size_t histogram_bucket(int64_t us);
void histogram_add(struct histogram *histogram, int64_t us);
uint64_t histogram_count(const struct histogram *histogram);
