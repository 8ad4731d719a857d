/*
 * built_node: a node made by a test, with its own arrays, for the rules of placement.
 */
#pragma once

#include "control/core/placement.h"

#include "lib/test.h"

#define MAX_GPUS  4
#define MAX_ATOMS 64
#define HOUR      ((int64_t)3600 * 1000)

struct built {
	struct placement_node node;
	struct placement_gpu gpus[MAX_GPUS];
	struct placement_atom atoms[MAX_ATOMS];
	struct placement_busy busy[32];
	struct placement_use uses[8];
};

static inline void add_gpu(struct built *built, const char *uuid, int slots, int migs)
{
	size_t gpu = built->node.gpus_count++;

	built->gpus[gpu] = (struct placement_gpu){uuid, "NVIDIA H100 80GB HBM3", true, 0};
	for (int i = 0; i < 1 + slots + migs; i++) {
		struct placement_atom *atom = &built->atoms[built->node.atoms_count++];

		*atom = (struct placement_atom){.atom = uuid,
						.profile = "",
						.visible_device = uuid,
						.gpu = gpu,
						.leaf_hi = PLACEMENT_LEAVES,
						.healthy = true};
		if (i >= 1 && i <= slots) {
			atom->class = PLACEMENT_CLASS_SLOT;
			atom->leaf_lo = PLACEMENT_LEAVES * (i - 1) / slots;
			atom->leaf_hi = PLACEMENT_LEAVES * i / slots;
		} else if (i > slots) {
			atom->class = PLACEMENT_CLASS_MIG;
			atom->profile = "1g.10gb";
			atom->leaf_lo = 128 * (i - slots - 1);
			atom->leaf_hi = atom->leaf_lo + 128;
		}
	}
}

static inline void build(struct built *built, const char *id)
{
	*built = (struct built){0};
	built->node = (struct placement_node){.id = id,
					      .ready = true,
					      .connected = true,
					      .knows_kubernetes = true,
					      .knows_limits = true,
					      .vcpus = 64,
					      .memory_bytes = 512,
					      .gpus = built->gpus,
					      .atoms = built->atoms,
					      .busy = built->busy,
					      .uses = built->uses};
}

static inline void take(struct built *built, size_t gpu, int lo, int hi, int64_t from, int64_t to)
{
	built->busy[built->node.busy_count++] =
		(struct placement_busy){gpu, lo, hi, from, to, false};
}

static inline struct placement_request request_for(const struct placement_need *needs, size_t count)
{
	return (struct placement_request){.needs = needs,
					  .needs_count = count,
					  .model = "H100",
					  .from_ms = 10 * HOUR,
					  .to_ms = 11 * HOUR,
					  .vcpus = -1,
					  .memory_bytes = -1};
}
