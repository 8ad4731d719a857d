/*
 * degraded: the conditions that a reservation shows, computed from what its nodes said (RES-21,
 * RES-35 to 39, RES-47). Pure: nothing is stored, so they clear when their cause does.
 */
#pragma once

#include "base/base.h"

#include <jansson.h>

struct degraded_device {
	const char *atom;
	bool healthy;
	const char *cause;
	int64_t since_ms;
};

/* One allocation and its node, as they are now. */
struct degraded_allocation {
	const char *id, *node;
	bool bound; /* and not withdrawn */
	bool releasing;
	int64_t releasing_since_ms;
	bool was_bound;
	int64_t own_end_ms;
	int64_t handover_ms; /* when who has its devices next gets them whatever it says; 0: nobody has */
	const char *
		given_up; /* it is over, its release ended without the node's word: why (stuck.h) */
	int64_t given_up_ms;
	int64_t due_ms;      /* placed, to begin then; else 0 */
	bool taken;          /* and others may have its devices yet */
	const char *unready; /* what the node says of its kubelet and its releases; NULL: nothing */
	const char *stuck;   /* the node's word on all its releases; NULL: none yet */
	bool unconfirmed;    /* the node's kubelet doesn't say what its pods hold */
	int64_t unconfirmed_since_ms;
	const char *lost_reason; /* the node can't keep the binding; "" or NULL if it can */
	int64_t lost_since_ms;
	bool foreign_exposure; /* the node's condition */
	int64_t foreign_since_ms;
	bool unoffered; /* the node's condition: pods can't get by the pool's gpuApi what is bound */
	int64_t unoffered_since_ms;
	bool unreachable;
	int64_t unreachable_since_ms;
	const struct degraded_device *devices;
	size_t devices_count;
};

/* A node that was told of a booking has this long until it counts as one that keeps it waiting. */
#define DEGRADED_BIND_MS ((int64_t)10 * 1000)

/*
 * A new array of conditions {type, reason, message, since}: Waiting for one that could begin and has not
 * yet, with what it waits for; ReleaseUnconfirmed for what was ended without its node's word; DevicesHeld while a release waits for its
 * nodes, with what the first of them say of it and what happens next (stuck.h), where that is a day's wait
 * and seldom needed in `next`; Degraded for a bound
 * allocation in trouble, with all causes of its headline reason in the message and every
 * cause in `causes`, in the order BindingLost, ForeignGpuExposure, NodeUnreachable, AtomUnhealthy,
 * then by node, then by device; Unconfirmed for a bound
 * allocation whose node has no kubelet that answers: nothing is wrong with it as far as anybody knows.
 */
json_t *degraded_conditions(const struct degraded_allocation *allocations, size_t count,
			    struct wall now);
