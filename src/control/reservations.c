#include "control/reservations.h"

#include "control/core/degraded.h"
#include "control/core/host_share.h"
#include "control/core/node_conditions.h"
#include "control/core/reservation.h"
#include "control/core/stuck.h"
#include "control/core/timestamp.h"
#include "control/placing.h"

#include "base/duration.h"

/* --- answers: allocations --- */

/* Other bookings of its devices. */
#define OTHERS                                                                                     \
	"FROM bookings mine JOIN bookings other ON other.gpu = mine.gpu AND other.allocation <> "  \
	"mine.allocation AND other.leaf_lo < mine.leaf_hi AND mine.leaf_lo < other.leaf_hi "       \
	"WHERE mine.allocation = a.id"
#define ALLOCATION_COLUMNS                                                                         \
	"a.id, a.node, a.state, a.vcpus, a.memory_bytes, a.bound_ms, a.releasing_ms, "             \
	"a.released_ms, a.lost_reason, a.lost_ms, s.connected, s.seen_ms, c.since_ms, "            \
	"a.end_reason, u.since_ms, a.hugepages_2mi, a.hugepages_1gi, a.to_ms, "                    \
	"coalesce(k.message || '; ' || p.message, k.message, p.message, u.message), "              \
	"CASE WHEN a.state = 'releasing' THEN (SELECT " ALLOCATION_HANDOVER " " OTHERS             \
	" AND other.from_ms >= mine.to_ms) END, "                                                  \
	"CASE WHEN a.state = 'placed' AND a.assigned_generation IS NULL AND a.from_ms <= $2 "      \
	"AND EXISTS (SELECT 1 " OTHERS " AND EXISTS (SELECT 1 FROM allocations h WHERE h.id = "    \
	"other.allocation AND h.assigned_generation IS NOT NULL)) THEN 1 ELSE 0 END, g.since_ms, " \
	"a.from_ms, a.created_ms"

static bool load_allocations(struct store_connection *db, const char *reservation,
			     struct store_rows *rows, struct error *error)
{
	return store_query(db,
			   "SELECT " ALLOCATION_COLUMNS " FROM allocations a "
			   "LEFT JOIN node_streams s ON s.node = a.node "
			   "LEFT JOIN node_conditions c ON c.node = a.node AND c.type = "
			   "'ForeignGpuExposure' LEFT JOIN node_conditions u ON u.node = a.node "
			   "AND u.type = 'PodResourcesUnavailable' LEFT JOIN node_conditions k ON "
			   "k.node = a.node AND k.type = 'KubernetesReleaseStuck' LEFT JOIN "
			   "node_conditions p ON p.node = a.node AND p.type = "
			   "'KubernetesReleasePending' LEFT JOIN node_conditions g ON g.node = "
			   "a.node AND g.type = 'GpuApiUnsupported' "
			   "WHERE a.reservation = $1 "
			   /* The one that counts is last, though made in the same moment. */
			   "ORDER BY CASE WHEN a.state = 'failed' THEN 0 ELSE 1 END, "
			   "a.created_ms, a.id",
			   STORE_PARAMS(store_text(reservation), store_int(store_now(db).ms)), rows,
			   error);
}

/* A device that the inventory no longer has is as bad as one that is broken. */
static bool load_devices(struct store_connection *db, const char *allocation,
			 struct store_rows *rows, struct error *error)
{
	return store_query(db,
			   "SELECT d.atom, d.class, d.gpu, d.visible_device, m.healthy, m.cause, "
			   "m.since_ms FROM allocation_devices d JOIN allocations a ON a.id = "
			   "d.allocation LEFT JOIN atoms m ON m.node = a.node AND m.atom = d.atom "
			   "WHERE d.allocation = $1 ORDER BY d.ordinal",
			   STORE_PARAMS(store_text(allocation)), rows, error);
}

