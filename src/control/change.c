/* change: a reservation that is to end later or earlier, or to begin at another time. */
#include "control/core/host_share.h"
#include "control/core/timestamp.h"
#include "control/placing.h"
#include "control/quotas.h"
#include "control/reservations.h"
#include "control/room.h"
#include "control/spec.h"

/* A reservation as the change finds it, and what is to be. */
struct changing {
	const char *id;
	char pool[ID_SIZE], tenant[ID_SIZE];
	enum reservation_state state;
	json_t *devices;
	int64_t gang_nodes;
	int64_t duration_ms, start_ms; /* 0: counts from placement */
	int64_t from_ms, end_ms;       /* as placed */
};

static void changing_cleanup(struct changing *changing)
{
	json_decref(changing->devices);
}

static bool load(struct store_connection *db, const struct control_call *call,
		 struct changing *ret_changing, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct changing changing = {.id = call->id};

	if (!store_query(db,
			 "SELECT tenant, pool, state, duration_ms, start_ms, from_ms, end_ms, "
			 "devices, gang_nodes FROM reservations WHERE id = $1",
			 STORE_PARAMS(store_text(call->id)), &rows, error))
		return false;
	if (rows.count == 0 || !access_reaches(call->principal, store_get_text(&rows, 0, 0)))
		return work_not_found(error, "reservation", call->id);
	if (!reservation_state_parse(store_get_text(&rows, 0, 2), &changing.state))
		return error_set(error, ERROR_INTERNAL, "reservation '%s': unknown state",
				 call->id);
	str_copy(changing.tenant, ID_SIZE, store_get_text(&rows, 0, 0));
	str_copy(changing.pool, ID_SIZE, store_get_text(&rows, 0, 1));
	changing.duration_ms = store_get_int(&rows, 0, 3);
	changing.start_ms = store_get_int(&rows, 0, 4);
	changing.from_ms = store_get_int(&rows, 0, 5);
	changing.end_ms = store_get_int(&rows, 0, 6);
	changing.gang_nodes = store_get_int(&rows, 0, 8);
	changing.devices = work_parse(store_get_text(&rows, 0, 7));
	*ret_changing = changing;
	return true;
}

static bool check_length(int64_t length_ms, const char *field, struct error *error)
{
	if (length_ms < RESERVE_MIN_MS) {
		error_field(error, field, "leaves less than a minute from its start");
		return error_hint(error, "To give it back altogether, release it.");
	}
	if (length_ms > RESERVE_MAX_MS)
		return error_field(error, field, "makes it longer than 366 days");
	return true;
}

/* --- quotas --- */

/* `asked`: the time, and who asks and how; the rest is the reservation's. */
static bool check_quota(struct store_connection *db, const struct changing *changing,
			struct quota_question asked, struct error *error)
{
	CLEANUP(json_ref) json_t *reasons = json_array();
	struct placement_need needs[RESERVE_MAX_NEEDS];
	const char *message;
	bool within;

	asked.tenant = changing->tenant;
	asked.pool = changing->pool;
	asked.needs = needs;
	asked.copies = changing->gang_nodes > 1 ? changing->gang_nodes : 1;
	if (!reserve_needs_unpack(changing->devices, needs, &asked.needs_count))
		return error_set(error, ERROR_INTERNAL, "reservation '%s': devices as stored",
				 changing->id);
	if (!quota_check(db, &asked, reasons, &within, error))
		return false;
	message = json_string_value(json_object_get(json_array_get(reasons, 0), "message"));
	return within || error_set(error, ERROR_RESOURCES_EXHAUSTED,
				   "reservation '%s' can't be changed so: %s", changing->id,
				   message ? message : "a quota is used up");
}

/* --- one that waits --- */

/* What would be denied as a new one is refused as a change: what was accepted goes on waiting. */
static bool check_waiting_quota(struct store_connection *db, const struct changing *changing,
				struct error *error)
{
	int64_t now_ms = store_now(db).ms;
	int64_t start_ms = changing->start_ms ? changing->start_ms : now_ms;

	return check_quota(db, changing,
			   (struct quota_question){
				   .from_ms = start_ms > now_ms ? start_ms : now_ms,
				   .to_ms = start_ms + changing->duration_ms,
				   .reservation = changing->id,
			   },
			   error);
}

