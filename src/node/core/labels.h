/*
 * labels: what a Node says of its GPUs, for people to select on.
 *
 * Owns      HOSTED-20, 22, 43 and OBS-1..3, 19: the names, their values, and what is to be changed.
 *           The list stands in docs/formats/labels.md, which the test compares.
 * Mixed     of several models all are named; what "at least so much" is asked of is the smallest
 *           GPU's; mig.capable is true when every GPU is.
 * Unknown   what isn't known is left out. GPUs that can't be read just now are those of before: their
 *           labels stay as they are on the Node.
 * Stranger  A machine that the control plane doesn't have among its nodes is told apart by nobody: it
 *           has none.
 * Pure.
 * Tests     tests/unit/node/core/labels_test.c, tests/peer/kube (a real API server takes them)
 */
#pragma once

#include "gpu/core/inventory.h"

#include <jansson.h>

#define LABELS_PREFIX     "bcd.dev/"
#define LABELS_VALUE_SIZE 64 /* of Kubernetes: 63 characters */

struct labels_view {
	bool stranger;                     /* it was retired, or isn't known to its control plane */
	const char *node_id, *site, *pool; /* ids, and the pool's name; "" unknown */
	const struct inventory *inventory; /* NULL: the GPUs could not be read */
};

/* A label's value of any text: what can't stand in one becomes '-', its ends are letters or digits.
 * "" when nothing is left. */
void labels_value(char out[LABELS_VALUE_SIZE], const char *text);

/* {name: value} of all that is known; the caller's. */
json_t *labels_wanted(const struct labels_view *view);

/* What a merge patch sets (null: removes) so that `node`, a v1.Node, has these labels and no others
 * with our prefix; NULL when it has. `gpus_known`: else those of GPUs aren't removed. The caller's. */
json_t *labels_changes(const json_t *wanted, bool gpus_known, const json_t *node);
