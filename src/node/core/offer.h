/*
 * offer: which devices each class tells the kubelet, and how well they are.
 *
 * Owns      DP-4..10, 13, 14, 48, 51, 53, 56: exactly the Kubernetes holds, each device with its
 *           NUMA node and health; after a failed read of the holds the last good list, all of it
 *           unhealthy, so nothing new is placed and nothing looks released.
 * Pure.
 * Tests     tests/unit/node/core/offer_test.c
 */
#pragma once

#include "node/core/holds.h"

#define OFFER_BINDING       "kubernetes"
#define OFFER_RESOURCE_SIZE 32

struct offer_device {
	char id[HOLDS_ID_SIZE];
	char allocation[ID_SIZE];
	struct atom atom;
	int32_t numa; /* INVENTORY_NUMA_UNKNOWN: none is sent */
	struct health health;
};

/* What one class offers. Sorted by id; `{0}` is "not served". */
struct offer {
	bool served; /* registered with the kubelet, if only with an empty list */
	VEC(struct offer_device) devices;
};

/* One for each class. */
struct offers {
	struct offer classes[ATOM_CLASSES];
};
void offers_deinit(struct offers *offers);

struct offer_view {
	const struct holds *holds;         /* NULL: they could not be read */
	const char *holds_error;           /* why; used only then */
	const struct inventory *inventory; /* never NULL */
	const struct offers *before;       /* the last answer */
	bool enabled; /* false: this node serves no device plugin (another API, not a worker) */
	bool list_awaited; /* a release waits for the kubelet to write its checkpoint anew, as it
			    * does when a plugin sends a list */
};

/* `*ret_offers` must be empty. */
void offer_decide(const struct offer_view *view, struct offers *ret_offers);

bool offer_equal(const struct offer *a, const struct offer *b);
/* NULL when it isn't offered. */
const struct offer_device *offer_find(const struct offer *offer, const char *id);
size_t offer_healthy_count(const struct offer *offer);

/* "bcd.dev/gpu", "bcd.dev/gpu.mig", "bcd.dev/gpu.slot" */
void offer_resource(char out[OFFER_RESOURCE_SIZE], enum atom_class class);

/* The health of a bound device: its atom's now, bad when the atom or the MIG instance that was
 * bound is gone (AtomReplaced, DP-51). */
struct health offer_health(const struct inventory *inventory, const struct hold_device *device);
