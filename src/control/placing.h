/* placing: a pool's nodes as placement sees them, and reservations that wait for room. Private. */
#pragma once

#include "base/arena.h"
#include "control/core/placement.h"
#include "control/core/reserve_request.h"
#include "control/pools.h"

/* A node that failed a reservation isn't asked again for so long: twice as long each time. */
#define PLACING_REFUSED_MS     ((int64_t)5 * 60 * 1000)
#define PLACING_REFUSED_MAX_MS ((int64_t)60 * 60 * 1000)

/* Devices that couldn't be bound are offered to nobody for so long: what was in the way of one
 * reservation is in the way of the next. */
#define PLACING_REST_MS ((int64_t)60 * 1000)

struct placing_view {
	struct arena arena;
	struct placement_node *nodes; /* in order of id */
	size_t count;
};

/* The pool's nodes, with all that is booked on their GPUs by anybody. `reservation` is the one that
 * is to be placed, NULL for a preview. */
MUST_CHECK bool placing_view_load(struct store_connection *db, const char *pool,
				  const char *reservation, struct placing_view *ret_view,
				  struct error *error);
void placing_view_deinit(struct placing_view *view);

/* The reasons as stored and answered: [{"reason","nodes","largest"?}]. */
json_t *placing_reasons(const struct placement_answer *answer);

/* Tries to place a pending reservation: books and starts it, notes why not, lets it expire, or
 * denies it when its pool is archived. */
MUST_CHECK bool placing_try(struct store_connection *db, const char *reservation, bool *ret_placed,
			    struct error *error);

static inline void placing_view_cleanup(struct placing_view *view)
{
	placing_view_deinit(view);
}
