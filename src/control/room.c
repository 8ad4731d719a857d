#include "control/room.h"

#include "base/vec.h"
#include "control/core/device_choice.h"
#include "control/core/node_conditions.h"
#include "control/nodes.h"
#include "control/pools.h"

#include <limits.h>

/* Of a node: its rows are not made yet, there is nothing to make rows of, they are there. */
enum {
	ROOMED_NOT,
	ROOMED_NONE,
	ROOMED_DEVICES,
};

/* --- keeping the rows --- */

static bool put_row(struct store_connection *db, const struct placement_node *node,
		    const struct pool *pool, enum placement_class class, const char *profile,
		    struct error *error)
{
	/* The whole class stands under the profile "". */
	struct placement_room room =
		device_room_of(node, class, *profile ? profile : NULL, pool->gpu_model);

	return store_exec(
		db,
		"INSERT INTO node_room (node, class, profile, pool, total, healthy, idle, "
		"first_end_ms, last_from_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON "
		"CONFLICT (node, class, profile) DO UPDATE SET pool = excluded.pool, total = "
		"excluded.total, healthy = excluded.healthy, idle = excluded.idle, first_end_ms = "
		"excluded.first_end_ms, last_from_ms = excluded.last_from_ms",
		STORE_PARAMS(store_text(node->id), store_text(placement_class_name(class)),
			     store_text(profile), store_text(pool->id), store_int(room.total),
			     store_int(room.healthy), store_int(room.idle),
			     store_int(room.first_end_ms), store_int(room.last_from_ms)),
		error);
}

/* Was this kind there in an atom before? */
static bool is_first_of_kind(const struct placement_node *node, size_t index, bool with_profile)
{
	const struct placement_atom *atom = &node->atoms[index];

	for (size_t i = 0; i < index; i++) {
		if (node->atoms[i].class == atom->class &&
		    (!with_profile || str_equal(node->atoms[i].profile, atom->profile)))
			return false;
	}
	return true;
}

static bool put_rows(struct store_connection *db, const struct placement_node *node,
		     const struct pool *pool, struct error *error)
{
	for (size_t i = 0; i < node->atoms_count; i++) {
		const struct placement_atom *atom = &node->atoms[i];

		if (is_first_of_kind(node, i, false) &&
		    !put_row(db, node, pool, atom->class, "", error))
			return false;
		if (*atom->profile && is_first_of_kind(node, i, true) &&
		    !put_row(db, node, pool, atom->class, atom->profile, error))
			return false;
	}
	return true;
}

bool room_refresh(struct store_connection *db, const char *node, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	CLEANUP(view) struct view view = {0};
	struct pool pool = {0};
	int roomed;

	if (!store_query(db,
			 "SELECT p.id, p.gpu_model, n.roomed FROM nodes n JOIN pools p ON p.id = "
			 "n.pool WHERE n.id = $1",
			 STORE_PARAMS(store_text(node)), &rows, error) ||
	    !view_load_booked(db, node, &view, error))
		return false;
	/* A node that is lost or retired is asked for nothing. */
	if (rows.count == 0 || view.count == 0)
		return store_exec(db, "DELETE FROM node_room WHERE node = $1",
				  STORE_PARAMS(store_text(node)), error);
	str_copy(pool.id, sizeof pool.id, store_get_text(&rows, 0, 0));
	str_copy(pool.gpu_model, sizeof pool.gpu_model, store_get_text(&rows, 0, 1));
	roomed = view.nodes[0].atoms_count > 0 ? ROOMED_DEVICES : ROOMED_NONE;
	return put_rows(db, &view.nodes[0], &pool, error) &&
	       (store_get_int(&rows, 0, 2) == roomed ||
		store_exec(db, "UPDATE nodes SET roomed = $2 WHERE id = $1",
			   STORE_PARAMS(store_text(node), store_int(roomed)), error));
}

bool room_renew(struct store_connection *db, const char *node, struct error *error)
{
	return store_exec(db, "DELETE FROM node_room WHERE node = $1",
			  STORE_PARAMS(store_text(node)), error) &&
	       room_refresh(db, node, error);
}

bool room_nodes_of(struct store_connection *db, const char *allocation,
		   struct store_rows *ret_nodes, struct error *error)
{
	return store_query(db,
			   "SELECT DISTINCT g.node FROM bookings b JOIN gpus g ON g.uuid = b.gpu "
			   "WHERE b.allocation = $1 ORDER BY g.node",
			   STORE_PARAMS(store_text(allocation)), ret_nodes, error);
}

