#include "control/allocation.h"
#include "control/core/node_conditions.h"
#include "control/core/stuck.h"
#include "control/forget.h"
#include "control/lead.h"
#include "control/nodes.h"
#include "control/placing.h"
#include "control/room.h"
#include "sys/log.h"
#include "sys/random.h"

#define MAX_LISTED_A_PASS 100000
#define MAX_ITEMS_A_PASS  1000
/* To say why a reservation still waits takes a look at every node of its pool: the first of those
 * that wait are told anew in every pass, and as many others, in transactions that keep nobody
 * waiting. */
#define EXPLAINED_A_PASS 32

/* --- what a pass works on: ids first, then each in a transaction of its own --- */

struct pass {
	const char *sql; /* ids; $1 is now, $2 the most rows */
	bool (*step)(struct store_connection *db, const char *id, struct error *error);
	const char *event; /* for the log when a step fails */
};

struct ids_work {
	const char *sql;
	struct store_rows rows;
};

static bool ids_body(struct store_connection *db, void *argument, struct error *error)
{
	struct ids_work *work = argument;

	return store_query(db, work->sql,
			   STORE_PARAMS(store_int(store_now(db).ms), store_int(MAX_LISTED_A_PASS)),
			   &work->rows, error);
}

struct step_work {
	const struct pass *pass;
	const char *id;
};

static bool step_body(struct store_connection *db, void *argument, struct error *error)
{
	const struct step_work *work = argument;

	return work->pass->step(db, work->id, error);
}

/* Whose turn it is. When more are listed than a pass takes: the first half of what it takes, then
 * others from anywhere behind, so that nothing waits for ever behind what can't be helped. */
struct turns {
	size_t listed, count, start;
};

static struct turns choose_turns(size_t listed, size_t most)
{
	if (listed <= most)
		return (struct turns){listed, listed, 0};
	return (struct turns){listed, most, random_below(listed - most / 2)};
}

static size_t row_of_turn(const struct turns *turns, size_t index)
{
	size_t first = turns->count / 2;

	return turns->listed == turns->count || index < first
		       ? index
		       : first + (turns->start + index - first) % (turns->listed - first);
}

/* One that fails is told, and the rest go on; not so when the database doesn't answer: each of them
 * would wait for it anew. */
static bool step_failed(const char *event, const char *id, struct error *failed,
			struct error *error)
{
	error_wrap(failed, "'%s'", id);
	if (failed->code == ERROR_UNAVAILABLE) {
		*error = *failed;
		return false;
	}
	log_failure(LOG_ERROR, event, failed, "the next pass tries again");
	return true;
}

/* *leads becomes false when another replica does. */
static bool run_pass(struct control *control, const struct pass *pass, int64_t fence, bool *leads,
		     struct error *error)
{
	struct ids_work ids = {.sql = pass->sql};
	bool done = store_run(control->connection, STORE_READ, ids_body, &ids, error);
	struct turns turns = choose_turns(ids.rows.count, MAX_ITEMS_A_PASS);

	for (size_t i = 0; done && *leads && i < turns.count; i++) {
		size_t row = row_of_turn(&turns, i);
		struct step_work work = {pass, store_get_text(&ids.rows, row, 0)};
		struct error failed;

		if (!lead_run(control, fence, step_body, &work, leads, &failed))
			done = step_failed(pass->event, work.id, &failed, error);
	}
	store_rows_deinit(&ids.rows);
	return done;
}

/* --- its steps; each looks again, since the row may have changed in between --- */

static bool end_allocation(struct store_connection *db, const char *id, struct error *error)
{
	struct allocation allocation;
	bool found;

	if (!allocation_load(db, id, &allocation, &found, error))
		return false;
	if (!found || allocation.to_ms > store_now(db).ms ||
	    (allocation.state != ALLOCATION_PLACED && allocation.state != ALLOCATION_BOUND))
		return true;
	return allocation_withdraw(db, &allocation, "Ended", error);
}

