/*
 * utc: a moment as text (RFC 3339). Pure.
 *
 * Tests     tests/unit/base/utc_test.c
 */
#pragma once

#include "base/base.h"

#define UTC_SIZE      32
#define UTC_DATE_SIZE 11 /* "2026-11-30T": where the time of the day begins */
/* "2026-11-30T02:00:00Z", for people and for Kubernetes: parts of a second are dropped. */
void utc_format(char out[UTC_SIZE], struct wall time);
/* "2026-11-30T02:00:00.000Z", for logs and the API */
void utc_format_ms(char out[UTC_SIZE], struct wall time);
