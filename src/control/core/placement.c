#include "control/core/placement.h"

#include "base/vec.h"

static const char *const CLASS_NAMES[PLACEMENT_CLASSES] = {
	[PLACEMENT_CLASS_GPU] = "gpu",
	[PLACEMENT_CLASS_MIG] = "gpu.mig",
	[PLACEMENT_CLASS_SLOT] = "gpu.slot",
};

const char *placement_class_name(enum placement_class class)
{
	assert((size_t)class < PLACEMENT_CLASSES);
	return CLASS_NAMES[class];
}

bool placement_class_parse(const char *name, enum placement_class *ret_class)
{
	for (size_t i = 0; i < PLACEMENT_CLASSES; i++) {
		if (!str_equal(CLASS_NAMES[i], name))
			continue;
		*ret_class = (enum placement_class)i;
		return true;
	}
	return false;
}

static const char *const SAME_NAMES[PLACEMENT_SAMES] = {
	[PLACEMENT_SAME_NOTHING] = "",
	[PLACEMENT_SAME_RACK] = "rack",
	[PLACEMENT_SAME_BLOCK] = "block",
	[PLACEMENT_SAME_NVLINK_DOMAIN] = "nvlinkDomain",
};

const char *placement_same_name(enum placement_same same)
{
	assert((size_t)same < PLACEMENT_SAMES);
	return SAME_NAMES[same];
}

bool placement_same_parse(const char *name, enum placement_same *ret_same)
{
	for (size_t i = 0; i < PLACEMENT_SAMES; i++) {
		if (!str_equal(SAME_NAMES[i], name))
			continue;
		*ret_same = (enum placement_same)i;
		return true;
	}
	return false;
}

/* --- models --- */

static int lower(char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : (unsigned char)c;
}

static bool is_word(char c)
{
	int l = lower(c);

	return (l >= 'a' && l <= 'z') || (l >= '0' && l <= '9');
}

static bool starts_without_case(const char *text, const char *prefix)
{
	for (; *prefix; text++, prefix++) {
		if (lower(*text) != lower(*prefix))
			return false;
	}
	return true;
}

bool placement_model_matches(const char *model, const char *text)
{
	size_t length = strlen(model);

	if (length == 0)
		return false;
	for (const char *at = text; *at; at++) {
		if (at > text && is_word(at[-1]) && is_word(*at))
			continue;
		if (starts_without_case(at, model) &&
		    !(is_word(model[length - 1]) && is_word(at[length])))
			return true;
	}
	return false;
}

/* --- choosing devices on one node --- */

/* How much of the truth a try looks at: each filter of RES-51 that speaks of devices adds some. */
enum depth {
	DEPTH_CLASS,  /* what exists, of the right class, profile and model */
	DEPTH_HEALTH, /* and is healthy */
	DEPTH_FREE,   /* and is free over the whole time */
};

struct choice {
	const struct placement_request *request;
	const struct placement_node *node;
	enum depth depth;
	bool *usable;   /* by atom: passes the depth, whatever is picked */
	bool *touched;  /* by GPU: a part of it is taken, by others or by this choice */
	size_t *picked; /* atoms */
	size_t picked_count;
};

static bool meet(int64_t a_from, int64_t a_to, int64_t b_from, int64_t b_to)
{
	return a_from < b_to && b_from < a_to;
}

static bool is_busy(const struct placement_request *request, const struct placement_node *node,
		    size_t gpu, int leaf_lo, int leaf_hi)
{
	for (size_t i = 0; i < node->busy_count; i++) {
		const struct placement_busy *busy = &node->busy[i];

		if (busy->gpu == gpu && meet(busy->leaf_lo, busy->leaf_hi, leaf_lo, leaf_hi) &&
		    meet(busy->from_ms, busy->to_ms, request->from_ms, request->to_ms))
			return true;
	}
	return false;
}

static bool is_usable(const struct choice *choice, const struct placement_atom *atom)
{
	const struct placement_gpu *gpu = &choice->node->gpus[atom->gpu];

	if (!placement_model_matches(choice->request->model, gpu->model))
		return false;
	if (choice->depth >= DEPTH_HEALTH && !(atom->healthy && gpu->healthy))
		return false;
	return choice->depth < DEPTH_FREE ||
	       !is_busy(choice->request, choice->node, atom->gpu, atom->leaf_lo, atom->leaf_hi);
}