static bool load_stuck(struct store_connection *db, const struct allocation *allocation,
		       struct stuck_view *ret_view, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct stuck_view view = {
		.asked_ms = allocation->releasing_ms,
		.own_end_ms = allocation->to_ms,
		.was_bound = allocation->bound_ms != 0,
	};

	if (!store_query(db,
			 "SELECT n.state, n.stored_generation, n.hello_sequence, n.acknowledged, "
			 "s.connected, s.seen_ms, (SELECT min(to_ms) FROM bookings WHERE "
			 "allocation = $2), (SELECT min(held) FROM bookings WHERE allocation = $2) "
			 "FROM nodes n LEFT JOIN node_streams s ON s.node = n.id WHERE n.id = $1",
			 STORE_PARAMS(store_text(allocation->node), store_text(allocation->id)),
			 &rows, error) ||
	    !allocation_handover(db, allocation->id, &view.handover_ms, error))
		return false;
	view.booked_next = view.handover_ms != 0;
	assert(rows.count == 1);
	view.node_lost = str_equal(store_get_text(&rows, 0, 0), "lost") ||
			 str_equal(store_get_text(&rows, 0, 0), "retired");
	view.reachable = store_get_int(&rows, 0, 4) != 0 &&
			 store_now(db).ms - store_get_int(&rows, 0, 5) < NODE_UNREACHABLE_MS;
	view.unknown_to_node = view.reachable &&
			       store_get_int(&rows, 0, 1) >= allocation->withdrawn_generation &&
			       store_get_int(&rows, 0, 3) >= store_get_int(&rows, 0, 2);
	view.booked_to_ms = store_get_int(&rows, 0, 6);
	view.held = store_get_int(&rows, 0, 7) != 0;
	*ret_view = view;
	return true;
}

static bool look_at_release(struct store_connection *db, const char *id, struct error *error)
{
	struct allocation allocation;
	struct stuck_view view;
	struct stuck_plan plan;
	bool found;

	if (!allocation_load(db, id, &allocation, &found, error))
		return false;
	if (!found || allocation.state != ALLOCATION_RELEASING)
		return true;
	if (!load_stuck(db, &allocation, &view, error))
		return false;
	plan = stuck_decide(&view, store_now(db));
	switch (plan.step) {
	case STUCK_WAIT:
		return true;
	case STUCK_HOLD:
		return store_exec(db, "UPDATE bookings SET held = 1 WHERE allocation = $1",
				  STORE_PARAMS(store_text(id)), error);
	case STUCK_CARRY:
		return store_exec(db, "UPDATE bookings SET to_ms = $2 WHERE allocation = $1",
				  STORE_PARAMS(store_text(id), store_int(plan.to_ms)), error);
	case STUCK_FINISH:
		break;
	}
	return allocation_give_up(db, &allocation, plan.why, error);
}

static bool start_allocation(struct store_connection *db, const char *id, struct error *error)
{
	struct allocation allocation;
	bool found;

	if (!allocation_load(db, id, &allocation, &found, error))
		return false;
	if (!found || allocation.state != ALLOCATION_PLACED || allocation.assigned_generation != 0)
		return true;
	return allocation_start(db, &allocation, error);
}

static bool place_waiting(struct store_connection *db, const char *id, enum placing_how how,
			  struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	bool placed;

	if (!store_query(db, "SELECT 1 FROM reservations WHERE id = $1 AND state = 'pending'",
			 STORE_PARAMS(store_text(id)), &rows, error))
		return false;
	return rows.count == 0 || placing_try(db, id, how, &placed, error);
}

static bool place_pending(struct store_connection *db, const char *id, struct error *error)
{
	return place_waiting(db, id, PLACING_QUICK, error);
}

/* RES-33: nothing goes on for a reservation that is over, whatever came between. */
static bool end_leftover(struct store_connection *db, const char *id, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct allocation allocation = {0};
	enum reservation_state state;
	bool found;

	if (!allocation_load(db, id, &allocation, &found, error) ||
	    !store_query(db, "SELECT state FROM reservations WHERE id = $1",
			 STORE_PARAMS(store_text(allocation.reservation)), &rows, error))
		return false;
	if (!found || rows.count == 0 ||
	    !reservation_state_parse(store_get_text(&rows, 0, 0), &state) ||
	    !reservation_is_terminal(state) ||
	    (allocation.state != ALLOCATION_PLACED && allocation.state != ALLOCATION_BOUND))
		return true;
	return allocation_withdraw(db, &allocation, "ReservationOver", error);
}

/* Of nodes that were there before rooms were. */
static bool make_room(struct store_connection *db, const char *id, struct error *error)
{
	return room_refresh(db, id, error);
}

