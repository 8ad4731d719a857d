#include "control/core/quotas.h"

#include "control/core/metering.h"

#include <inttypes.h>
#include <stdio.h>

#define HOUR_S 3600

static int64_t held_at(const struct quota_claim *claims, size_t count, int64_t ms)
{
	int64_t devices = 0;

	for (size_t i = 0; i < count; i++) {
		if (claims[i].from_ms <= ms && ms < claims[i].to_ms)
			devices += claims[i].devices;
	}
	return devices;
}

/* It only grows where a claim begins, so those moments and the window's first are all to look at. */
int64_t quota_peak(const struct quota_claim *claims, size_t count, int64_t from_ms, int64_t to_ms)
{
	int64_t most = held_at(claims, count, from_ms);

	for (size_t i = 0; i < count; i++) {
		int64_t held;

		if (claims[i].from_ms <= from_ms || claims[i].from_ms >= to_ms)
			continue;
		held = held_at(claims, count, claims[i].from_ms);
		most = held > most ? held : most;
	}
	return most;
}

int64_t quota_seconds(const struct quota_claim *claims, size_t count, int64_t from_ms,
		      int64_t to_ms)
{
	int64_t seconds = 0;

	for (size_t i = 0; i < count; i++) {
		struct metering_span span = {claims[i].billed_ms, claims[i].billed_to_ms};

		seconds += claims[i].devices * metering_seconds_within(span, from_ms, to_ms);
	}
	return seconds;
}

int64_t quota_devices(const struct placement_need *needs, size_t count, const char *class)
{
	int64_t devices = 0;

	for (size_t i = 0; i < count; i++) {
		if (class[0] == '\0' || str_equal(placement_class_name(needs[i].class), class))
			devices += needs[i].count;
	}
	return devices;
}

void quota_format_hours(char out[QUOTA_HOURS_SIZE], int64_t gpu_seconds)
{
	int64_t tenths = (gpu_seconds * 10 + HOUR_S - 1) / HOUR_S;

	snprintf(out, QUOTA_HOURS_SIZE, "%" PRId64 ".%d", tenths / 10, (int)(tenths % 10));
}
