#include "control/allocation.h"

#include "control/core/stuck.h"
#include "control/metering.h"
#include "control/nodes.h"
#include "control/room.h"
#include "control/spec.h"

/* --- rows --- */

bool allocation_load(struct store_connection *db, const char *id, struct allocation *ret_allocation,
		     bool *ret_found, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct allocation allocation = {0};

	if (!store_query(db,
			 "SELECT id, reservation, node, state, from_ms, to_ms, "
			 "assigned_generation, withdrawn_generation, bound_ms, releasing_ms, "
			 "lost_reason FROM allocations WHERE id = $1",
			 STORE_PARAMS(store_text(id)), &rows, error))
		return false;
	*ret_found = rows.count == 1;
	if (rows.count == 0)
		return true;
	str_copy(allocation.id, ID_SIZE, store_get_text(&rows, 0, 0));
	str_copy(allocation.reservation, ID_SIZE, store_get_text(&rows, 0, 1));
	str_copy(allocation.node, ID_SIZE, store_get_text(&rows, 0, 2));
	if (!allocation_state_parse(store_get_text(&rows, 0, 3), &allocation.state))
		return error_set(error, ERROR_INTERNAL, "allocation '%s': unknown state", id);
	allocation.from_ms = store_get_int(&rows, 0, 4);
	allocation.to_ms = store_get_int(&rows, 0, 5);
	allocation.assigned_generation = store_get_int(&rows, 0, 6);
	allocation.withdrawn_generation = store_get_int(&rows, 0, 7);
	allocation.bound_ms = store_get_int(&rows, 0, 8);
	allocation.releasing_ms = store_get_int(&rows, 0, 9);
	allocation.lost = store_get_text(&rows, 0, 10)[0] != '\0';
	*ret_allocation = allocation;
	return true;
}

/* --- the reservation's state --- */

static json_t *state_event(enum reservation_state state, const char *why)
{
	json_t *data = json_pack("{s:s, s:b}", "state", reservation_state_shown(state),
				 "devicesHeld", state == RESERVATION_RELEASING);

	if (*why)
		json_object_set_new(data, "reason", work_text(why));
	return data;
}

static bool move(struct store_connection *db, const char *id, const char *tenant,
		 enum reservation_state to, const char *why, struct error *error)
{
	return store_exec(db, "UPDATE reservations SET state = $2, state_reason = $3 WHERE id = $1",
			  STORE_PARAMS(store_text(id), store_text(reservation_state_name(to)),
				       store_text(why)),
			  error) &&
	       work_event(db, tenant, "reservation.state.changed", id, state_event(to, why), error);
}

bool reservation_step(struct store_connection *db, const char *id, enum reservation_event event,
		      const char *why, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	enum reservation_state state, next;

	if (!store_query(db, "SELECT state, tenant FROM reservations WHERE id = $1",
			 STORE_PARAMS(store_text(id)), &rows, error))
		return false;
	if (rows.count == 0 || !reservation_state_parse(store_get_text(&rows, 0, 0), &state))
		return error_set(error, ERROR_INTERNAL, "reservation '%s': no or unknown state",
				 id);
	if (!reservation_next(state, event, &next))
		return error_set(error, ERROR_INTERNAL, "reservation '%s' is %s: it can't be %s",
				 id, reservation_state_name(state), reservation_event_name(event));
	return next == state || move(db, id, store_get_text(&rows, 0, 1), next, why, error);
}