bool room_refresh_all(struct store_connection *db, const struct store_rows *nodes,
		      struct error *error)
{
	for (size_t i = 0; i < nodes->count; i++) {
		if (!room_refresh(db, store_get_text(nodes, i, 0), error))
			return false;
	}
	return true;
}

/* --- reasons without a look --- */

#define HEARD "s.connected = 1 AND s.seen_ms > $4"

/* Nodes of which the rows below don't say why they can't take the request: $7 devices of the kind
 * within [$8, $9), for the reservation $10. */
#define TO_LOOK_AT                                                                                 \
	"n.id IN (SELECT a.node FROM allocations a WHERE a.reservation = $10 AND a.state = "       \
	"'failed') OR (n.state = 'ready' AND " HEARD " AND n.trust <> $5 AND ($6 = 1 OR l.node "   \
	"IS NULL) AND " NODE_OFFERS_BY("$11") " AND ((n.roomed = 0 AND n.has_inventory = 1) OR "   \
					      "(n.roomed = 2 AND r.total >= $7 "                   \
					      "AND r.healthy >= $7 AND (r.idle >= $7 OR "          \
					      "r.first_end_ms <= $8 OR r.last_from_ms >= "         \
					      "$9))))"

/* What is alike for the filters is one row; what has to be looked at is one of its own. */
#define ALIKE                                                                                      \
	"SELECT look, min(id), count(*), trust, state, capabilities, vcpus, memory_bytes, heard, " \
	"spot, condition, roomed, total, healthy, idle, hugepages_2mi, hugepages_1gi, gpu_api "    \
	"FROM (SELECT n.id, n.trust, n.state, n.hugepages_2mi, n.hugepages_1gi, n.gpu_api, "       \
	"n.capabilities, n.vcpus, n.memory_bytes, n.roomed, CASE WHEN " HEARD " THEN 1 ELSE 0 "    \
	"END AS heard, CASE WHEN l.node IS NULL THEN 0 ELSE 1 END AS spot, (SELECT min(c.type) "   \
	"FROM node_conditions c WHERE c.node = n.id AND c.type IN "                                \
	"(" NODE_CONDITIONS_NO_SCHEDULE ")) AS condition, coalesce(r.total, 0) AS total, "         \
	"coalesce(r.healthy, 0) AS healthy, coalesce(r.idle, 0) AS idle, CASE WHEN " TO_LOOK_AT    \
	" THEN n.id ELSE '' END AS look FROM nodes n LEFT JOIN node_streams s ON s.node = n.id "   \
	"LEFT JOIN node_room r ON r.node = n.id AND r.class = $2 AND r.profile = $3 LEFT JOIN "    \
	"node_labels l ON l.node = n.id AND l.name = '" NODE_LABEL_CAPACITY "' AND l.value = "     \
	"'spot' AND l.system = 1 WHERE n.pool = $1 AND n.state NOT IN ('retired', 'lost')) AS "    \
	"heads GROUP BY look, trust, state, capabilities, vcpus, memory_bytes, heard, spot, "      \
	"condition, roomed, total, healthy, idle, hugepages_2mi, hugepages_1gi, gpu_api"

static bool load_alike(struct store_connection *db, const char *pool,
		       const struct placement_request *request, const char *reservation,
		       struct store_rows *rows, struct error *error)
{
	const struct placement_need *need = &request->needs[0];

	return store_query(
		db, ALIKE,
		STORE_PARAMS(store_text(pool), store_text(placement_class_name(need->class)),
			     store_text(need->profile ? need->profile : ""),
			     store_int(store_now(db).ms - NODE_UNREACHABLE_MS),
			     store_text(control_trust_name(CONTROL_TRUST_TENANT_CONTROLLED)),
			     store_int(request->spot), store_int(need->count),
			     store_int(request->from_ms), store_int(request->to_ms),
			     store_text(reservation ? reservation : ""), store_int(request->dra)),
		rows, error);
}

/* Their bookings all overlap the time asked for, or it doesn't matter whether they do. */
static struct placement_node alike(struct arena *arena, const struct store_rows *rows, size_t row)
{
	CLEANUP(json_ref) json_t *capabilities = work_parse(store_get_text(rows, row, 5));
	struct placement_room *room = NULL;

