#include "base/vec.h"
#include "control/core/node_filter.h"

/*
 * On one node, fitting changes with the beginning at few moments only: where something ends, and
 * where the request would come to overlap what begins. Between two of them one look is enough. A
 * sweep over all nodes' stretches then finds the first moment at which enough of them fit together.
 */

/* A node begins to fit, or ceases to. */
struct edge {
	int64_t at_ms;
	const char *domain;
	bool begins;
};

struct edges VEC_BODY(struct edge);
struct moments VEC_BODY(int64_t);

static int compare_moments(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

static int compare_edges(const void *a, const void *b)
{
	const struct edge *left = a, *right = b;

	if (left->at_ms != right->at_ms)
		return left->at_ms < right->at_ms ? -1 : 1;
	return (int)left->begins - (int)right->begins; /* what ceases at a moment isn't there */
}

static void add_span(struct moments *moments, const struct placement_request *request,
		     int64_t from_ms, int64_t to_ms)
{
	int64_t duration_ms = request->to_ms - request->from_ms;

	if (to_ms > request->from_ms && to_ms <= INT64_MAX - duration_ms)
		*vec_push(moments) = to_ms;
	if (from_ms - duration_ms >= request->from_ms)
		*vec_push(moments) = from_ms - duration_ms + 1;
}

static void list_moments(const struct placement_request *request, const struct placement_node *node,
			 struct moments *moments)
{
	moments->count = 0;
	*vec_push(moments) = request->from_ms;
	for (size_t i = 0; i < node->busy_count; i++)
		add_span(moments, request, node->busy[i].from_ms, node->busy[i].to_ms);
	for (size_t i = 0; i < node->uses_count; i++)
		add_span(moments, request, node->uses[i].from_ms, node->uses[i].to_ms);
	for (size_t i = 0; i < request->waits_count; i++)
		add_span(moments, request, request->waits[i], request->waits[i]);
	vec_sort(moments, compare_moments);
}

/* Moments from `until_ms` on are of no use to anybody. */
static void add_edges(const struct placement_request *request, const struct placement_node *node,
		      int64_t until_ms, struct moments *moments, struct edges *edges)
{
	const char *label = node->labels[request->same];
	bool fitted = false;

	list_moments(request, node, moments);
	for (size_t i = 0; i < moments->count && moments->items[i] < until_ms; i++) {
		struct placement_request later = *request;
		bool fits;

		if (i > 0 && moments->items[i] == moments->items[i - 1])
			continue;
		later.from_ms = moments->items[i];
		later.to_ms = later.from_ms + (request->to_ms - request->from_ms);
		fits = node_filter_fits(&later, node);
		if (fits != fitted)
			*vec_push(edges) = (struct edge){later.from_ms, label ? label : "", fits};
		fitted = fits;
	}
}

/* How many nodes of one domain fit at the moment that the sweep has come to. */
struct tally {
	const char *domain;
	size_t count;
};

struct tallies VEC_BODY(struct tally);

static size_t *tally_of(struct tallies *tallies, const char *domain)
{
	for (size_t i = 0; i < tallies->count; i++) {
		if (str_equal(tallies->items[i].domain, domain))
			return &tallies->items[i].count;
	}
	*vec_push(tallies) = (struct tally){.domain = domain};
	return &tallies->items[tallies->count - 1].count;
}

bool placement_first_fit(const struct placement_request *request,
			 const struct placement_node *nodes, size_t nodes_count, int64_t *ret_ms)
{
	size_t wanted = request->nodes > 1 ? (size_t)request->nodes : 1;
	struct moments moments = {0};
	struct tallies tallies = {0};
	struct edges edges = {0};
	int64_t until_ms = INT64_MAX;
	bool found = false;

	for (size_t i = 0; i < nodes_count; i++) {
		size_t before = edges.count;

		add_edges(request, &nodes[i], until_ms, &moments, &edges);
		/* Who needs one node only needs no later one. */
		if (wanted == 1 && edges.count > before)
			until_ms = edges.items[before].at_ms;
	}
	vec_sort(&edges, compare_edges);
	for (size_t i = 0; i < edges.count && !found; i++) {
		const struct edge *edge = &edges.items[i];
		size_t *count = tally_of(&tallies, edge->domain);

		*count = edge->begins ? *count + 1 : *count - 1;
		found = edge->begins && *count >= wanted;
		*ret_ms = edge->at_ms;
	}
	vec_deinit(&moments);
	vec_deinit(&tallies);
	vec_deinit(&edges);
	return found;
}
