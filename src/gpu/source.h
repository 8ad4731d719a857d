/*
 * source: where this machine's GPUs come from: the simulated machine's file, or the driver.
 *
 * Simulated the file is watched. The driver is asked each SOURCE_PASS_MS through NVML in a child
 *           process (child.h), or through nvidia-smi where there is no NVML (smi.h); XIDs come as
 *           they happen, from NVML's events and from the kernel's log (klog.h), and start a pass.
 * Failing   what can't be read leaves the last inventory with every GPU unhealthy, and says why:
 *           unknown is not healthy. What is believed over time is gpu/core/belief.h's to say.
 * Threads   the loop's.
 */
#pragma once

#include "gpu/core/reading.h"
#include "gpu/core/xid.h"
#include "sys/loop.h"

#define SOURCE_PASS_MS 5000

struct source;

enum source_kind {
	SOURCE_AUTO,       /* NVML, else nvidia-smi */
	SOURCE_NVML,       /* nothing else */
	SOURCE_NVIDIA_SMI, /* nothing else */
	SOURCE_SIM,
};

/* Texts are copied. */
struct source_options {
	enum source_kind kind;
	int32_t slots; /* of GPUs that don't say */
	/* SOURCE_SIM */
	const char *file;   /* the scenario */
	const char *reason; /* why GPUs are simulated, for people */
	/* the driver's */
	const char *data;         /* bcd's data folder: health.json */
	const char *root;         /* the host's */
	const char *sys;          /* /sys */
	const char *kernel_log;   /* "" none is followed */
	const char *program;      /* bcd itself, for the child; NULL: this program */
	const char *nvml_library; /* libnvidia-ml.so.1; NULL: where a driver has it below `root` */
	const char *nvidia_smi;   /* NULL: where a driver has it below `root` */
	int64_t deadline_ms;      /* of the driver's answers; 0: as child.h and smi.h say */
	struct xid_policy xids;
};

/* `on_change` comes from the loop, never from inside a call. Reads the file once; a failure is in
 * source_error(). */
struct source *source_create(struct loop *loop, const struct source_options *options,
			     loop_fn *on_change, void *arg);
void source_destroy(struct source *source);

/* Looks for what changed, asks again when it is time; due once a second. True when the inventory may be
 * another now. */
bool source_look(struct source *source);

const struct inventory *source_inventory(const struct source *source); /* until the next look */
/* False until the GPUs were read, or couldn't be, for the first time: the inventory says nothing yet.
 */
bool source_settled(const struct source *source);
const char *source_name(const struct source *source); /* "nvml", "nvidia-smi", "simulated", "" */
/* What the driver said last, for metrics; NULL: nothing was read yet. Until the caller returns
 * to the loop. */
const struct reading *source_reading(const struct source *source);
struct mono source_read_at(const struct source *source); /* when it was said */
uint64_t source_failures(const struct source *source); /* tries to read them that failed, so far */
/* The last XID of a GPU that this process heard of, fault or not; 0: none. */
int32_t source_last_xid(const struct source *source, struct atom_uuid gpu);
/* What is known of a GPU's health, with the XIDs that nothing has ended; NULL: nothing. Until the
 * caller returns to the loop. */
const struct health_facts *source_facts(const struct source *source, struct atom_uuid gpu);

/* NULL: readable. */
const struct error *source_error(const struct source *source);
/* GPUs that the driver can't tell from any other, each by its place and why; NULL: none. */
const char *source_strangers(const struct source *source);
/* Why the kernel's log isn't followed; NULL: it is, or need not be. */
const struct error *source_log_error(const struct source *source);
/* How often records of the kernel's log were overwritten before they were read. */
uint64_t source_log_lost(const struct source *source);
/* Why what was known of the GPUs' health could not be read or written; NULL: it could. */
const struct error *source_record_error(const struct source *source);
/* The marker that makes every GPU doubtful for as long as it stands (belief.h), else NULL. */
const char *source_marker(const struct source *source);
