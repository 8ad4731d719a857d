/*
 * duration: "90s", "1h30m", "7d" to milliseconds and back (RES-49). Pure.
 *
 * Units s, m, h, d, each at most once and in falling order, whole numbers only.
 */
#pragma once

#include "base/error.h"

#define DURATION_TEXT_SIZE 48

/* Between min_ms and max_ms, both included; else INVALID_INPUT that names `field`. */
MUST_CHECK bool duration_parse(const char *text, const char *field, int64_t min_ms, int64_t max_ms,
			       int64_t *ret_ms, struct error *error);

/* The exact form, such as "1h30m"; parts of a second are dropped. "0s" for less than one. */
void duration_format(char out[DURATION_TEXT_SIZE], int64_t ms);

/* For people: the two largest units, such as "7 h 59 min", "3 d 4 h", "12 s", "40 ms". */
void duration_format_short(char out[DURATION_TEXT_SIZE], int64_t ms);
