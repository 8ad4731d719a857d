#include "control/core/node_filter.h"

#include "control/core/device_choice.h"
#include "control/core/host_share.h"

static struct node_verdict refuse(const char *reason, int largest)
{
	return (struct node_verdict){.reason = reason, .largest = largest};
}

#define WAITING_GANG "WaitingGang"

static const struct node_verdict FITS = {.largest = -1};

const char *node_filter_domain(const struct placement_request *request,
			       const struct placement_node *node)
{
	const char *label = node->labels[request->same];

	return request->same == PLACEMENT_SAME_NOTHING || !label ? "" : label;
}

/* The filters that look at the node as a whole, in RES-51's order. NULL: passes. */
static const char *judge_node(const struct placement_request *request,
			      const struct placement_node *node)
{
	const char *domain = node_filter_domain(request, node);

	if (node->tenant_controlled)
		return "TenantControlled";
	if (!node->ready)
		return "NodeNotReady";
	if (!node->connected)
		return "NodeUnreachable";
	if (node->no_schedule)
		return node->no_schedule;
	if (!node->knows_kubernetes)
		return "KubernetesBindingUnsupported";
	if (request->dra && !node->knows_dra)
		return "DraUnsupported";
	/* What a pod asks for is the pool's to say, what the kubelet is offered the node's. */
	if (request->dra != node->dra)
		return "GpuApiDiffers";
	if (request->limited && !node->knows_limits)
		return "AssignmentLimitsUnsupported";
	if (node->spot && !request->spot)
		return "SpotOnly";
	if (request->same != PLACEMENT_SAME_NOTHING && *domain == '\0')
		return "TopologyUnknown";
	if (request->domain && !str_equal(request->domain, domain))
		return "TopologyElsewhere";
	if (node->member)
		return "GangMember";
	if (node->refused)
		return "NodeRefused";
	return NULL;
}

/* GANG-10: a gang that came first isn't kept waiting by who came later. */
static bool delays_gang(const struct placement_request *request)
{
	for (size_t i = 0; i < request->waits_count; i++) {
		if (request->from_ms < request->waits[i] && request->waits[i] < request->to_ms)
			return true;
	}
	return false;
}

/* The filters after the devices; `ret_member` may be NULL. */
static struct node_verdict judge_host(const struct placement_request *request,
				      const struct placement_node *node,
				      const struct device_choice *choice,
				      struct placement_member *ret_member)
{
	struct host_share share = host_share_of(request, node, choice->atoms, choice->count);
	const char *reason = host_share_short(node, request->from_ms, request->to_ms, share);

	if (reason)
		return (struct node_verdict){reason, -1, host_share_lack(node, share)};
	if (delays_gang(request))
		return refuse(WAITING_GANG, -1);
	if (ret_member)
		*ret_member = (struct placement_member){
			.node = node,
			.atoms = mem_dup(choice->atoms, choice->count * sizeof *choice->atoms),
			.atoms_count = choice->count,
			.vcpus = share.vcpus,
			.memory_bytes = share.memory_bytes,
			.hugepages = share.hugepages,
		};
	return FITS;
}

static struct node_verdict judge_devices(const struct placement_request *request,
					 const struct placement_node *node, enum device_depth depth,
					 struct placement_member *ret_member)
{
	static const char *const reasons[] = {
		[DEVICE_DEPTH_CLASS] = "DeviceClassMissing",
		[DEVICE_DEPTH_HEALTH] = "DevicesUnhealthy",
		[DEVICE_DEPTH_FREE] = "DevicesBusy",
	};
	CLEANUP(device_choice) struct device_choice choice = {0};

	if (!device_choose(request, node, depth, &choice))
		return refuse(reasons[depth], (int)choice.count);
	return depth == DEVICE_DEPTH_FREE ? judge_host(request, node, &choice, ret_member) : FITS;
}

/* The same node without what waiting gangs are to get. */
static bool fits_without_plans(const struct placement_request *request,
			       const struct placement_node *node)
{
	struct placement_node now = *node;
	const char *reason;

	while (now.busy_count > 0 && now.busy[now.busy_count - 1].planned)
		now.busy_count--;
	while (now.uses_count > 0 && now.uses[now.uses_count - 1].planned)
		now.uses_count--;
	if (now.busy_count == node->busy_count && now.uses_count == node->uses_count)
		return false;
	reason = judge_devices(request, &now, DEVICE_DEPTH_FREE, NULL).reason;
	return !reason || str_equal(reason, WAITING_GANG);
}

/* While all bookings overlap the time asked for, what is free is what is idle. */
static struct node_verdict judge_room(const struct placement_request *request,
				      const struct placement_room *room)
{
	int count = request->needs[0].count;

	assert(request->needs_count == 1);
	if (room->total < count)
		return refuse("DeviceClassMissing", room->total);
	if (room->healthy < count)
		return refuse("DevicesUnhealthy", room->healthy);
	if (room->idle < count && request->from_ms < room->first_end_ms &&
	    room->last_from_ms < request->to_ms)
		return refuse("DevicesBusy", room->idle);
	return FITS;
}

struct node_verdict node_filter_judge(const struct placement_request *request,
				      const struct placement_node *node,
				      struct placement_member *ret_member)
{
	const char *reason = judge_node(request, node);
	struct node_verdict free_verdict, verdict;

	if (reason)
		return refuse(reason, -1);
	if (node->room) {
		verdict = judge_room(request, node->room);
		if (verdict.reason)
			return verdict;
	}
	/* What is free is what most depends on; only when it isn't does it matter why. */
	free_verdict = judge_devices(request, node, DEVICE_DEPTH_FREE, ret_member);
	if (!free_verdict.reason)
		return free_verdict;
	if (fits_without_plans(request, node))
		return refuse(WAITING_GANG, -1);
	if (free_verdict.largest < 0)
		return free_verdict;
	for (enum device_depth depth = DEVICE_DEPTH_CLASS; depth < DEVICE_DEPTH_FREE; depth++) {
		verdict = judge_devices(request, node, depth, NULL);
		if (verdict.reason)
			return verdict;
	}
	return free_verdict;
}

bool node_filter_fits(const struct placement_request *request, const struct placement_node *node)
{
	return !judge_node(request, node) &&
	       !judge_devices(request, node, DEVICE_DEPTH_FREE, NULL).reason;
}

bool node_filter_could_ever(const struct placement_request *request,
			    const struct placement_node *node)
{
	if (node->tenant_controlled || (node->spot && !request->spot))
		return false;
	if (!node->room && node->atoms_count == 0)
		return true;
	if (request->vcpus > node->vcpus || request->memory_bytes > node->memory_bytes)
		return false;
	for (int i = 0; i < HUGEPAGES_SIZES; i++) {
		if (request->hugepages.bytes[i] > node->hugepages.bytes[i])
			return false;
	}
	return node->room ? node->room->total >= request->needs[0].count
			  : !judge_devices(request, node, DEVICE_DEPTH_CLASS, NULL).reason;
}
