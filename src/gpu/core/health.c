#include "gpu/core/health.h"

#include <stdio.h>

/* NVIDIA's XID catalogue: the ones whose advice is to reset, drain or replace the GPU. */
static const int16_t fault_xids[] = {
	48,  62,  63,  64,  74,  79,  92,  95,  109, 119, 120, 121,
	123, 136, 137, 140, 143, 144, 145, 146, 147, 148, 149, 150,
};

static const char *const remap_names[] = {
	[HEALTH_REMAP_NONE] = "none",
	[HEALTH_REMAP_PENDING] = "pending",
	[HEALTH_REMAP_FAILED] = "failed",
};

static const char *const recovery_names[] = {
	[HEALTH_RECOVERY_UNKNOWN] = "unknown",     [HEALTH_RECOVERY_NONE] = "none",
	[HEALTH_RECOVERY_RESET] = "reset",         [HEALTH_RECOVERY_REBOOT] = "reboot",
	[HEALTH_RECOVERY_DRAIN_P2P] = "drain_p2p", [HEALTH_RECOVERY_DRAIN_RESET] = "drain_reset",
};

bool health_xid_is_fault(int32_t xid)
{
	for (size_t i = 0; i < ARRAY_SIZE(fault_xids); i++)
		if (fault_xids[i] == xid)
			return true;
	return false;
}

const char *health_row_remap_name(enum health_row_remap remap)
{
	assert((size_t)remap < ARRAY_SIZE(remap_names));
	return remap_names[remap];
}

bool health_row_remap_parse(const char *name, enum health_row_remap *ret_remap)
{
	for (size_t i = 0; i < ARRAY_SIZE(remap_names); i++) {
		if (!str_equal(name, remap_names[i]))
			continue;
		*ret_remap = (enum health_row_remap)i;
		return true;
	}
	return false;
}

const char *health_recovery_name(enum health_recovery recovery)
{
	assert((size_t)recovery < ARRAY_SIZE(recovery_names));
	return recovery_names[recovery];
}

bool health_recovery_parse(const char *name, enum health_recovery *ret_recovery)
{
	for (size_t i = 0; i < ARRAY_SIZE(recovery_names); i++) {
		if (!str_equal(name, recovery_names[i]))
			continue;
		*ret_recovery = (enum health_recovery)i;
		return true;
	}
	return false;
}

struct health health_good(void)
{
	return (struct health){.healthy = true};
}

struct health health_bad(const char *cause)
{
	struct health health = {0};

	str_copy(health.cause, sizeof health.cause, cause);
	for (char *at = health.cause; *at;
	     at++) /* it goes over wires that want UTF-8, cut or not */
		if ((unsigned char)*at < ' ' || (unsigned char)*at > '~')
			*at = '?';
	return health;
}

struct health health_decide(const struct health_facts *facts)
{
	char cause[HEALTH_CAUSE_SIZE];

	if (facts->lost)
		return health_bad("lost: no longer on the PCI bus");
	if (facts->hang)
		return health_bad("unknown: the driver does not answer");
	for (size_t i = 0; i < facts->xid_count; i++) {
		if (!health_xid_is_fault(facts->xids[i]))
			continue;
		snprintf(cause, sizeof cause, "XID %d", (int)facts->xids[i]);
		return health_bad(cause);
	}
	if (facts->row_remap == HEALTH_REMAP_FAILED)
		return health_bad("row remap failed");
	if (facts->row_remap == HEALTH_REMAP_PENDING)
		return health_bad("row remap pending");
	if (facts->ecc_uncorrectable > 0) {
		snprintf(cause, sizeof cause, "%lld uncorrectable ECC errors since driver load",
			 (long long)facts->ecc_uncorrectable);
		return health_bad(cause);
	}
	return health_good();
}
