/*
 * admission: does what is booked of the host fit this machine?
 *
 * Owns      HOST-3, HOST-4, HOST-12: the sum of what holds and pending releases have, against what
 *           the machine has for bookings, without overcommitment; and what is short, by how much.
 * Only      what is asked for can be short: a hold without huge pages is bound on a machine whose huge pages
 *           are overbooked. What is bound stays bound, whatever the machine has lost: it is told (HostResourcesShort)
 *           and nothing more is admitted.
 * Pure.
 * Tests     tests/unit/node/core/admission_test.c
 */
#pragma once

#include "base/buf.h"
#include "base/hugepages.h"
#include "gpu/core/field.h"

/* A part of a host, or all of it; `{0}` is nothing. No member is negative. */
struct admission_share {
	int64_t vcpus, memory_bytes; /* memory without the huge pages */
	struct hugepages hugepages;
};

/* In records: members "vcpus", "memoryBytes", and "hugePages": bytes by size, where there are any. */
#define ADMISSION_KEYS "vcpus", "memoryBytes", "hugePages"
void admission_set(json_t *object, const struct admission_share *share);
/* `required`: processors and memory must be there. What is absent is nothing. */
MUST_CHECK bool admission_parse(const json_t *object, const char *where, bool required,
				struct admission_share *ret_share, struct error *error);

/* What bookings may have: a machine's processors and memory, less what is kept for the system. Huge
 * pages are no memory for anything else. At least one processor and one byte: 0 is "unknown". */
struct admission_share admission_bookable(const struct admission_share *machine,
					  const struct admission_share *reserved);

/* Sums stop at the largest number. */
void admission_add(struct admission_share *sum, const struct admission_share *share);

/* Does `wanted` fit beside what is taken? Else `why` gets "memory short by 2 MiB: 4 MiB asked for, 6
 * of 8 MiB are booked", for each that is short. A host without processors isn't known and holds anything. */
bool admission_fits(const struct admission_share *host, const struct admission_share *taken,
		    const struct admission_share *wanted, struct buf *why);

/* Is more taken than there is? `why` gets what, and by how much. */
bool admission_overbooked(const struct admission_share *host, const struct admission_share *taken,
			  struct buf *why);
