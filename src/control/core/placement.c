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
	int numa_free;   /* candidates on the same NUMA node, itself included */
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

/* Whole GPUs: from the smallest NUMA node that has them all, else from the largest; what was begun
 * goes on. */
static bool better_for_wholes(const struct candidate *a, const struct candidate *b, int still)
{
	bool a_all = a->numa_free >= still, b_all = b->numa_free >= still;

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
			if (node->atoms[i].gpu != gpu)
				continue;
			candidate.atoms += serves(choice, need, i);
			candidate.whole |=
				node->atoms[i].class == PLACEMENT_CLASS_GPU && choice->usable[i];
		}
		if (candidate.atoms > 0)
			candidates[count++] = candidate;
	}
	for (size_t i = 0; i < count; i++) {
		candidates[i].numa_begun = has_begun_numa(choice, candidates[i].gpu);
		for (size_t j = 0; j < count; j++)
			candidates[i].numa_free += node->gpus[candidates[i].gpu].numa ==
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

/* --- one node --- */

struct verdict {
	const char *reason; /* NULL: fits */
	int largest;        /* -1: says nothing */
	size_t *atoms;      /* heap, when it fits */
	size_t atoms_count;
	int64_t vcpus, memory_bytes;
	int free_gpus; /* for the order among those that fit */
};

static struct verdict refuse(const char *reason, int largest)
{
	return (struct verdict){.reason = reason, .largest = largest};
}

/* The filters that look at the node as a whole, in RES-51's order. NULL: passes. */
static const char *judge_node(const struct placement_request *request,
			      const struct placement_node *node)
{
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
	return NULL;
}

static int count_free_gpus(const struct placement_request *request,
			   const struct placement_node *node)
{
	int count = 0;

	for (size_t i = 0; i < node->gpus_count; i++)
		count += node->gpus[i].healthy &&
			 placement_model_matches(request->model, node->gpus[i].model) &&
			 !is_busy(request, node, i, 0, PLACEMENT_LEAVES);
	return count;
}

static struct verdict judge_host(const struct placement_request *request,
				 const struct choice *choice)
{
	const struct placement_node *node = choice->node;
	struct verdict verdict = {.largest = -1};
	int64_t used_vcpus, used_memory;

	verdict.vcpus = request->vcpus >= 0 ? request->vcpus : share_of(choice, node->vcpus);
	verdict.memory_bytes = request->memory_bytes >= 0 ? request->memory_bytes
							  : share_of(choice, node->memory_bytes);
	peak_use(request, node, &used_vcpus, &used_memory);
	if (verdict.vcpus > node->vcpus - used_vcpus)
		return refuse("HostVcpuShort", -1);
	if (verdict.memory_bytes > node->memory_bytes - used_memory)
		return refuse("HostMemoryShort", -1);
	verdict.atoms = mem_dup(choice->picked, choice->picked_count * sizeof *choice->picked);
	verdict.atoms_count = choice->picked_count;
	verdict.free_gpus = count_free_gpus(request, node);
	return verdict;
}

static struct verdict judge_devices(const struct placement_request *request,
				    const struct placement_node *node)
{
	static const char *const reasons[] = {
		[DEPTH_CLASS] = "DeviceClassMissing",
		[DEPTH_HEALTH] = "DevicesUnhealthy",
		[DEPTH_FREE] = "DevicesBusy",
	};
	struct verdict verdict = {0};

	for (enum depth depth = DEPTH_CLASS; depth <= DEPTH_FREE; depth++) {
		struct choice choice;
		int got;

		choice_init(&choice, request, node, depth);
		if (!choose(&choice, &got))
			verdict = refuse(reasons[depth], got);
		else if (depth == DEPTH_FREE)
			verdict = judge_host(request, &choice);
		choice_deinit(&choice);
		if (verdict.reason)
			break;
	}
	return verdict;
}

static struct verdict judge(const struct placement_request *request,
			    const struct placement_node *node)
{
	const char *reason = judge_node(request, node);

	if (reason)
		return refuse(reason, -1);
	if (node->refused)
		return refuse("NodeRefused", -1);
	return judge_devices(request, node);
}

/* --- all nodes --- */

static void count_reason(struct placement_answer *answer, const struct verdict *verdict)
{
	struct placement_reason *reason;

	for (size_t i = 0; i < answer->reasons_count; i++) {
		reason = &answer->reasons[i];
		if (!str_equal(reason->reason, verdict->reason))
			continue;
		reason->nodes++;
		reason->largest =
			verdict->largest > reason->largest ? verdict->largest : reason->largest;
		return;
	}
	/* Only NoSchedule conditions could be that many; the last row then takes the rest. */
	if (answer->reasons_count == PLACEMENT_MAX_REASONS) {
		answer->reasons[PLACEMENT_MAX_REASONS - 1].nodes++;
		return;
	}
	answer->reasons[answer->reasons_count++] =
		(struct placement_reason){verdict->reason, 1, verdict->largest};
}

static bool better_node(const struct placement_request *request, const struct verdict *verdict,
			const char *id, int best_free, const char *best_id)
{
	if (verdict->free_gpus != best_free)
		return request->spread ? verdict->free_gpus > best_free
				       : verdict->free_gpus < best_free;
	return strcmp(id, best_id) < 0;
}

static int compare_reasons(const void *a, const void *b)
{
	const struct placement_reason *left = a, *right = b;

	if (left->nodes != right->nodes)
		return left->nodes > right->nodes ? -1 : 1;
	return strcmp(left->reason, right->reason);
}

void placement_decide(const struct placement_request *request, const struct placement_node *nodes,
		      size_t nodes_count, struct placement_answer *answer)
{
	int best_free = 0;

	assert(request->from_ms < request->to_ms);
	placement_answer_deinit(answer);
	for (size_t i = 0; i < nodes_count; i++) {
		struct verdict verdict = judge(request, &nodes[i]);

		if (verdict.reason) {
			count_reason(answer, &verdict);
			continue;
		}
		if (answer->node &&
		    !better_node(request, &verdict, nodes[i].id, best_free, answer->node->id)) {
			free(verdict.atoms);
			continue;
		}
		free(answer->atoms);
		answer->node = &nodes[i];
		answer->atoms = verdict.atoms;
		answer->atoms_count = verdict.atoms_count;
		answer->vcpus = verdict.vcpus;
		answer->memory_bytes = verdict.memory_bytes;
		best_free = verdict.free_gpus;
	}
	if (nodes_count == 0)
		answer->reasons[answer->reasons_count++] =
			(struct placement_reason){"PoolEmpty", 0, -1};
	if (answer->reasons_count > 1)
		qsort(answer->reasons, answer->reasons_count, sizeof *answer->reasons,
		      compare_reasons);
}

void placement_answer_deinit(struct placement_answer *answer)
{
	free(answer->atoms);
	*answer = (struct placement_answer){0};
}

/* --- when would it fit? --- */

static int compare_times(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

bool placement_first_fit(const struct placement_request *request,
			 const struct placement_node *nodes, size_t nodes_count, int64_t *ret_ms)
{
	VEC(int64_t) times = {0};
	bool found = false;
	int64_t last = INT64_MIN;
	int looks = 0;

	/* Room only appears where something ends. */
	*vec_push(&times) = request->from_ms;
	for (size_t i = 0; i < nodes_count; i++) {
		for (size_t j = 0; j < nodes[i].busy_count; j++)
			*vec_push(&times) = nodes[i].busy[j].to_ms;
		for (size_t j = 0; j < nodes[i].uses_count; j++)
			*vec_push(&times) = nodes[i].uses[j].to_ms;
	}
	vec_sort(&times, compare_times);
	for (size_t i = 0; i < times.count && looks < PLACEMENT_MAX_LOOKS && !found; i++) {
		struct placement_request later = *request;
		CLEANUP(placement_answer) struct placement_answer answer = {0};
		int64_t at = times.items[i];

		if (at < request->from_ms || at == last ||
		    at > INT64_MAX - (request->to_ms - request->from_ms))
			continue;
		last = at;
		looks++;
		later.from_ms = at;
		later.to_ms = at + (request->to_ms - request->from_ms);
		placement_decide(&later, nodes, nodes_count, &answer);
		found = answer.node != NULL;
		if (found)
			*ret_ms = at;
	}
	vec_deinit(&times);
	return found;
}
