#include "control/placing.h"

#include "control/allocation.h"
#include "control/core/node_conditions.h"
#include "control/nodes.h"

/* --- the view --- */

/* Rows of one table for all nodes of a pool come sorted by node, as the nodes do. */
static struct placement_node *find_node(const struct placing_view *view, const char *id)
{
	size_t low = 0, high = view->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(view->nodes[middle].id, id);

		if (order == 0)
			return &view->nodes[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static int compare_nodes(const void *a, const void *b)
{
	return strcmp(((const struct placement_node *)a)->id,
		      ((const struct placement_node *)b)->id);
}

static bool load_nodes(struct store_connection *db, const char *pool, struct placing_view *view,
		       struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	int64_t now_ms = store_now(db).ms;

	if (!store_query(db,
			 "SELECT n.id, n.trust, n.state, n.capabilities, n.vcpus, n.memory_bytes, "
			 "s.connected, s.seen_ms FROM nodes n LEFT JOIN node_streams s ON s.node = "
			 "n.id WHERE n.pool = $1 AND n.state NOT IN ('retired', 'lost') ORDER BY "
			 "n.id",
			 STORE_PARAMS(store_text(pool)), &rows, error))
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
			.vcpus = store_get_int(&rows, i, 4),
			.memory_bytes = store_get_int(&rows, i, 5),
		};
	}
	qsort(view->nodes, view->count, sizeof *view->nodes, compare_nodes);
	return true;
}

static bool load_conditions(struct store_connection *db, const char *pool,
			    struct placing_view *view, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db,
			 "SELECT c.node, c.type FROM node_conditions c JOIN nodes n ON n.id = "
			 "c.node WHERE n.pool = $1 ORDER BY c.node, c.type",
			 STORE_PARAMS(store_text(pool)), &rows, error))
		return false;
	for (size_t i = 0; i < rows.count; i++) {
		struct placement_node *node = find_node(view, store_get_text(&rows, i, 0));
		const char *type = store_get_text(&rows, i, 1);

		if (node && !node->no_schedule &&
		    node_condition_no_schedule(type, node->tenant_controlled))
			node->no_schedule = arena_strdup(&view->arena, type);
	}
	return true;
}

/* Makes room in each node for its rows: counts first, so that arrays never move. */
static size_t *count_by_node(const struct placing_view *view, const struct store_rows *rows)
{
	size_t *counts = mem_alloc((view->count + 1) * sizeof *counts);

	for (size_t i = 0; i < rows->count; i++) {
		const struct placement_node *node = find_node(view, store_get_text(rows, i, 0));

		if (node)
			counts[node - view->nodes]++;
	}
	return counts;
}