static json_t *allocation_answer(const struct store_rows *rows, size_t row,
				 const struct store_rows *devices)
{
	json_t *listed = json_array();
	json_t *answer = json_pack("{s:o, s:o, s:o, s:o}", "id", work_text_of(rows, row, 0),
				   "nodeId", work_text_of(rows, row, 1), "state",
				   work_text_of(rows, row, 2), "devices", listed);

	for (size_t i = 0; i < devices->count; i++)
		json_array_append_new(listed,
				      json_pack("{s:o, s:o, s:o, s:o}", "atom",
						work_text_of(devices, i, 0), "class",
						work_text_of(devices, i, 1), "gpu",
						work_text_of(devices, i, 2), "visibleDevice",
						work_text_of(devices, i, 3)));
	work_set_time(answer, "boundAt", rows, row, 5);
	work_set_time(answer, "releasedAt", rows, row, 7);
	return answer;
}

/* GANG-5: a part that went with its node, of a reservation that goes on without it. */
static bool is_part_lost(const struct store_rows *rows, size_t row, bool active)
{
	return active && str_equal(store_get_text(rows, row, 2), "released") &&
	       str_equal(store_get_text(rows, row, 13), "NodeLost");
}

/* Why its release ended without the node's word; NULL: it didn't. */
static const char *given_up(const struct store_rows *rows, size_t row)
{
	const char *why = store_get_text(rows, row, 13);

	return str_equal(store_get_text(rows, row, 2), "released") &&
			       (str_equal(why, STUCK_BOOKED_NEXT) ||
				str_equal(why, STUCK_CARRIED_TOO_LONG))
		       ? why
		       : NULL;
}

/* Since when it could be bound: its time has come, and it is known. */
static int64_t due_ms(const struct store_rows *rows, size_t row)
{
	int64_t from_ms = store_get_int(rows, row, 22), created_ms = store_get_int(rows, row, 23);

	return from_ms > created_ms ? from_ms : created_ms;
}

/* The same allocation as degraded_conditions() looks at it; texts live in `arena`. */
static struct degraded_allocation judge_allocation(const struct store_rows *rows, size_t row,
						   const struct store_rows *devices,
						   enum reservation_state now, int64_t now_ms,
						   struct arena *arena)
{
	const char *state = store_get_text(rows, row, 2);
	struct degraded_device *listed = arena_alloc(arena, (devices->count + 1) * sizeof *listed);
	bool connected = store_get_int(rows, row, 10) != 0;
	int64_t seen_ms = store_get_int(rows, row, 11);

	if (is_part_lost(rows, row, now == RESERVATION_ACTIVE))
		return (struct degraded_allocation){.node = store_get_text(rows, row, 1),
						    .bound = true,
						    .lost_reason = "NodeLost",
						    .lost_since_ms = store_get_int(rows, row, 7)};
	for (size_t i = 0; i < devices->count; i++) {
		bool gone = store_is_null(devices, i, 4);

		listed[i] = (struct degraded_device){
			.atom = arena_strdup(arena, store_get_text(devices, i, 0)),
			.healthy = !gone && store_get_int(devices, i, 4) != 0,
			.cause = gone ? "gone from the node's inventory"
				      : arena_strdup(arena, store_get_text(devices, i, 5)),
			.since_ms = gone ? now_ms : store_get_int(devices, i, 6),
		};
	}
	return (struct degraded_allocation){
		.id = store_get_text(rows, row, 0),
		.node = store_get_text(rows, row, 1),
		.bound = str_equal(state, "bound"),
		.releasing = str_equal(state, "releasing"),
		.releasing_since_ms = store_get_int(rows, row, 6),
		.was_bound = !store_is_null(rows, row, 5),
		.own_end_ms = store_get_int(rows, row, 17),
		.stuck = store_get_text(rows, row, 18),
		.handover_ms = store_get_int(rows, row, 19),
		.given_up = reservation_is_terminal(now) ? given_up(rows, row) : NULL,
		.given_up_ms = store_get_int(rows, row, 7),
		.due_ms = str_equal(state, "placed") ? due_ms(rows, row) : 0,
		.taken = store_get_int(rows, row, 20) != 0,
		.unready = store_get_text(rows, row, 18),
		.lost_reason = store_get_text(rows, row, 8),
		.lost_since_ms = store_get_int(rows, row, 9),
		.unconfirmed = !store_is_null(rows, row, 14),
		.unconfirmed_since_ms = store_get_int(rows, row, 14),
		.foreign_exposure = !store_is_null(rows, row, 12),
		.foreign_since_ms = store_get_int(rows, row, 12),
		.unoffered = !store_is_null(rows, row, 21),
		.unoffered_since_ms = store_get_int(rows, row, 21),
		.unreachable = !connected || now_ms - seen_ms >= NODE_UNREACHABLE_MS,
		.unreachable_since_ms = seen_ms,
		.devices = listed,
		.devices_count = devices->count,
	};
}

