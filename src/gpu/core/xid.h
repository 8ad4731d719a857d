/*
 * xid: what an XID, the driver's number for a kind of trouble, says of the GPU.
 *
 * Owns      DP-52's policy, one row an XID: is the GPU at fault, or the program on it? Each row has
 *           the "immediate action" of NVIDIA's XID catalogue (docs.nvidia.com/deploy/xid-errors) as
 *           its source; where DP-52 is stricter than that column, the row says why.
 * Unknown   An XID without a row is no fault by itself: what it did shows in what is read from the
 *           driver (recovery action, row remap, ECC), which the XID makes bcd read at once.
 * Pure.
 * Tests     tests/unit/gpu/core/xid_test.c
 */
#pragma once

#include "base/base.h"

#define XID_MAX           9999
#define XID_MAX_OVERRIDES 64

#define XID_RECOVERY_CHANGED 154 /* the driver's advice is another now */

/* What the machine's owner says otherwise ([gpu] xid_fault, xid_ignore); `{0}`: nothing. */
struct xid_policy {
	int32_t fault[XID_MAX_OVERRIDES], ignore[XID_MAX_OVERRIDES];
	size_t fault_count, ignore_count;
};

/* `nonfatal`: the driver said so of this one (144 to 150 come in two forms). `policy` may be NULL. */
bool xid_is_fault(const struct xid_policy *policy, int32_t xid, bool nonfatal);

/* Do both forms of this number exist, so that the number alone doesn't tell? */
bool xid_has_nonfatal(int32_t xid);

/* In a few words, "" when the number has no row. */
const char *xid_what(int32_t xid);
/* The catalogue's name for what is to be done, such as "RESET_GPU"; "" when there is no row. */
const char *xid_action(int32_t xid);
