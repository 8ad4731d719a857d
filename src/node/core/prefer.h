/*
 * prefer: which of the available devices a container should get.
 *
 * Owns      DP-28..30, 49: first the must-include devices; then devices of their allocation and
 *           NUMA node; then whichever allocation has most free devices; allocations are crossed
 * only when no single one has enough. Never an error: an impossible request is answered with what
 * there is, since an error would fail the pod. Pure. The answer doesn't depend on the order of the
 * ids asked with. Tests     tests/unit/node/core/prefer_test.c (exhaustive over small sets)
 */
#pragma once

#include "node/core/offer.h"

#define PREFER_MAX_IDS 4096

struct prefer_request {
	const char *const *available;
	size_t available_count;
	const char *const *must;
	size_t must_count;
	size_t size;
};

/* Writes at most request->size ids (borrowed from the request) and returns how many. */
size_t prefer_decide(const struct prefer_request *request, const struct offer *offer,
		     const char **out);