/* Adds `allocations` and `conditions`, and tells what the last one was given of its host. */
static bool add_allocations(struct store_connection *db, const char *reservation, const char *state,
			    json_t *answer, struct host_share *share, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	CLEANUP(arena) struct arena arena = {0};
	struct degraded_allocation *judged;
	json_t *listed = json_array();
	enum reservation_state parsed = RESERVATION_PENDING;

	if (!reservation_state_parse(state, &parsed))
		assert(false);
	json_object_set_new(answer, "allocations", listed);
	if (!load_allocations(db, reservation, &rows, error))
		return false;
	judged = arena_alloc(&arena, (rows.count + 1) * sizeof *judged);
	for (size_t i = 0; i < rows.count; i++) {
		CLEANUP(store_rows) struct store_rows devices = {0};

		if (!load_devices(db, store_get_text(&rows, i, 0), &devices, error))
			return false;
		json_array_append_new(listed, allocation_answer(&rows, i, &devices));
		judged[i] = judge_allocation(&rows, i, &devices, parsed, store_now(db).ms, &arena);
		*share = (struct host_share){store_get_int(&rows, i, 3), store_get_int(&rows, i, 4),
					     work_hugepages_of(&rows, i, 15)};
	}
	json_object_set_new(answer, "conditions",
			    degraded_conditions(judged, rows.count, store_now(db)));
	return true;
}

bool reservation_conditions(struct store_connection *db, const char *id, json_t **ret_conditions,
			    struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	CLEANUP(json_ref) json_t *answer = json_object();
	struct host_share ignored;

	if (!store_query(db, "SELECT state FROM reservations WHERE id = $1",
			 STORE_PARAMS(store_text(id)), &rows, error))
		return false;
	if (rows.count == 0)
		return error_set(error, ERROR_INTERNAL, "reservation '%s' is gone", id);
	if (!add_allocations(db, id, store_get_text(&rows, 0, 0), answer, &ignored, error))
		return false;
	*ret_conditions = json_incref(json_object_get(answer, "conditions"));
	return true;
}

/* --- answers: reservations --- */

#define RESERVATION_COLUMNS                                                                        \
	"id, tenant, pool, state, binding, devices, duration_ms, start_ms, from_ms, end_ms, "      \
	"vcpus, memory_bytes, reasons, created_ms, release_ms, state_reason, spot, gang_nodes, "   \
	"gang_same, hugepages_2mi, hugepages_1gi"

static void add_gang(const struct store_rows *rows, size_t row, json_t *answer)
{
	enum placement_same same = PLACEMENT_SAME_NOTHING;

	if (store_get_int(rows, row, 17) == 0)
		return;
	if (!placement_same_parse(store_get_text(rows, row, 18), &same))
		assert(false);
	json_object_set_new(answer, "gang", reserve_gang_pack(store_get_int(rows, row, 17), same));
}

static json_t *reservation_head(const struct store_rows *rows, size_t row)
{
	enum reservation_state state = RESERVATION_PENDING;
	char duration[DURATION_TEXT_SIZE];
	json_t *answer;

	if (!reservation_state_parse(store_get_text(rows, row, 3), &state))
		assert(false);
	duration_format(duration, store_get_int(rows, row, 6));
	answer = json_pack("{s:o, s:o, s:o, s:s, s:o, s:o, s:s}", "id", work_text_of(rows, row, 0),
			   "tenantId", work_text_of(rows, row, 1), "poolId",
			   work_text_of(rows, row, 2), "state", reservation_state_shown(state),
			   "binding", work_text_of(rows, row, 4), "devices",
			   work_parse(store_get_text(rows, row, 5)), "duration", duration);
	if (store_get_text(rows, row, 15)[0] != '\0')
		json_object_set_new(answer, "stateReason", work_text_of(rows, row, 15));
	if (store_get_int(rows, row, 16) != 0)
		json_object_set_new(answer, "spot", json_true());
	add_gang(rows, row, answer);
	/* When it begins: as asked, then as placed. */
	work_set_time(answer, "startAt", rows, row, 7);
	work_set_time(answer, "startAt", rows, row, 8);
	work_set_time(answer, "endAt", rows, row, 9);
	json_object_set_new(answer, "reasons", work_parse(store_get_text(rows, row, 12)));
	work_set_time(answer, "createdAt", rows, row, 13);
	work_set_time(answer, "releaseRequestedAt", rows, row, 14);
	return answer;
}

