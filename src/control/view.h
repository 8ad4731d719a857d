/*
 * view: nodes as placement sees them, from the rows that say so. Private to this room.
 *
 * A view is of a whole pool or of one node; both are read by the same statements, so that a choice
 * made on a few nodes is the one that a look at all of them would have made (room.h).
 */
#pragma once

#include "base/arena.h"
#include "control/core/placement.h"
#include "control/work.h"

struct view {
	struct arena arena;
	struct placement_node *nodes; /* in order of id */
	size_t count;
};

/* The pool's nodes, with all that is booked on their GPUs by anybody. `reservation` is the one that
 * is to be placed, NULL for a preview: what it knows about nodes counts. */
MUST_CHECK bool view_load_pool(struct store_connection *db, const char *pool,
			       const char *reservation, struct view *ret_view, struct error *error);
/* The same of one node; no node when it is none that could be asked. */
MUST_CHECK bool view_load_node(struct store_connection *db, const char *node,
			       const char *reservation, struct view *ret_view, struct error *error);
/* Of one node what room_refresh() needs: its devices and who has booked them. */
MUST_CHECK bool view_load_booked(struct store_connection *db, const char *node,
				 struct view *ret_view, struct error *error);
/* One more node, to which `view` has room. */
MUST_CHECK bool view_add_node(struct store_connection *db, const char *node,
			      const char *reservation, struct view *view, struct error *error);
/* After nodes were added: in order of id again. */
void view_sort(struct view *view);
/* Marks the nodes that failed this reservation lately; NULL: none. */
MUST_CHECK bool view_load_refusals(struct store_connection *db, const char *reservation,
				   struct view *view, struct error *error);
void view_deinit(struct view *view);

/* Marks what a reservation that waits will take, as if it were booked from `from_ms` on. */
void view_plan(struct view *view, const struct placement_answer *answer, int64_t from_ms,
	       int64_t to_ms);

/* The view's own row of a node; NULL if it has none. */
struct placement_node *view_find(const struct view *view, const char *node);

static inline void view_cleanup(struct view *view)
{
	view_deinit(view);
}