/* What its parts have come to. */
static bool settle(struct store_connection *db, const char *reservation, const char *why,
		   struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	enum reservation_state state, next;
	struct reservation_parts parts;
	enum reservation_event event;

	if (!store_query(db,
			 "SELECT r.state, r.tenant, r.gang_nodes, "
			 "(SELECT count(*) FROM allocations a WHERE a.reservation = r.id "
			 "AND a.state = 'placed'), "
			 "(SELECT count(*) FROM allocations a WHERE a.reservation = r.id "
			 "AND a.state = 'bound'), "
			 "(SELECT count(*) FROM allocations a WHERE a.reservation = r.id "
			 "AND a.state = 'releasing') FROM reservations r WHERE r.id = $1",
			 STORE_PARAMS(store_text(reservation)), &rows, error))
		return false;
	if (rows.count == 0 || !reservation_state_parse(store_get_text(&rows, 0, 0), &state))
		return error_set(error, ERROR_INTERNAL, "reservation '%s': no or unknown state",
				 reservation);
	parts = (struct reservation_parts){
		.wanted = (int)store_get_int(&rows, 0, 2),
		.placed = (int)store_get_int(&rows, 0, 3),
		.bound = (int)store_get_int(&rows, 0, 4),
		.releasing = (int)store_get_int(&rows, 0, 5),
	};
	parts.wanted = parts.wanted > 0 ? parts.wanted : 1;
	for (; reservation_settle(state, &parts, &event); state = next) {
		if (!reservation_next(state, event, &next))
			return error_set(error, ERROR_INTERNAL,
					 "reservation '%s' is %s: it can't be %s", reservation,
					 reservation_state_name(state),
					 reservation_event_name(event));
		if (!move(db, reservation, store_get_text(&rows, 0, 1), next, why, error))
			return false;
	}
	return true;
}

bool allocation_list_live(struct store_connection *db, const char *reservation,
			  struct store_rows *ret_rows, struct error *error)
{
	return store_query(db,
			   "SELECT id FROM allocations WHERE reservation = $1 AND state IN "
			   "('placed', 'bound', 'releasing') ORDER BY id",
			   STORE_PARAMS(store_text(reservation)), ret_rows, error);
}

/* --- booking --- */

static bool insert_device(struct store_connection *db, const char *id, int64_t ordinal,
			  const struct placement_request *request,
			  const struct placement_node *node, const struct placement_atom *atom,
			  struct error *error)
{
	const char *gpu = node->gpus[atom->gpu].uuid;

	return store_exec(db,
			  "INSERT INTO allocation_devices (allocation, ordinal, atom, class, "
			  "profile, gpu, visible_device) VALUES ($1, $2, $3, $4, $5, $6, $7)",
			  STORE_PARAMS(store_text(id), store_int(ordinal), store_text(atom->atom),
				       store_text(placement_class_name(atom->class)),
				       store_text(atom->profile), store_text(gpu),
				       store_text(atom->visible_device)),
			  error) &&
	       store_exec(
		       db,
		       "INSERT INTO bookings (allocation, gpu, leaf_lo, leaf_hi, from_ms, to_ms, "
		       "held) VALUES ($1, $2, $3, $4, $5, $6, 0)",
		       STORE_PARAMS(store_text(id), store_text(gpu), store_int(atom->leaf_lo),
				    store_int(atom->leaf_hi), store_int(request->from_ms),
				    store_int(request->to_ms)),
		       error);
}

bool allocation_book_part(struct store_connection *db, const char *reservation,
			  const struct placement_request *request,
			  const struct placement_member *member, struct error *error)
{
	CLEANUP(store_rows) struct store_rows nodes = {0};
	struct allocation allocation = {.state = ALLOCATION_PLACED};
	const char *id = allocation.id;

	work_new_id(db, "alc", allocation.id);
	str_copy(allocation.node, ID_SIZE, member->node->id);
	if (!store_exec(db,
			"INSERT INTO allocations (id, reservation, node, state, from_ms, to_ms, "
			"vcpus, memory_bytes, limited, lost_reason, end_reason, created_ms, "
			"hugepages_2mi, hugepages_1gi) "
			"VALUES ($1, $2, $3, 'placed', $4, $5, $6, $7, $8, '', '', $9, $10, $11)",
			STORE_PARAMS(store_text(id), store_text(reservation),
				     store_text(member->node->id), store_int(request->from_ms),
				     store_int(request->to_ms), store_int(member->vcpus),
				     store_int(member->memory_bytes), store_int(request->limited),
				     store_int(store_now(db).ms),
				     store_int(member->hugepages.bytes[HUGEPAGES_2MI]),
				     store_int(member->hugepages.bytes[HUGEPAGES_1GI])),
			error))
		return false;
	for (size_t i = 0; i < member->atoms_count; i++) {
		if (!insert_device(db, id, (int64_t)i, request, member->node,
				   &member->node->atoms[member->atoms[i]], error))
			return false;
	}
	if (!room_nodes_of(db, id, &nodes, error) || !room_refresh_all(db, &nodes, error))
		return false;
	return request->from_ms > store_now(db).ms || allocation_start(db, &allocation, error);
}

