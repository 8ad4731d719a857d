#include "control/core/device_choice.h"

#include "control/core/gpu_model.h"

/* A choice in the making. */
struct
try {
	const struct placement_request *request;
	const struct placement_node *node;
	enum device_depth depth;
	bool *usable;   /* by atom: passes the depth, whatever is picked */
	bool *touched;  /* by GPU: a part of it is taken, by others or by this try */
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

static bool is_usable(const struct try *try, const struct placement_atom *atom)
{
	const struct placement_gpu *gpu = &try->node->gpus[atom->gpu];

	if (!gpu_model_matches(try->request->model, gpu->model))
		return false;
	if (try->depth >= DEVICE_DEPTH_HEALTH && !(atom->healthy && gpu->healthy))
		return false;
	return try->depth < DEVICE_DEPTH_FREE ||
	       !is_busy(try->request, try->node, atom->gpu, atom->leaf_lo, atom->leaf_hi);
}

static bool meets_picked(const struct try *try, const struct placement_atom *atom)
{
	for (size_t i = 0; i < try->picked_count; i++) {
		const struct placement_atom *picked = &try->node->atoms[try->picked[i]];

		if (picked->gpu == atom->gpu &&
		    meet(picked->leaf_lo, picked->leaf_hi, atom->leaf_lo, atom->leaf_hi))
			return true;
	}
	return false;
}

static bool serves(const struct try *try, const struct placement_need *need, size_t index)
{
	const struct placement_atom *atom = &try->node->atoms[index];

	if (atom->class != need->class || !try->usable[index])
		return false;
	if (need->profile && !str_equal(need->profile, atom->profile))
		return false;
	return !meets_picked(try, atom);
}

/* What a GPU is worth to a need; compared by the better_ functions. */
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

static bool has_begun_numa(const struct try *try, size_t gpu)
{
	const struct placement_node *node = try->node;

	for (size_t i = 0; i < try->picked_count; i++) {
		const struct placement_atom *atom = &node->atoms[try->picked[i]];

		if (atom->class == PLACEMENT_CLASS_GPU &&
		    node->gpus[atom->gpu].numa == node->gpus[gpu].numa)
			return true;
	}
	return false;
}

/* One candidate a GPU that serves the need at all. */
static size_t list_candidates(const struct try *try, const struct placement_need *need,
			      struct candidate *candidates)
{
	const struct placement_node *node = try->node;
	size_t count = 0;

	for (size_t gpu = 0; gpu < node->gpus_count; gpu++) {
		struct candidate candidate = {.gpu = gpu, .touched = try->touched[gpu]};

		for (size_t i = 0; i < node->atoms_count; i++) {
			bool whole = node->atoms[i].class == PLACEMENT_CLASS_GPU;

			if (node->atoms[i].gpu != gpu)
				continue;
			candidate.atoms += serves(try, need, i);
			candidate.whole |= whole && try->usable[i];
			candidate.parts += !whole && try->usable[i];
		}
		if (candidate.atoms > 0)
			candidates[count++] = candidate;
	}
	for (size_t i = 0; i < count; i++) {
		candidates[i].numa_begun = has_begun_numa(try, candidates[i].gpu);
		for (size_t j = 0; j < count; j++)
			candidates[i].numa_free += candidates[i].parts == candidates[j].parts &&
						   node->gpus[candidates[i].gpu].numa ==
							   node->gpus[candidates[j].gpu].numa;
	}
	return count;
}

static void pick(struct try *try, size_t atom)
{
	try->touched[try->node->atoms[atom].gpu] = true;
	try->picked[try->picked_count++] = atom;
}

/* Takes from the best GPU until the need is met; how many it got. */
static int pick_need(struct try *try, const struct placement_need *need,
		     struct candidate *candidates)
{
	bool wholes = need->class == PLACEMENT_CLASS_GPU;
	int got = 0;

	while (got < need->count) {
		size_t count = list_candidates(try, need, candidates);
		const struct candidate *best = NULL;

		for (size_t i = 0; i < count; i++) {
			if (!best ||
			    (wholes ? better_for_wholes(&candidates[i], best, need->count - got)
				    : better_for_parts(&candidates[i], best)))
				best = &candidates[i];
		}
		if (!best)
			break;
		for (size_t i = 0; i < try->node->atoms_count && got < need->count; i++) {
			if (try->node->atoms[i].gpu != best->gpu || !serves(try, need, i))
				continue;
			pick(try, i);
			got++;
		}
	}
	return got;
}

static void try_init(struct try *try, const struct placement_request *request,
		     const struct placement_node *node, enum device_depth depth)
{
	*try = (struct try){.request = request, .node = node, .depth = depth};
	try->usable = mem_alloc(node->atoms_count * sizeof *try->usable);
	try->touched = mem_alloc(node->gpus_count * sizeof *try->touched);
	try->picked = mem_alloc(node->atoms_count * sizeof *try->picked);
	for (size_t i = 0; i < node->atoms_count; i++)
		try->usable[i] = is_usable(try, &node->atoms[i]);
	for (size_t i = 0; i < node->gpus_count; i++)
		try->touched[i] = depth == DEVICE_DEPTH_FREE &&
				  is_busy(request, node, i, 0, PLACEMENT_LEAVES);
}

/* Picks for all needs, parts before wholes. */
static bool pick_all(struct try *try)
{
	static const enum placement_class order[] = {PLACEMENT_CLASS_MIG, PLACEMENT_CLASS_SLOT,
						     PLACEMENT_CLASS_GPU};
	const struct placement_request *request = try->request;
	struct candidate *candidates = mem_alloc(try->node->gpus_count * sizeof *candidates);
	bool done = true;

	for (size_t class = 0; class < ARRAY_SIZE(order); class ++) {
		for (size_t pass = 0; pass < 2; pass++) {
			for (size_t i = 0; i < request->needs_count; i++) {
				const struct placement_need *need = &request->needs[i];

				/* A need that names its profile before one that takes any. */
				if (need->class == order[class] && (pass == 0) == !!need->profile)
					done &= pick_need(try, need, candidates) == need->count;
			}
		}
	}
	free(candidates);
	return done;
}

bool device_choose(const struct placement_request *request, const struct placement_node *node,
		   enum device_depth depth, struct device_choice *ret_choice)
{
	struct try try;
	bool done;

	try_init(&try, request, node, depth);
	done = pick_all(&try);
	free(try.usable);
	free(try.touched);
	*ret_choice = (struct device_choice){try.picked, try.picked_count};
	return done;
}

/* --- how much there is --- */

static int count_devices(const struct placement_request *request, const struct placement_node *node,
			 enum device_depth depth)
{
	CLEANUP(device_choice) struct device_choice choice = {0};

	if (device_choose(request, node, depth, &choice))
		assert(false);
	return (int)choice.count;
}

struct placement_room device_room_of(const struct placement_node *node, enum placement_class class,
				     const char *profile, const char *model)
{
	/* More than there can be: all that are there are picked. */
	const struct placement_need all = {class, profile, INT_MAX};
	const struct placement_request request = {.needs = &all,
						  .needs_count = 1,
						  .model = model,
						  .from_ms = INT64_MIN,
						  .to_ms = INT64_MAX};
	struct placement_room room = {.first_end_ms = INT64_MAX};

	room.total = count_devices(&request, node, DEVICE_DEPTH_CLASS);
	room.healthy = count_devices(&request, node, DEVICE_DEPTH_HEALTH);
	room.idle = count_devices(&request, node, DEVICE_DEPTH_FREE);
	for (size_t i = 0; i < node->busy_count; i++) {
		const struct placement_busy *busy = &node->busy[i];

		if (busy->to_ms < room.first_end_ms)
			room.first_end_ms = busy->to_ms;
		if (busy->from_ms > room.last_from_ms)
			room.last_from_ms = busy->from_ms;
	}
	return room;
}
