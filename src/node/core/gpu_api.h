/*
 * gpu_api: by which API this node's GPUs reach its kubelet, and whether they do.
 *
 * Owns      DRA-2, DP-38, JOIN-34: the node offers by what its own configuration says, and only while the
 *           pool, which says what pods ask for, says the same. Neither overrules the other: what is offered
 *           one way while pods ask the other way reaches nobody, and mounts of the pod depend on the node's.
 *           There is no DRA driver yet: a node that is to use it offers nothing.
 * Pure.
 * Tests     tests/unit/node/core/gpu_api_test.c
 */
#pragma once

#include "base/buf.h"

/* `own` is "device-plugin" or "dra"; `pool` the same or another, "": no Spec has said. False: `why` gets
 * what is in the way and what to do. */
bool gpu_api_offers(const char *own, const char *pool, struct buf *why);
