#include "control/view.h"

#include "base/vec.h"
#include "control/core/node_conditions.h"
#include "control/core/reservation.h"
#include "control/nodes.h"

/* Which nodes a statement is about: its two texts differ in nothing else. */
enum scope {
	SCOPE_POOL,
	SCOPE_NODE,
};

/* Rows of nodes `n`, by pool or by node ($1). */
#define BY_SCOPE(before, after)                                                                    \
	{                                                                                          \
		[SCOPE_POOL] = before " WHERE n.pool = $1" after,                                  \
		[SCOPE_NODE] = before " WHERE n.id = $1" after,                                    \
	}

struct load {
	struct store_connection *db;
	enum scope scope;
	const char *id;
	struct view *view;
};

static bool query(const struct load *load, const char *const sql[2], struct store_rows *rows,
		  struct error *error)
{
	return store_query(load->db, sql[load->scope], STORE_PARAMS(store_text(load->id)), rows,
			   error);
}

struct placement_node *view_find(const struct view *view, const char *id)
{
	size_t i = vec_lower(view->count, at, strcmp(view->nodes[at].id, id) < 0);

	return i < view->count && str_equal(view->nodes[i].id, id) ? &view->nodes[i] : NULL;
}

static int compare_nodes(const void *a, const void *b)
{
	return strcmp(((const struct placement_node *)a)->id,
		      ((const struct placement_node *)b)->id);
}

void view_sort(struct view *view)
{
	qsort(view->nodes, view->count, sizeof *view->nodes, compare_nodes);
}

static bool load_nodes(const struct load *load, struct error *error)
{
	static const char *const sql[] =
		BY_SCOPE("SELECT n.id, n.trust, n.state, n.capabilities, n.vcpus, n.memory_bytes, "
			 "s.connected, s.seen_ms, n.hugepages_2mi, n.hugepages_1gi, n.gpu_api FROM "
			 "nodes n "
			 "LEFT JOIN node_streams s ON s.node = n.id",
			 " AND n.state NOT IN ('retired', 'lost') ORDER BY n.id");
	CLEANUP(store_rows) struct store_rows rows = {0};
	int64_t now_ms = store_now(load->db).ms;
	struct view *view = load->view;

	if (!query(load, sql, &rows, error))
		return false;
	view->count = rows.count;
	view->nodes = arena_alloc(&view->arena, (rows.count + 1) * sizeof *view->nodes);
	for (size_t i = 0; i < rows.count; i++) {
		CLEANUP(json_ref) json_t *capabilities = work_parse(store_get_text(&rows, i, 3));

		view->nodes[i] = (struct placement_node){
			.id = arena_strdup(&view->arena, store_get_text(&rows, i, 0)),
			.tenant_controlled =
				str_equal(store_get_text(&rows, i, 1),
					  control_trust_name(CONTROL_TRUST_TENANT_CONTROLLED)),
			.ready = str_equal(store_get_text(&rows, i, 2), "ready"),
			.connected = store_get_int(&rows, i, 6) != 0 &&
				     now_ms - store_get_int(&rows, i, 7) < NODE_UNREACHABLE_MS,
			.knows_kubernetes =
				node_has_capability(capabilities, NODE_CAPABILITY_KUBERNETES),
			.knows_limits = node_has_capability(capabilities, NODE_CAPABILITY_LIMITS),
			.knows_dra = node_has_capability(capabilities, NODE_CAPABILITY_DRA),
			.dra = str_equal(store_get_text(&rows, i, 10), NODE_API_DRA),
			.vcpus = store_get_int(&rows, i, 4),
			.memory_bytes = store_get_int(&rows, i, 5),
			.hugepages = work_hugepages_of(&rows, i, 8),
		};
	}
	view_sort(view);
	return true;
}

static bool load_conditions(const struct load *load, struct error *error)
{
	static const char *const sql[] = BY_SCOPE(
		"SELECT c.node, c.type FROM node_conditions c JOIN nodes n ON n.id = c.node",
		" ORDER BY c.node, c.type");
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!query(load, sql, &rows, error))
		return false;
	for (size_t i = 0; i < rows.count; i++) {
		struct placement_node *node = view_find(load->view, store_get_text(&rows, i, 0));
		const char *type = store_get_text(&rows, i, 1);

		if (node && !node->no_schedule &&
		    node_condition_no_schedule(type, node->tenant_controlled))
			node->no_schedule = arena_strdup(&load->view->arena, type);
	}
	return true;
}