#define PENDING                                                                                    \
	"SELECT id FROM reservations WHERE state = 'pending' AND created_ms <= $1 ORDER BY "       \
	"created_ms, id LIMIT $2"

/* What ends makes room for what begins, and for what waits. */
static const struct pass PASSES[] = {
	{"SELECT id FROM allocations WHERE state IN ('placed', 'bound') AND to_ms <= $1 "
	 "ORDER BY to_ms, id LIMIT $2",
	 end_allocation, "end-failed"},
	{"SELECT a.id FROM allocations a JOIN reservations r ON r.id = a.reservation WHERE a.state "
	 "IN ('placed', 'bound') AND r.state NOT IN ('placed', 'active') AND a.created_ms <= $1 "
	 "ORDER BY a.id LIMIT $2",
	 end_leftover, "leftover-failed"},
	/* Nothing is to be done about one that has just begun; there are many of them. */
	{"SELECT id FROM allocations WHERE state = 'releasing' AND releasing_ms <= $1 - 1000 "
	 "ORDER BY id LIMIT $2",
	 look_at_release, "release-pass-failed"},
	{"SELECT id FROM allocations WHERE state = 'placed' AND assigned_generation IS NULL AND "
	 "from_ms <= $1 ORDER BY from_ms, id LIMIT $2",
	 start_allocation, "start-failed"},
	{"SELECT id FROM nodes WHERE roomed = 0 AND has_inventory = 1 AND state NOT IN "
	 "('retired', 'lost') AND created_ms <= $1 ORDER BY id LIMIT $2",
	 make_room, "room-pass-failed"},
	{PENDING, place_pending, "placement-failed"},
};

/* --- why the rest waits --- */

struct explain_work {
	const char *id;
	json_t *reasons;
};

static bool explain_body(struct store_connection *db, void *argument, struct error *error)
{
	struct explain_work *work = argument;

	json_decref(work->reasons);
	work->reasons = NULL;
	return placing_explain(db, work->id, &work->reasons, error);
}

static bool note_body(struct store_connection *db, void *argument, struct error *error)
{
	const struct explain_work *work = argument;

	return placing_note(db, work->id, work->reasons, error);
}

/* A look at all nodes finds room that the quick search for a place may have missed. */
static bool place_explained(struct store_connection *db, const char *id, struct error *error)
{
	return place_waiting(db, id, PLACING_AGAIN, error);
}

static const struct pass PLACE_EXPLAINED = {PENDING, place_explained, "placement-failed"};

static bool explain_one(struct control *control, const char *id, int64_t fence, bool *leads,
			struct error *error)
{
	struct explain_work work = {.id = id};
	struct step_work place = {&PLACE_EXPLAINED, id};
	bool done;

	if (!store_run(control->connection, STORE_READ, explain_body, &work, error))
		done = false;
	else if (work.reasons)
		done = lead_run(control, fence, note_body, &work, leads, error);
	else
		done = lead_run(control, fence, step_body, &place, leads, error);
	json_decref(work.reasons);
	return done;
}

static bool explain_pending(struct control *control, int64_t fence, bool *leads,
			    struct error *error)
{
	struct ids_work ids = {.sql = PENDING};
	bool done = store_run(control->connection, STORE_READ, ids_body, &ids, error);
	struct turns turns = choose_turns(ids.rows.count, EXPLAINED_A_PASS);

	for (size_t i = 0; done && *leads && i < turns.count; i++) {
		const char *id = store_get_text(&ids.rows, row_of_turn(&turns, i), 0);
		struct error failed;

		if (!explain_one(control, id, fence, leads, &failed))
			done = step_failed("explanation-failed", id, &failed, error);
	}
	store_rows_deinit(&ids.rows);
	return done;
}

bool control_tick(struct control *control, struct error *error)
{
	int64_t fence;
	bool leads;

	if (!lead_take(control, &fence, error))
		return false;
	leads = fence != 0;
	for (size_t i = 0; leads && i < ARRAY_SIZE(PASSES); i++) {
		if (!run_pass(control, &PASSES[i], fence, &leads, error))
			return false;
	}
	return !leads || (explain_pending(control, fence, &leads, error) &&
			  forget_old(control, fence, &leads, error));
}
