/*
 * join_tokens: the bounds of join tokens that more than one command has (JOIN-36).
 */
#pragma once

#include <stdint.h>

#define JOIN_TOKEN_TTL_MIN_MS (INT64_C(60) * 1000)
#define JOIN_TOKEN_TTL_MAX_MS (INT64_C(24) * 3600 * 1000)
#define JOIN_TOKEN_USES_MAX   10000
