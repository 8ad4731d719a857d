/*
 * podwatch: the API server tells of this node's pods as they change, so that no last word is missed: it has that for
 * two seconds or less, and of a pod that came and went between two looks nothing at all.
 *
 * Owns      the watch: where bcd can't see the host's processes (node->blind) and something is bound, pending or
 *           awaited it is open, else it isn't. What it hears goes to unlisted_on_word().
 * Refused   (an identity that may list pods but not watch them), or away: lists alone tell, as they do anyway of who
 *           isn't there. It is tried again (kube/watch.h), after an outage as soon as a list has come.
 * Bounds    a pod that can't be read costs its own word.
 * Threads   the loop's.
 * Tests     tests/unit/node/vanished_events_test.c, the simulation, tests/peer/cluster (a DaemonSet's pod)
 */
#pragma once

#include "base/base.h"

struct node;
struct podwatch;
struct podwatch *podwatch_create(struct node *node);
void podwatch_destroy(struct podwatch *watch);

void podwatch_step(struct podwatch *watch); /* each turn: open or not? */

/* A list came: the API server is there. */
void podwatch_hurry(struct podwatch *watch);

/* Is every word heard now? */
bool podwatch_is_live(const struct podwatch *watch);
