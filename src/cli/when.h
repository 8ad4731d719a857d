/*
 * when: times for people: RFC 3339 both ways, and "in 7 h 59 min". Pure: now is an argument.
 */
#pragma once

#include "base/error.h"

#define WHEN_SIZE 96

/* "2026-11-30T00:12:00.000Z", or with an offset such as +01:00. */
bool when_parse(const char *text, struct wall *ret_time);

/* RFC 3339 UTC with milliseconds, as the API wants it. */
void when_format(char out[WHEN_SIZE], struct wall time);

/* "2026-11-30 00:12 UTC" */
void when_format_exact(char out[WHEN_SIZE], struct wall time);

/* "2026-11-30 00:12:07 UTC": of what is looked up in logs */
void when_format_second(char out[WHEN_SIZE], struct wall time);

/* "in 7 h 59 min", "6 min ago", "now" */
void when_format_relative(char out[WHEN_SIZE], struct wall time, struct wall now);

/* A start time as typed: RFC 3339, or a duration from now such as "8h". */
MUST_CHECK bool when_parse_start(const char *text, const char *field, struct wall now,
				 struct wall *ret_time, struct error *error);

/* A time in the past as typed: RFC 3339, or how long ago, such as "7d". */
MUST_CHECK bool when_parse_past(const char *text, const char *field, struct wall now,
				struct wall *ret_time, struct error *error);
