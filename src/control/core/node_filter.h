/*
 * node_filter: could one node take a request, and if not, which filter stops it?
 *
 * Owns      the order of the filters (RES-51), from the node as a whole to its devices, its host and
 *           the gangs that wait.
 * Pure      rows in, verdict out.
 */
#pragma once

#include "control/core/placement.h"

struct node_verdict {
	const char *reason;         /* of the first filter that stops it; NULL: fits */
	int largest;                /* the most devices that it could give; -1: says nothing */
	struct placement_lack lack; /* of its host */
};

/* `ret_member` (may be NULL) is set when it fits: what the node gives. Its atoms are the caller's. */
struct node_verdict node_filter_judge(const struct placement_request *request,
				      const struct placement_node *node,
				      struct placement_member *ret_member);

/* Does it pass every filter, but for what its room would say sooner? */
bool node_filter_fits(const struct placement_request *request, const struct placement_node *node);

/* Could it take the request when nobody else were there and all were well? Not knowing what a node
 * has counts as yes. */
bool node_filter_could_ever(const struct placement_request *request,
			    const struct placement_node *node);

/* Where a node is, for what the gang is to have in common; "" when that is nothing. */
const char *node_filter_domain(const struct placement_request *request,
			       const struct placement_node *node);
