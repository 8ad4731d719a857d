/* stream: a node's stream and which of several is the one that counts. Private to this room. */
#pragma once

#include "control/nodes.h"

/* Loads the node whose stream has this epoch. FORBIDDEN when there is no such node, or it is
 * retired; CONFLICT when a newer stream took its place. */
MUST_CHECK bool stream_check(struct store_connection *db, const char *node, int64_t epoch,
			     struct node *ret_node, struct error *error);
