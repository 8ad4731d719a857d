/*
 * cut: which part of its GPU each MIG instance takes.
 *
 * The driver tells where a GPU instance lies, unless it is too old or gives us no leave to ask. What
 * isn't told is placed as the driver would, once, and stays there for as long as the instance exists:
 * bookings are by that part.
 * Compute instances that share a GPU instance share its part. What doesn't fit takes the whole GPU:
 * too much is refused, never given twice.
 * Pure.
 * Tests     tests/unit/gpu/core/cut_test.c
 */
#pragma once

#include "gpu/core/reading.h"

struct cut {
	struct reading_mig told;
	struct atom_range range;
};
struct cuts VEC_BODY(struct cut);

/* Fills the ranges; `before` is the last answer, for the instances that stay. `memory_bytes` is the
 * GPU's, 0 unknown. */
void cut_place(struct cuts *cuts, const struct cuts *before, int64_t memory_bytes);