static bool build_answer(struct store_connection *db, const struct store_rows *rows, size_t row,
			 json_t **ret_answer, struct error *error)
{
	CLEANUP(json_ref) json_t *answer = reservation_head(rows, row);
	struct host_share share = {store_get_int(rows, row, 10), store_get_int(rows, row, 11),
				   work_hugepages_of(rows, row, 19)};

	if (!add_allocations(db, store_get_text(rows, row, 0), store_get_text(rows, row, 3), answer,
			     &share, error))
		return false;
	json_object_set_new(answer, "resources", work_host_share(&share));
	*ret_answer = TAKE(answer);
	return true;
}

static bool load_visible(struct store_connection *db, const struct control_call *call,
			 const char *id, struct store_rows *rows, struct error *error)
{
	if (!store_query(db, "SELECT " RESERVATION_COLUMNS " FROM reservations WHERE id = $1",
			 STORE_PARAMS(store_text(id)), rows, error))
		return false;
	if (rows->count == 0 || !access_reaches(call->principal, store_get_text(rows, 0, 1)))
		return work_not_found(error, "reservation", id);
	return true;
}

bool reservation_answer(struct store_connection *db, const struct control_call *call,
			const char *id, json_t **ret_answer, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	return load_visible(db, call, id, &rows, error) &&
	       build_answer(db, &rows, 0, ret_answer, error);
}

/* --- who may book --- */

/* RES-6: a pool is booked by the tenant that owns it, and by nobody else. */
bool reservation_check_owner(const struct control_call *call, const struct reserve_request *request,
			     const struct pool *pool, struct error *error)
{
	if (!access_reaches(call->principal, request->tenant))
		return error_set(error, ERROR_FORBIDDEN, "the key is of another tenant than '%s'",
				 request->tenant);
	if (str_equal(pool->tenant, request->tenant))
		return true;
	error_set(error, ERROR_FORBIDDEN,
		  "only the tenant that owns pool '%s' may book binding kubernetes in it",
		  request->pool);
	return error_hint(error, "Book for that tenant, or in a pool of tenant '%s'.",
			  request->tenant);
}

/* --- create --- */

static bool insert_reservation(struct store_connection *db, const char *id,
			       const struct reserve_request *request, struct error *error)
{
	CLEANUP(json_ref)
	json_t *devices = reserve_needs_pack(request->needs, request->needs_count);
	CLEANUP(free) char *text = json_dumps(devices, JSON_COMPACT);

	return store_exec(
		db,
		"INSERT INTO reservations (id, tenant, pool, state, state_reason, binding, "
		"devices, duration_ms, start_ms, vcpus, memory_bytes, reasons, created_ms, spot, "
		"gang_nodes, gang_same, hugepages_2mi, hugepages_1gi) VALUES ($1, $2, $3, "
		"'pending', '', 'kubernetes', $4, $5, $6, $7, $8, '[]', $9, $10, $11, $12, $13, "
		"$14)",
		STORE_PARAMS(store_text(id), store_text(request->tenant), store_text(request->pool),
			     store_text(text), store_int(request->duration_ms),
			     request->start_ms ? store_int(request->start_ms) : store_null_int(),
			     request->vcpus >= 0 ? store_int(request->vcpus) : store_null_int(),
			     request->memory_bytes >= 0 ? store_int(request->memory_bytes)
							: store_null_int(),
			     store_int(store_now(db).ms), store_int(request->spot),
			     store_int(request->gang_nodes),
			     store_text(placement_same_name(request->gang_same)),
			     store_int(request->hugepages.bytes[HUGEPAGES_2MI]),
			     store_int(request->hugepages.bytes[HUGEPAGES_1GI])),
		error);
}