/* Topology may be said by anybody who may label a node; what a node costs, by the system alone. */
static bool load_labels(const struct load *load, struct error *error)
{
	static const char *const sql[] = BY_SCOPE(
		"SELECT l.node, l.name, l.value, l.system FROM node_labels l JOIN nodes n ON n.id "
		"= l.node",
		" AND l.name IN ('" NODE_LABEL_CAPACITY "', '" NODE_LABEL_RACK
		"', '" NODE_LABEL_BLOCK "', '" NODE_LABEL_NVLINK_DOMAIN "')");
	static const char *const names[PLACEMENT_SAMES] = {
		[PLACEMENT_SAME_RACK] = NODE_LABEL_RACK,
		[PLACEMENT_SAME_BLOCK] = NODE_LABEL_BLOCK,
		[PLACEMENT_SAME_NVLINK_DOMAIN] = NODE_LABEL_NVLINK_DOMAIN,
	};
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!query(load, sql, &rows, error))
		return false;
	for (size_t i = 0; i < rows.count; i++) {
		struct placement_node *node = view_find(load->view, store_get_text(&rows, i, 0));
		const char *name = store_get_text(&rows, i, 1),
			   *value = store_get_text(&rows, i, 2);

		if (!node)
			continue;
		if (str_equal(name, NODE_LABEL_CAPACITY))
			node->spot = store_get_int(&rows, i, 3) != 0 && str_equal(value, "spot");
		for (size_t same = 1; same < PLACEMENT_SAMES; same++) {
			if (str_equal(name, names[same]) && *value)
				node->labels[same] = arena_strdup(&load->view->arena, value);
		}
	}
	return true;
}

/* Makes room in each node for its rows: counts first, so that arrays never move. */
static size_t *count_by_node(const struct view *view, const struct store_rows *rows)
{
	size_t *counts = mem_alloc((view->count + 1) * sizeof *counts);

	for (size_t i = 0; i < rows->count; i++) {
		const struct placement_node *node = view_find(view, store_get_text(rows, i, 0));

		if (node)
			counts[node - view->nodes]++;
	}
	return counts;
}

/* An array `member` in each node, with room for what the rows say of it. */
#define MAKE_ROOM(view, rows, member)                                                              \
	do {                                                                                       \
		CLEANUP(free) size_t *counts = count_by_node(view, rows);                          \
                                                                                                   \
		for (size_t n = 0; n < (view)->count; n++)                                         \
			(view)->nodes[n].member =                                                  \
				arena_alloc(&(view)->arena,                                        \
					    (counts[n] + 1) * sizeof *(view)->nodes[n].member);    \
	} while (0)

/* Devices have an order of their own, so that a choice among them is always the same. It is made
 * here: to the database a pool's rows are one large heap to sort. */
static int compare_gpus(const void *a, const void *b)
{
	return strcmp(((const struct placement_gpu *)a)->uuid,
		      ((const struct placement_gpu *)b)->uuid);
}

static int compare_atoms(const void *a, const void *b)
{
	const struct placement_atom *left = a, *right = b;

	if (left->gpu != right->gpu)
		return left->gpu < right->gpu ? -1 : 1;
	if (left->leaf_lo != right->leaf_lo)
		return left->leaf_lo < right->leaf_lo ? -1 : 1;
	return strcmp(left->atom, right->atom);
}