bool allocation_book(struct store_connection *db, const char *reservation,
		     const struct placement_request *request, const struct placement_answer *answer,
		     struct error *error)
{
	for (size_t i = 0; i < answer->members_count; i++) {
		if (!allocation_book_part(db, reservation, request, &answer->members[i], error))
			return false;
	}
	return store_exec(db,
			  "UPDATE reservations SET from_ms = $2, end_ms = $3, reasons = '[]' "
			  "WHERE id = $1",
			  STORE_PARAMS(store_text(reservation), store_int(request->from_ms),
				       store_int(request->to_ms)),
			  error) &&
	       reservation_step(db, reservation, RESERVATION_ON_PLACED, "", error);
}

/* --- into the Spec and out of it --- */

/* Somebody else's devices that overlap and that a node has, or may have. */
static bool is_handed_out(struct store_connection *db, const char *id, bool *ret_taken,
			  struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db,
			 "SELECT 1 FROM bookings mine JOIN bookings other ON "
			 "other.gpu = mine.gpu AND other.allocation <> mine.allocation AND "
			 "other.leaf_lo < mine.leaf_hi AND mine.leaf_lo < other.leaf_hi "
			 "JOIN allocations a ON a.id = other.allocation AND "
			 "a.assigned_generation IS NOT NULL WHERE mine.allocation = $1 LIMIT 1",
			 STORE_PARAMS(store_text(id)), &rows, error))
		return false;
	*ret_taken = rows.count > 0;
	return true;
}

bool allocation_start(struct store_connection *db, const struct allocation *allocation,
		      struct error *error)
{
	int64_t generation;
	bool taken;

	assert(allocation->state == ALLOCATION_PLACED && allocation->assigned_generation == 0);
	if (!is_handed_out(db, allocation->id, &taken, error))
		return false;
	if (taken)
		return true;
	return spec_changed(db, allocation->node, &generation, error) &&
	       store_exec(db, "UPDATE allocations SET assigned_generation = $2 WHERE id = $1",
			  STORE_PARAMS(store_text(allocation->id), store_int(generation)), error);
}

_Static_assert(STUCK_HANDOVER_MS == 300000, "ALLOCATION_HANDOVER has it, too");

bool allocation_handover(struct store_connection *db, const char *id, int64_t *ret_handover_ms,
			 struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db,
			 "SELECT " ALLOCATION_HANDOVER " FROM bookings mine JOIN bookings other ON "
			 "other.gpu = mine.gpu AND other.allocation <> mine.allocation AND "
			 "other.leaf_lo < mine.leaf_hi AND mine.leaf_lo < other.leaf_hi AND "
			 "other.from_ms >= mine.to_ms WHERE mine.allocation = $1",
			 STORE_PARAMS(store_text(id)), &rows, error))
		return false;
	*ret_handover_ms = store_get_int(&rows, 0, 0);
	return true;
}

/* Did the node ever get a Spec that has it? */
static bool was_sent(struct store_connection *db, const struct allocation *allocation,
		     bool *ret_sent, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db, "SELECT sent_generation FROM nodes WHERE id = $1",
			 STORE_PARAMS(store_text(allocation->node)), &rows, error))
		return false;
	*ret_sent = allocation->assigned_generation > 0 && rows.count == 1 &&
		    store_get_int(&rows, 0, 0) >= allocation->assigned_generation;
	return true;
}

