#include "gpu/core/xid.h"

enum form {
	APPLICATION, /* the program's doing; the GPU goes on */
	FAULT,
	FAULT_UNLESS_NONFATAL,
};

static const struct row {
	int16_t xid;
	enum form form;
	const char *action; /* in the catalogue */
	const char *what;
} rows[] = {
	{13, APPLICATION, "RESTART_APP", "engine exception"},
	{31, APPLICATION, "RESTART_APP", "page fault"},
	{43, APPLICATION, "IGNORE", "a channel was stopped"},
	{45, APPLICATION, "WORKFLOW_XID_45", "a channel was removed"},
	{48, FAULT, "WORKFLOW_XID_48", "double bit ECC error"},
	{62, FAULT, "RESET_GPU", "microcontroller halted"},
	/* Harmless once done, but the row is in use until a reset. */
	{63, FAULT, "IGNORE", "row remap recorded"},
	{64, FAULT, "RESET_GPU", "row remap failed"},
	{68, APPLICATION, "RESTART_APP", "video decoder exception"},
	{74, FAULT, "WORKFLOW_NVLINK_ERR", "NVLink error"},
	{79, FAULT, "RESTART_BM", "fell off the bus"},
	/* What precedes double bit errors. */
	{92, FAULT, "IGNORE", "many single bit ECC errors"},
	{94, APPLICATION, "RESTART_APP", "contained memory error"},
	{95, FAULT, "RESET_GPU", "uncontained memory error"},
	{109, FAULT, "RESET_GPU", "context switch timed out"},
	{119, FAULT, "RESET_GPU", "GSP does not answer"},
	{120, FAULT, "RESET_GPU", "GSP error"},
	/* The link to the CPU wants training anew. */
	{121, FAULT, "IGNORE", "chip-to-chip link error"},
	{123, FAULT, "CONTACT_SUPPORT", "power unit write failed"},
	{136, FAULT, "RESET_GPU", "link training failed"},
	/* The program's doing or a peer's link: who is next must not find out which. */
	{137, FAULT, "IGNORE", "NVLink privilege error"},
	{140, FAULT, "RESET_GPU", "unrecovered ECC error"},
	{143, FAULT, "RESET_GPU", "initialization failed"},
	{144, FAULT_UNLESS_NONFATAL, "WORKFLOW_NVLINK5_ERR", "NVLink SAW error"},
	{145, FAULT_UNLESS_NONFATAL, "WORKFLOW_NVLINK5_ERR", "NVLink RLW error"},
	{146, FAULT_UNLESS_NONFATAL, "WORKFLOW_NVLINK5_ERR", "NVLink TLW error"},
	{147, FAULT_UNLESS_NONFATAL, "WORKFLOW_NVLINK5_ERR", "NVLink TREX error"},
	{148, FAULT_UNLESS_NONFATAL, "WORKFLOW_NVLINK5_ERR", "NVLink NVLPW_CTRL error"},
	{149, FAULT_UNLESS_NONFATAL, "WORKFLOW_NVLINK5_ERR", "NVLink NETIR error"},
	{150, FAULT_UNLESS_NONFATAL, "WORKFLOW_NVLINK5_ERR", "NVLink MSE error"},
};

static const struct row *find(int32_t xid)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].xid == xid)
			return &rows[i];
	return NULL;
}

static bool has(const int32_t *numbers, size_t count, int32_t number)
{
	for (size_t i = 0; i < count; i++)
		if (numbers[i] == number)
			return true;
	return false;
}

bool xid_is_fault(const struct xid_policy *policy, int32_t xid, bool nonfatal)
{
	const struct row *row = find(xid);

	if (policy && has(policy->ignore, policy->ignore_count, xid))
		return false;
	if (policy && has(policy->fault, policy->fault_count, xid))
		return true;
	if (!row)
		return false;
	switch (row->form) {
	case APPLICATION:
		return false;
	case FAULT:
		return true;
	case FAULT_UNLESS_NONFATAL:
		return !nonfatal;
	}
	assert(false && "an XID of no form");
}

bool xid_has_nonfatal(int32_t xid)
{
	const struct row *row = find(xid);

	return row && row->form == FAULT_UNLESS_NONFATAL;
}

const char *xid_what(int32_t xid)
{
	const struct row *row = find(xid);

	return row ? row->what : "";
}

const char *xid_action(int32_t xid)
{
	const struct row *row = find(xid);

	return row ? row->action : "";
}