static bool change_pending(struct store_connection *db, struct changing *changing,
			   const struct reserve_change *change, struct error *error)
{
	bool placed;

	if (change->start_ms != 0)
		changing->start_ms = change->start_ms;
	if (change->duration_ms != 0)
		changing->duration_ms = change->duration_ms;
	if (change->end_ms != 0) {
		if (changing->start_ms == 0) {
			error_field(error, "endAt",
				    "says nothing of a reservation that begins when "
				    "there is room");
			return error_hint(error, "Give a duration, or startAt as well.");
		}
		changing->duration_ms = change->end_ms - changing->start_ms;
		if (!check_length(changing->duration_ms, "endAt", error))
			return false;
	}
	return check_waiting_quota(db, changing, error) &&
	       store_exec(db,
			  "UPDATE reservations SET duration_ms = $2, start_ms = $3 WHERE id = $1",
			  STORE_PARAMS(store_text(changing->id), store_int(changing->duration_ms),
				       changing->start_ms ? store_int(changing->start_ms)
							  : store_null_int()),
			  error) &&
	       placing_try(db, changing->id, PLACING_NEW, &placed, error);
}

/* --- one that is placed: until when could it go on? --- */

static bool refuse_until(struct error *error, const struct changing *changing, const char *who,
			 int64_t at_ms)
{
	char at[TIMESTAMP_SIZE];

	timestamp_format(at, (struct wall){at_ms});
	error_set(error, ERROR_CONFLICT, "reservation '%s' can't go on beyond %s: %s", changing->id,
		  at, who);
	if (at_ms <= changing->end_ms)
		return error_hint(error, "That is its end: it can't be extended at all.");
	return error_hint(error, "Extend it to %s at most.", at);
}

static bool check_devices(struct store_connection *db, const struct changing *changing,
			  int64_t end_ms, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	CLEANUP(arena) struct arena arena = {0};

	if (!store_query(db,
			 "SELECT o.reservation, other.from_ms FROM allocations a JOIN bookings "
			 "mine ON mine.allocation = a.id JOIN bookings other ON other.gpu = "
			 "mine.gpu AND other.leaf_lo < mine.leaf_hi AND mine.leaf_lo < "
			 "other.leaf_hi AND other.from_ms >= mine.to_ms AND other.from_ms < $2 "
			 "JOIN allocations o ON o.id = other.allocation WHERE a.reservation = $1 "
			 "AND a.state IN ('placed', 'bound') ORDER BY other.from_ms, o.id LIMIT 1",
			 STORE_PARAMS(store_text(changing->id), store_int(end_ms)), &rows, error))
		return false;
	return rows.count == 0 ||
	       refuse_until(error, changing,
			    arena_printf(&arena, "reservation '%s' has devices of it from then on",
					 store_get_text(&rows, 0, 0)),
			    store_get_int(&rows, 0, 1));
}

/* HOST-12: the host share goes on with the devices. */
static bool check_hosts(struct store_connection *db, const struct changing *changing,
			int64_t end_ms, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db,
			 "SELECT node, vcpus, memory_bytes, hugepages_2mi, hugepages_1gi FROM "
			 "allocations WHERE reservation = $1 AND state IN ('placed', 'bound') "
			 "ORDER BY node",
			 STORE_PARAMS(store_text(changing->id)), &rows, error))
		return false;
	for (size_t i = 0; i < rows.count; i++) {
		CLEANUP(view) struct view view = {0};

		if (!view_load_node(db, store_get_text(&rows, i, 0), NULL, &view, error))
			return false;
		if (view.count == 1 &&
		    host_share_short(&view.nodes[0], changing->end_ms, end_ms,
				     (struct host_share){store_get_int(&rows, i, 1),
							 store_get_int(&rows, i, 2),
							 work_hugepages_of(&rows, i, 3)}))
			return error_set(
				error, ERROR_CONFLICT,
				"reservation '%s' can't go on: vCPUs, memory or huge pages "
				"of node '%s' are booked by others in that time",
				changing->id, store_get_text(&rows, i, 0));
	}
	return true;
}

/* GANG-10: who was to be gone by then may not stay. */
static bool check_gangs(struct store_connection *db, const struct changing *changing,
			int64_t end_ms, struct error *error)
{
	CLEANUP(placing_choice) struct placing_choice choice = {0};
	CLEANUP(arena) struct arena arena = {0};
	CLEANUP(pool) struct pool pool = {0};

	if (!pool_load(db, changing->pool, &pool, error) ||
	    !placing_plan(db, &pool, &choice, error))
		return false;
	for (size_t i = 0; i < choice.waits_count; i++) {
		if (changing->end_ms <= choice.waits[i] && choice.waits[i] < end_ms)
			return refuse_until(error, changing,
					    arena_printf(&arena,
							 "the gang '%s' waits for that moment",
							 choice.gangs[i]),
					    choice.waits[i]);
	}
	return true;
}

/* --- and what is written --- */

static bool move_end(struct store_connection *db, const char *allocation, int64_t end_ms,
		     struct error *error)
{
	CLEANUP(store_rows) struct store_rows nodes = {0};
	struct allocation now;
	int64_t generation;
	bool found;