static bool load_gpus(const struct load *load, struct error *error)
{
	static const char *const sql[] =
		BY_SCOPE("SELECT g.node, g.uuid, g.model, g.healthy, g.numa FROM gpus g JOIN nodes "
			 "n ON n.id = g.node",
			 "");
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct view *view = load->view;

	if (!query(load, sql, &rows, error))
		return false;
	MAKE_ROOM(view, &rows, gpus);
	for (size_t i = 0; i < rows.count; i++) {
		struct placement_node *node = view_find(view, store_get_text(&rows, i, 0));
		struct placement_gpu gpu = {.healthy = store_get_int(&rows, i, 3) != 0,
					    .numa = (int)store_get_int(&rows, i, 4)};

		if (!node)
			continue;
		gpu.uuid = arena_strdup(&view->arena, store_get_text(&rows, i, 1));
		gpu.model = arena_strdup(&view->arena, store_get_text(&rows, i, 2));
		((struct placement_gpu *)node->gpus)[node->gpus_count++] = gpu;
	}
	for (size_t i = 0; i < view->count; i++)
		qsort((void *)view->nodes[i].gpus, view->nodes[i].gpus_count,
		      sizeof *view->nodes[i].gpus, compare_gpus);
	return true;
}

/* The node's GPU of this uuid; gpus_count when it has none. */
static size_t find_gpu(const struct placement_node *node, const char *uuid)
{
	size_t i = 0;

	while (i < node->gpus_count && !str_equal(node->gpus[i].uuid, uuid))
		i++;
	return i;
}

static bool load_atoms(const struct load *load, struct error *error)
{
	static const char *const sql[] = BY_SCOPE(
		"SELECT a.node, a.atom, a.class, a.profile, a.gpu, a.visible_device, a.leaf_lo, "
		"a.leaf_hi, a.healthy FROM atoms a JOIN nodes n ON n.id = a.node",
		"");
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct view *view = load->view;

	if (!query(load, sql, &rows, error))
		return false;
	MAKE_ROOM(view, &rows, atoms);
	for (size_t i = 0; i < rows.count; i++) {
		struct placement_node *node = view_find(view, store_get_text(&rows, i, 0));
		struct placement_atom atom = {
			.gpu = node ? find_gpu(node, store_get_text(&rows, i, 4)) : 0,
			.leaf_lo = (int)store_get_int(&rows, i, 6),
			.leaf_hi = (int)store_get_int(&rows, i, 7),
			.healthy = store_get_int(&rows, i, 8) != 0,
		};

		if (!node || !placement_class_parse(store_get_text(&rows, i, 2), &atom.class))
			continue;
		assert(atom.gpu < node->gpus_count);
		atom.atom = arena_strdup(&view->arena, store_get_text(&rows, i, 1));
		atom.profile = arena_strdup(&view->arena, store_get_text(&rows, i, 3));
		atom.visible_device = arena_strdup(&view->arena, store_get_text(&rows, i, 5));
		((struct placement_atom *)node->atoms)[node->atoms_count++] = atom;
	}
	for (size_t i = 0; i < view->count; i++)
		qsort((void *)view->nodes[i].atoms, view->nodes[i].atoms_count,
		      sizeof *view->nodes[i].atoms, compare_atoms);
	return true;
}

/* Is it in its node's Spec? */
#define GIVEN "CASE WHEN a.assigned_generation IS NULL THEN 0 ELSE 1 END"

/* Taken without an end that anybody knows: being released, or over and not withdrawn yet. */
static int64_t busy_until(const char *state, int64_t to_ms, int64_t now_ms)
{
	return str_equal(state, "releasing") || to_ms <= now_ms ? INT64_MAX : to_ms;
}

/* And from now on what a node was given already, though the clock went back to before its time. */
static int64_t busy_from(int64_t from_ms, int64_t given, int64_t now_ms)
{
	return given && from_ms > now_ms ? now_ms : from_ms;
}

/* By GPU and not by node: a card that moved, or a machine that joined twice, is the same card. What
 * couldn't be bound just now rests; a share of the host that wasn't there is no device's fault. */