static bool reservation_create(struct store_connection *db, const struct control_call *call,
			       json_t **ret_answer, struct error *error)
{
	const enum access_action action = ACCESS_RESERVATIONS_CREATE;
	CLEANUP(pool) struct pool pool = {0};
	struct reserve_request request;
	char id[ID_SIZE];
	bool placed;

	if (!access_check(call->principal, action, error) ||
	    !reserve_request_parse(call->body, false, store_now(db), &request, error) ||
	    !work_find_done(db, call, request.idempotency_key, action, id, error))
		return false;
	if (id[0] != '\0')
		return reservation_answer(db, call, id, ret_answer, error);
	if (!pool_load(db, request.pool, &pool, error) ||
	    !reservation_check_owner(call, &request, &pool, error) ||
	    !pool_check_active(&pool, error))
		return false;
	work_new_id(db, "rsv", id);
	return insert_reservation(db, id, &request, error) &&
	       work_remember_done(db, call, request.idempotency_key, action, id, error) &&
	       work_audit(db, call->principal, action, request.tenant, id,
			  json_pack("{s:s}", "poolId", request.pool), error) &&
	       work_event(db, request.tenant, "reservation.state.changed", id,
			  json_pack("{s:s, s:b}", "state", "pending", "devicesHeld", false),
			  error) &&
	       placing_try(db, id, PLACING_NEW, &placed, error) &&
	       reservation_answer(db, call, id, ret_answer, error);
}
WORK_MAKE(reservation_create)

/* --- read --- */

static bool reservation_get(struct store_connection *db, const struct control_call *call,
			    json_t **ret_answer, struct error *error)
{
	return access_check(call->principal, ACCESS_RESERVATIONS_READ, error) &&
	       work_path_id(call, "reservation", "rsv", error) &&
	       reservation_answer(db, call, call->id, ret_answer, error);
}
WORK_CALL(reservation_get, STORE_READ)

/* The state as shown; "releasing" is one nobody is shown. */
static bool check_state_filter(const char *state, struct error *error)
{
	enum reservation_state parsed;

	if (!state || (reservation_state_parse(state, &parsed) && parsed != RESERVATION_RELEASING))
		return true;
	return error_field(error, "state", "'%.40s' is unknown", state);
}

static bool check_live_filter(const char *live, struct error *error)
{
	if (!live || str_equal(live, "true") || str_equal(live, "false"))
		return true;
	return error_field(error, "live", "'%.40s' is neither 'true' nor 'false'", live);
}

#define LIVE_STATES "('pending', 'placed', 'active', 'releasing')"

static bool reservation_list(struct store_connection *db, const struct control_call *call,
			     json_t **ret_answer, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	CLEANUP(json_ref) json_t *items = json_array();
	struct work_window window;
	struct work_page page;
	const char *tenant;

	if (!access_check(call->principal, ACCESS_RESERVATIONS_READ, error) ||
	    !check_state_filter(call->state, error) || !check_live_filter(call->live, error) ||
	    !work_page(call, "rsv", &page, error) || !work_tenant_asked(call, &tenant, error) ||
	    !work_window_asked(call, (struct work_window){.to = {INT64_MAX}}, &window, error) ||
	    !store_query(db,
			 "SELECT " RESERVATION_COLUMNS " FROM reservations WHERE id > $1 AND "
			 "($2 = '' OR tenant = $2) AND ($4 = '' OR pool = $4) AND ($5 = '' OR "
			 "state = $5 OR ($5 = 'released' AND state = 'releasing')) AND ($6 = '' OR "
			 "($6 = 'true' AND state IN " LIVE_STATES ") OR ($6 = 'false' AND state "
			 "NOT IN " LIVE_STATES ")) AND created_ms >= $7 AND created_ms < $8 "
			 "ORDER BY id LIMIT $3",
			 STORE_PARAMS(store_text(page.after), store_text(tenant),
				      store_int(page.limit + 1),
				      store_text(call->pool_id ? call->pool_id : ""),
				      store_text(call->state ? call->state : ""),
				      store_text(call->live ? call->live : ""),
				      store_int(window.from.ms), store_int(window.to.ms)),
			 &rows, error))
		return false;
	for (size_t i = 0; i < rows.count && i < (size_t)page.limit; i++) {
		json_t *answer;

		if (!build_answer(db, &rows, i, &answer, error))
			return false;
		json_array_append_new(items, answer);
	}
	*ret_answer = work_items_answer(TAKE(items), &page, &rows);
	return true;
}
WORK_CALL(reservation_list, STORE_READ)

