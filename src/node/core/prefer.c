#include "node/core/prefer.h"

/* One id that may be chosen, and what is known of it. */
struct candidate {
	const char *id;
	const char *allocation; /* in the id; "" when it has none */
	int32_t numa;
	bool healthy;
	bool taken;
};

/* What was chosen so far, to stay near it. */
struct choice {
	struct candidate *candidates;
	size_t count;
	const char **out;
	size_t out_count, size;
};

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;

	return strcmp(left->id, right->id);
}

static void candidate_fill(struct candidate *candidate, const char *id, const struct offer *offer)
{
	const struct offer_device *device = offer_find(offer, id);
	const char *allocation = holds_id_allocation(id);

	candidate->id = id;
	candidate->allocation = allocation ? allocation : "";
	candidate->numa = device ? device->numa : INVENTORY_NUMA_UNKNOWN;
	candidate->healthy = device && device->health.healthy;
}

static void take(struct choice *choice, struct candidate *candidate)
{
	candidate->taken = true;
	choice->out[choice->out_count++] = candidate->id;
}

static void take_must(struct choice *choice, const struct prefer_request *request)
{
	for (size_t i = 0; i < choice->count && choice->out_count < choice->size; i++) {
		bool wanted = false;

		for (size_t j = 0; j < request->must_count; j++)
			wanted |= str_equal(request->must[j], choice->candidates[i].id);
		if (wanted)
			take(choice, &choice->candidates[i]);
	}
}

/* How many of this allocation are free, and on this NUMA node. */
static void count_free(const struct choice *choice, const struct candidate *like, size_t *ret_all,
		       size_t *ret_near)
{
	*ret_all = *ret_near = 0;
	for (size_t i = 0; i < choice->count; i++) {
		const struct candidate *other = &choice->candidates[i];

		if (other->taken || !str_equal(other->allocation, like->allocation))
			continue;
		(*ret_all)++;
		*ret_near += other->numa == like->numa;
	}
}

static void count_chosen(const struct choice *choice, const struct candidate *like, size_t *ret_all,
			 size_t *ret_near)
{
	*ret_all = *ret_near = 0;
	for (size_t i = 0; i < choice->count; i++) {
		const struct candidate *other = &choice->candidates[i];

		if (!other->taken || !str_equal(other->allocation, like->allocation))
			continue;
		(*ret_all)++;
		*ret_near += other->numa == like->numa;
	}
}

/* Larger is better, compared first to last; ties go to the lower id. */
#define RANKS 6
static void rank(const struct choice *choice, const struct candidate *candidate, size_t out[RANKS])
{
	size_t free_all, free_near, chosen_all, chosen_near;
	size_t missing = choice->size - choice->out_count;

	count_free(choice, candidate, &free_all, &free_near);
	count_chosen(choice, candidate, &chosen_all, &chosen_near);
	out[0] = candidate->healthy;
	out[1] = chosen_all > 0 && chosen_near > 0; /* allocation and NUMA node of what is chosen */
	out[2] = chosen_all > 0;
	out[3] = free_all >= missing; /* one allocation can give the rest */
	out[4] = free_all;
	out[5] = free_near >= missing ? choice->count + 1 : free_near;
}

static bool take_best(struct choice *choice)
{
	struct candidate *best = NULL;
	size_t best_rank[RANKS] = {0};

	for (size_t i = 0; i < choice->count; i++) {
		size_t own[RANKS];
		size_t at = 0;

		if (choice->candidates[i].taken)
			continue;
		rank(choice, &choice->candidates[i], own);
		while (best && at < RANKS && own[at] == best_rank[at])
			at++;
		if (best && (at == RANKS || own[at] < best_rank[at]))
			continue;
		best = &choice->candidates[i];
		memcpy(best_rank, own, sizeof own);
	}
	if (best)
		take(choice, best);
	return best;
}

/* The available ids, sorted, each once. */
static size_t gather(const struct prefer_request *request, const struct offer *offer,
		     struct candidate *candidates)
{
	size_t count = 0, kept = 0;

	for (size_t i = 0; i < request->available_count && i < PREFER_MAX_IDS; i++)
		candidate_fill(&candidates[count++], request->available[i], offer);
	if (count > 1)
		qsort(candidates, count, sizeof *candidates, compare_candidates);
	for (size_t i = 0; i < count; i++)
		if (kept == 0 || !str_equal(candidates[kept - 1].id, candidates[i].id))
			candidates[kept++] = candidates[i];
	return kept;
}

size_t prefer_decide(const struct prefer_request *request, const struct offer *offer,
		     const char **out)
{
	CLEANUP(free)
	struct candidate *candidates =
		mem_alloc((request->available_count + 1) * sizeof *candidates);
	struct choice choice = {.candidates = candidates, .out = out, .size = request->size};

	choice.count = gather(request, offer, candidates);
	take_must(&choice, request);
	while (choice.out_count < choice.size && take_best(&choice))
		;
	return choice.out_count;
}
