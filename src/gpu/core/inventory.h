/*
 * inventory: what one machine has: GPUs, the atoms they can be booked as, and their device nodes.
 *
 * Owns      the answer to "which atom is this now?": an atom id names a place, the visible device
 *           (the GPU's or MIG instance's own UUID) says what is there at the moment (DP-51).
 * Lifetimes `{0}` is empty; inventory_deinit() frees. Atoms are sorted by atom_compare().
 * Pure.
 */
#pragma once

#include "base/vec.h"
#include "gpu/core/atom.h"
#include "gpu/core/health.h"

#define INVENTORY_MAX_GPUS     64
#define INVENTORY_MAX_ATOMS    1024
#define INVENTORY_MODEL_SIZE   64
#define INVENTORY_PCI_SIZE     16 /* "0000:1a:00.0" */
#define INVENTORY_PROFILE_SIZE 16 /* "1g.10gb" */
#define INVENTORY_DRIVER_SIZE  32
#define INVENTORY_PATH_SIZE    64
#define INVENTORY_REASON_SIZE  160
#define INVENTORY_NUMA_UNKNOWN (-1)
#define INVENTORY_MAX_NODES    8 /* device nodes of one atom */

/* Can it be cut into MIG instances? */
enum inventory_mig {
	INVENTORY_MIG_UNKNOWN,
	INVENTORY_MIG_INCAPABLE,
	INVENTORY_MIG_CAPABLE,
};

struct inventory_gpu {
	struct atom_uuid uuid;
	char model[INVENTORY_MODEL_SIZE];
	int64_t memory_bytes;
	char pci[INVENTORY_PCI_SIZE];
	int32_t numa;
	int32_t minor; /* of /dev/nvidia<minor>; -1 unknown, and then unhealthy */
	int32_t compute_major, compute_minor; /* CUDA compute capability; 0.0 unknown */
	enum inventory_mig mig;
	struct health health;
};

struct inventory_atom {
	struct atom atom;
	struct atom_range range;
	char profile[INVENTORY_PROFILE_SIZE]; /* MIG, else "" */
	char visible[ATOM_VISIBLE_SIZE];      /* "GPU-…" or "MIG-…" */
	int32_t numa;                         /* its GPU's (N06: never lost for a part) */
	struct health health;                 /* its GPU's */
	int64_t memory_bytes;
};

/* Where the host keeps the nodes that containers see as /dev/nvidia…; on real GPUs the same paths.
 */
struct inventory_nodes {
	char gpu_prefix[INVENTORY_PATH_SIZE]; /* host path of GPU `minor` is prefix + (base + minor)
					       */
	int32_t gpu_base;
	char control[INVENTORY_PATH_SIZE]; /* as /dev/nvidiactl */
	char uvm[INVENTORY_PATH_SIZE];
	char uvm_tools[INVENTORY_PATH_SIZE];
	char caps[INVENTORY_PATH_SIZE]; /* "": /dev/nvidia-caps/nvidia-cap<n> itself */
};

struct inventory {
	bool simulated;
	char simulated_reason[INVENTORY_REASON_SIZE];
	char driver[INVENTORY_DRIVER_SIZE];
	struct inventory_nodes nodes;
	VEC(struct inventory_gpu) gpus;
	VEC(struct inventory_atom) atoms;
};
void inventory_deinit(struct inventory *inventory);

static inline void inventory_cleanup(struct inventory *inventory)
{
	inventory_deinit(inventory);
}

/* NULL when there is none. */
const struct inventory_gpu *inventory_find_gpu(const struct inventory *inventory,
					       struct atom_uuid uuid);
const struct inventory_atom *inventory_find_atom(const struct inventory *inventory,
						 const struct atom *atom);

/* Adds an atom of `gpu` with its NUMA node, health and share of the memory. The caller sets what else
 * tells it from the others, and sorts when all are there. Valid until the next. */
struct inventory_atom *inventory_push_atom(struct inventory *inventory,
					   const struct inventory_gpu *gpu, enum atom_class class,
					   struct atom_range range);
/* The GPU as a whole, and its slots. */
void inventory_push_whole(struct inventory *inventory, const struct inventory_gpu *gpu,
			  int32_t slots);
void inventory_sort(struct inventory *inventory);

/* One device node that a container gets. */
struct inventory_node {
	char path[INVENTORY_PATH_SIZE];      /* in the container */
	char host_path[INVENTORY_PATH_SIZE]; /* on the host */
};

/* The nodes of this atom alone, and those that every GPU container needs. Returns how many were
 * written. */
size_t inventory_atom_nodes(const struct inventory *inventory, const struct atom *atom,
			    struct inventory_node out[INVENTORY_MAX_NODES]);
size_t inventory_common_nodes(const struct inventory *inventory,
			      struct inventory_node out[INVENTORY_MAX_NODES]);
