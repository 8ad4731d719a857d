/*
 * host_share: what a reservation takes of one node's host, and whether that is left.
 *
 * Owns      the share of RES-3, and what is taken at the peak of a time. Pure.
 */
#pragma once

#include "control/core/placement.h"

struct host_share {
	int64_t vcpus, memory_bytes;
	struct hugepages hugepages;
};

/* What was asked for; of processors and memory, where nothing was, the node's share for these of its
 * atoms: in proportion to how much of its GPUs they are. */
struct host_share host_share_of(const struct placement_request *request,
				const struct placement_node *node, const size_t *atoms,
				size_t count);

/* "HostVcpuShort", "HostMemoryShort" or "HostHugepagesShort" when the node hasn't got so much left over all of this time;
 * else NULL. */
const char *host_share_short(const struct placement_node *node, int64_t from_ms, int64_t to_ms,
			     struct host_share share);
/* Of what that names: how much the node has, when it is less than asked whoever else is there. */
struct placement_lack host_share_lack(const struct placement_node *node, struct host_share share);
