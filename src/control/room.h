/*
 * room: which nodes to look at for a reservation, without looking at all of them. Private to this
 * room of the code.
 *
 * Owns      the table node_room: struct placement_room for each node and kind of device.
 * Rule      while all bookings of a node overlap the time asked for, what is free is what is idle.
 *           So a node that fits is idle enough, or has a booking that ends before that time or
 *           begins after it. A row may claim more room than there is, never less.
 * Order     as placement's: room_search() finds the node that placement_decide() over the whole
 *           pool would choose; tests/unit/control/preview_test.c compares them.
 */
#pragma once

#include "control/view.h"

/* After a change of a node's devices: kinds may have come and gone. */
MUST_CHECK bool room_renew(struct store_connection *db, const char *node, struct error *error);

/* After a change of the bookings of its devices. */
MUST_CHECK bool room_refresh(struct store_connection *db, const char *node, struct error *error);

/* The same of every node that has GPUs of this allocation's bookings. Call it while the bookings
 * are there to collect the nodes, and room_refresh() each of `ret_nodes` when they have changed. */
MUST_CHECK bool room_nodes_of(struct store_connection *db, const char *allocation,
			      struct store_rows *ret_nodes, struct error *error);
MUST_CHECK bool room_refresh_all(struct store_connection *db, const struct store_rows *nodes,
				 struct error *error);

/* The pool's nodes for a request of one kind: those that are alike in all that says why they can't
 * take it are one row, without devices; the others are all there. */
MUST_CHECK bool room_load(struct store_connection *db, const char *pool,
			  const struct placement_request *request, const char *reservation,
			  struct view *ret_view, struct error *error);

/*
 * The choice for a request of one node. *ret_found false: none of those looked at fits; when more
 * than ROOM_MAX_LOOKS would have to be looked at, one that fits may not have been among them.
 * `answer` borrows from `view`.
 */
#define ROOM_MAX_LOOKS 64
MUST_CHECK bool room_search(struct store_connection *db, const char *pool,
			    const struct placement_request *request, const char *reservation,
			    struct view *view, struct placement_answer *answer, bool *ret_found,
			    struct error *error);

/*
 * When a request of one node and one kind, for which there is no room at its own time, would first
 * fit: *ret_ms, INT64_MAX for never. *ret_known false: more than ROOM_MAX_LOOKS nodes would have to
 * be looked at, or not all nodes have rows yet.
 */
MUST_CHECK bool room_first_fit(struct store_connection *db, const char *pool,
			       const struct placement_request *request, int64_t *ret_ms,
			       bool *ret_known, struct error *error);
