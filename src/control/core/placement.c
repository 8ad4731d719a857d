#include "control/core/placement.h"

#include "base/vec.h"
#include "control/core/device_choice.h"
#include "control/core/node_filter.h"

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
			 struct node_verdict verdict)
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
		if (reason->lack.asked != verdict.lack.asked)
			reason->lack = (struct placement_lack){0};
		else if (verdict.lack.has > reason->lack.has)
			reason->lack.has = verdict.lack.has;
		return;
	}
	/* Only NoSchedule conditions could be that many; the last row then takes the rest. */
	if (answer->reasons_count == PLACEMENT_MAX_REASONS) {
		answer->reasons[PLACEMENT_MAX_REASONS - 1].nodes += nodes;
		return;
	}
	answer->reasons[answer->reasons_count++] =
		(struct placement_reason){verdict.reason, nodes, verdict.largest, verdict.lack};
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
		struct node_verdict verdict =
			node_filter_judge(request, fits[i].node, &answer->members[i]);

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
		could += node_filter_could_ever(request, &nodes[i]);
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
		struct node_verdict verdict = node_filter_judge(request, &nodes[i], NULL);

		if (verdict.reason)
			count_reason(answer, &nodes[i], verdict);
		else
			*vec_push(&fits) =
				(struct fit){&nodes[i], node_filter_domain(request, &nodes[i]),
					     device_room_of(&nodes[i], first_need->class,
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
			count_reason(answer, fits.items[i].node,
				     (struct node_verdict){.reason = "TooFewNodes", .largest = -1});
		look_further(request, nodes, nodes_count, wanted, answer);
	}
	vec_deinit(&fits);
	if (nodes_count == 0)
		answer->reasons[answer->reasons_count++] =
			(struct placement_reason){.reason = "PoolEmpty", .largest = -1};
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
