/*
 * hugepages: huge pages as the gateway's messages have them, one entry a size that isn't none.
 *
 * Unpacking  a size that can't be booked, and what isn't more than nothing, is none.
 * Lifetimes  what is packed is the arena's.
 * Pure.
 * Tests      tests/unit/proto/hugepages_test.c
 */
#pragma once

#include "base/arena.h"
#include "base/hugepages.h"
#include "proto/gateway.pb-c.h"

void hugepages_pack(const struct hugepages *pages, struct arena *arena,
		    Bettercompute__V1__HugePages ***ret_items, size_t *ret_count);
struct hugepages hugepages_unpack(Bettercompute__V1__HugePages *const *items, size_t count);
