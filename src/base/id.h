/*
 * id: names of things: `<prefix>_` and a 26-character lower-case ULID.
 *
 * A ULID is 48 bits of wall-clock milliseconds and 80 random bits in Crockford's base 32, so ids
 * sort by creation time. Time and randomness are arguments: pure. (POOL-26)
 */
#pragma once

#include "base/base.h"

#define ID_ULID_LENGTH 26
#define ID_RANDOM_SIZE 10
#define ID_SIZE        40 /* prefix of at most 8, '_', ULID, NUL, and room */

/* Writes "<prefix>_<ulid>" into out. */
void id_format(char out[ID_SIZE], const char *prefix, struct wall now,
	       const uint8_t random[ID_RANDOM_SIZE]);

/* Is `text` exactly an id with this prefix? */
bool id_valid(const char *text, const char *prefix);
