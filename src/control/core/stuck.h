/*
 * stuck: what a pass does about a release that its node hasn't finished (RES-24 to 29, 55).
 *
 * Owns      the two ways in which a release ends without the node's word, and the waiting before
 *           them. Until then its devices stay booked, whatever its own end was (RES-17, RES-19).
 * Pure
 */
#pragma once

#include "base/base.h"

/* A carry grows the bookings by a step when they end within half of one. */
#define STUCK_STEP_MS ((int64_t)5 * 60 * 1000)
#define STUCK_NEAR_MS (STUCK_STEP_MS / 2)
/* After the allocation's own end no carry is made beyond this. */
#define STUCK_MAX_CARRY_MS ((int64_t)24 * 60 * 60 * 1000)
/* For a release that came before the binding. */
#define STUCK_DEFERRED_MS ((int64_t)10 * 60 * 1000)
/* A node is given this long to clear out devices after what is booked next on them has begun, or half
 * the time of that, if it is shorter: it would never get them. It needs 100 s when a pod ignores SIGTERM. */
#define STUCK_HANDOVER_MS STUCK_STEP_MS

/* Why a release ended though its node, which isn't lost, never said that no pod holds a device. */
#define STUCK_BOOKED_NEXT      "BookedNext"
#define STUCK_CARRIED_TOO_LONG "CarriedTooLong"

struct stuck_view {
	int64_t asked_ms;     /* when it was withdrawn */
	int64_t own_end_ms;   /* the allocation's */
	int64_t booked_to_ms; /* the bookings', carries included */
	bool held;            /* the bookings keep everybody else out whatever their end */
	bool booked_next;     /* somebody else has a later booking of one of the devices */
	int64_t handover_ms;  /* then: when it has waited for long enough */
	bool node_lost;
	bool reachable; /* heard of lately */
	bool was_bound; /* the node said so once */
	/* The node stores a Spec without it, and everything that it had to report when it last
	 * connected is committed: had it ever bound it, that would be known. */
	bool unknown_to_node;
};

enum stuck_step {
	STUCK_WAIT,
	STUCK_HOLD,   /* keep everybody else out from now on */
	STUCK_CARRY,  /* let the bookings end at `to_ms` */
	STUCK_FINISH, /* the release is over without the node's word, because of `why` */
};

struct stuck_plan {
	enum stuck_step step;
	int64_t to_ms;
	const char *why; /* static, CamelCase */
};

struct stuck_plan stuck_decide(const struct stuck_view *view, struct wall now);
