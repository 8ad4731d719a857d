/*
 * pod_requests: what a pod asks for to use its part of a reservation, and no more than that.
 *
 * Owns      how what is booked of a host is divided over the devices (HOST-13): each of a node's
 *           devices gets the same, so what N of them get is N times that, rounded down. On several nodes it
 *           is the least of what they gave, so that one pod template fits on all of them.
 * Form      Kubernetes' `resources`, with limits equal to the requests: Kubernetes wants that for
 *           devices and huge pages, and no pod takes of another's share.
 * Pure.
 */
#pragma once

#include "base/error.h"
#include "base/hugepages.h"
#include "control/core/placement.h"

#include <jansson.h>

/* What the reservation has on one node. */
struct pod_part {
	int devices[PLACEMENT_CLASSES];
	int64_t vcpus, memory_bytes;
	struct hugepages hugepages;
};

struct pod_asked {
	int devices;    /* 0: all that one node gave */
	bool one_class; /* only these devices; else of whatever class there is */
	enum placement_class class;
};

/*
 * {"devices", "pods", "resources": {"requests", "limits"}}: for one pod, and how many such pods the
 * reservation has room for. `parts` is one at least, each with the same devices. INVALID_INPUT with
 * the query's field when it isn't booked, or when it can't be told which devices are meant.
 */
MUST_CHECK bool pod_requests_make(const struct pod_part *parts, size_t count,
				  struct pod_asked asked, json_t **ret_answer, struct error *error);
