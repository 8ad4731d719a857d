/*
 * confine: bcd gives up what it doesn't need, by node/core/confine.h, and says what became of it.
 *
 * Never fails: what a kernel can't do, or this process may not, is told and goes on without.
 * Threads   called once, before there is a second one.
 */
#pragma once

#include "node/core/confine.h"

#include <jansson.h>

enum confine_part {
	CONFINE_PRIVILEGES,
	CONFINE_CAPABILITIES,
	CONFINE_FILES,
	CONFINE_CALLS,
	CONFINE_DUMPS,
	CONFINE_PARTS,
};

struct confinement {
	struct {
		bool done;
		char why[ERROR_WHAT_SIZE]; /* not */
	} parts[CONFINE_PARTS];
	uint64_t capabilities; /* that are left; counts when they are confined */
};

/* Confines this process and logs one line: what is confined, and what isn't and why. */
void confine_process(const struct config *config, enum confine_verb verb,
		     struct confinement *ret_confinement);

/* Of docs/formats/status.md: {"done": […], "capabilities": […], "missing": […]}; a new reference. */
json_t *confinement_describe(const struct confinement *confinement);
