/*
 * quotas: how much of a limit is claimed, and what to say when it isn't enough (ADM-3). Pure.
 *
 * Owns      the two sums: the most devices at one time, and GPU-seconds in a window. A claim is an
 *           allocation that isn't over, or a reservation that waits for room.
 */
#pragma once

#include "base/base.h"
#include "control/core/placement.h"

/* What somebody else has of the same limit, or wants. */
struct quota_claim {
	int64_t devices;
	int64_t from_ms, to_ms;          /* held or wanted; INT64_MAX: nobody knows until when */
	int64_t billed_ms, billed_to_ms; /* metered, or planned to be */
};

/* The most devices of `claims` at any one moment of [from_ms, to_ms). */
int64_t quota_peak(const struct quota_claim *claims, size_t count, int64_t from_ms, int64_t to_ms);

/* Their GPU-seconds in [from_ms, to_ms). */
int64_t quota_seconds(const struct quota_claim *claims, size_t count, int64_t from_ms,
		      int64_t to_ms);

/* Devices of this class ("" for any) among the needs. */
int64_t quota_devices(const struct placement_need *needs, size_t count, const char *class);

/* GPU-hours with one decimal, rounded up: what is over by a second doesn't look even. */
#define QUOTA_HOURS_SIZE 32
void quota_format_hours(char out[QUOTA_HOURS_SIZE], int64_t gpu_seconds);
