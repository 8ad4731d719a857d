/*
 * checkpoint: kubelet_internal_checkpoint, which lets pods keep their devices across a restart.
 *
 * Format    the kubelet's JSON: Data.PodDeviceEntries (pod, container, resource, device ids by NUMA
 *           node with "-1" for none, the plugin's answer in base64), Data.RegisteredDevices,
 *           Checksum. The checksum is of a kind that only Go can compute: written as 0, not read.
 * Effects   none.
 * Tests     tests/unit/standin/checkpoint_test.c
 */
#pragma once

#include "standin/manager.h"

#define CHECKPOINT_NAME        "kubelet_internal_checkpoint"
#define CHECKPOINT_MAX_SIZE    ((size_t)16 << 20)
#define CHECKPOINT_MAX_ENTRIES 65536

void checkpoint_format(const struct manager *manager, struct buf *out);

/* Into an empty manager; on failure it stays empty. `now` is when its plugins were last there. */
MUST_CHECK bool checkpoint_parse(const void *data, size_t length, struct mono now,
				 struct manager *manager, struct error *error);
