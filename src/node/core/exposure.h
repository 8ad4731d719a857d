/*
 * exposure: may something else than bcd give pods GPUs of this machine?
 *
 * Owns      HOSTED-26: configuration of the container runtime or of NVIDIA's toolkit that
 *           bcd was told of and can't read may give any GPU away, so it counts as configuration that
 *           does. What files that can be read say isn't judged here.
 * Pure.
 * Tests     tests/unit/node/core/exposure_test.c
 */
#pragma once

#include "node/core/conditions.h"
#include "node/core/config.h"

struct exposure_unread {
	const char *why; /* names the file */
	bool toolkit;    /* NVIDIA's, not the container runtime's */
};
struct exposure_view VEC_BODY(struct exposure_unread);

/* "what · where and why · how to close", one after another, and how many have no room; "" when nothing is open. */
void exposure_decide(const struct exposure_view *view, char out[CONDITIONS_MESSAGE_SIZE]);