static bool meets_picked(const struct choice *choice, const struct placement_atom *atom)
{
	for (size_t i = 0; i < choice->picked_count; i++) {
		const struct placement_atom *picked = &choice->node->atoms[choice->picked[i]];

		if (picked->gpu == atom->gpu &&
		    meet(picked->leaf_lo, picked->leaf_hi, atom->leaf_lo, atom->leaf_hi))
			return true;
	}
	return false;
}

static bool serves(const struct choice *choice, const struct placement_need *need, size_t index)
{
	const struct placement_atom *atom = &choice->node->atoms[index];

	if (atom->class != need->class || !choice->usable[index])
		return false;
	if (need->profile && !str_equal(need->profile, atom->profile))
		return false;
	return !meets_picked(choice, atom);
}

/* What a GPU is worth to a need; compared by pick_better(). */
struct candidate {
	size_t gpu;
	int atoms;       /* that would serve the need */
	bool touched;    /* can't be a whole GPU for anybody any more */
	bool whole;      /* could serve as a whole GPU */
	int parts;       /* that could serve others, and couldn't once it is taken whole */
	int numa_free;   /* candidates with as many parts on the same NUMA node, itself included */
	bool numa_begun; /* a whole GPU of that NUMA node is picked already */
};

/* Parts: used GPUs first, the fullest of them first; then GPUs that nobody could take whole; then
 * those that give most, so that fewest are broken up. */
static bool better_for_parts(const struct candidate *a, const struct candidate *b)
{
	if (a->touched != b->touched)
		return a->touched;
	if (a->touched)
		return a->atoms != b->atoms ? a->atoms < b->atoms : a->gpu < b->gpu;
	if (a->whole != b->whole)
		return !a->whole;
	return a->atoms != b->atoms ? a->atoms > b->atoms : a->gpu < b->gpu;
}

/* Whole GPUs: those that aren't cut first, then those with the fewest parts to spoil. Of equals:
 * from the smallest NUMA node that has them all, else from the largest; what was begun goes on. */
static bool better_for_wholes(const struct candidate *a, const struct candidate *b, int still)
{
	bool a_all = a->numa_free >= still, b_all = b->numa_free >= still;

	if (a->parts != b->parts)
		return a->parts < b->parts;
	if (a->numa_begun != b->numa_begun)
		return a->numa_begun;
	if (a_all != b_all)
		return a_all;
	if (a->numa_free != b->numa_free)
		return a_all ? a->numa_free < b->numa_free : a->numa_free > b->numa_free;
	return a->gpu < b->gpu;
}

static bool has_begun_numa(const struct choice *choice, size_t gpu)
{
	const struct placement_node *node = choice->node;

	for (size_t i = 0; i < choice->picked_count; i++) {
		const struct placement_atom *atom = &node->atoms[choice->picked[i]];

		if (atom->class == PLACEMENT_CLASS_GPU &&
		    node->gpus[atom->gpu].numa == node->gpus[gpu].numa)
			return true;
	}
	return false;
}

/* One candidate a GPU that serves the need at all. */
static size_t list_candidates(const struct choice *choice, const struct placement_need *need,
			      struct candidate *candidates)
{
	const struct placement_node *node = choice->node;
	size_t count = 0;

	for (size_t gpu = 0; gpu < node->gpus_count; gpu++) {
		struct candidate candidate = {.gpu = gpu, .touched = choice->touched[gpu]};

		for (size_t i = 0; i < node->atoms_count; i++) {
			bool whole = node->atoms[i].class == PLACEMENT_CLASS_GPU;

			if (node->atoms[i].gpu != gpu)
				continue;
			candidate.atoms += serves(choice, need, i);
			candidate.whole |= whole && choice->usable[i];
			candidate.parts += !whole && choice->usable[i];
		}
		if (candidate.atoms > 0)
			candidates[count++] = candidate;
	}
	for (size_t i = 0; i < count; i++) {
		candidates[i].numa_begun = has_begun_numa(choice, candidates[i].gpu);
		for (size_t j = 0; j < count; j++)
			candidates[i].numa_free += candidates[i].parts == candidates[j].parts &&
						   node->gpus[candidates[i].gpu].numa ==
							   node->gpus[candidates[j].gpu].numa;
	}
	return count;
}

