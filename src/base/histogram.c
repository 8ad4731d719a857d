#include "base/histogram.h"

const int64_t HISTOGRAM_BOUNDS_US[HISTOGRAM_BUCKETS - 1] = {
	100,   250,    500,    1000,   2500,    5000,    10000,    25000,
	50000, 100000, 250000, 500000, 1000000, 2500000, 10000000,
};

size_t histogram_bucket(int64_t us)
{
	size_t bucket = 0;

	while (bucket < HISTOGRAM_BUCKETS - 1 && us > HISTOGRAM_BOUNDS_US[bucket])
		bucket++;
	return bucket;
}

void histogram_add(struct histogram *histogram, int64_t us)
{
	histogram->counts[histogram_bucket(us)]++;
	histogram->sum_us += us > 0 ? (uint64_t)us : 0;
}

uint64_t histogram_count(const struct histogram *histogram)
{
	uint64_t count = 0;

	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		count += histogram->counts[i];
	return count;
}
