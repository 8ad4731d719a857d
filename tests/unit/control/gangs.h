/*
 * gangs: what tests about several nodes say and ask again and again, on a world.
 */
#pragma once

#include "unit/control/world.h"

/* Each a moment after the one before, so that there is an order in which they came. `more` goes
 * into the gang, such as ",\"topology\":{\"same\":\"rack\"}". */
json_t *reserve_gang(struct world *world, int nodes, int gpus, const char *duration,
		     const char *more);
json_t *reserve_for(struct world *world, int gpus, const char *duration);

const char *state_of(struct world *world, const json_t *reservation); /* now */
/* Fails the test when none of them has the id. */
struct world_node *node_of(struct world_node *nodes, size_t count, const char *id);
int64_t count_bookings(struct world *world); /* of all nodes */

/* `by_system`: as what no operator can set. */
void set_label(struct world *world, const char *node, const char *name, const char *value,
	       bool by_system);
void set_rack(struct world *world, const struct world_node *node, const char *rack);
