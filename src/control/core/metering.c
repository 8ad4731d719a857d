#include "control/core/metering.h"

#include "control/core/timestamp.h"

#include <stdio.h>

#define SECOND_MS 1000

struct metering_span metering_span(int64_t bound_ms, int64_t end_ms, int64_t now_ms)
{
	int64_t stopped_ms = now_ms < end_ms ? now_ms : end_ms;
	int64_t started_ms = bound_ms != 0 && bound_ms < stopped_ms ? bound_ms : stopped_ms;

	return (struct metering_span){started_ms, stopped_ms};
}

/* Counted until `ms`. */
static int64_t counted(struct metering_span span, int64_t ms)
{
	int64_t until_ms = ms < span.stopped_ms ? ms : span.stopped_ms;

	return until_ms > span.started_ms ? (until_ms - span.started_ms) / SECOND_MS : 0;
}

int64_t metering_seconds(struct metering_span span)
{
	assert(span.started_ms <= span.stopped_ms);
	return counted(span, span.stopped_ms);
}

int64_t metering_seconds_within(struct metering_span span, int64_t from_ms, int64_t to_ms)
{
	assert(from_ms <= to_ms);
	return counted(span, to_ms) - counted(span, from_ms);
}

/* --- months --- */

static struct wall first_of(int year, int month)
{
	char text[TIMESTAMP_SIZE];
	struct wall time = {0};
	struct error error;
	bool parsed;

	snprintf(text, sizeof text, "%04d-%02d-01T00:00:00Z", year % 10000, month);
	parsed = timestamp_parse(text, "month", &time, &error);
	assert(parsed);
	return time;
}

static void year_and_month(struct wall time, int *year, int *month)
{
	char text[TIMESTAMP_SIZE];

	timestamp_format(text, time);
	*year = (int)strtol(text, NULL, 10);
	*month = (int)strtol(text + strlen("2026-"), NULL, 10);
}

struct wall metering_month(struct wall time)
{
	int year, month;

	year_and_month(time, &year, &month);
	return first_of(year, month);
}

struct wall metering_next_month(struct wall time)
{
	int year, month;

	year_and_month(time, &year, &month);
	return month == 12 ? first_of(year + 1, 1) : first_of(year, month + 1);
}