	if (store_get_int(rows, row, 11) == ROOMED_DEVICES) {
		room = arena_alloc(arena, sizeof *room);
		*room = (struct placement_room){.total = (int)store_get_int(rows, row, 12),
						.healthy = (int)store_get_int(rows, row, 13),
						.idle = (int)store_get_int(rows, row, 14),
						.first_end_ms = INT64_MAX};
	}
	return (struct placement_node){
		.id = arena_strdup(arena, store_get_text(rows, row, 1)),
		.alike = (int)store_get_int(rows, row, 2),
		.tenant_controlled = str_equal(store_get_text(rows, row, 3),
					       control_trust_name(CONTROL_TRUST_TENANT_CONTROLLED)),
		.ready = str_equal(store_get_text(rows, row, 4), "ready"),
		.connected = store_get_int(rows, row, 8) != 0,
		.knows_kubernetes = node_has_capability(capabilities, NODE_CAPABILITY_KUBERNETES),
		.knows_limits = node_has_capability(capabilities, NODE_CAPABILITY_LIMITS),
		.knows_dra = node_has_capability(capabilities, NODE_CAPABILITY_DRA),
		.dra = str_equal(store_get_text(rows, row, 17), NODE_API_DRA),
		.vcpus = store_get_int(rows, row, 6),
		.memory_bytes = store_get_int(rows, row, 7),
		.hugepages = work_hugepages_of(rows, row, 15),
		.spot = store_get_int(rows, row, 9) != 0,
		.no_schedule = arena_strdup(arena, store_get_text(rows, row, 10)),
		.room = room,
	};
}

bool room_load(struct store_connection *db, const char *pool,
	       const struct placement_request *request, const char *reservation,
	       struct view *ret_view, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	CLEANUP(view) struct view view = {0};

	assert(request->needs_count == 1);
	if (!load_alike(db, pool, request, reservation, &rows, error))
		return false;
	view.nodes = arena_alloc(&view.arena, (rows.count + 1) * sizeof *view.nodes);
	for (size_t i = 0; i < rows.count; i++) {
		const char *look = store_get_text(&rows, i, 0);

		if (*look == '\0')
			view.nodes[view.count++] = alike(&view.arena, &rows, i);
		else if (!view_add_node(db, look, reservation, &view, error))
			return false;
	}
	view_sort(&view);
	view_deinit(ret_view);
	*ret_view = view;
	view = (struct view){0};
	return true;
}

/* --- searching --- */

struct candidate {
	char node[ID_SIZE];
	int64_t idle;
};

struct candidates VEC_BODY(struct candidate);

/* The kind of device that decides the order, and how far the search has come. */
struct search {
	struct store_connection *db;
	const char *pool, *reservation;
	const struct placement_request *request;
	const char *class, *profile;
	int64_t needed;
	int looks;
	struct view *view;
	struct placement_answer *answer;
	bool found;
};

static bool is_over(const struct search *search)
{
	return search->found || search->looks >= ROOM_MAX_LOOKS;
}

static bool look_at(struct search *search, const char *node, struct error *error)
{
	search->looks++;
	if (!view_load_node(search->db, node, search->reservation, search->view, error))
		return false;
	placement_decide(search->request, search->view->nodes, search->view->count, search->answer);
	search->found = search->answer->members_count > 0;
	return true;
}

/* The next number of idle devices that some node has, from `from` in the direction of the order. */
static bool next_level(const struct search *search, int64_t from, bool downwards, int64_t *ret_idle,
		       bool *ret_there, struct error *error)
{
	static const char *const sql[] = {
		"SELECT idle FROM node_room WHERE pool = $1 AND class = $2 AND profile = $3 AND "
		"idle >= $4 ORDER BY idle LIMIT 1",
		"SELECT idle FROM node_room WHERE pool = $1 AND class = $2 AND profile = $3 AND "
		"idle <= $4 ORDER BY idle DESC LIMIT 1",
	};
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(search->db, sql[downwards],
			 STORE_PARAMS(store_text(search->pool), store_text(search->class),
				      store_text(search->profile), store_int(from)),
			 &rows, error))
		return false;
	*ret_there = rows.count > 0;
	if (rows.count > 0)
		*ret_idle = store_get_int(&rows, 0, 0);
	return true;
}

/* Nodes of one level, in order of id, whose bookings reach outside of these moments. Those that
 * placement would turn away unseen are no use to look at, and may be many. */
static bool walk_level(struct search *search, int64_t idle, int64_t ends_by_ms, int64_t begins_ms,
		       struct error *error)
{
	const int64_t chunk = 8;
	char after[ID_SIZE] = "";
	bool more = true;

