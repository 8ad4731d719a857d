#include "control/room.h"

#include "base/vec.h"
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
		placement_room_of(node, class, *profile ? profile : NULL, pool->gpu_model);

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

/* Rows of the one kind; a node that has devices, but none of this kind, has none of them. */
static bool load_rooms(struct store_connection *db, const char *pool,
		       const struct placement_request *request, struct view *view,
		       struct error *error)
{
	const struct placement_need *need = &request->needs[0];
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db,
			 "SELECT n.id, n.roomed, r.total, r.healthy, r.idle, r.first_end_ms, "
			 "r.last_from_ms FROM nodes n LEFT JOIN node_room r ON r.node = n.id AND "
			 "r.class = $2 AND r.profile = $3 WHERE n.pool = $1",
			 STORE_PARAMS(store_text(pool),
				      store_text(placement_class_name(need->class)),
				      store_text(need->profile ? need->profile : "")),
			 &rows, error))
		return false;
	for (size_t i = 0; i < rows.count; i++) {
		struct placement_node *node = view_find(view, store_get_text(&rows, i, 0));
		struct placement_room *room;

		if (!node || store_get_int(&rows, i, 1) != ROOMED_DEVICES)
			continue;
		room = arena_alloc(&view->arena, sizeof *room);
		*room = (struct placement_room){
			(int)store_get_int(&rows, i, 2), (int)store_get_int(&rows, i, 3),
			(int)store_get_int(&rows, i, 4), store_get_int(&rows, i, 5),
			store_get_int(&rows, i, 6)};
		node->room = room;
	}
	return true;
}

bool room_load(struct store_connection *db, const char *pool,
	       const struct placement_request *request, const char *reservation,
	       struct view *ret_view, struct error *error)
{
	CLEANUP(view) struct view view = {0};

	assert(request->needs_count == 1);
	if (!view_load_heads(db, pool, reservation, &view, error) ||
	    !load_rooms(db, pool, request, &view, error))
		return false;
	for (size_t i = 0; i < view.count; i++) {
		if (!placement_room_refuses(request, &view.nodes[i]) &&
		    !view_load_devices(db, &view, &view.nodes[i], error))
			return false;
	}
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
			    "= 1)) ORDER BY r.node LIMIT $11",
			    STORE_PARAMS(
				    store_text(search->pool), store_text(search->class),
				    store_text(search->profile), store_int(idle), store_text(after),
				    store_int(ends_by_ms), store_int(begins_ms),
				    store_int(store_now(search->db).ms - NODE_UNREACHABLE_MS),
				    store_text(control_trust_name(CONTROL_TRUST_TENANT_CONTROLLED)),
				    store_int(search->request->spot), store_int(chunk)),
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
