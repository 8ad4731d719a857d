#include "control/core/host_share.h"

/* `leaves` of all that the node's GPUs have; the product of two large numbers is never made. */
static int64_t part_of(const struct placement_node *node, int64_t leaves, int64_t total)
{
	int64_t all = (int64_t)node->gpus_count * PLACEMENT_LEAVES;

	if (all == 0)
		return 0;
	return total / all * leaves + total % all * leaves / all;
}

struct host_share host_share_of(const struct placement_request *request,
				const struct placement_node *node, const size_t *atoms,
				size_t count)
{
	struct host_share share = {request->vcpus, request->memory_bytes, request->hugepages};
	int64_t leaves = 0;

	for (size_t i = 0; i < count; i++)
		leaves += node->atoms[atoms[i]].leaf_hi - node->atoms[atoms[i]].leaf_lo;
	if (share.vcpus < 0)
		share.vcpus = part_of(node, leaves, node->vcpus);
	if (share.memory_bytes < 0)
		share.memory_bytes = part_of(node, leaves, node->memory_bytes);
	return share;
}

static void raise_to(int64_t *peak, int64_t amount)
{
	if (amount > *peak)
		*peak = amount;
}

static void raise_peak(struct host_share *peak, const struct host_share *sum)
{
	raise_to(&peak->vcpus, sum->vcpus);
	raise_to(&peak->memory_bytes, sum->memory_bytes);
	for (int i = 0; i < HUGEPAGES_SIZES; i++)
		raise_to(&peak->hugepages.bytes[i], sum->hugepages.bytes[i]);
}

/* The most that is taken at any moment of the time from `from_ms` to `to_ms`. */
static struct host_share peak_use(const struct placement_node *node, int64_t from_ms, int64_t to_ms)
{
	struct host_share peak = {0};

	for (size_t i = 0; i <= node->uses_count; i++) {
		/* Use only grows where one begins: at the start, and at each beginning inside. */
		int64_t at = i < node->uses_count ? node->uses[i].from_ms : from_ms;
		struct host_share sum = {0};

		if (at < from_ms || at >= to_ms)
			continue;
		for (size_t j = 0; j < node->uses_count; j++) {
			const struct placement_use *use = &node->uses[j];

			if (use->from_ms > at || at >= use->to_ms)
				continue;
			sum.vcpus += use->vcpus;
			sum.memory_bytes += use->memory_bytes;
			for (int k = 0; k < HUGEPAGES_SIZES; k++)
				sum.hugepages.bytes[k] += use->hugepages.bytes[k];
		}
		raise_peak(&peak, &sum);
	}
	return peak;
}

struct placement_lack host_share_lack(const struct placement_node *node, struct host_share share)
{
	if (share.vcpus > node->vcpus)
		return (struct placement_lack){share.vcpus, node->vcpus};
	if (share.memory_bytes > node->memory_bytes)
		return (struct placement_lack){share.memory_bytes, node->memory_bytes};
	for (int i = 0; i < HUGEPAGES_SIZES; i++) {
		if (share.hugepages.bytes[i] > node->hugepages.bytes[i])
			return (struct placement_lack){share.hugepages.bytes[i],
						       node->hugepages.bytes[i]};
	}
	return (struct placement_lack){0};
}

static const char *short_of(const struct placement_node *node, struct host_share used,
			    struct host_share share)
{
	if (share.vcpus > node->vcpus - used.vcpus)
		return "HostVcpuShort";
	if (share.memory_bytes > node->memory_bytes - used.memory_bytes)
		return "HostMemoryShort";
	for (int i = 0; i < HUGEPAGES_SIZES; i++) {
		if (share.hugepages.bytes[i] > 0 &&
		    share.hugepages.bytes[i] > node->hugepages.bytes[i] - used.hugepages.bytes[i])
			return "HostHugepagesShort";
	}
	return NULL;
}

const char *host_share_short(const struct placement_node *node, int64_t from_ms, int64_t to_ms,
			     struct host_share share)
{
	/* What was never there is in the way before what is taken just then. */
	const char *never = short_of(node, (struct host_share){0}, share);

	return never ? never : short_of(node, peak_use(node, from_ms, to_ms), share);
}
