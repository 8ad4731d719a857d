/*
 * hash: FNV-1a of 64 bits, for tables and for telling apart what is ours: whoever may choose what is
 * hashed can find two with the same. Public domain (Fowler, Noll, Vo).
 */
#pragma once

#include "base/base.h"

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* Of what `hash` is of, and of this behind it. */
static inline uint64_t hash_add(uint64_t hash, const void *data, size_t length)
{
	for (const unsigned char *at = data; length > 0; at++, length--)
		hash = (hash ^ *at) * UINT64_C(0x100000001b3);
	return hash;
}

static inline uint64_t hash_text(const char *text)
{
	return hash_add(HASH_START, text, strlen(text));
}
