/*
 * reaper: ends the pods that cling to devices that aren't theirs any more.
 *
 * Owns      node/core/reap.h's view and effects: when somebody is due, this node's pods are listed
 *           (node/podlist.h), and deleted with their UID as precondition and the kubelet's identity
 *           ([kubernetes] kubeconfig, read anew for each request). Each deletion is logged and told
 *           by an Event on the pod.
 * Bounds    the API server is asked only when somebody is due. Without it nobody is deleted, and
 *           the release stays pending: only the kubelet's answer ends one.
 * Restart   nothing is kept: who holds what is asked again, since when is in releasing.json, and a
 *           deletion that is under way shows in the pod.
 * Threads   the loop's.
 * Tests     tests/unit/node/reaper_test.c, reaper_told_test.c, the simulation, tests/peer/cluster (a real kubelet)
 */
#pragma once

#include "base/error.h"
#include "node/core/release.h"

struct node;
struct reaper;
struct reaper *reaper_create(struct node *node);
void reaper_destroy(struct reaper *reaper);

/* Once a turn, after release_step(): decides and acts. */
void reaper_step(struct reaper *reaper, struct mono now);

/* One who keeps a release from its end. */
struct clinger {
	char *name;             /* "default/web (main)", "process 123 (python) of pod UID" */
	const char *uid;        /* of the pod; "" when it can't be told; the node's */
	char id[HOLDS_ID_SIZE]; /* of the device */
	char *state;            /* "asked to go"; "" while nothing is to be said */
	char *plan;             /* the same with the times of what was done and comes next */
	bool timed;             /* its pod is deleted at `due`; else not again, or not at all */
	bool forced;            /* by force then, with no grace */
	struct mono due;
};
struct clingers VEC_BODY(struct clinger);
void clingers_deinit(struct clingers *clingers);

static inline void clingers_cleanup(struct clingers *clingers)
{
	clingers_deinit(clingers);
}

/* Valid until the loop turns. A process alone is told, but ends nobody's pod: whoever watches all
 * GPUs of a machine has them open, too. */
void reaper_clingers(const struct reaper *reaper, const struct release_entry *entry,
		     struct clingers *ret_clingers);
/* Why the API server can't be asked while somebody is due; NULL: it can. */
const struct error *reaper_trouble(const struct reaper *reaper);
/* That is only that a pod of its list can't be read. */
bool reaper_partial(const struct reaper *reaper);