static void pick(struct choice *choice, size_t atom)
{
	choice->touched[choice->node->atoms[atom].gpu] = true;
	choice->picked[choice->picked_count++] = atom;
}

/* Takes from the best GPU until the need is met; how many it got. */
static int pick_need(struct choice *choice, const struct placement_need *need,
		     struct candidate *candidates)
{
	bool wholes = need->class == PLACEMENT_CLASS_GPU;
	int got = 0;

	while (got < need->count) {
		size_t count = list_candidates(choice, need, candidates);
		const struct candidate *best = NULL;

		for (size_t i = 0; i < count; i++) {
			if (!best ||
			    (wholes ? better_for_wholes(&candidates[i], best, need->count - got)
				    : better_for_parts(&candidates[i], best)))
				best = &candidates[i];
		}
		if (!best)
			break;
		for (size_t i = 0; i < choice->node->atoms_count && got < need->count; i++) {
			if (choice->node->atoms[i].gpu != best->gpu || !serves(choice, need, i))
				continue;
			pick(choice, i);
			got++;
		}
	}
	return got;
}

static void choice_init(struct choice *choice, const struct placement_request *request,
			const struct placement_node *node, enum depth depth)
{
	*choice = (struct choice){.request = request, .node = node, .depth = depth};
	choice->usable = mem_alloc(node->atoms_count * sizeof *choice->usable);
	choice->touched = mem_alloc(node->gpus_count * sizeof *choice->touched);
	choice->picked = mem_alloc(node->atoms_count * sizeof *choice->picked);
	for (size_t i = 0; i < node->atoms_count; i++)
		choice->usable[i] = is_usable(choice, &node->atoms[i]);
	for (size_t i = 0; i < node->gpus_count; i++)
		choice->touched[i] =
			depth == DEPTH_FREE && is_busy(request, node, i, 0, PLACEMENT_LEAVES);
}

static void choice_deinit(struct choice *choice)
{
	free(choice->usable);
	free(choice->touched);
	free(choice->picked);
}

/* Picks for all needs, parts before wholes. False: *ret_got devices were there of what was asked.
 */
static bool choose(struct choice *choice, int *ret_got)
{
	static const enum placement_class order[] = {PLACEMENT_CLASS_MIG, PLACEMENT_CLASS_SLOT,
						     PLACEMENT_CLASS_GPU};
	const struct placement_request *request = choice->request;
	struct candidate *candidates = mem_alloc(choice->node->gpus_count * sizeof *candidates);
	bool done = true;

	*ret_got = 0;
	for (size_t class = 0; class < ARRAY_SIZE(order); class ++) {
		for (size_t pass = 0; pass < 2; pass++) {
			for (size_t i = 0; i < request->needs_count; i++) {
				const struct placement_need *need = &request->needs[i];
				int got;

				/* A need that names its profile before one that takes any. */
				if (need->class != order[class] || (pass == 0) != !!need->profile)
					continue;
				got = pick_need(choice, need, candidates);
				*ret_got += got;
				done = done && got == need->count;
			}
		}
	}
	free(candidates);
	return done;
}

/* --- host share --- */

/* The node's share for the picked devices: in proportion to how much of its GPUs they are. */
static int64_t share_of(const struct choice *choice, int64_t total)
{
	int64_t leaves = 0;
	int64_t all = (int64_t)choice->node->gpus_count * PLACEMENT_LEAVES;

	for (size_t i = 0; i < choice->picked_count; i++) {
		const struct placement_atom *atom = &choice->node->atoms[choice->picked[i]];

		leaves += atom->leaf_hi - atom->leaf_lo;
	}
	if (all == 0)
		return 0;
	return total / all * leaves + total % all * leaves / all;
}

