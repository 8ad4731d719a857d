/* spec: the numbers of what nodes are to have. Private to this room. */
#pragma once

#include "control/work.h"

/* The node's Spec changes in this transaction: gives it its next generation and tells whichever
 * replica has the node's stream. */
MUST_CHECK bool spec_changed(struct store_connection *db, const char *node, int64_t *ret_generation,
			     struct error *error);
