/*
 * placing: reservations that get their nodes, or wait for them. Private to this room.
 *
 * Owns      the one way to a choice, for create, retry, repair and preview alike (RES-10): who came
 *           first and waits as a gang is planned for, then placement decides.
 */
#pragma once

#include "control/allocation.h"
#include "control/core/reserve_request.h"
#include "control/pools.h"
#include "control/view.h"

/* Who asks, among those that wait: gangs that came before it are planned for first. */
struct placing_turn {
	const char *reservation; /* NULL: a preview, which comes last */
	int64_t created_ms;
};

struct placing_choice {
	struct view view; /* the nodes that were looked at */
	struct placement_answer answer;
	int64_t *waits;         /* first fits of gangs that came first; the request borrows them */
	char (*gangs)[ID_SIZE]; /* whose they are */
	size_t waits_count;
	bool explained;       /* it fits, or the reasons are of all nodes */
	int64_t first_fit_ms; /* PLACING_TIMES, when it doesn't fit; INT64_MAX: never, as things stand */
};
void placing_choice_deinit(struct placing_choice *choice);

/* Fills in `request` what the pool says, and chooses. `ret_choice` must be `{0}` or hold an old one.
 * A request that doesn't fit may be left without what wasn't asked for: each takes longer. */
enum placing_depth {
	PLACING_FITS,    /* where, if it does */
	PLACING_REASONS, /* and if not, why */
	PLACING_TIMES,   /* and when it would first fit */
};
MUST_CHECK bool placing_choose(struct store_connection *db, const struct pool *pool,
			       const struct placing_turn *turn, struct placement_request *request,
			       enum placing_depth depth, struct placing_choice *ret_choice,
			       struct error *error);

/* The first fits of the gangs of a pool that wait, as things stand; *ret_choice holds them. */
MUST_CHECK bool placing_plan(struct store_connection *db, const struct pool *pool,
			     struct placing_choice *ret_choice, struct error *error);

/* The same over all nodes of the pool at once: the slow way to the same choice. */
MUST_CHECK bool placing_choose_among_all(struct store_connection *db, const struct pool *pool,
					 const struct placing_turn *turn,
					 struct placement_request *request,
					 struct placing_choice *ret_choice, struct error *error);

/* The reasons as stored and answered: [{"reason","nodes","largest"?}]. */
json_t *placing_reasons(const struct placement_answer *answer);

enum placing_how {
	PLACING_NEW,   /* denied when no node could ever take it */
	PLACING_AGAIN, /* notes why not */
	PLACING_QUICK, /* leaves the reasons as they are */
};

/* Tries to place a pending reservation: books and starts it, notes why not, lets it expire, or
 * denies it when its pool is archived. */
MUST_CHECK bool placing_try(struct store_connection *db, const char *reservation,
			    enum placing_how how, bool *ret_placed, struct error *error);

/* Why a reservation waits, as things stand: a new array, or NULL when it doesn't, or could be placed.
 * Writes nothing, so that it may take its time; placing_note() then writes it down, if it still
 * waits. */
MUST_CHECK bool placing_explain(struct store_connection *db, const char *reservation,
				json_t **ret_reasons, struct error *error);
MUST_CHECK bool placing_note(struct store_connection *db, const char *reservation,
			     const json_t *reasons, struct error *error);

/* A part of a placed reservation has failed on its node: it gets another one that goes with the
 * rest, else all of the reservation is tried again from the beginning (GANG-9). */
MUST_CHECK bool placing_failed(struct store_connection *db, struct allocation *allocation,
			       const char *why, struct error *error);

/* The node of a bound part was declared lost: before the reservation ran it is placed again like
 * one that failed, afterwards nothing is put in its place. */
MUST_CHECK bool placing_lost(struct store_connection *db, struct allocation *allocation,
			     struct error *error);

static inline void placing_choice_cleanup(struct placing_choice *choice)
{
	placing_choice_deinit(choice);
}
