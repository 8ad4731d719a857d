/*
 * reaper: ends the pods that cling to devices that aren't theirs any more.
 *
 * Owns      node/core/reap.h's view and effects: when somebody is due, this node's pods are listed,
 *           and deleted with their UID as precondition and the kubelet's identity
 *           ([kubernetes] kubeconfig, read anew for each request). Each deletion is logged and told
 *           by an Event on the pod.
 * Bounds    the API server is asked only when somebody is due. Without it nobody is deleted, and
 *           the release stays pending: only the kubelet's answer ends one.
 * Restart   nothing is kept: who holds what is asked again, since when is in releasing.json, and a
 *           deletion that is under way shows in the pod.
 * Threads   the loop's.
 * Tests     tests/unit/node/reaper_test.c, the simulation, tests/peer/cluster (a real kubelet)
 */
#pragma once

#include "base/buf.h"
#include "node/holders.h"

struct node;
struct reaper;
struct reaper *reaper_create(struct node *node);
void reaper_destroy(struct reaper *reaper);

/* Once a turn, after release_step(): decides and acts. */
void reaper_step(struct reaper *reaper, struct mono now);

/* "asked to go", "static (source file): only ..." of this holder; "" when nothing is to be said. */
void reaper_describe(const struct reaper *reaper, const struct holder *holder, struct buf *out);
/* When this holder's pod is deleted next; false: not again, or not at all. */
bool reaper_next(const struct reaper *reaper, const struct holder *holder, struct mono *ret_due);
/* Why the API server can't be asked while somebody is due; NULL: it can. */
const struct error *reaper_trouble(const struct reaper *reaper);
