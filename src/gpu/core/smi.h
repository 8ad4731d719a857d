/*
 * smi: what nvidia-smi prints, as a reading.
 *
 * Three commands, each only when the one before leaves something to ask:
 *
 *     nvidia-smi -q -x      XML: all but a MIG instance's UUID, profile and placement
 *     nvidia-smi -L         text: UUIDs and profiles of MIG instances, by index
 *     nvidia-smi mig -lgi   text: placements of GPU instances, by the GPU's index
 *
 * Owns      the forms that drivers of 340 to 610 write them in. What isn't there, "N/A", "[N/A]",
 *           "Not Supported", "Unknown Error" or in an unknown unit is unknown and never a fault;
 *           "GPU is lost", "GPU requires reset" and "ERR!" are (N05).
 * One GPU   that can't be read spoils no other: what is printed about it beside the XML becomes a GPU
 *           known by its PCI id (N01).
 * Hostile   names of processes may hold any bytes, so they are cut out before the XML is read.
 *           Entities are refused, nothing outside is read, depth and sizes are bounded.
 * Errors    UNAVAILABLE with a hint: nvidia-smi says why it can't tell; INVALID_INPUT: no report.
 * Pure.
 */
#pragma once

#include "base/buf.h"
#include "gpu/core/reading.h"

#define SMI_MAX_BYTES ((size_t)8 << 20) /* of one output; 16 GPUs of 7 instances make about 1 MiB */

/* What one command wrote, and how it ended. Both texts are NUL-ended and borrowed. */
struct smi_said {
	const char *out, *err;
	size_t out_length;
	int exit_status; /* -1: ended by a signal */
};

/* "Device <index>" of its GPU in `-L` is reading.gpus.items[gpu].mig.items[mig]. */
struct smi_mig {
	size_t gpu, mig;
	int32_t index;
};

struct smi {
	struct reading reading;
	VEC(struct smi_mig) migs; /* empty: nothing more to ask for */
};
void smi_deinit(struct smi *smi);

static inline void smi_cleanup(struct smi *smi)
{
	smi_deinit(smi);
}

/* `nvidia-smi -q -x`. `*ret_smi` must be empty, and stays so on failure. */
MUST_CHECK bool smi_read(const struct smi_said *said, struct smi *ret_smi, struct error *error);

/* Completes the MIG instances by `-L` and `mig -lgi`; "" is a command that could not be run. What
 * neither tells stays unknown. */
void smi_add_mig(struct smi *smi, const char *list, const char *places);

/* Why a command failed, in NVIDIA's words, and what to do. Returns false. */
bool smi_failure(const struct smi_said *said, struct error *error);
