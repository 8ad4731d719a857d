/*
 * reading: what the driver said about this machine's GPUs at one moment.
 *
 * Owns      the one form that every source of real GPUs fills: NVML (nvml/), which a child sends as
 *           JSON, and `nvidia-smi -q -x` (gpu/core/smi.h). What a GPU can't tell (N/A, an older
 *           driver) is unknown, never zero and never a fault (N05).
 * Says      nothing of health over time: XIDs, lost GPUs and what a reset clears are gpu/core/belief.
 * Errors    INVALID_INPUT whose field names the member, such as "gpus[3].mig[0].gi".
 * Lifetimes `{0}` is empty; reading_deinit() frees.
 * Pure.
 */
#pragma once

#include "gpu/core/field.h"
#include "gpu/core/inventory.h"

#define READING_MAX_BYTES   ((size_t)1 << 20) /* of its JSON */
#define READING_MAX_MIG     16                /* of one GPU; NVIDIA's limit is 7 */
#define READING_MAX_MINOR   65535
#define READING_MAX_COMPUTE 1000
#define READING_MAX_MEMORY  ((int64_t)1 << 50) /* bytes of a GPU; a share of it is computed */
#define READING_ERROR_SIZE  160
#define READING_UNKNOWN     INT64_MIN

/* What goes to metrics only. The unit is in the name. */
enum reading_gauge {
	GAUGE_GPU_UTIL_PERCENT,
	GAUGE_MEMORY_UTIL_PERCENT,
	GAUGE_MEMORY_USED_BYTES,
	GAUGE_MEMORY_FREE_BYTES,
	GAUGE_TEMPERATURE_C,
	GAUGE_MEMORY_TEMPERATURE_C,
	GAUGE_POWER_MW,
	GAUGE_ENERGY_MJ, /* since the driver was loaded */
	GAUGE_SM_CLOCK_MHZ,
	GAUGE_MEMORY_CLOCK_MHZ,
	GAUGE_ECC_CORRECTED_VOLATILE, /* since the driver was loaded */
	GAUGE_ECC_UNCORRECTED_VOLATILE,
	GAUGE_ECC_CORRECTED_AGGREGATE, /* of the GPU's life */
	GAUGE_ECC_UNCORRECTED_AGGREGATE,
	GAUGE_REMAPPED_CORRECTABLE_ROWS,
	GAUGE_REMAPPED_UNCORRECTABLE_ROWS,
	GAUGE_PCIE_REPLAYS,
	GAUGES,
};

/* "gpu_util_percent" and so on: the member's name in JSON. */
const char *reading_gauge_name(enum reading_gauge gauge);

struct reading_mig {
	int32_t gi, ci;
	char profile[INVENTORY_PROFILE_SIZE]; /* "1g.10gb", as NVIDIA prints it without "MIG " */
	char uuid[ATOM_VISIBLE_SIZE];         /* "MIG-…" */
	int32_t start, size;  /* of its GPU instance, in eighths of the GPU; start -1: not told */
	int64_t memory_bytes; /* or READING_UNKNOWN */
};

struct reading_gpu {
	bool has_uuid; /* a lost GPU may be known by its PCI id only */
	struct atom_uuid uuid;
	char pci[INVENTORY_PCI_SIZE]; /* "000f:01:00.0", "" unknown (gpu/core/pci.h) */
	char model[INVENTORY_MODEL_SIZE];
	int32_t minor;                        /* of /dev/nvidia<minor>; -1 unknown */
	int64_t memory_bytes;                 /* or READING_UNKNOWN (shared memory, as on GB10) */
	int32_t compute_major, compute_minor; /* CUDA compute capability; 0.0 unknown */
	enum inventory_mig mig_capable;
	bool mig_enabled; /* the GPU itself can't be used then, with or without instances */
	VEC(struct reading_mig) mig;

	/* what health is decided by (gpu/core/health.h) */
	bool lost;                       /* the driver says that it fell off the bus */
	bool needs_reset;                /* "GPU requires reset", ERR! */
	char error[READING_ERROR_SIZE];  /* why this GPU could not be read; "" it could */
	enum health_row_remap row_remap; /* NONE when the GPU can't tell */
	int64_t ecc_uncorrectable;       /* volatile; 0 when the GPU can't tell */
	enum health_recovery recovery;   /* UNKNOWN when the driver can't tell */

	int64_t gauges[GAUGES]; /* or READING_UNKNOWN */
};

struct reading {
	char source[16]; /* "nvml", "nvidia-smi" */
	char driver[INVENTORY_DRIVER_SIZE];
	VEC(struct reading_gpu) gpus; /* in the driver's order */
};
void reading_deinit(struct reading *reading);

static inline void reading_cleanup(struct reading *reading)
{
	reading_deinit(reading);
}

/* What a driver calls something: without spaces around it, cut to `size`, and '?' for what isn't
 * printable ASCII, so that it goes over every wire as it is. */
void reading_text(char *out, size_t size, const char *text);

/* A GPU of which nothing is known yet: every number unknown, nothing wrong. */
struct reading_gpu reading_gpu_unknown(void);

/* One JSON object, without what is unknown; reading_read() of it gives the same reading, if its
 * texts are as reading_text() makes them. The caller drops it. */
json_t *reading_json(const struct reading *reading);
/* `*ret_reading` must be empty, and stays so on failure. */
MUST_CHECK bool reading_read(const json_t *object, struct reading *ret_reading,
			     struct error *error);