	while (more && !is_over(search)) {
		CLEANUP(store_rows) struct store_rows rows = {0};

		if (!store_query(
			    search->db,
			    "SELECT r.node FROM node_room r JOIN nodes n ON n.id = r.node JOIN "
			    "node_streams s ON s.node = r.node WHERE r.pool = $1 AND r.class = $2 "
			    "AND r.profile = $3 AND r.idle = $4 AND r.node > $5 AND "
			    "(r.first_end_ms <= $6 OR r.last_from_ms >= $7) AND n.state = 'ready' "
			    "AND s.connected = 1 AND s.seen_ms > $8 AND n.trust <> $9 AND ($10 = 1 "
			    "OR NOT EXISTS (SELECT 1 FROM node_labels l WHERE l.node = r.node AND "
			    "l.name = '" NODE_LABEL_CAPACITY "' AND l.value = 'spot' AND l.system "
			    "= 1)) AND " NODE_OFFERS_BY("$12") " ORDER BY r.node LIMIT $11",
			    STORE_PARAMS(
				    store_text(search->pool), store_text(search->class),
				    store_text(search->profile), store_int(idle), store_text(after),
				    store_int(ends_by_ms), store_int(begins_ms),
				    store_int(store_now(search->db).ms - NODE_UNREACHABLE_MS),
				    store_text(control_trust_name(CONTROL_TRUST_TENANT_CONTROLLED)),
				    store_int(search->request->spot), store_int(chunk),
				    store_int(search->request->dra)),
			    &rows, error))
			return false;
		for (size_t i = 0; i < rows.count && !is_over(search); i++) {
			str_copy(after, sizeof after, store_get_text(&rows, i, 0));
			if (!look_at(search, after, error))
				return false;
		}
		more = rows.count == (size_t)chunk;
	}
	return true;
}

static bool walk_levels(struct search *search, int64_t low, int64_t high, int64_t ends_by_ms,
			int64_t begins_ms, struct error *error)
{
	bool downwards = search->request->spread, there;
	int64_t idle = downwards ? high : low;

	while (idle >= low && idle <= high && !is_over(search)) {
		if (!next_level(search, idle, downwards, &idle, &there, error))
			return false;
		if (!there || idle < low || idle > high)
			break;
		if (!walk_level(search, idle, ends_by_ms, begins_ms, error))
			return false;
		idle += downwards ? -1 : 1;
	}
	return true;
}

/* Any time is outside of this: every node of a level. */
static bool walk_idle_enough(struct search *search, struct error *error)
{
	return walk_levels(search, search->needed, INT_MAX, INT64_MAX, 0, error);
}

/* Nodes whose bookings reach outside of the time asked for: more may be free in it than is idle.
 * Mostly there are none, or few: then they are looked up by that, else met on the way. */
#define FEW_REACHING 32

static bool list_reaching(const struct search *search, const char *sql, int64_t moment_ms,
			  struct candidates *candidates, bool *ret_many, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(search->db, sql,
			 STORE_PARAMS(store_text(search->pool), store_text(search->class),
				      store_text(search->profile), store_int(moment_ms),
				      store_int(FEW_REACHING + 1)),
			 &rows, error))
		return false;
	*ret_many |= rows.count > FEW_REACHING;
	for (size_t i = 0; i < rows.count; i++) {
		struct candidate *candidate = vec_push(candidates);

		str_copy(candidate->node, ID_SIZE, store_get_text(&rows, i, 0));
		candidate->idle = store_get_int(&rows, i, 1);
	}
	return true;
}

static int compare_packed(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;

	if (left->idle != right->idle)
		return left->idle < right->idle ? -1 : 1;
	return strcmp(left->node, right->node);
}

static int compare_spread(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;

	if (left->idle != right->idle)
		return left->idle > right->idle ? -1 : 1;
	return strcmp(left->node, right->node);
}

static bool walk_reaching(struct search *search, struct error *error)
{
	const struct placement_request *request = search->request;
	struct candidates candidates = {0};
	bool many = false, done;

	done = list_reaching(search,
			     "SELECT node, idle FROM node_room WHERE pool = $1 AND class = $2 AND "
			     "profile = $3 AND first_end_ms <= $4 LIMIT $5",
			     request->from_ms, &candidates, &many, error) &&
	       list_reaching(search,
			     "SELECT node, idle FROM node_room WHERE pool = $1 AND class = $2 AND "
			     "profile = $3 AND last_from_ms >= $4 LIMIT $5",
			     request->to_ms, &candidates, &many, error);
	vec_sort(&candidates, request->spread ? compare_spread : compare_packed);
	for (size_t i = 0; done && !many && i < candidates.count && !is_over(search); i++) {
		const struct candidate *candidate = &candidates.items[i];

		if (candidate->idle < search->needed &&
		    (i == 0 || !str_equal(candidate->node, candidate[-1].node)))
			done = look_at(search, candidate->node, error);
	}
	vec_deinit(&candidates);
	return done && (!many || walk_levels(search, 0, search->needed - 1, request->from_ms,
					     request->to_ms, error));
}