static bool load_busy(const struct load *load, struct error *error)
{
#define BOOKED                                                                                     \
	"SELECT g.node, b.gpu, b.leaf_lo, b.leaf_hi, b.from_ms, b.to_ms, a.state, " GIVEN          \
	" FROM nodes n "                                                                           \
	"JOIN gpus g ON g.node = n.id JOIN bookings b ON b.gpu = g.uuid "                          \
	"JOIN allocations a ON a.id = b.allocation"
#define RESTING                                                                                    \
	"SELECT a.node, t.gpu, t.leaf_lo, t.leaf_hi, a.released_ms, a.released_ms + $3, a.state, " \
	"0 "                                                                                       \
	"FROM nodes n JOIN allocations a ON a.node = n.id "                                        \
	"JOIN allocation_devices d ON d.allocation = a.id "                                        \
	"JOIN atoms t ON t.node = a.node AND t.atom = d.atom"
#define RESTS                                                                                      \
	" AND a.state = 'failed' AND a.excused = 0 AND a.released_ms > $2 AND a.end_reason <> "    \
	"'resources-exhausted'"
	static const char *const sql[] = {
		[SCOPE_POOL] =
			BOOKED " WHERE n.pool = $1 UNION ALL " RESTING " WHERE n.pool = $1" RESTS,
		[SCOPE_NODE] =
			BOOKED " WHERE n.id = $1 UNION ALL " RESTING " WHERE n.id = $1" RESTS,
	};
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct view *view = load->view;
	int64_t now_ms = store_now(load->db).ms;

	if (!store_query(load->db, sql[load->scope],
			 STORE_PARAMS(store_text(load->id), store_int(now_ms - ALLOCATION_REST_MS),
				      store_int(ALLOCATION_REST_MS)),
			 &rows, error))
		return false;
	MAKE_ROOM(view, &rows, busy);
	for (size_t i = 0; i < rows.count; i++) {
		struct placement_node *node = view_find(view, store_get_text(&rows, i, 0));

		if (!node)
			continue;
		((struct placement_busy *)node->busy)[node->busy_count++] = (struct placement_busy){
			.gpu = find_gpu(node, store_get_text(&rows, i, 1)),
			.leaf_lo = (int)store_get_int(&rows, i, 2),
			.leaf_hi = (int)store_get_int(&rows, i, 3),
			.from_ms = busy_from(store_get_int(&rows, i, 4), store_get_int(&rows, i, 7),
					     now_ms),
			.to_ms = busy_until(store_get_text(&rows, i, 6), store_get_int(&rows, i, 5),
					    now_ms),
		};
	}
	return true;
}

static bool load_uses(const struct load *load, struct error *error)
{
	static const char *const sql[] =
		BY_SCOPE("SELECT a.node, a.vcpus, a.memory_bytes, a.from_ms, a.to_ms, a.state, "
			 "a.hugepages_2mi, a.hugepages_1gi, " GIVEN
			 " FROM nodes n JOIN allocations a ON a.node = n.id",
			 " AND a.state IN ('placed', 'bound', 'releasing')");
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct view *view = load->view;
	int64_t now_ms = store_now(load->db).ms;

	if (!query(load, sql, &rows, error))
		return false;
	MAKE_ROOM(view, &rows, uses);
	for (size_t i = 0; i < rows.count; i++) {
		struct placement_node *node = view_find(view, store_get_text(&rows, i, 0));

		if (!node)
			continue;
		((struct placement_use *)node->uses)[node->uses_count++] = (struct placement_use){
			.vcpus = store_get_int(&rows, i, 1),
			.memory_bytes = store_get_int(&rows, i, 2),
			.hugepages = work_hugepages_of(&rows, i, 6),
			.from_ms = busy_from(store_get_int(&rows, i, 3), store_get_int(&rows, i, 8),
					     now_ms),
			.to_ms = busy_until(store_get_text(&rows, i, 5), store_get_int(&rows, i, 4),
					    now_ms),
		};
	}
	return true;
}

/* Nodes that failed this reservation are left alone for a while, the longer the more often; not for long
 * when all that they failed is excused. */
bool view_load_refusals(struct store_connection *db, const char *reservation, struct view *view,
			struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	int64_t now_ms = store_now(db).ms;

	if (!reservation)
		return true;
	if (!store_query(db,
			 "SELECT node, count(*), max(released_ms), min(excused) FROM allocations "
			 "WHERE reservation = $1 AND state = 'failed' GROUP BY node",
			 STORE_PARAMS(store_text(reservation)), &rows, error))
		return false;
	for (size_t i = 0; i < rows.count; i++) {
		struct placement_node *node = view_find(view, store_get_text(&rows, i, 0));

		if (node)
			node->refused = now_ms < store_get_int(&rows, i, 2) +
							 allocation_retry_ms(
								 store_get_int(&rows, i, 1),
								 store_get_int(&rows, i, 3) != 0);
	}
	return true;
}

