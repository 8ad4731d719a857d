/*
 * device_choice: which devices of one node meet a request, whatever else is to be said of the node.
 *
 * Owns      what excludes what on one GPU, and the choice that spoils least for others: parts go to
 *           GPUs that are in use, whole GPUs are those that aren't cut, on one NUMA node.
 * Pure      rows in, choice out.
 */
#pragma once

#include "control/core/placement.h"

/* How much of the truth is looked at: each filter of RES-51 that speaks of devices adds some. */
enum device_depth {
	DEVICE_DEPTH_CLASS,  /* what exists, of the right class, profile and model */
	DEVICE_DEPTH_HEALTH, /* and is healthy */
	DEVICE_DEPTH_FREE,   /* and is free over the whole time */
};

struct device_choice {
	size_t *atoms; /* indexes into node->atoms; heap */
	size_t count;
};

/* False: not all needs are met; `ret_choice` then holds the most that was found. Either way it is
 * the caller's to clean up. */
bool device_choose(const struct placement_request *request, const struct placement_node *node,
		   enum device_depth depth, struct device_choice *ret_choice);

static inline void device_choice_cleanup(struct device_choice *choice)
{
	free(choice->atoms);
	*choice = (struct device_choice){0};
}

/* How much of one kind of device the node has. Nodes that fit stand in the order of `idle` of the
 * first need, the fewest first (RES-52). `profile` NULL: any. */
struct placement_room device_room_of(const struct placement_node *node, enum placement_class class,
				     const char *profile, const char *model);
