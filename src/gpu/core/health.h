/*
 * health: may a GPU be handed out?
 *
 * Causes, each for as long as it lasts (DP-10): the GPU is gone or its driver doesn't answer, a row
 * remap is pending or failed, uncorrectable ECC errors since the driver was loaded, an XID that is
 * a fault of the GPU (gpu/core/xid.h), the driver's own advice to reset or restart. What can't be
 * told for sure is unhealthy and says "unknown: …".
 * Pure.
 */
#pragma once

#include "base/base.h"

#define HEALTH_CAUSE_SIZE 96
#define HEALTH_MAX_XIDS   16

enum health_row_remap {
	HEALTH_REMAP_NONE,
	HEALTH_REMAP_PENDING,
	HEALTH_REMAP_FAILED,
};

/* The driver's advice ("GPU Recovery Action", NVML_FI_DEV_GET_GPU_RECOVERY_ACTION). */
enum health_recovery {
	HEALTH_RECOVERY_UNKNOWN, /* the driver is too old to tell */
	HEALTH_RECOVERY_NONE,
	HEALTH_RECOVERY_RESET,
	HEALTH_RECOVERY_REBOOT,
	HEALTH_RECOVERY_DRAIN_P2P,
	HEALTH_RECOVERY_DRAIN_RESET,
};

struct xid_policy;

/* What is known about one GPU. Whatever can't be told is left at zero: no fault is known (N05). */
struct health_facts {
	bool lost;         /* no longer on the bus */
	bool hang;         /* the driver doesn't answer about it */
	const char *doubt; /* else why nothing can be told; NULL: it can */
	bool needs_reset;  /* the driver says so where a value should stand */
	enum health_recovery recovery;
	enum health_row_remap row_remap;
	int64_t ecc_uncorrectable;     /* since the driver was loaded */
	int32_t xids[HEALTH_MAX_XIDS]; /* seen and not cleared by a reset */
	size_t xid_count;
	const struct xid_policy *policy; /* which of them count; NULL: as the catalogue says */
};

struct health {
	bool healthy;
	char cause[HEALTH_CAUSE_SIZE]; /* "" when healthy */
	const char *next;              /* what a person can do, a sentence; NULL: nothing to say */
};

struct health health_decide(const struct health_facts *facts);
struct health health_good(void);
struct health health_bad(const char *cause); /* cut when it is too long */

const char *health_row_remap_name(enum health_row_remap remap); /* "none", "pending", "failed" */
bool health_row_remap_parse(const char *name, enum health_row_remap *ret_remap);

/* "unknown", "none", "reset", "reboot", "drain_p2p", "drain_reset" */
const char *health_recovery_name(enum health_recovery recovery);
bool health_recovery_parse(const char *name, enum health_recovery *ret_recovery);