static bool load_heads(const struct load *load, const char *reservation, struct error *error)
{
	return load_nodes(load, error) &&
	       (load->view->count == 0 ||
		(load_conditions(load, error) && load_labels(load, error) &&
		 view_load_refusals(load->db, reservation, load->view, error)));
}

static bool load_booked(const struct load *load, struct error *error)
{
	return load->view->count == 0 ||
	       (load_gpus(load, error) && load_atoms(load, error) && load_busy(load, error));
}

static bool load_devices(const struct load *load, struct error *error)
{
	return load->view->count == 0 || (load_booked(load, error) && load_uses(load, error));
}

static bool load_all(const struct load *load, const char *reservation, struct error *error)
{
	return load_heads(load, reservation, error) && load_devices(load, error);
}

static bool load_only_booked(const struct load *load, const char *reservation UNUSED,
			     struct error *error)
{
	return load_nodes(load, error) && load_booked(load, error);
}

static bool load_view(struct load *load, const char *reservation,
		      bool (*parts)(const struct load *load, const char *reservation,
				    struct error *error),
		      struct view *ret_view, struct error *error)
{
	CLEANUP(view) struct view view = {0};

	load->view = &view;
	if (!parts(load, reservation, error))
		return false;
	view_deinit(ret_view);
	*ret_view = view;
	view = (struct view){0};
	return true;
}

bool view_load_pool(struct store_connection *db, const char *pool, const char *reservation,
		    struct view *ret_view, struct error *error)
{
	struct load load = {.db = db, .scope = SCOPE_POOL, .id = pool};

	return load_view(&load, reservation, load_all, ret_view, error);
}

bool view_load_node(struct store_connection *db, const char *node, const char *reservation,
		    struct view *ret_view, struct error *error)
{
	struct load load = {.db = db, .scope = SCOPE_NODE, .id = node};

	return load_view(&load, reservation, load_all, ret_view, error);
}

bool view_load_booked(struct store_connection *db, const char *node, struct view *ret_view,
		      struct error *error)
{
	struct load load = {.db = db, .scope = SCOPE_NODE, .id = node};

	return load_view(&load, NULL, load_only_booked, ret_view, error);
}

bool view_add_node(struct store_connection *db, const char *node, const char *reservation,
		   struct view *view, struct error *error)
{
	/* A view of its own that grows in the same arena. */
	struct view one = {.arena = view->arena};
	struct load load = {db, SCOPE_NODE, node, &one};
	bool done = load_all(&load, reservation, error);

	view->arena = one.arena;
	if (done && one.count == 1)
		view->nodes[view->count++] = one.nodes[0];
	return done;
}

void view_deinit(struct view *view)
{
	arena_deinit(&view->arena);
	*view = (struct view){0};
}

/* --- plans --- */

static void plan_member(struct view *view, const struct placement_member *member, int64_t from_ms,
			int64_t to_ms)
{
	struct placement_node *node = view_find(view, member->node->id);
	struct placement_busy *busy = arena_alloc(
		&view->arena, (node->busy_count + member->atoms_count + 1) * sizeof *busy);
	struct placement_use *uses =
		arena_alloc(&view->arena, (node->uses_count + 1) * sizeof *uses);

	memcpy(busy, node->busy, node->busy_count * sizeof *busy);
	for (size_t i = 0; i < member->atoms_count; i++) {
		const struct placement_atom *atom = &node->atoms[member->atoms[i]];

		busy[node->busy_count++] = (struct placement_busy){
			atom->gpu, atom->leaf_lo, atom->leaf_hi, from_ms, to_ms, .planned = true};
	}
	node->busy = busy;
	memcpy(uses, node->uses, node->uses_count * sizeof *uses);
	uses[node->uses_count++] = (struct placement_use){
		member->vcpus, member->memory_bytes, member->hugepages, from_ms,
		to_ms,         .planned = true};
	node->uses = uses;
}

void view_plan(struct view *view, const struct placement_answer *answer, int64_t from_ms,
	       int64_t to_ms)
{
	for (size_t i = 0; i < answer->members_count; i++)
		plan_member(view, &answer->members[i], from_ms, to_ms);
}
