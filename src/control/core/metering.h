/*
 * metering: what an allocation costs in time, and calendar months. Pure.
 *
 * Owns      the rule of the meter (RES-20, RES-53): from the moment when the node said that the
 *           devices are bound, until the earlier of their release and the allocation's own end, in
 *           whole seconds. What was never bound costs nothing; a carry changes nothing.
 * Windows   a span's seconds in [from, to) are those counted at `to` less those counted at `from`,
 *           so windows that touch each other add up to exactly the whole.
 */
#pragma once

#include "base/base.h"

struct metering_span {
	int64_t started_ms, stopped_ms; /* started <= stopped */
};

/* `bound_ms` is 0 when it never was; `now_ms` is the moment of the release, or of looking. */
struct metering_span metering_span(int64_t bound_ms, int64_t end_ms, int64_t now_ms);

/* Whole seconds of all of it, and of its part in [from_ms, to_ms). */
int64_t metering_seconds(struct metering_span span);
int64_t metering_seconds_within(struct metering_span span, int64_t from_ms, int64_t to_ms);

/* The first moment of the calendar month (UTC) that holds this one, and of the next month. */
struct wall metering_month(struct wall time);
struct wall metering_next_month(struct wall time);
