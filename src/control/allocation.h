/*
 * allocation: a node's part of a reservation, from its booking to the moment when nobody holds a
 * device of it. Private to this room.
 *
 * Owns      the rows of allocations, their devices and bookings, and the reservation's state that
 *           follows from them. Bookings exist exactly as long as the devices may be held.
 */
#pragma once

#include "control/core/placement.h"
#include "control/core/reservation.h"
#include "control/work.h"

struct allocation {
	char id[ID_SIZE], reservation[ID_SIZE], node[ID_SIZE];
	enum allocation_state state;
	int64_t from_ms, to_ms;
	int64_t assigned_generation, withdrawn_generation; /* 0: not yet */
	int64_t bound_ms, releasing_ms;                    /* 0: not yet */
	bool lost;                                         /* the node can't keep the binding */
};

/* *ret_found is false when there is none. */
MUST_CHECK bool allocation_load(struct store_connection *db, const char *id,
				struct allocation *ret_allocation, bool *ret_found,
				struct error *error);

/* Books what placement chose for a reservation. */
MUST_CHECK bool allocation_book(struct store_connection *db, const char *reservation,
				const struct placement_request *request,
				const struct placement_answer *answer, char ret_id[ID_SIZE],
				struct error *error);

/* Puts it into its node's Spec, unless devices of it are still in somebody else's hands there:
 * then nothing happens and the next pass tries again. */
MUST_CHECK bool allocation_start(struct store_connection *db, const struct allocation *allocation,
				 struct error *error);

/* Its time is over, or somebody asked: the Spec loses it at once. What may be held on the node then
 * waits for the node's word, and what can't be is finished. */
MUST_CHECK bool allocation_withdraw(struct store_connection *db, struct allocation *allocation,
				    const char *why, struct error *error);

/* Nobody holds a device of it any more: its bookings go. */
MUST_CHECK bool allocation_finish(struct store_connection *db, struct allocation *allocation,
				  const char *why, struct error *error);

/* The node could not, before anything was bound: the reservation is pending again. */
MUST_CHECK bool allocation_fail(struct store_connection *db, struct allocation *allocation,
				const char *why, struct error *error);

/* Its node was declared lost while it was bound: the reservation has failed. */
MUST_CHECK bool allocation_lose(struct store_connection *db, struct allocation *allocation,
				struct error *error);

/* Has somebody else a later booking of one of its devices? */
MUST_CHECK bool allocation_booked_next(struct store_connection *db, const char *id,
				       bool *ret_booked, struct error *error);

/* Moves a reservation by an event of its table, with its row and its published event. */
MUST_CHECK bool reservation_step(struct store_connection *db, const char *id,
				 enum reservation_event event, const char *why,
				 struct error *error);
