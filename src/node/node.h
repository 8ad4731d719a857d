/*
 * node: bcd on one GPU machine, as one object on one loop.
 *
 * Does      what docs/internals/deviceplugin.md, holds.md, release.md and spec.md promise: keeps
 * its stream to the control plane, stores each Spec before acting on it, binds and releases, serves
 * the kubelet, reports, and answers `bcd status`. Turn      callbacks note facts and arm
 * node_turn(); the turn looks, decides by node/core, submits one durable list, and acts when it is
 * on disk (ARCHITECTURE.md). State     all in struct node; nothing static. The lock on the data
 * folder is the caller's (node/lock.h). Threads   the loop's.
 */
#pragma once

#include "base/error.h"
#include "node/confine.h"
#include "node/identity.h"
#include "sys/loop.h"

struct node;

/* `config` and `identity` must outlive the node, which renews the identity's certificate;
 * `identity` is NULL for a machine that hasn't joined: what is on disk is served all the same.
 * Fails when the data or run folder can't be used. */
MUST_CHECK bool node_create(struct loop *loop, const struct config *config,
			    struct identity *identity, struct node **ret_node, struct error *error);
/* For status: what this process gave up. It must outlive the node. */
void node_set_confinement(struct node *node, const struct confinement *confinement);
/* At any moment: what is on disk is whole. */
void node_destroy(struct node *node);
