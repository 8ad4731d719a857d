/*
 * holders: which container holds which device, as the kubelet's pod-resources API lists it.
 *
 * A kubelet that hasn't heard from its API server since it started lists no pods. So whoever stands
 * in its checkpoint counts too, as long as the pod's folder is there (node/core/given.h).
 *
 * A listing that failed, was cut short or came late is an error, never "nobody" (REL-14, 53, 54).
 * Threads   the loop's.
 */
#pragma once

#include "base/error.h"
#include "base/vec.h"
#include "node/core/given.h"
#include "node/core/holds.h"
#include "sys/loop.h"

#define HOLDERS_MAX_ANSWER ((size_t)64 << 20)
#define HOLDERS_TIMEOUT_MS 10000
#define HOLDERS_MAX_NAME   256

struct holder {
	char id[HOLDS_ID_SIZE];   /* of the device, as the kubelet knows it */
	char uid[GIVEN_UID_SIZE]; /* of the pod, from the checkpoint; "": not there (yet) */
	char *name;               /* "namespace/pod (container)", or "pod UID (container)" */
	char *namespace, *pod, *container; /* NULL: known by its UID only */
};

/* `{0}` is "nobody". */
struct holders_listing {
	VEC(struct holder) holders; /* of bcd.dev devices only */
};
void holders_listing_deinit(struct holders_listing *listing);
/* Has any container a device of this allocation? */
bool holders_listing_holds(const struct holders_listing *listing, const char *allocation);

struct holders;
/* `listing` is NULL when the question failed; it may be taken over by emptying it. Called from the
 * loop; the question is over then. */
typedef void holders_fn(void *arg, struct holders_listing *listing, const struct error *error);

/* `kubelet` is its root folder. */
struct holders *holders_create(struct loop *loop, const char *kubelet, holders_fn *fn, void *arg);
void holders_destroy(struct holders *holders); /* fn isn't called any more */
bool holders_asking(const struct holders *holders);
void holders_ask(struct holders *holders); /* one question at a time */

/* Reads a ListPodResourcesResponse; also for fuzzing. `*ret_listing` must be empty. */
MUST_CHECK bool holders_read(const uint8_t *data, size_t length,
			     struct holders_listing *ret_listing, struct error *error);
