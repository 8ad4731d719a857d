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
	RESERVATION_ON_LOST,      /* its node was declared lost */
	RESERVATION_ON_PREEMPTED, /* the same, of something that could be interrupted (RES-41) */
};
#define RESERVATION_EVENTS 10

const char *reservation_state_name(enum reservation_state state);  /* as stored */
const char *reservation_state_shown(enum reservation_state state); /* "releasing": "released" */
bool reservation_state_parse(const char *name, enum reservation_state *ret_state);
const char *reservation_event_name(enum reservation_event event);

/* Nothing leads out of it. */
bool reservation_is_terminal(enum reservation_state state);

/* False when the event can't happen in that state; *ret_next is untouched. */
bool reservation_next(enum reservation_state state, enum reservation_event event,
		      enum reservation_state *ret_next);

/* A reservation's allocations that aren't over. */
struct reservation_parts {
	int wanted; /* nodes that were asked for */
	int placed, bound, releasing;
};

/* What its parts, as they are now, do to a reservation: a gang is active when all its nodes are
 * bound, and over when none has anything left. False: nothing. */
bool reservation_settle(enum reservation_state state, const struct reservation_parts *parts,
			enum reservation_event *ret_event);

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

/* A node that failed a reservation so many times isn't asked again for so long: a reservation that
 * waits for weeks has few failures to show. When the failures are excused, since the node has said
 * of something that may have been in the way, it is asked at once, and for each failure more after twice
 * as long: what it says may have been about something else. */
#define ALLOCATION_RETRY_MS     ((int64_t)5 * 60 * 1000)
#define ALLOCATION_RETRY_MAX_MS ((int64_t)60 * 60 * 1000)
#define ALLOCATION_EXCUSED_MS   ((int64_t)5 * 1000)
int64_t allocation_retry_ms(int64_t failures, bool excused);
/* Devices that couldn't be bound are offered to nobody for so long, or until that is excused: what was
 * in the way of one reservation is in the way of the next. */
#define ALLOCATION_REST_MS ((int64_t)60 * 1000)

/* Does AllocationReleased, said about Spec `report_generation`, end this allocation's release? Only
 * when it was withdrawn, and by that Spec or an earlier one: an older "released" speaks of
 * something else. `withdrawn_generation` is 0 when it wasn't withdrawn. */
bool allocation_release_counts(enum allocation_state state, int64_t withdrawn_generation,
			       int64_t report_generation);
