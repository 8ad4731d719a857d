/*
 * belief: what bcd believes of the machine's GPUs, from all that it has been told so far.
 *
 * Owns      folding readings, XIDs, resets and failures over time (DP-10, 11, 14, 51, 52):
 *           - A GPU stays known by its UUID and place when the driver lists it no longer: lost, and
 *             unhealthy, until the machine boots. One sick GPU touches no other.
 *           - An XID counts for the GPU at its place, listed or not; where bcd knows none it waits for
 *             the GPU that appears there.
 *           - XIDs end by what a source says, never by time: the kernel log's record of a reset, the
 *             driver's advice that was something after the last XID and is "none" again, a driver
 *             that was loaded again, a new boot. Counters that begin anew end nothing: without
 *             persistence mode a driver restarts them when its last client goes, bcd itself maybe.
 *           - A GPU that comes back after it was lost is well if nothing else is wrong with it.
 *           - Two that claim one UUID or one device node are both unhealthy.
 *           - While the source can't be read, every GPU is unhealthy.
 * Record    belief_json() and belief_read_record() carry it over a restart of bcd
 *           (docs/formats/health.json.md).
 * Lifetimes `{0}` is empty; belief_deinit() frees.
 * Pure.
 * Tests     tests/unit/gpu/core/belief_test.c, belief_xid_test.c, belief_record_test.c
 */
#pragma once

#include "gpu/core/cut.h"
#include "gpu/core/klog.h"
#include "gpu/core/xid.h"

#define BELIEF_RECORD_VERSION 1
#define BELIEF_MAX_RECORD     ((size_t)1 << 20)
#define BELIEF_MAX_STRAYS     256
#define BELIEF_BOOT_SIZE      37
#define BELIEF_STRANGERS_SIZE 400

struct belief_gpu {
	struct atom_uuid uuid;
	char pci[INVENTORY_PCI_SIZE]; /* "" unknown */
	char model[INVENTORY_MODEL_SIZE];
	int32_t minor; /* -1 unknown */
	int32_t numa;
	int64_t memory_bytes;                 /* 0 unknown */
	int32_t compute_major, compute_minor; /* as the last reading that told; 0.0 unknown */
	enum inventory_mig mig_capable;
	bool mig_enabled;
	struct cuts cuts;

	bool listed;                    /* in the newest reading */
	char error[READING_ERROR_SIZE]; /* why that reading couldn't tell; "" it could */
	struct health_facts facts;      /* of that reading; the XIDs are those not ended */
	bool asked;                     /* the driver asked for something since the last of them */
	bool unasked;                   /* it was not asked since then: a reading may be older */
	int32_t last_xid;               /* any XID heard by this process, fault or not; 0: none */
};

struct belief_gpus VEC_BODY(struct belief_gpu);

/* An XID of a place where no GPU is known. */
struct belief_stray {
	char pci[INVENTORY_PCI_SIZE];
	int32_t xid;
};
struct belief_strays VEC_BODY(struct belief_stray);

struct belief {
	char boot_id[BELIEF_BOOT_SIZE];
	uint64_t driver; /* another number after each load of the driver in a boot; 0 unknown */
	uint64_t log_sequence; /* of the last record of the kernel log that was looked at */
	bool read;             /* by this process, at least once */
	char failure[HEALTH_CAUSE_SIZE]; /* why the source can't be read now; "" it can */
	char source[16];
	char driver_version[INVENTORY_DRIVER_SIZE];
	struct belief_gpus gpus; /* by place */
	char strangers
		[BELIEF_STRANGERS_SIZE]; /* of the newest reading: GPUs that nobody knows; "" none */
	struct belief_strays strays;     /* in the order in which they came */
	uint64_t record; /* counts what belief_json() would tell otherwise than before */
	bool doubted;    /* the record of before can't be read: XIDs of before are unknown */
	struct xid_policy policy;
};
void belief_deinit(struct belief *belief);

static inline void belief_cleanup(struct belief *belief)
{
	belief_deinit(belief);
}

/* `driver` as belief.driver: on another one than before, what the old driver suffered is over, and it
 * is true. */
bool belief_driver(struct belief *belief, uint64_t driver);
/* The source is asked now: its answer knows of every XID so far. */
void belief_ask(struct belief *belief);
/* What the source says now. `numa` has a number for each of its GPUs (GW-19). */
void belief_reading(struct belief *belief, const struct reading *reading, const int32_t *numa);
/* The source can't be read: all is doubted until the next reading. */
void belief_failure(struct belief *belief, const char *why);
/* Of the kernel log or the driver's events; true when some GPU's health may be another now. */
bool belief_event(struct belief *belief, const struct klog_event *event);

/* The same of an XID whose GPU is named by more than its place. */
bool belief_xid(struct belief *belief, struct atom_uuid uuid, const struct klog_event *event);

/* Everything that is known, with its health. `*ret_inventory` must be empty. */
void belief_inventory(const struct belief *belief, int32_t slots, struct inventory *ret_inventory);
/* NULL when it isn't known. */
const struct belief_gpu *belief_find(const struct belief *belief, struct atom_uuid uuid);

json_t *belief_json(const struct belief *belief);
/* Of an older boot than `belief->boot_id` nothing is taken over. `belief` must have no GPUs. */
MUST_CHECK bool belief_read_record(struct belief *belief, const json_t *object,
				   struct error *error);
/* What a record that could not be read before says after all. `record` is emptied. */
void belief_merge(struct belief *belief, struct belief *record);
