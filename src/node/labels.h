/*
 * labels: keeps the labels of this machine's Node, and knows whether there is such a Node.
 *
 * Owns      node/core/labels.h's effects: the Node is read with the kubelet's identity, and patched
 *           when a label of ours differs; nothing else of it is touched (HOSTED-8, 11, 20, 22).
 * When      what is to stand there changed, or something is wrong: a minute after the last time at
 *           the earliest. Else each five minutes. Nothing is changed before the control plane has said,
 *           in this run of bcd, whether this is one of its nodes; one that was retired has no labels.
 * Bounds    without [kubernetes] kubeconfig (""), or where bcd isn't told its Node's name, nothing is
 *           asked. What the machine has is true of it whether or not anything is offered.
 * Threads   the loop's.
 * Tests     tests/unit/node/labels_test.c, the simulation, tests/peer/kube (a real API server)
 */
#pragma once

#include "base/error.h"

#define LABELS_MS       60000  /* between two times that something is asked (HOSTED-22) */
#define LABELS_CHECK_MS 300000 /* and when nothing seems to have changed */

struct node;
struct labels;
struct labels *labels_create(struct node *node);
void labels_destroy(struct labels *labels);

/* Once a turn. */
void labels_step(struct labels *labels, struct mono now);
/* There is no Node of this machine's name: whatever is offered reaches no pod (HOSTED-41). */
bool labels_node_unknown(const struct labels *labels);
/* Why the labels can't be kept; NULL: they are, or nothing was asked yet. */
const struct error *labels_trouble(const struct labels *labels);
