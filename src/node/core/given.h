/*
 * given: what the kubelet's checkpoint says it gave to pods.
 *
 * Why       a kubelet that starts while its API server is away lists no pods in pod-resources, for
 *           as long as that lasts, though they run. Its checkpoint still has what they hold.
 * Format    kubelet_internal_checkpoint of Kubernetes 1.20 to 1.37: Data.PodDeviceEntries[] with
 *           PodUID, ContainerName, ResourceName, DeviceIDs {"NUMA node": [id]}. An entry outlives
 *           its pod until the kubelet allocates again; the rest of the file isn't looked at.
 * Errors    INVALID_INPUT naming the field.
 * Pure.
 * Tests     tests/unit/node/core/given_test.c, fuzz/given_fuzz.c
 */
#pragma once

#include "base/error.h"
#include "base/vec.h"
#include "node/core/holds.h"

#define GIVEN_FILE        "device-plugins/kubelet_internal_checkpoint"
#define GIVEN_MAX_FILE    ((size_t)16 << 20)
#define GIVEN_MAX_ENTRIES 65536
#define GIVEN_UID_SIZE    65
#define GIVEN_NAME_SIZE   64

struct given {
	char pod[GIVEN_UID_SIZE]; /* letters, digits, "-": a name below the kubelet's pods/ */
	char container[GIVEN_NAME_SIZE];
	char id[HOLDS_ID_SIZE];
};

/* Of bcd.dev devices only; `{0}` is none. */
struct given_list {
	VEC(struct given) items;
};

static inline void given_list_cleanup(struct given_list *list)
{
	vec_deinit(&list->items);
}

MUST_CHECK bool given_parse(const char *text, size_t length, struct given_list *ret_list,
			    struct error *error);