	if (!allocation_load(db, allocation, &now, &found, error))
		return false;
	if (now.state == ALLOCATION_RELEASING)
		return true;
	return store_exec(db, "UPDATE allocations SET to_ms = $2 WHERE id = $1",
			  STORE_PARAMS(store_text(allocation), store_int(end_ms)), error) &&
	       store_exec(db, "UPDATE bookings SET to_ms = $2 WHERE allocation = $1",
			  STORE_PARAMS(store_text(allocation), store_int(end_ms)), error) &&
	       room_nodes_of(db, allocation, &nodes, error) &&
	       room_refresh_all(db, &nodes, error) &&
	       (now.assigned_generation == 0 || spec_changed(db, now.node, &generation, error));
}

/* What it has already counts among what is used; only what comes to it is asked for. */
static bool check_added_quota(struct store_connection *db, const struct changing *changing,
			      int64_t end_ms, struct error *error)
{
	return check_quota(db, changing,
			   (struct quota_question){
				   .from_ms = changing->end_ms,
				   .to_ms = end_ms,
				   .placing = true,
			   },
			   error);
}

static bool change_placed(struct store_connection *db, const struct changing *changing,
			  const struct reserve_change *change, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	const char *field = change->end_ms ? "endAt" : "duration";
	int64_t end_ms = change->end_ms ? change->end_ms : changing->from_ms + change->duration_ms;

	if (changing->end_ms <= store_now(db).ms)
		return error_set(error, ERROR_INVALID_STATE, "reservation '%s' has ended",
				 changing->id);
	if (end_ms <= store_now(db).ms) {
		error_field(error, field, "lets it end in the past");
		return error_hint(error, "To end it now, release it.");
	}
	if (!check_length(end_ms - changing->from_ms, field, error))
		return false;
	if (end_ms > changing->end_ms && (!check_devices(db, changing, end_ms, error) ||
					  !check_hosts(db, changing, end_ms, error) ||
					  !check_gangs(db, changing, end_ms, error) ||
					  !check_added_quota(db, changing, end_ms, error)))
		return false;
	if (end_ms == changing->end_ms)
		return true;
	if (!allocation_list_live(db, changing->id, &rows, error))
		return false;
	for (size_t i = 0; i < rows.count; i++) {
		if (!move_end(db, store_get_text(&rows, i, 0), end_ms, error))
			return false;
	}
	return store_exec(db, "UPDATE reservations SET duration_ms = $2, end_ms = $3 WHERE id = $1",
			  STORE_PARAMS(store_text(changing->id),
				       store_int(end_ms - changing->from_ms), store_int(end_ms)),
			  error);
}

static bool change_it(struct store_connection *db, struct changing *changing,
		      const struct reserve_change *change, struct error *error)
{
	switch (changing->state) {
	case RESERVATION_PENDING:
		return change_pending(db, changing, change, error);
	case RESERVATION_PLACED:
	case RESERVATION_ACTIVE:
		if (change->start_ms == 0)
			return change_placed(db, changing, change, error);
		return error_set(error, ERROR_INVALID_STATE,
				 "reservation '%s' is %s: only a pending one can begin at another "
				 "time",
				 changing->id, reservation_state_shown(changing->state));
	case RESERVATION_RELEASING:
	case RESERVATION_RELEASED:
	case RESERVATION_DENIED:
	case RESERVATION_FAILED:
	case RESERVATION_CANCELLED:
	case RESERVATION_EXPIRED:
	case RESERVATION_PREEMPTED:
		break;
	}
	return error_set(error, ERROR_INVALID_STATE, "reservation '%s' is %s: it is over",
			 changing->id, reservation_state_shown(changing->state));
}

static bool reservation_patch(struct store_connection *db, const struct control_call *call,
			      json_t **ret_answer, struct error *error)
{
	const enum access_action action = ACCESS_RESERVATIONS_PATCH;
	CLEANUP(changing) struct changing changing = {0};
	struct reserve_change change;

	return access_check(call->principal, action, error) &&
	       work_path_id(call, "reservation", "rsv", error) &&
	       reserve_change_parse(call->body, store_now(db), &change, error) &&
	       load(db, call, &changing, error) && change_it(db, &changing, &change, error) &&
	       work_audit(db, call->principal, action, changing.tenant, call->id,
			  json_deep_copy(call->body), error) &&
	       reservation_answer(db, call, call->id, ret_answer, error);
}

static bool reservation_before(struct store_connection *db, const struct control_call *call,
			       json_t **ret_answer, struct error *error)
{
	return work_path_id(call, "reservation", "rsv", error) &&
	       reservation_answer(db, call, call->id, ret_answer, error);
}
WORK_CHANGE(reservation_patch, reservation_before)
