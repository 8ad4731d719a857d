/*
 * inventory_report: what the machine has, as the control plane is told it (GW-18, GW-19).
 *
 * Pure. The message is the same for the same machine, so a change is seen by comparing its bytes.
 * Tests     tests/unit/node/core/inventory_report_test.c
 */
#pragma once

#include "base/arena.h"
#include "gpu/core/inventory.h"
#include "node/core/admission.h"
#include "proto/gateway.pb-c.h"

struct inventory_report {
	const struct inventory *inventory;
	const char *node_name; /* of the Kubernetes node; "" none: the hostname is used */
	const char *hostname, *kernel;
	struct admission_share host; /* what can be booked of it */
	const char *gpu_api;
};

/* Borrows from the report and lives in the arena. */
Bettercompute__V1__Inventory *inventory_report_message(const struct inventory_report *report,
						       struct arena *arena);