static bool load_gpus(struct store_connection *db, const char *pool, struct placing_view *view,
		      struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	CLEANUP(free) size_t *counts = NULL;

	if (!store_query(db,
			 "SELECT g.node, g.uuid, g.model, g.healthy, g.numa FROM gpus g JOIN nodes "
			 "n ON n.id = g.node WHERE n.pool = $1 ORDER BY g.node, g.uuid",
			 STORE_PARAMS(store_text(pool)), &rows, error))
		return false;
	counts = count_by_node(view, &rows);
	for (size_t i = 0; i < view->count; i++)
		view->nodes[i].gpus =
			arena_alloc(&view->arena, (counts[i] + 1) * sizeof *view->nodes[i].gpus);
	for (size_t i = 0; i < rows.count; i++) {
		struct placement_node *node = find_node(view, store_get_text(&rows, i, 0));
		struct placement_gpu gpu = {.healthy = store_get_int(&rows, i, 3) != 0,
					    .numa = (int)store_get_int(&rows, i, 4)};

		if (!node)
			continue;
		gpu.uuid = arena_strdup(&view->arena, store_get_text(&rows, i, 1));
		gpu.model = arena_strdup(&view->arena, store_get_text(&rows, i, 2));
		((struct placement_gpu *)node->gpus)[node->gpus_count++] = gpu;
	}
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

static bool load_atoms(struct store_connection *db, const char *pool, struct placing_view *view,
		       struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	CLEANUP(free) size_t *counts = NULL;

	if (!store_query(db,
			 "SELECT a.node, a.atom, a.class, a.profile, a.gpu, a.visible_device, "
			 "a.leaf_lo, a.leaf_hi, a.healthy FROM atoms a JOIN nodes n ON n.id = "
			 "a.node WHERE n.pool = $1 ORDER BY a.node, a.gpu, a.leaf_lo, a.atom",
			 STORE_PARAMS(store_text(pool)), &rows, error))
		return false;
	counts = count_by_node(view, &rows);
	for (size_t i = 0; i < view->count; i++)
		view->nodes[i].atoms =
			arena_alloc(&view->arena, (counts[i] + 1) * sizeof *view->nodes[i].atoms);
	for (size_t i = 0; i < rows.count; i++) {
		struct placement_node *node = find_node(view, store_get_text(&rows, i, 0));
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
	return true;
}

/* Taken without an end that anybody knows: being released, or over and not withdrawn yet. */
static int64_t busy_until(const char *state, int64_t to_ms, int64_t now_ms)
{
	return str_equal(state, "releasing") || to_ms <= now_ms ? INT64_MAX : to_ms;
}

/* By GPU and not by node: a card that moved, or a machine that joined twice, is the same card. What
 * couldn't be bound just now rests; a share of the host that wasn't there is no device's fault. */
static bool load_busy(struct store_connection *db, const char *pool, struct placing_view *view,
		      struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	int64_t now_ms = store_now(db).ms;
	CLEANUP(free) size_t *counts = NULL;

	if (!store_query(db,
			 "SELECT g.node, b.gpu, b.leaf_lo, b.leaf_hi, b.from_ms, b.to_ms, a.state "
			 "FROM bookings b JOIN allocations a ON a.id = b.allocation "
			 "JOIN gpus g ON g.uuid = b.gpu JOIN nodes n ON n.id = g.node "
			 "WHERE n.pool = $1 "
			 "UNION ALL "
			 "SELECT a.node, t.gpu, t.leaf_lo, t.leaf_hi, a.released_ms, "
			 "a.released_ms + $3, a.state FROM allocations a "
			 "JOIN allocation_devices d ON d.allocation = a.id "
			 "JOIN atoms t ON t.node = a.node AND t.atom = d.atom "
			 "JOIN nodes n ON n.id = a.node "
			 "WHERE n.pool = $1 AND a.state = 'failed' AND a.released_ms > $2 AND "
			 "a.end_reason <> 'resources-exhausted' ORDER BY 1, 2, 5",
			 STORE_PARAMS(store_text(pool), store_int(now_ms - PLACING_REST_MS),
				      store_int(PLACING_REST_MS)),
			 &rows, error))
		return false;
	counts = count_by_node(view, &rows);
	for (size_t i = 0; i < view->count; i++)
		view->nodes[i].busy =
			arena_alloc(&view->arena, (counts[i] + 1) * sizeof *view->nodes[i].busy);
	for (size_t i = 0; i < rows.count; i++) {
		struct placement_node *node = find_node(view, store_get_text(&rows, i, 0));

		if (!node)
			continue;
		((struct placement_busy *)node->busy)[node->busy_count++] = (struct placement_busy){
			.gpu = find_gpu(node, store_get_text(&rows, i, 1)),
			.leaf_lo = (int)store_get_int(&rows, i, 2),
			.leaf_hi = (int)store_get_int(&rows, i, 3),
			.from_ms = store_get_int(&rows, i, 4),
			.to_ms = busy_until(store_get_text(&rows, i, 6), store_get_int(&rows, i, 5),
					    now_ms),
		};
	}
	return true;
}

static bool load_uses(struct store_connection *db, const char *pool, struct placing_view *view,
		      struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	CLEANUP(free) size_t *counts = NULL;

	if (!store_query(
		    db,
		    "SELECT a.node, a.vcpus, a.memory_bytes, a.from_ms, a.to_ms, a.state FROM "
		    "allocations a JOIN nodes n ON n.id = a.node WHERE n.pool = $1 AND a.state "
		    "IN ('placed', 'bound', 'releasing') ORDER BY a.node",
		    STORE_PARAMS(store_text(pool)), &rows, error))
		return false;
	counts = count_by_node(view, &rows);
	for (size_t i = 0; i < view->count; i++)
		view->nodes[i].uses =
			arena_alloc(&view->arena, (counts[i] + 1) * sizeof *view->nodes[i].uses);
	for (size_t i = 0; i < rows.count; i++) {
		struct placement_node *node = find_node(view, store_get_text(&rows, i, 0));

		if (!node)
			continue;
		((struct placement_use *)node->uses)[node->uses_count++] = (struct placement_use){
			.vcpus = store_get_int(&rows, i, 1),
			.memory_bytes = store_get_int(&rows, i, 2),
			.from_ms = store_get_int(&rows, i, 3),
			.to_ms = busy_until(store_get_text(&rows, i, 5), store_get_int(&rows, i, 4),
					    store_now(db).ms),
		};
	}
	return true;
}

static int64_t refused_for(int64_t failures)
{
	int64_t ms = PLACING_REFUSED_MS;

	while (--failures > 0 && ms < PLACING_REFUSED_MAX_MS)
		ms *= 2;
	return ms < PLACING_REFUSED_MAX_MS ? ms : PLACING_REFUSED_MAX_MS;
}

static bool load_refusals(struct store_connection *db, const char *reservation,
			  struct placing_view *view, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!reservation)
		return true;
	if (!store_query(db,
			 "SELECT node, count(*), max(released_ms) FROM allocations WHERE "
			 "reservation = $1 AND state = 'failed' GROUP BY node",
			 STORE_PARAMS(store_text(reservation)), &rows, error))
		return false;
	for (size_t i = 0; i < rows.count; i++) {
		struct placement_node *node = find_node(view, store_get_text(&rows, i, 0));
		int64_t until_ms =
			store_get_int(&rows, i, 2) + refused_for(store_get_int(&rows, i, 1));

		if (node)
			node->refused = until_ms > store_now(db).ms;
	}
	return true;
}

bool placing_view_load(struct store_connection *db, const char *pool, const char *reservation,
		       struct placing_view *ret_view, struct error *error)
{
	struct placing_view view = {0};

	if (!load_nodes(db, pool, &view, error) || !load_conditions(db, pool, &view, error) ||
	    !load_gpus(db, pool, &view, error) || !load_atoms(db, pool, &view, error) ||
	    !load_busy(db, pool, &view, error) || !load_uses(db, pool, &view, error) ||
	    !load_refusals(db, reservation, &view, error)) {
		placing_view_deinit(&view);
		return false;
	}
	placing_view_deinit(ret_view);
	*ret_view = view;
	return true;
}

void placing_view_deinit(struct placing_view *view)
{
	arena_deinit(&view->arena);
	*view = (struct placing_view){0};
}

json_t *placing_reasons(const struct placement_answer *answer)
{
	json_t *reasons = json_array();

	for (size_t i = 0; i < answer->reasons_count; i++) {
		const struct placement_reason *reason = &answer->reasons[i];
		json_t *row =
			json_pack("{s:s, s:i}", "reason", reason->reason, "nodes", reason->nodes);

		if (reason->largest >= 0)
			json_object_set_new(row, "largest", json_integer(reason->largest));
		json_array_append_new(reasons, row);
	}
	return reasons;
}

/* --- trying --- */

/* A pending reservation as it stands, and its request. */
struct waiting {
	char pool[ID_SIZE];
	json_t *devices;
	struct placement_need needs[RESERVE_MAX_NEEDS];
	struct placement_request request;
};

static void waiting_cleanup(struct waiting *waiting)
{
	json_decref(waiting->devices);
}

static bool load_waiting(struct store_connection *db, const char *id, struct waiting *waiting,
			 struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct placement_request *request = &waiting->request;
	int64_t now_ms = store_now(db).ms;

	if (!store_query(db,
			 "SELECT pool, devices, duration_ms, start_ms, vcpus, memory_bytes FROM "
			 "reservations WHERE id = $1 AND state = 'pending'",
			 STORE_PARAMS(store_text(id)), &rows, error))
		return false;
	if (rows.count == 0)
		return error_set(error, ERROR_INTERNAL, "reservation '%s' isn't pending", id);
	str_copy(waiting->pool, ID_SIZE, store_get_text(&rows, 0, 0));
	waiting->devices = work_parse(store_get_text(&rows, 0, 1));
	if (!reserve_needs_unpack(waiting->devices, waiting->needs, &request->needs_count))
		return error_set(error, ERROR_INTERNAL, "reservation '%s': devices as stored", id);
	request->needs = waiting->needs;
	/* Without a start the duration counts from placement; with one the end is fixed. */
	request->from_ms = now_ms;
	request->to_ms = now_ms + store_get_int(&rows, 0, 2);
	if (!store_is_null(&rows, 0, 3)) {
		int64_t start_ms = store_get_int(&rows, 0, 3);

		request->from_ms = start_ms > now_ms ? start_ms : now_ms;
		request->to_ms = start_ms + store_get_int(&rows, 0, 2);
	}
	request->vcpus = store_is_null(&rows, 0, 4) ? -1 : store_get_int(&rows, 0, 4);
	request->memory_bytes = store_is_null(&rows, 0, 5) ? -1 : store_get_int(&rows, 0, 5);
	request->limited = request->vcpus >= 0 || request->memory_bytes >= 0;
	return true;
}

static bool note_reasons(struct store_connection *db, const char *reservation,
			 const struct placement_answer *answer, struct error *error)
{
	CLEANUP(json_ref) json_t *reasons = placing_reasons(answer);
	CLEANUP(free) char *text = json_dumps(reasons, JSON_COMPACT);

	return store_exec(db,
			  "UPDATE reservations SET reasons = $2 WHERE id = $1 AND reasons <> $2",
			  STORE_PARAMS(store_text(reservation), store_text(text)), error);
}

static bool book(struct store_connection *db, const char *reservation,
		 const struct placement_request *request, const struct placement_answer *answer,
		 struct error *error)
{
	struct allocation allocation;
	char id[ID_SIZE];
	bool found;

	if (!allocation_book(db, reservation, request, answer, id, error))
		return false;
	if (request->from_ms > store_now(db).ms)
		return true;
	return allocation_load(db, id, &allocation, &found, error) &&
	       allocation_start(db, &allocation, error);
}

bool placing_try(struct store_connection *db, const char *reservation, bool *ret_placed,
		 struct error *error)
{
	CLEANUP(placing_view) struct placing_view view = {0};
	CLEANUP(placement_answer) struct placement_answer answer = {0};
	CLEANUP(pool) struct pool pool = {0};
	CLEANUP(waiting) struct waiting waiting = {0};
	struct placement_request *request = &waiting.request;

	*ret_placed = false;
	if (!load_waiting(db, reservation, &waiting, error) ||
	    !pool_load(db, waiting.pool, &pool, error))
		return false;
	if (pool.archived)
		return reservation_step(db, reservation, RESERVATION_ON_DENIED, "PoolArchived",
					error);
	if (request->to_ms <= request->from_ms)
		return reservation_step(db, reservation, RESERVATION_ON_EXPIRED, "NoRoomInTime",
					error);
	request->model = pool.gpu_model;
	request->spread = pool.policy.spread;
	if (!placing_view_load(db, pool.id, reservation, &view, error))
		return false;
	placement_decide(request, view.nodes, view.count, &answer);
	if (!answer.node)
		return note_reasons(db, reservation, &answer, error);
	*ret_placed = true;
	return book(db, reservation, request, &answer, error);
}