/* --- release and cancel --- */

static bool release(struct store_connection *db, const char *id, enum reservation_state state,
		    struct error *error)
{
	switch (state) {
	case RESERVATION_PENDING:
		return reservation_step(db, id, RESERVATION_ON_RELEASED, "ReleaseRequested", error);
	case RESERVATION_PLACED:
	case RESERVATION_ACTIVE:
		return allocation_withdraw_all(db, id, "ReleaseRequested", error);
	case RESERVATION_RELEASING:
	case RESERVATION_RELEASED:
	case RESERVATION_DENIED:
	case RESERVATION_FAILED:
	case RESERVATION_CANCELLED:
	case RESERVATION_EXPIRED:
	case RESERVATION_PREEMPTED:
		break;
	}
	return true;
}

static bool reservation_release(struct store_connection *db, const struct control_call *call,
				json_t **ret_answer, struct error *error)
{
	const enum access_action action = ACCESS_RESERVATIONS_RELEASE;
	CLEANUP(store_rows) struct store_rows rows = {0};
	enum reservation_state state;

	if (!access_check(call->principal, action, error) ||
	    !work_path_id(call, "reservation", "rsv", error) ||
	    !load_visible(db, call, call->id, &rows, error))
		return false;
	if (!reservation_state_parse(store_get_text(&rows, 0, 3), &state))
		return error_set(error, ERROR_INTERNAL, "reservation '%s': unknown state",
				 call->id);
	/* RES-54: said again, or too late, it answers with what is. */
	if (state != RESERVATION_RELEASING && !reservation_is_terminal(state) &&
	    (!release(db, call->id, state, error) ||
	     !store_exec(db, "UPDATE reservations SET release_ms = $2 WHERE id = $1",
			 STORE_PARAMS(store_text(call->id), store_int(store_now(db).ms)), error) ||
	     !work_audit(db, call->principal, action, store_get_text(&rows, 0, 1), call->id, NULL,
			 error)))
		return false;
	return reservation_answer(db, call, call->id, ret_answer, error);
}
WORK_CHANGE(reservation_release, reservation_get)

static bool reservation_cancel(struct store_connection *db, const struct control_call *call,
			       json_t **ret_answer, struct error *error)
{
	const enum access_action action = ACCESS_RESERVATIONS_CANCEL;
	CLEANUP(store_rows) struct store_rows rows = {0};
	const char *state;

	if (!access_check(call->principal, action, error) ||
	    !work_path_id(call, "reservation", "rsv", error) ||
	    !load_visible(db, call, call->id, &rows, error))
		return false;
	state = store_get_text(&rows, 0, 3);
	if (str_equal(state, "cancelled"))
		return reservation_answer(db, call, call->id, ret_answer, error);
	if (!str_equal(state, "pending")) {
		bool placed = str_equal(state, "placed") || str_equal(state, "active");
		error_set(error, ERROR_INVALID_STATE,
			  "reservation '%s' is %s; only a pending one can be cancelled", call->id,
			  str_equal(state, "releasing") ? "released" : state);
		return placed ? error_hint(error, "Release it instead.") : false;
	}
	return reservation_step(db, call->id, RESERVATION_ON_CANCELLED, "CancelRequested", error) &&
	       work_audit(db, call->principal, action, store_get_text(&rows, 0, 1), call->id, NULL,
			  error) &&
	       reservation_answer(db, call, call->id, ret_answer, error);
}
WORK_CHANGE(reservation_cancel, reservation_get)
