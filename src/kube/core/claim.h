/*
 * claim: what bcd must know of a ResourceClaim that the API server has.
 *
 * Why       pods name a claim by its name alone, and a claim that was deleted and made anew is another
 *           one: only the claim itself tells whether it is the one that has a device.
 * Errors    none: what isn't in the form that Kubernetes writes is another claim, and has nothing.
 * Pure.
 * Source    resource.k8s.io/v1 ResourceClaim: metadata.uid, status.allocation.devices.results[] with
 *           driver and device; Kubernetes 1.34 to 1.37.
 * Tests     tests/unit/kube/core/claim_test.c, fuzz/kubeclaim_fuzz.c
 */
#pragma once

#include "base/base.h"

#include <jansson.h>

/* Has the claim this UID? */
bool kube_claim_is(const json_t *claim, const char *uid);
/* Was the driver's device of this name allocated to it? */
bool kube_claim_has(const json_t *claim, const char *driver, const char *device);
