/*
 * reservation: the states of a reservation and of its allocations, and what leads from one to the
 * next (RES-46). Pure. docs/internals/reservation.md draws it.
 */
#pragma once

#include "base/base.h"

enum reservation_state {
	RESERVATION_PENDING,   /* waits for room */
	RESERVATION_PLACED,    /* booked; not bound yet, or not begun */
	RESERVATION_ACTIVE,    /* bound on its node */
	RESERVATION_RELEASING, /* withdrawn, its devices may still be held; shown as released */
	RESERVATION_RELEASED,
	RESERVATION_DENIED,
	RESERVATION_FAILED,
	RESERVATION_CANCELLED,
	RESERVATION_EXPIRED, /* its time passed before there was room */
	RESERVATION_PREEMPTED,
};
#define RESERVATION_STATES 10

enum reservation_event {
	RESERVATION_ON_PLACED,
	RESERVATION_ON_BOUND,
	RESERVATION_ON_UNPLACED,  /* the node couldn't, or was lost, before anything was bound */
	RESERVATION_ON_WITHDRAWN, /* asked or ended; the node is to say when nobody holds a device
				   */
	RESERVATION_ON_RELEASED,  /* nothing is held, or can be */
	RESERVATION_ON_CANCELLED,
	RESERVATION_ON_EXPIRED,
	RESERVATION_ON_DENIED,
	RESERVATION_ON_LOST, /* its node was declared lost */
};
#define RESERVATION_EVENTS 9

const char *reservation_state_name(enum reservation_state state);  /* as stored */
const char *reservation_state_shown(enum reservation_state state); /* "releasing": "released" */
bool reservation_state_parse(const char *name, enum reservation_state *ret_state);
const char *reservation_event_name(enum reservation_event event);

/* Nothing leads out of it. */
bool reservation_is_terminal(enum reservation_state state);

/* False when the event can't happen in that state; *ret_next is untouched. */
bool reservation_next(enum reservation_state state, enum reservation_event event,
		      enum reservation_state *ret_next);

enum allocation_state {
	ALLOCATION_PLACED,
	ALLOCATION_BOUND,
	ALLOCATION_RELEASING,
	ALLOCATION_RELEASED,
	ALLOCATION_FAILED,
};
#define ALLOCATION_STATES 5
const char *allocation_state_name(enum allocation_state state);
bool allocation_state_parse(const char *name, enum allocation_state *ret_state);

/* Does AllocationReleased, said about Spec `report_generation`, end this allocation's release? Only
 * when it was withdrawn, and by that Spec or an earlier one: an older "released" speaks of
 * something else. `withdrawn_generation` is 0 when it wasn't withdrawn. */
bool allocation_release_counts(enum allocation_state state, int64_t withdrawn_generation,
			       int64_t report_generation);