bool allocation_withdraw(struct store_connection *db, struct allocation *allocation,
			 const char *why, struct error *error)
{
	int64_t now_ms = store_now(db).ms, generation = 0, handover_ms;
	bool sent, booked_next;

	assert(allocation->state == ALLOCATION_PLACED || allocation->state == ALLOCATION_BOUND);
	if (!was_sent(db, allocation, &sent, error))
		return false;
	if (allocation->assigned_generation > 0 &&
	    !spec_changed(db, allocation->node, &generation, error))
		return false;
	if (!sent && allocation->bound_ms == 0)
		return allocation_finish(db, allocation, why, error);
	if (!allocation_handover(db, allocation->id, &handover_ms, error) ||
	    !store_exec(db,
			"UPDATE allocations SET state = 'releasing', withdrawn_generation = $2, "
			"releasing_ms = $3, end_reason = $4 WHERE id = $1",
			STORE_PARAMS(store_text(allocation->id), store_int(generation),
				     store_int(now_ms), store_text(why)),
			error))
		return false;
	booked_next = handover_ms != 0;
	/* Whatever its end was, nobody else gets the devices before the node's word. */
	if (!booked_next && !store_exec(db, "UPDATE bookings SET held = 1 WHERE allocation = $1",
					STORE_PARAMS(store_text(allocation->id)), error))
		return false;
	allocation->state = ALLOCATION_RELEASING;
	return settle(db, allocation->reservation, why, error);
}

static bool end(struct store_connection *db, struct allocation *allocation,
		enum allocation_state state, const char *why, struct error *error)
{
	CLEANUP(store_rows) struct store_rows nodes = {0};

	if (!store_exec(db,
			"UPDATE allocations SET end_reason = CASE WHEN state = 'releasing' THEN "
			"end_reason ELSE $4 END, state = $2, released_ms = $3 WHERE id = $1",
			STORE_PARAMS(store_text(allocation->id),
				     store_text(allocation_state_name(state)),
				     store_int(store_now(db).ms), store_text(why)),
			error) ||
	    !room_nodes_of(db, allocation->id, &nodes, error) ||
	    !store_exec(db, "DELETE FROM bookings WHERE allocation = $1",
			STORE_PARAMS(store_text(allocation->id)), error) ||
	    !room_refresh_all(db, &nodes, error))
		return false;
	allocation->state = state;
	return metering_close(db, allocation->id, error);
}

bool allocation_finish(struct store_connection *db, struct allocation *allocation, const char *why,
		       struct error *error)
{
	return end(db, allocation, ALLOCATION_RELEASED, why, error) &&
	       settle(db, allocation->reservation, why, error);
}

bool allocation_give_up(struct store_connection *db, struct allocation *allocation, const char *why,
			struct error *error)
{
	if (!allocation_finish(db, allocation, why, error))
		return false;
	/* Its meter has the reason for which it was withdrawn. */
	return (!str_equal(why, STUCK_BOOKED_NEXT) && !str_equal(why, STUCK_CARRIED_TOO_LONG)) ||
	       store_exec(db, "UPDATE allocations SET end_reason = $2 WHERE id = $1",
			  STORE_PARAMS(store_text(allocation->id), store_text(why)), error);
}

bool allocation_word_came(struct store_connection *db, const struct allocation *allocation,
			  bool *ret_was, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db,
			 "SELECT 1 FROM allocations WHERE id = $1 AND state = 'released' AND "
			 "end_reason IN ('" STUCK_BOOKED_NEXT "', '" STUCK_CARRIED_TOO_LONG "')",
			 STORE_PARAMS(store_text(allocation->id)), &rows, error))
		return false;
	*ret_was = rows.count > 0;
	return rows.count == 0 ||
	       store_exec(db, "UPDATE allocations SET end_reason = 'Released' WHERE id = $1",
			  STORE_PARAMS(store_text(allocation->id)), error);
}

