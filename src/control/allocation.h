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

/* The allocations of a reservation that aren't over: rows of their ids. */
MUST_CHECK bool allocation_list_live(struct store_connection *db, const char *reservation,
				     struct store_rows *ret_rows, struct error *error);

/* Books what placement chose for a pending reservation, all of it, and starts what is due. */
MUST_CHECK bool allocation_book(struct store_connection *db, const char *reservation,
				const struct placement_request *request,
				const struct placement_answer *answer, struct error *error);
/* Books one more part of a placed reservation. */
MUST_CHECK bool allocation_book_part(struct store_connection *db, const char *reservation,
				     const struct placement_request *request,
				     const struct placement_member *member, struct error *error);

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

/* The same for a release that is over whatever the node says, because of `why` (stuck.h); when it was
 * to be waited for, that stays noted until the node's word comes after all. */
MUST_CHECK bool allocation_give_up(struct store_connection *db, struct allocation *allocation,
				   const char *why, struct error *error);

/* The node's word on a release that was given up; *ret_was is false when it wasn't. */
MUST_CHECK bool allocation_word_came(struct store_connection *db,
				     const struct allocation *allocation, bool *ret_was,
				     struct error *error);

/* Its node has bound it. While a release is pending it stays pending (RES-31). */
MUST_CHECK bool allocation_bind(struct store_connection *db, const struct allocation *allocation,
				struct error *error);

/* Withdraws every part that isn't withdrawn yet. */
MUST_CHECK bool allocation_withdraw_all(struct store_connection *db, const char *reservation,
					const char *why, struct error *error);

/* The node could not: this part is over. The reservation is to be given another one, or to be
 * unplaced. */
MUST_CHECK bool allocation_fail(struct store_connection *db, struct allocation *allocation,
				const char *why, struct error *error);

/* The reservation is pending again and keeps nothing: all parts that it has go back. */
MUST_CHECK bool allocation_unplace_all(struct store_connection *db, const char *reservation,
				       const char *why, struct error *error);

/* Its node was declared lost while it was bound. A reservation that has no other part left has
 * failed, or was preempted when it or its node could be interrupted. */
MUST_CHECK bool allocation_lose(struct store_connection *db, struct allocation *allocation,
				struct error *error);

/* Of `other`, the rows of bookings that have devices of `mine` next: when they get them though its node hasn't
 * said that they are free (STUCK_HANDOVER_MS). */
#define ALLOCATION_HANDOVER                                                                        \
	"min(other.from_ms + CASE WHEN other.to_ms - other.from_ms < 600000 THEN (other.to_ms - "  \
	"other.from_ms) / 2 ELSE 300000 END)"
/* 0: nobody has them next. */
MUST_CHECK bool allocation_handover(struct store_connection *db, const char *id,
				    int64_t *ret_handover_ms, struct error *error);

/* Moves a reservation by an event of its table, with its row and its published event. */
MUST_CHECK bool reservation_step(struct store_connection *db, const char *id,
				 enum reservation_event event, const char *why,
				 struct error *error);
