/*
 * holders: which container holds which device, as the kubelet's pod-resources API lists it.
 *
 * A kubelet that hasn't heard from its API server since it started lists no pods. So whoever stands
 * in its checkpoint counts too, as long as the pod's folder is there (node/core/given.h). Where the
 * folders can't be seen, as in a DaemonSet's pod, each counts and is marked (node/core/unlisted.h).
 * It lists claimed devices only with a feature gate; what a claim has prepared counts in any case
 * (node/core/prepared.h).
 *
 * A listing that failed, was cut short or came late is an error, never "nobody" (REL-14, 53, 54).
 * What was answered is read on a worker, with the files: it may take a second, and meanwhile the kubelet
 * asks for devices and for health. One that hangs, as a disk may, has failed after HOLDERS_READ_MS; until it
 * comes back each question fails at once, and no second one is started beside it.
 * holders_read.c reads, holders.c asks.
 * Threads   the loop's; holders_read() and holders_read_all() any.
 */
#pragma once

#include "base/error.h"
#include "base/vec.h"
#include "node/core/given.h"
#include "node/core/holds.h"
#include "node/core/prepared.h"
#include "node/core/unlisted.h"
#include "sys/loop.h"

#define HOLDERS_MAX_ANSWER  ((size_t)64 << 20)
#define HOLDERS_TIMEOUT_MS  10000
#define HOLDERS_READ_MS     12000
#define HOLDERS_MAX_NAME    256
#define HOLDERS_MAX         65536 /* devices in a listing; more is no answer */
#define HOLDERS_MAX_NAMES   65536 /* pods in a listing whose names are kept */
#define HOLDERS_MAX_CLAIMED 1024  /* of one container */

struct holder {
	/* "<device name>@<allocation>"; of a claimed device that no record has: its name alone */
	char id[HOLDS_ID_SIZE];
	char uid[GIVEN_UID_SIZE]; /* of the pod, from the checkpoint; "": not there (yet) */
	char *name;               /* "namespace/pod (container)", "pod UID (container)", or
				   * "claim namespace/name", with its pod where that is known */
	char *namespace, *pod, *container; /* NULL: not known */
	bool unlisted; /* only the checkpoint says so, and whether the pod is there can't be seen */
	/* The ResourceClaim that has the device; NULL: a plugin gave it. Its key tells it from another
	 * of the same name: "namespace/name", and "/UID" where that is known. */
	char *claim_namespace, *claim_name, *claim;
	char claim_uid[PREPARED_UID_SIZE]; /* "": no record says it */
};
void holder_deinit(struct holder *holder);

/* `{0}` is "nobody". */
struct holders_listing {
	VEC(struct holder) holders; /* of bcd.dev devices only */
	/* Of all pods that the kubelet lists, with such a device or without, sorted; `cut`: there were more. */
	struct unlisted_names names;
	bool cut;
	/* Of prepared.json, code NONE: read, or not there. Else any device may be prepared (REL-9). */
	struct error record;
};
void holders_listing_deinit(struct holders_listing *listing);
/* Has any container a device of this allocation? */
bool holders_listing_holds(const struct holders_listing *listing, const char *allocation);

struct holders;
/* `listing` is NULL when the question failed; it may be taken over by emptying it. Called from the
 * loop; the question is over then. */
typedef void holders_fn(void *arg, struct holders_listing *listing, const struct error *error);

struct holders_options {
	const char *kubelet; /* its root folder */
	const char *boot_id; /* of this boot: records of another count for nothing */
	holders_fn *fn;
	void *arg;
};
struct holders *holders_create(struct loop *loop, const struct holders_options *options);
void holders_destroy(struct holders *holders); /* fn isn't called any more */
bool holders_asking(const struct holders *holders);
void holders_ask(struct holders *holders); /* one question at a time */

/* Reads a ListPodResourcesResponse; also for fuzzing. `*ret_listing` must be empty. */
MUST_CHECK bool holders_read(const uint8_t *data, size_t length,
			     struct holders_listing *ret_listing, struct error *error);
/* The same with the files below `kubelet`: who only the checkpoint names, and what claims have prepared in
 * this boot. Blocks. */
MUST_CHECK bool holders_read_all(const uint8_t *data, size_t length, const char *kubelet,
				 const char *boot_id, struct holders_listing *ret_listing,
				 struct error *error);