bool allocation_bind(struct store_connection *db, const struct allocation *allocation,
		     struct error *error)
{
	return store_exec(db,
			  "UPDATE allocations SET bound_ms = coalesce(bound_ms, $2), state = CASE "
			  "WHEN state = 'placed' THEN 'bound' ELSE state END, lost_reason = '', "
			  "lost_ms = NULL WHERE id = $1",
			  STORE_PARAMS(store_text(allocation->id), store_int(store_now(db).ms)),
			  error) &&
	       settle(db, allocation->reservation, "", error);
}

bool allocation_fail(struct store_connection *db, struct allocation *allocation, const char *why,
		     struct error *error)
{
	int64_t generation;

	assert(allocation->state == ALLOCATION_PLACED || allocation->state == ALLOCATION_BOUND);
	if (allocation->assigned_generation > 0 &&
	    !spec_changed(db, allocation->node, &generation, error))
		return false;
	return end(db, allocation, ALLOCATION_FAILED, why, error);
}

bool allocation_withdraw_all(struct store_connection *db, const char *reservation, const char *why,
			     struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!allocation_list_live(db, reservation, &rows, error))
		return false;
	for (size_t i = 0; i < rows.count; i++) {
		struct allocation allocation;
		bool found;

		if (!allocation_load(db, store_get_text(&rows, i, 0), &allocation, &found, error))
			return false;
		if (allocation.state != ALLOCATION_RELEASING &&
		    !allocation_withdraw(db, &allocation, why, error))
			return false;
	}
	return true;
}

bool allocation_unplace_all(struct store_connection *db, const char *reservation, const char *why,
			    struct error *error)
{
	/* First the reservation: the ends of its parts are no longer its own. */
	return reservation_step(db, reservation, RESERVATION_ON_UNPLACED, why, error) &&
	       store_exec(db, "UPDATE reservations SET from_ms = NULL, end_ms = NULL WHERE id = $1",
			  STORE_PARAMS(store_text(reservation)), error) &&
	       allocation_withdraw_all(db, reservation, why, error);
}

/* RES-41: may the reservation, or what its node is rented as, be interrupted? */
static bool is_spot(struct store_connection *db, const struct allocation *allocation,
		    bool *ret_spot, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db,
			 "SELECT 1 FROM reservations WHERE id = $1 AND spot = 1 UNION ALL SELECT 1 "
			 "FROM node_labels WHERE node = $2 AND name = $3 AND value = 'spot' AND "
			 "system = 1",
			 STORE_PARAMS(store_text(allocation->reservation),
				      store_text(allocation->node),
				      store_text(NODE_LABEL_CAPACITY)),
			 &rows, error))
		return false;
	*ret_spot = rows.count > 0;
	return true;
}

/* What a reservation that runs comes to when a part of it is gone with its node. */
static bool settle_loss(struct store_connection *db, const struct allocation *allocation,
			struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0}, live = {0};
	bool spot;

	if (!store_query(db, "SELECT tenant FROM reservations WHERE id = $1",
			 STORE_PARAMS(store_text(allocation->reservation)), &rows, error))
		return false;
	if (!allocation_list_live(db, allocation->reservation, &live, error))
		return false;
	if (live.count > 0)
		return work_event(db, store_get_text(&rows, 0, 0), "reservation.state.changed",
				  allocation->reservation,
				  state_event(RESERVATION_ACTIVE, "NodeLost"), error) &&
		       settle(db, allocation->reservation, "NodeLost", error);
	return is_spot(db, allocation, &spot, error) &&
	       reservation_step(db, allocation->reservation,
				spot ? RESERVATION_ON_PREEMPTED : RESERVATION_ON_LOST, "NodeLost",
				error);
}

bool allocation_lose(struct store_connection *db, struct allocation *allocation,
		     struct error *error)
{
	int64_t generation;

	assert(allocation->state == ALLOCATION_BOUND);
	return spec_changed(db, allocation->node, &generation, error) &&
	       end(db, allocation, ALLOCATION_RELEASED, "NodeLost", error) &&
	       settle_loss(db, allocation, error);
}