/* The most that is taken at any moment of the time asked for. */
static void peak_use(const struct placement_request *request, const struct placement_node *node,
		     int64_t *ret_vcpus, int64_t *ret_memory)
{
	*ret_vcpus = *ret_memory = 0;
	for (size_t i = 0; i <= node->uses_count; i++) {
		/* Use only grows where one begins: at the start, and at each beginning inside. */
		int64_t at = i < node->uses_count ? node->uses[i].from_ms : request->from_ms;
		int64_t vcpus = 0, memory = 0;

		if (at < request->from_ms || at >= request->to_ms)
			continue;
		for (size_t j = 0; j < node->uses_count; j++) {
			const struct placement_use *use = &node->uses[j];

			if (use->from_ms > at || at >= use->to_ms)
				continue;
			vcpus += use->vcpus;
			memory += use->memory_bytes;
		}
		*ret_vcpus = vcpus > *ret_vcpus ? vcpus : *ret_vcpus;
		*ret_memory = memory > *ret_memory ? memory : *ret_memory;
	}
}

bool placement_host_has(const struct placement_node *node, int64_t from_ms, int64_t to_ms,
			int64_t vcpus, int64_t memory_bytes)
{
	struct placement_request request = {.from_ms = from_ms, .to_ms = to_ms};
	int64_t used_vcpus, used_memory;

	peak_use(&request, node, &used_vcpus, &used_memory);
	return vcpus <= node->vcpus - used_vcpus &&
	       memory_bytes <= node->memory_bytes - used_memory;
}

/* --- one node --- */

struct verdict {
	const char *reason; /* NULL: fits */
	int largest;        /* -1: says nothing */
};

static struct verdict refuse(const char *reason, int largest)
{
	return (struct verdict){.reason = reason, .largest = largest};
}

static const struct verdict FITS = {.largest = -1};

/* Where a node is, for what the gang is to have in common; "" when that is nothing. */
static const char *domain_of(const struct placement_request *request,
			     const struct placement_node *node)
{
	const char *label = node->labels[request->same];

	return request->same == PLACEMENT_SAME_NOTHING || !label ? "" : label;
}

