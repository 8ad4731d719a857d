/* What a belief is told, by readings and by the kernel log, and what it makes of a GPU (header only). */
#pragma once

#include "gpu/core/belief.h"

#include "lib/test.h"

#include <stdio.h>

static inline struct atom_uuid uuid_of(int n)
{
	struct atom_uuid uuid = {{0x5c, 0xa1}};

	uuid.bytes[15] = (uint8_t)n;
	return uuid;
}

/* GPU n of a reading: at 0000:1n:00.0, /dev/nvidia<n>, well. */
static inline struct reading_gpu *add(struct reading *reading, int n)
{
	struct reading_gpu *gpu = vec_push(&reading->gpus);

	*gpu = reading_gpu_unknown();
	gpu->has_uuid = true;
	gpu->uuid = uuid_of(n);
	gpu->minor = n;
	gpu->memory_bytes = (int64_t)80 << 30;
	gpu->recovery = HEALTH_RECOVERY_NONE;
	str_copy(gpu->model, sizeof gpu->model, "NVIDIA H100 80GB HBM3");
	snprintf(gpu->pci, sizeof gpu->pci, "0000:1%d:00.0", n);
	return gpu;
}

/* Asked for after all that was heard so far, unless `late`. */
static inline void take_when(struct belief *belief, struct reading *reading, bool late)
{
	int32_t numa[INVENTORY_MAX_GPUS];

	for (size_t i = 0; i < reading->gpus.count; i++)
		numa[i] = reading->gpus.items[i].uuid.bytes[15] / 2;
	str_copy(reading->source, sizeof reading->source, "nvml");
	str_copy(reading->driver, sizeof reading->driver, "580.95.05");
	if (!late)
		belief_ask(belief);
	belief_reading(belief, reading, numa);
}

static inline void take(struct belief *belief, struct reading *reading)
{
	take_when(belief, reading, false);
}

/* Four GPUs that are well. */
static inline void take_four(struct belief *belief)
{
	CLEANUP(reading) struct reading reading = {0};

	for (int n = 0; n < 4; n++)
		add(&reading, n);
	take(belief, &reading);
}

static inline const char *cause(const struct belief *belief, int n)
{
	static char text[HEALTH_CAUSE_SIZE];
	CLEANUP(inventory) struct inventory inventory = {0};
	const struct inventory_gpu *gpu;

	belief_inventory(belief, 0, &inventory);
	gpu = inventory_find_gpu(&inventory, uuid_of(n));
	str_copy(text, sizeof text, gpu ? gpu->health.cause : "not known");
	if (gpu) {
		assert_int_equal(gpu->health.healthy, *text == '\0');
		vec_each (&inventory.atoms, const struct inventory_atom *atom)
			if (memcmp(&atom->atom.gpu, &gpu->uuid, sizeof gpu->uuid) == 0)
				assert_string_equal(atom->health.cause, text);
	}
	return text;
}

#define expect_cause(belief, n, text) assert_string_equal(cause(belief, n), text)

static inline struct klog_event xid_at(int n, int32_t xid)
{
	static uint64_t sequence;
	struct klog_event event = {.kind = KLOG_XID, .xid = xid, .sequence = ++sequence};

	snprintf(event.pci, sizeof event.pci, "0000:1%d:00.0", n);
	return event;
}

static inline bool hear(struct belief *belief, int n, int32_t xid)
{
	struct klog_event event = xid_at(n, xid);

	return belief_event(belief, &event);
}

static inline void reset(struct belief *belief, int n)
{
	struct klog_event event = xid_at(n, 0);

	event.kind = KLOG_RESET;
	belief_event(belief, &event);
}
