/*
 * podprocess: what procfs tells of pods and of NVIDIA's GPUs, read from its texts.
 *
 * Pods      by /proc/<pid>/cgroup, version 1 and 2, as the kubelet names them with either of its
 *           cgroup drivers: below "kubepods" or "…kubepods.slice", whatever is above that. Seen
 *           from another cgroup namespace that part is missing; the pod's own name is enough.
 * GPUs      /proc/driver/nvidia/gpus/<bus>/information: "GPU UUID:" and "Device Minor:".
 * Doubt     A text that looks like a pod's counts as one, also when the UID can't be told.
 * Pure.
 * Tests     tests/unit/node/core/podprocess_test.c, fuzz/podprocess_fuzz.c
 */
#pragma once

#include "base/base.h"
#include "gpu/core/atom.h"

#define PODPROCESS_UID_SIZE       40
#define PODPROCESS_CONTAINER_SIZE 13 /* the beginning of a container's id, as tools print it */
#define PODPROCESS_MAX_TEXT       ((size_t)64 << 10)

struct podprocess {
	char pod[PODPROCESS_UID_SIZE]; /* "" when it can't be told */
	bool is_static;                /* of a manifest, not of the API server: by its UID's form */
	char container[PODPROCESS_CONTAINER_SIZE]; /* "" when it can't be told */
};

/* Is this the cgroup of a pod's process? `*ret` is set if so. */
bool podprocess_read(const char *cgroup, size_t length, struct podprocess *ret);

/* False: it doesn't say which GPU has which number. */
bool podprocess_minor(const char *text, size_t length, struct atom_uuid *ret_gpu,
		      int32_t *ret_minor);