/* The filters that look at the node as a whole, in RES-51's order. NULL: passes. */
static const char *judge_node(const struct placement_request *request,
			      const struct placement_node *node)
{
	const char *domain = domain_of(request, node);

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

/* `ret_member` may be NULL. */
static struct verdict judge_host(const struct placement_request *request,
				 const struct choice *choice, struct placement_member *ret_member)
{
	const struct placement_node *node = choice->node;
	struct placement_member member = {.node = node};
	int64_t used_vcpus, used_memory;

	member.vcpus = request->vcpus >= 0 ? request->vcpus : share_of(choice, node->vcpus);
	member.memory_bytes = request->memory_bytes >= 0 ? request->memory_bytes
							 : share_of(choice, node->memory_bytes);
	peak_use(request, node, &used_vcpus, &used_memory);
	if (member.vcpus > node->vcpus - used_vcpus)
		return refuse("HostVcpuShort", -1);
	if (member.memory_bytes > node->memory_bytes - used_memory)
		return refuse("HostMemoryShort", -1);
	if (delays_gang(request))
		return refuse("WaitingGang", -1);
	if (ret_member) {
		member.atoms =
			mem_dup(choice->picked, choice->picked_count * sizeof *choice->picked);
		member.atoms_count = choice->picked_count;
		*ret_member = member;
	}
	return FITS;
}

static struct verdict judge_devices(const struct placement_request *request,
				    const struct placement_node *node, enum depth depth,
				    struct placement_member *ret_member)
{
	static const char *const reasons[] = {
		[DEPTH_CLASS] = "DeviceClassMissing",
		[DEPTH_HEALTH] = "DevicesUnhealthy",
		[DEPTH_FREE] = "DevicesBusy",
	};
	struct verdict verdict;
	struct choice choice;
	int got;

	choice_init(&choice, request, node, depth);
	if (!choose(&choice, &got))
		verdict = refuse(reasons[depth], got);
	else
		verdict = depth == DEPTH_FREE ? judge_host(request, &choice, ret_member) : FITS;
	choice_deinit(&choice);
	return verdict;
}

/* While all bookings overlap the time asked for, what is free is what is idle. */
static struct verdict judge_room(const struct placement_request *request,
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

bool placement_room_refuses(const struct placement_request *request,
			    const struct placement_node *node)
{
	return judge_node(request, node) || (node->room && judge_room(request, node->room).reason);
}

static struct verdict judge(const struct placement_request *request,
			    const struct placement_node *node, struct placement_member *ret_member)
{
	const char *reason = judge_node(request, node);
	struct verdict free_verdict, verdict;

	if (reason)
		return refuse(reason, -1);
	if (node->room) {
		verdict = judge_room(request, node->room);
		if (verdict.reason)
			return verdict;
	}
	/* What is free is what most depends on; only when it isn't does it matter why. */
	free_verdict = judge_devices(request, node, DEPTH_FREE, ret_member);
	if (!free_verdict.reason || free_verdict.largest < 0)
		return free_verdict;
	for (enum depth depth = DEPTH_CLASS; depth < DEPTH_FREE; depth++) {
		verdict = judge_devices(request, node, depth, NULL);
		if (verdict.reason)
			return verdict;
	}
	return free_verdict;
}

bool placement_node_fits(const struct placement_request *request, const struct placement_node *node)
{
	return !judge_node(request, node) && !judge_devices(request, node, DEPTH_FREE, NULL).reason;
}

/* Could it take the request when nobody else were there and all were well? Not knowing what a node
 * has counts as yes. */
static bool could_ever(const struct placement_request *request, const struct placement_node *node)
{
	if (node->tenant_controlled || (node->spot && !request->spot))
		return false;
	if (!node->room && node->atoms_count == 0)
		return true;
	if (request->vcpus > node->vcpus || request->memory_bytes > node->memory_bytes)
		return false;
	return node->room ? node->room->total >= request->needs[0].count
			  : !judge_devices(request, node, DEPTH_CLASS, NULL).reason;
}

static int count_devices(const struct placement_request *request, const struct placement_node *node,
			 enum depth depth)
{
	struct choice choice;
	int got;

	choice_init(&choice, request, node, depth);
	if (choose(&choice, &got))
		assert(false);
	choice_deinit(&choice);
	return got;
}

struct placement_room placement_room_of(const struct placement_node *node,
					enum placement_class class, const char *profile,
					const char *model)
{
	/* More than there can be: all that are there are picked. */
	const struct placement_need all = {class, profile, INT_MAX};
	const struct placement_request request = {.needs = &all,
						  .needs_count = 1,
						  .model = model,
						  .from_ms = INT64_MIN,
						  .to_ms = INT64_MAX};
	struct placement_room room = {.first_end_ms = INT64_MAX};

	room.total = count_devices(&request, node, DEPTH_CLASS);
	room.healthy = count_devices(&request, node, DEPTH_HEALTH);
	room.idle = count_devices(&request, node, DEPTH_FREE);
	for (size_t i = 0; i < node->busy_count; i++) {
		const struct placement_busy *busy = &node->busy[i];

		if (busy->to_ms < room.first_end_ms)
			room.first_end_ms = busy->to_ms;
		if (busy->from_ms > room.last_from_ms)
			room.last_from_ms = busy->from_ms;
	}
	return room;
}

/* --- all nodes --- */

/* A node that passes. */
struct fit {
	const struct placement_node *node;
	const char *domain;
	int idle;
	bool spread;
};

struct fits VEC_BODY(struct fit);

static int compare_fits(const void *a, const void *b)
{
	const struct fit *left = a, *right = b;
	int order = strcmp(left->domain, right->domain);

	if (order != 0)
		return order;
	if (left->idle != right->idle)
		return (left->idle < right->idle) == left->spread ? 1 : -1;
	return strcmp(left->node->id, right->node->id);
}

static void count_reason(struct placement_answer *answer, const struct placement_node *node,
			 struct verdict verdict)
{
	struct placement_reason *reason;
	int nodes = node->alike > 1 ? node->alike : 1;

	for (size_t i = 0; i < answer->reasons_count; i++) {
		reason = &answer->reasons[i];
		if (!str_equal(reason->reason, verdict.reason))
			continue;
		reason->nodes += nodes;
		reason->largest =
			verdict.largest > reason->largest ? verdict.largest : reason->largest;
		return;
	}
	/* Only NoSchedule conditions could be that many; the last row then takes the rest. */
	if (answer->reasons_count == PLACEMENT_MAX_REASONS) {
		answer->reasons[PLACEMENT_MAX_REASONS - 1].nodes += nodes;
		return;
	}
	answer->reasons[answer->reasons_count++] =
		(struct placement_reason){verdict.reason, nodes, verdict.largest};
}

static int compare_reasons(const void *a, const void *b)
{
	const struct placement_reason *left = a, *right = b;

	if (left->nodes != right->nodes)
		return left->nodes > right->nodes ? -1 : 1;
	return strcmp(left->reason, right->reason);
}

/* Sorted by domain: the smallest domain that has enough, so that large ones stay whole. False:
 * none has. */
static bool choose_domain(const struct fits *fits, size_t wanted, size_t *ret_first)
{
	size_t best = SIZE_MAX, end;

	for (size_t first = 0; first < fits->count; first = end) {
		for (end = first; end < fits->count &&
				  str_equal(fits->items[first].domain, fits->items[end].domain);)
			end++;
		if (end - first < wanted || end - first >= best)
			continue;
		best = end - first;
		*ret_first = first;
	}
	return best != SIZE_MAX;
}

static void take(const struct placement_request *request, const struct fit *fits, size_t wanted,
		 struct placement_answer *answer)
{
	answer->members = mem_alloc(wanted * sizeof *answer->members);
	answer->members_count = wanted;
	for (size_t i = 0; i < wanted; i++) {
		struct verdict verdict = judge(request, fits[i].node, &answer->members[i]);

		assert(!verdict.reason);
	}
}

/* Which nodes stand together may change; how many there are is what counts. */
static void look_further(const struct placement_request *request,
			 const struct placement_node *nodes, size_t nodes_count, size_t wanted,
			 struct placement_answer *answer)
{
	size_t could = 0;

	for (size_t i = 0; i < nodes_count && could < wanted; i++)
		could += could_ever(request, &nodes[i]);
	answer->never = nodes_count > 0 && could < wanted;
	answer->wanted = wanted;
	answer->could = could;
}

void placement_decide(const struct placement_request *request, const struct placement_node *nodes,
		      size_t nodes_count, struct placement_answer *answer)
{
	const struct placement_need *first_need = &request->needs[0];
	size_t wanted = request->nodes > 1 ? (size_t)request->nodes : 1, first;
	struct fits fits = {0};

	assert(request->from_ms < request->to_ms && request->needs_count > 0);
	placement_answer_deinit(answer);
	for (size_t i = 0; i < nodes_count; i++) {
		struct verdict verdict = judge(request, &nodes[i], NULL);

		if (verdict.reason)
			count_reason(answer, &nodes[i], verdict);
		else
			*vec_push(&fits) =
				(struct fit){&nodes[i], domain_of(request, &nodes[i]),
					     placement_room_of(&nodes[i], first_need->class,
							       first_need->profile, request->model)
						     .idle,
					     request->spread};
	}
	vec_sort(&fits, compare_fits);
	if (choose_domain(&fits, wanted, &first)) {
		take(request, &fits.items[first], wanted, answer);
	} else {
		/* What fits, but not in company. */
		for (size_t i = 0; i < fits.count; i++)
			count_reason(answer, fits.items[i].node, refuse("TooFewNodes", -1));
		look_further(request, nodes, nodes_count, wanted, answer);
	}
	vec_deinit(&fits);
	if (nodes_count == 0)
		answer->reasons[answer->reasons_count++] =
			(struct placement_reason){"PoolEmpty", 0, -1};
	if (answer->reasons_count > 1)
		qsort(answer->reasons, answer->reasons_count, sizeof *answer->reasons,
		      compare_reasons);
}

void placement_answer_deinit(struct placement_answer *answer)
{
	for (size_t i = 0; i < answer->members_count; i++)
		free(answer->members[i].atoms);
	free(answer->members);
	*answer = (struct placement_answer){0};
}
