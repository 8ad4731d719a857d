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
	const char *node;
	bool bound; /* and not withdrawn */
	bool releasing;
	int64_t releasing_since_ms;
	bool unconfirmed; /* the node's kubelet doesn't say what its pods hold */
	int64_t unconfirmed_since_ms;
	const char *lost_reason; /* the node can't keep the binding; "" or NULL if it can */
	int64_t lost_since_ms;
	bool foreign_exposure; /* the node's condition */
	int64_t foreign_since_ms;
	bool unreachable;
	int64_t unreachable_since_ms;
	const struct degraded_device *devices;
	size_t devices_count;
};

/*
 * A new array of conditions {type, reason, message, since}: DevicesHeld while a release waits for
 * its node; Degraded for a bound allocation in trouble, with its headline reason first and every
 * cause in `causes`, in the order BindingLost, ForeignGpuExposure, NodeUnreachable, AtomUnhealthy,
 * then by node, then by device; Unconfirmed for a bound
 * allocation whose node has no kubelet that answers: nothing is wrong with it as far as anybody knows.
 */
json_t *degraded_conditions(const struct degraded_allocation *allocations, size_t count);
