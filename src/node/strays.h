/*
 * strays: node/core/strays.h at work: who has a GPU that isn't bound here, and whether that is known
 * well enough to bind something.
 *
 * Asks      the kubelet, and with it the pods' processes, when the Spec wants what isn't bound and nobody
 *           knows yet who has it; then every NODE_HOLDERS_MS, for as long as that is so.
 * Threads   the loop's.
 * Tests     tests/unit/node/strays_test.c, the simulation, tests/peer/cluster (a node that joined anew)
 */
#pragma once

#include "base/base.h"
#include "node/podprocesses.h"

struct node;

/* Once a turn, after release_step(): node->strays is what is known now. */
void strays_step(struct node *node, struct mono now);
/* Adds the GPUs whose processes are to be looked at because of them; none twice. */
void strays_want_gpus(const struct node *node, struct podprocesses_gpus *gpus);
/* Does the Spec want what isn't bound? */
bool strays_matter(const struct node *node);
/* Why the pods' processes can't be looked at while a bind waits for that; NULL: they can, or none waits. */
const char *strays_trouble(const struct node *node);