bool room_search(struct store_connection *db, const char *pool,
		 const struct placement_request *request, const char *reservation,
		 struct view *view, struct placement_answer *answer, bool *ret_found,
		 struct error *error)
{
	const struct placement_need *need = &request->needs[0];
	struct search search = {
		.db = db,
		.pool = pool,
		.reservation = reservation,
		.request = request,
		.class = placement_class_name(need->class),
		.profile = need->profile ? need->profile : "",
		.needed = need->count,
		.view = view,
		.answer = answer,
	};

	assert(request->nodes <= 1 && request->waits_count == 0);
	/* Nodes that reach outside and are idle enough stand among the second kind. */
	if (request->spread ? !walk_idle_enough(&search, error) || !walk_reaching(&search, error)
			    : !walk_reaching(&search, error) || !walk_idle_enough(&search, error))
		return false;
	*ret_found = search.found;
	return true;
}

/* --- the first time --- */

/* Nodes that could take it at some time, in the order in which the first of their bookings ends:
 * nothing begins to fit before. */
static bool list_ending(struct store_connection *db, const char *pool,
			const struct placement_request *request, int64_t after_ms,
			const char *after, int64_t until_ms, struct store_rows *rows,
			struct error *error)
{
	const struct placement_need *need = &request->needs[0];

	return store_query(
		db,
		"SELECT r.node, r.first_end_ms FROM node_room r JOIN nodes n ON n.id = r.node JOIN "
		"node_streams s ON s.node = r.node WHERE r.pool = $1 AND r.class = $2 AND "
		"r.profile = $3 AND " HEARD " AND n.trust <> $5 AND n.state = 'ready' AND "
		"r.healthy >= $6 AND r.first_end_ms >= $7 AND (r.first_end_ms > $7 OR r.node > $8) "
		"AND r.first_end_ms < $9 AND " NODE_OFFERS_BY(
			"$10") " ORDER BY r.first_end_ms, r.node LIMIT 8",
		STORE_PARAMS(store_text(pool), store_text(placement_class_name(need->class)),
			     store_text(need->profile ? need->profile : ""),
			     store_int(store_now(db).ms - NODE_UNREACHABLE_MS),
			     store_text(control_trust_name(CONTROL_TRUST_TENANT_CONTROLLED)),
			     store_int(need->count), store_int(after_ms), store_text(after),
			     store_int(until_ms), store_int(request->dra)),
		rows, error);
}

static bool has_unroomed(struct store_connection *db, const char *pool, bool *ret_has,
			 struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db,
			 "SELECT 1 FROM nodes WHERE roomed = 0 AND has_inventory = 1 AND pool = $1 "
			 "LIMIT 1",
			 STORE_PARAMS(store_text(pool)), &rows, error))
		return false;
	*ret_has = rows.count > 0;
	return true;
}

bool room_first_fit(struct store_connection *db, const char *pool,
		    const struct placement_request *request, int64_t *ret_ms, bool *ret_known,
		    struct error *error)
{
	char after[ID_SIZE] = "";
	int64_t after_ms = 0, best_ms = INT64_MAX;
	bool unroomed, more = true;
	int looks = 0;

	assert(request->needs_count == 1 && request->nodes <= 1 && request->waits_count == 0);
	*ret_known = false;
	if (!has_unroomed(db, pool, &unroomed, error))
		return false;
	while (more && !unroomed) {
		CLEANUP(store_rows) struct store_rows rows = {0};

		if (!list_ending(db, pool, request, after_ms, after, best_ms, &rows, error))
			return false;
		more = rows.count > 0;
		for (size_t i = 0; i < rows.count; i++) {
			CLEANUP(view) struct view view = {0};
			int64_t first_ms;

			after_ms = store_get_int(&rows, i, 1);
			str_copy(after, sizeof after, store_get_text(&rows, i, 0));
			if (++looks > ROOM_MAX_LOOKS)
				return true;
			if (!view_load_node(db, after, NULL, &view, error))
				return false;
			if (placement_first_fit(request, view.nodes, view.count, &first_ms) &&
			    first_ms < best_ms)
				best_ms = first_ms;
		}
	}
	*ret_known = !unroomed;
	*ret_ms = best_ms;
	return true;
}
