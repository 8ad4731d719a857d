/*
 * scenario: the simulated GPUs of a machine, as one versioned TOML file.
 *
 * Owns      the file's form (docs/formats/gpus.toml.md), what may stand in it, and what inventory
 *           it means. The file is watched while bcd runs; `bcd sim set` edits it.
 * Errors    INVALID_INPUT naming the field, such as "gpus[3].mig[0].start".
 * Lifetimes `{0}` is empty; scenario_deinit() frees.
 * Pure.
 */
#pragma once

#include "base/buf.h"
#include "gpu/core/field.h"
#include "gpu/core/reading.h"

#define SCENARIO_VERSION       1
#define SCENARIO_MAX_FILE      ((size_t)1 << 20)
#define SCENARIO_MAX_MIG       16   /* of one GPU */
#define SCENARIO_MAX_SLOTS     64   /* of one GPU */
#define SCENARIO_SLOTS_DEFAULT (-1) /* as [gpu] slots of bcd's configuration says */
#define SCENARIO_RECOVERY_SIZE 16
#define SCENARIO_MIN_GAUGE     (-(int64_t)1000) /* temperatures below zero are real */

struct scenario_mig {
	char profile[INVENTORY_PROFILE_SIZE];
	int32_t start, size; /* in eighths of the GPU's memory */
	int32_t gi, ci;
	char uuid[ATOM_VISIBLE_SIZE]; /* "MIG-…" */
};

struct scenario_gpu {
	struct atom_uuid uuid;
	char model[INVENTORY_MODEL_SIZE];
	int64_t memory_mib;
	char pci[INVENTORY_PCI_SIZE];
	int32_t numa, minor, slots;
	VEC(struct scenario_mig) mig;
	char recovery[SCENARIO_RECOVERY_SIZE]; /* the driver's advice: "none", "reset", … */
	struct health_facts facts;
	int64_t gauges[GAUGES]; /* for metrics only; or READING_UNKNOWN */
};

struct scenario {
	char driver[INVENTORY_DRIVER_SIZE];
	struct inventory_nodes nodes;
	VEC(struct scenario_gpu) gpus;
};
void scenario_deinit(struct scenario *scenario);

static inline void scenario_cleanup(struct scenario *scenario)
{
	scenario_deinit(scenario);
}

/* From the TOML file's tree. `*ret_scenario` must be empty. */
MUST_CHECK bool scenario_read(json_t *tree, struct scenario *ret_scenario, struct error *error);
/* Back to TOML: scenario_read() of it gives the same scenario. */
void scenario_format(const struct scenario *scenario, struct buf *out);

/* "8xH100", "4xA100", "1xH200": that many whole GPUs, half of them on each NUMA node. `seed` makes
 * their UUIDs: two machines with different seeds never have the same GPU. */
MUST_CHECK bool scenario_preset(const char *name, uint64_t seed, struct scenario *ret_scenario,
				struct error *error);
#define SCENARIO_PRESETS "<1 to 16>x<H100|H200|A100>"

/* One "key=value" on one GPU, as in `bcd sim set 0 xid=79`. `fresh` makes the UUIDs of new MIG
 * instances: the instances of before are gone then, also those with the same numbers. */
MUST_CHECK bool scenario_set(struct scenario_gpu *gpu, const char *assignment, uint64_t fresh,
			     struct error *error);
/* By number ("3") or by a prefix of the UUID that only one GPU has. */
MUST_CHECK bool scenario_find(const struct scenario *scenario, const char *name, size_t *ret_index,
			      struct error *error);

/* none, reset, reboot or drain? */
bool scenario_recovery_valid(const char *recovery);

/* How many eighths of a GPU a profile such as "3g.40gb" takes; 0 when it is none or doesn't fit. */
int32_t scenario_profile_eighths(const char *profile, int64_t memory_mib);

/* What is known of its model: compute capability, MIG. */
void scenario_abilities(const struct scenario_gpu *from, struct inventory_gpu *gpu);
/* What the machine has. `slots` is for GPUs that don't say; `*ret_inventory` must be empty. */
void scenario_inventory(const struct scenario *scenario, int32_t slots, const char *reason,
			struct inventory *ret_inventory);
/* The same as a driver would tell it; the source is "simulated". `*ret_reading` must be empty. */
void scenario_reading(const struct scenario *scenario, struct reading *ret_reading);
