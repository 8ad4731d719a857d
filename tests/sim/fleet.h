/*
 * fleet: many nodes and the control plane's functions over simulated weeks, held against a model.
 *
 * Happens   by seed: reservations now, later, as spot, as gangs and with a host share; extensions, shorter
 *           ends, other starts; releases; nodes that bind late or fail, whose pods cling for up to 40 hours,
 *           that go silent, are drained, lost, or have sick GPUs; ends without the node's word.
 * Held      each change at once, and each hour all of it: who has which GPU until when, what is shown of a
 *           reservation, the seconds on the meter. In the end everything is given back, and each row of the
 *           meter must be right.
 * Cut       src/control on a real SQLite in memory; no streams, no bcd: nodes only answer (fleet_nodes.h).
 */
#pragma once

#include "base/base.h"

struct fleet_options {
	uint64_t seed;
	int nodes, days;
	bool verbose;
};

struct fleet_result {
	bool ok;
	char why[512];
	uint64_t trace, reservations, allocations, carries, unilateral, passes, gpu_seconds;
};

struct fleet_result fleet_run(const struct fleet_options *options);
