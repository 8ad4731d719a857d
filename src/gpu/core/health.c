#include "gpu/core/health.h"

#include "gpu/core/xid.h"

#include <stdio.h>

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

/* By UUID: the numbers of nvidia-smi move when a GPU is gone. */
#define NEXT_RESET                                                                                 \
	"Reset it once no pod holds it and bcd is stopped: nvidia-smi --gpu-reset -i GPU-UUID."
#define NEXT_RESTART "Restart the machine; if it comes back so, its hardware needs service."
#define NEXT_DRIVER  "Look at the driver: does nvidia-smi answer?"

static struct health bad(const char *cause, const char *next)
{
	struct health health = health_bad(cause);

	health.next = next;
	return health;
}

static const char *next_for_xid(int32_t xid)
{
	const char *action = xid_action(xid);

	if (str_equal(action, "RESTART_BM"))
		return NEXT_RESTART;
	if (str_starts(action, "WORKFLOW_NVLINK"))
		return "Follow NVIDIA's NVLink workflow for this XID, then reset the GPUs of the "
		       "link.";
	return NEXT_RESET;
}

/* The driver's own words come first: they say what to do. */
static const char *recovery_cause(enum health_recovery recovery)
{
	switch (recovery) {
	case HEALTH_RECOVERY_UNKNOWN:
	case HEALTH_RECOVERY_NONE:
		return NULL;
	case HEALTH_RECOVERY_RESET:
		return "the driver asks for a reset";
	case HEALTH_RECOVERY_REBOOT:
		return "the driver asks for a restart of the machine";
	case HEALTH_RECOVERY_DRAIN_P2P:
		return "the driver asks to drain peer-to-peer traffic";
	case HEALTH_RECOVERY_DRAIN_RESET:
		return "the driver asks to drain it and reset it";
	}
	assert(false && "no such advice");
}

static bool find_fault(const struct health_facts *facts, int32_t *ret_xid)
{
	for (size_t i = 0; i < facts->xid_count; i++) {
		if (!xid_is_fault(facts->policy, facts->xids[i], false))
			continue;
		*ret_xid = facts->xids[i];
		return true;
	}
	return false;
}

struct health health_decide(const struct health_facts *facts)
{
	const char *recovery = recovery_cause(facts->recovery);
	char cause[HEALTH_CAUSE_SIZE];
	int32_t xid;

	if (facts->lost)
		return bad("lost: no longer on the PCI bus", NEXT_RESTART);
	if (facts->hang)
		return bad("unknown: the driver does not answer", NEXT_DRIVER);
	/* What is known to be bad says more than what isn't known. */
	if (find_fault(facts, &xid)) {
		snprintf(cause, sizeof cause, "XID %d%s%s", (int)xid, *xid_what(xid) ? ": " : "",
			 xid_what(xid));
		return bad(cause, next_for_xid(xid));
	}
	if (facts->doubt) {
		snprintf(cause, sizeof cause, "unknown: %s", facts->doubt);
		return bad(cause, NEXT_DRIVER);
	}
	if (facts->row_remap == HEALTH_REMAP_FAILED)
		return bad("row remap failed", "Its memory needs service: replace the GPU.");
	if (facts->row_remap == HEALTH_REMAP_PENDING)
		return bad("row remap pending", NEXT_RESET);
	if (facts->ecc_uncorrectable > 0) {
		snprintf(cause, sizeof cause, "%lld uncorrectable ECC errors since driver load",
			 (long long)facts->ecc_uncorrectable);
		return bad(cause, NEXT_RESET);
	}
	if (facts->needs_reset)
		return bad("requires a reset", NEXT_RESET);
	if (recovery)
		return bad(recovery,
			   facts->recovery == HEALTH_RECOVERY_REBOOT ? NEXT_RESTART : NEXT_RESET);
	return health_good();
}
