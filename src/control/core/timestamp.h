/*
 * timestamp: RFC 3339 to milliseconds UTC and back. Pure.
 *
 * Parsed: "2026-11-30T02:00:00Z", with up to 9 digits of a fraction (what is beyond milliseconds is
 * dropped) and any offset ("+01:00"). Years 1970 to 9999. A leap second ("…:60") is refused.
 * Source  RFC 3339 section 5.6.
 */
#pragma once

#include "base/error.h"

#define TIMESTAMP_SIZE 25 /* "2026-11-30T02:00:00.000Z" and NUL */

/* INVALID_INPUT naming `field` otherwise. */
MUST_CHECK bool timestamp_parse(const char *text, const char *field, struct wall *ret_time,
				struct error *error);
void timestamp_format(char out[TIMESTAMP_SIZE], struct wall time);
