#include "control/placing.h"

#include "base/vec.h"
#include "control/nodes.h"
#include "control/quotas.h"
#include "control/room.h"

#include <stdio.h>

/* So many gangs of a pool are planned for; who waits behind more waits for them anyway. */
#define MAX_PLANNED 32

#define TOO_FEW "TooFewNodes"

/* --- a reservation's request, from its row --- */

struct wanted {
	char id[ID_SIZE], pool[ID_SIZE], tenant[ID_SIZE];
	int64_t created_ms;
	json_t *devices;
	struct placement_need needs[RESERVE_MAX_NEEDS];
	struct placement_request request; /* as if it began now, or at its own start */
};

static void wanted_cleanup(struct wanted *wanted)
{
	json_decref(wanted->devices);
}

static bool load_wanted(struct store_connection *db, const char *id, struct wanted *ret_wanted,
			struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct placement_request *request = &ret_wanted->request;
	int64_t now_ms = store_now(db).ms, duration_ms;

	if (!store_query(db,
			 "SELECT pool, devices, duration_ms, start_ms, vcpus, memory_bytes, spot, "
			 "gang_nodes, gang_same, created_ms, tenant, hugepages_2mi, hugepages_1gi "
			 "FROM reservations WHERE id = $1",
			 STORE_PARAMS(store_text(id)), &rows, error))
		return false;
	if (rows.count == 0)
		return error_set(error, ERROR_INTERNAL, "reservation '%s' is gone", id);
	str_copy(ret_wanted->id, ID_SIZE, id);
	str_copy(ret_wanted->pool, ID_SIZE, store_get_text(&rows, 0, 0));
	ret_wanted->devices = work_parse(store_get_text(&rows, 0, 1));
	if (!reserve_needs_unpack(ret_wanted->devices, ret_wanted->needs, &request->needs_count))
		return error_set(error, ERROR_INTERNAL, "reservation '%s': devices as stored", id);
	request->needs = ret_wanted->needs;
	/* Without a start the duration counts from placement; with one the end is fixed. */
	duration_ms = store_get_int(&rows, 0, 2);
	request->from_ms = now_ms;
	request->to_ms = now_ms + duration_ms;
	if (!store_is_null(&rows, 0, 3)) {
		int64_t start_ms = store_get_int(&rows, 0, 3);

		request->from_ms = start_ms > now_ms ? start_ms : now_ms;
		request->to_ms = start_ms + duration_ms;
	}
	request->vcpus = store_is_null(&rows, 0, 4) ? -1 : store_get_int(&rows, 0, 4);
	request->memory_bytes = store_is_null(&rows, 0, 5) ? -1 : store_get_int(&rows, 0, 5);
	request->hugepages = work_hugepages_of(&rows, 0, 11);
	request->limited = request->vcpus >= 0 || request->memory_bytes >= 0 ||
			   request->hugepages.bytes[HUGEPAGES_2MI] > 0 ||
			   request->hugepages.bytes[HUGEPAGES_1GI] > 0;
	request->spot = store_get_int(&rows, 0, 6) != 0;
	request->nodes = (int)store_get_int(&rows, 0, 7);
	if (!placement_same_parse(store_get_text(&rows, 0, 8), &request->same))
		return error_set(error, ERROR_INTERNAL, "reservation '%s': gang as stored", id);
	ret_wanted->created_ms = store_get_int(&rows, 0, 9);
	str_copy(ret_wanted->tenant, ID_SIZE, store_get_text(&rows, 0, 10));
	return true;
}

static void apply_pool(const struct pool *pool, struct placement_request *request)
{
	request->model = pool->gpu_model;
	request->spread = pool->policy.spread;
	request->dra = str_equal(pool->policy.gpu_api, NODE_API_DRA);
}

/* --- quotas --- */

/* Adds to `reasons` when it isn't. */
static bool is_within_quota(struct store_connection *db, const struct wanted *wanted, bool placing,
			    json_t *reasons, bool *ret_within, struct error *error)
{
	const struct placement_request *request = &wanted->request;
	const struct quota_question question = {
		.tenant = wanted->tenant,
		.pool = wanted->pool,
		.needs = request->needs,
		.needs_count = request->needs_count,
		.copies = request->nodes > 1 ? request->nodes : 1,
		.from_ms = request->from_ms,
		.to_ms = request->to_ms,
		.reservation = wanted->id,
		.placing = placing,
	};

	return quota_check(db, &question, reasons, ret_within, error);
}

/* --- choosing --- */

void placing_choice_deinit(struct placing_choice *choice)
{
	placement_answer_deinit(&choice->answer);
	view_deinit(&choice->view);
	free(choice->waits);
	free(choice->gangs);
	*choice = (struct placing_choice){0};
}

/* Gangs that wait and came before. */
static bool load_gangs_before(struct store_connection *db, const struct pool *pool,
			      const struct placing_turn *turn, struct store_rows *rows,
			      struct error *error)
{
	return store_query(db,
			   "SELECT id FROM reservations WHERE pool = $1 AND state = 'pending' AND "
			   "gang_nodes > 0 AND ($2 = '' OR created_ms < $3 OR (created_ms = $3 AND "
			   "id < $2)) ORDER BY created_ms, id LIMIT $4",
			   STORE_PARAMS(store_text(pool->id),
					store_text(turn->reservation ? turn->reservation : ""),
					store_int(turn->created_ms), store_int(MAX_PLANNED)),
			   rows, error);
}

/* Books nothing: what the gang will get, as things stand, is marked in the view. */
static bool plan_gang(struct store_connection *db, const struct pool *pool, const char *id,
		      struct placing_choice *choice, struct error *error)
{
	CLEANUP(placement_answer) struct placement_answer answer = {0};
	CLEANUP(wanted) struct wanted wanted = {0};
	CLEANUP(json_ref) json_t *reasons = json_array();
	struct placement_request *request = &wanted.request;
	int64_t first_ms, length_ms;
	bool within;

	if (!load_wanted(db, id, &wanted, error))
		return false;
	length_ms = request->to_ms - request->from_ms;
	if (length_ms <= 0)
		return true;
	apply_pool(pool, request);
	request->waits = choice->waits;
	request->waits_count = choice->waits_count;
	/* Nobody knows when it will fit, so nobody can be in its way. */
	if (!placement_first_fit(request, choice->view.nodes, choice->view.count, &first_ms))
		return true;
	request->from_ms = first_ms;
	request->to_ms = first_ms + length_ms;
	/* What it may not have then it keeps nobody from. */
	if (!is_within_quota(db, &wanted, true, reasons, &within, error))
		return false;
	if (!within)
		return true;
	placement_decide(request, choice->view.nodes, choice->view.count, &answer);
	view_plan(&choice->view, &answer, request->from_ms, request->to_ms);
	choice->waits[choice->waits_count] = first_ms;
	str_copy(choice->gangs[choice->waits_count++], ID_SIZE, id);
	return true;
}

static bool plan_gangs(struct store_connection *db, const struct pool *pool,
		       const struct placing_turn *turn, const struct store_rows *gangs,
		       struct placing_choice *choice, struct error *error)
{
	placing_choice_deinit(choice);
	/* Which nodes refused who asks says nothing about the gangs. */
	if (!view_load_pool(db, pool->id, NULL, &choice->view, error))
		return false;
	choice->waits = mem_alloc((gangs->count + 1) * sizeof *choice->waits);
	choice->gangs = mem_alloc((gangs->count + 1) * sizeof *choice->gangs);
	for (size_t i = 0; i < gangs->count; i++) {
		if (!plan_gang(db, pool, store_get_text(gangs, i, 0), choice, error))
			return false;
	}
	return view_load_refusals(db, turn->reservation, &choice->view, error);
}

bool placing_plan(struct store_connection *db, const struct pool *pool,
		  struct placing_choice *ret_choice, struct error *error)
{
	CLEANUP(store_rows) struct store_rows gangs = {0};
	const struct placing_turn last = {0};

	placing_choice_deinit(ret_choice);
	return load_gangs_before(db, pool, &last, &gangs, error) &&
	       (gangs.count == 0 || plan_gangs(db, pool, &last, &gangs, ret_choice, error));
}

static bool choose_among_all(struct store_connection *db, const struct pool *pool,
			     const struct placing_turn *turn, const struct store_rows *gangs,
			     struct placement_request *request, enum placing_depth depth,
			     struct placing_choice *choice, struct error *error)
{
	if (!plan_gangs(db, pool, turn, gangs, choice, error))
		return false;
	request->waits = choice->waits;
	request->waits_count = choice->waits_count;
	placement_decide(request, choice->view.nodes, choice->view.count, &choice->answer);
	choice->explained = true;
	if (depth == PLACING_TIMES && choice->answer.members_count == 0 &&
	    !placement_first_fit(request, choice->view.nodes, choice->view.count,
				 &choice->first_fit_ms))
		choice->first_fit_ms = INT64_MAX;
	return true;
}

/* For one node and one kind of device, when a quick search found none. *ret_done false: only a look
 * at all nodes can say when. */
static bool explain(struct store_connection *db, const struct pool *pool,
		    const struct placing_turn *turn, const struct placement_request *request,
		    enum placing_depth depth, struct placing_choice *choice, bool *ret_done,
		    struct error *error)
{
	placing_choice_deinit(choice);
	if (!room_load(db, pool->id, request, turn->reservation, &choice->view, error))
		return false;
	placement_decide(request, choice->view.nodes, choice->view.count, &choice->answer);
	choice->explained = *ret_done = true;
	return depth != PLACING_TIMES || choice->answer.members_count > 0 ||
	       room_first_fit(db, pool->id, request, &choice->first_fit_ms, ret_done, error);
}

bool placing_choose_among_all(struct store_connection *db, const struct pool *pool,
			      const struct placing_turn *turn, struct placement_request *request,
			      struct placing_choice *ret_choice, struct error *error)
{
	CLEANUP(store_rows) struct store_rows gangs = {0};

	apply_pool(pool, request);
	return load_gangs_before(db, pool, turn, &gangs, error) &&
	       choose_among_all(db, pool, turn, &gangs, request, PLACING_TIMES, ret_choice, error);
}

bool placing_choose(struct store_connection *db, const struct pool *pool,
		    const struct placing_turn *turn, struct placement_request *request,
		    enum placing_depth depth, struct placing_choice *ret_choice,
		    struct error *error)
{
	CLEANUP(store_rows) struct store_rows gangs = {0};
	bool found = false, alone, done = false;

	apply_pool(pool, request);
	placing_choice_deinit(ret_choice);
	if (!load_gangs_before(db, pool, turn, &gangs, error))
		return false;
	alone = gangs.count == 0 && request->nodes <= 1 && request->same == PLACEMENT_SAME_NOTHING;
	if (alone && !room_search(db, pool->id, request, turn->reservation, &ret_choice->view,
				  &ret_choice->answer, &found, error))
		return false;
	ret_choice->explained = found;
	if (found || (alone && depth == PLACING_FITS))
		return true;
	if (alone && request->needs_count == 1 &&
	    !explain(db, pool, turn, request, depth, ret_choice, &done, error))
		return false;
	return done || choose_among_all(db, pool, turn, &gangs, request, depth, ret_choice, error);
}

/* A gang of more nodes than the pool has for it: no wait helps, whatever holds them now. */
static bool is_too_large(const struct placement_answer *answer)
{
	return answer->never && answer->could > 0;
}

/* Counts the nodes that would do now, as the reason it stands for does. */
static void add_too_large(const struct placement_answer *answer, json_t *reasons)
{
	char message[128];
	int nodes = 0;

	for (size_t i = 0; i < answer->reasons_count; i++) {
		if (str_equal(answer->reasons[i].reason, TOO_FEW))
			nodes = answer->reasons[i].nodes;
	}
	snprintf(message, sizeof message,
		 "the gang takes %zu nodes, and only %zu of the pool could ever take a part",
		 answer->wanted, answer->could);
	json_array_append_new(reasons, json_pack("{s:s, s:i, s:s}", "reason", TOO_FEW, "nodes",
						 nodes, "message", message));
}

#define GIB ((int64_t)1024 * 1024 * 1024)

/* What no time helps. */
static void add_lack(const struct placement_reason *reason, json_t *row)
{
	bool vcpus = str_equal(reason->reason, "HostVcpuShort");
	const char *what = vcpus                                          ? " vCPUs"
			   : str_equal(reason->reason, "HostMemoryShort") ? " GiB of memory"
									  : " GiB of huge pages";
	int64_t asked = reason->lack.asked, has = reason->lack.has;
	char message[160];

	if (asked == 0)
		return;
	snprintf(message, sizeof message,
		 "%d node%s: none has %lld%s at any time, the largest has %lld", reason->nodes,
		 reason->nodes == 1 ? "" : "s",
		 (long long)(vcpus ? asked : (asked + GIB - 1) / GIB), what,
		 (long long)(vcpus ? has : has / GIB));
	json_object_set_new(row, "message", json_string(message));
}

json_t *placing_reasons(const struct placement_answer *answer)
{
	json_t *reasons = json_array();

	if (is_too_large(answer))
		add_too_large(answer, reasons);
	for (size_t i = 0; i < answer->reasons_count; i++) {
		const struct placement_reason *reason = &answer->reasons[i];
		if (is_too_large(answer) && str_equal(reason->reason, TOO_FEW))
			continue;
		json_t *row =
			json_pack("{s:s, s:i}", "reason", reason->reason, "nodes", reason->nodes);

		if (reason->largest >= 0)
			json_object_set_new(row, "largest", json_integer(reason->largest));
		add_lack(reason, row);
		json_array_append_new(reasons, row);
	}
	return reasons;
}

/* --- trying --- */

bool placing_note(struct store_connection *db, const char *reservation, const json_t *reasons,
		  struct error *error)
{
	CLEANUP(free) char *text = json_dumps(reasons, JSON_COMPACT);

	return store_exec(db,
			  "UPDATE reservations SET reasons = $2 WHERE id = $1 AND reasons <> $2 "
			  "AND state = 'pending'",
			  STORE_PARAMS(store_text(reservation), store_text(text)), error);
}

/* Is there a quota in the way? Then that is the reason. */
static bool check_quota(struct store_connection *db, const struct wanted *wanted, bool placing,
			bool *ret_within, struct error *error)
{
	CLEANUP(json_ref) json_t *reasons = json_array();

	return is_within_quota(db, wanted, placing, reasons, ret_within, error) &&
	       (*ret_within || placing_note(db, wanted->id, reasons, error));
}

/* One that was accepted before is asked again: quotas and claims have changed since. */
static bool book(struct store_connection *db, const struct wanted *wanted, enum placing_how how,
		 const struct placement_answer *answer, bool *ret_placed, struct error *error)
{
	*ret_placed = true;
	if (how != PLACING_NEW && !check_quota(db, wanted, true, ret_placed, error))
		return false;
	return !*ret_placed || allocation_book(db, wanted->id, &wanted->request, answer, error);
}

static bool note_refusal(struct store_connection *db, const struct wanted *wanted,
			 enum placing_how how, const struct placement_answer *answer,
			 struct error *error)
{
	CLEANUP(json_ref) json_t *reasons = placing_reasons(answer);

	if (!placing_note(db, wanted->id, reasons, error))
		return false;
	return how != PLACING_NEW || !answer->never ||
	       reservation_step(db, wanted->id, RESERVATION_ON_DENIED, "NoNodeCould", error);
}

bool placing_try(struct store_connection *db, const char *reservation, enum placing_how how,
		 bool *ret_placed, struct error *error)
{
	CLEANUP(placing_choice) struct placing_choice choice = {0};
	CLEANUP(pool) struct pool pool = {0};
	CLEANUP(wanted) struct wanted wanted = {0};
	struct placement_request *request = &wanted.request;
	bool within = true;

	*ret_placed = false;
	if (!load_wanted(db, reservation, &wanted, error) ||
	    !pool_load(db, wanted.pool, &pool, error))
		return false;
	if (pool.archived)
		return reservation_step(db, reservation, RESERVATION_ON_DENIED, "PoolArchived",
					error);
	if (request->to_ms <= request->from_ms)
		return reservation_step(db, reservation, RESERVATION_ON_EXPIRED, "NoRoomInTime",
					error);
	if (how == PLACING_NEW && !check_quota(db, &wanted, false, &within, error))
		return false;
	if (!within)
		return reservation_step(db, reservation, RESERVATION_ON_DENIED, "QuotaExceeded",
					error);
	if (!placing_choose(db, &pool, &(struct placing_turn){reservation, wanted.created_ms},
			    request, how == PLACING_QUICK ? PLACING_FITS : PLACING_REASONS, &choice,
			    error))
		return false;
	if (choice.answer.members_count > 0)
		return book(db, &wanted, how, &choice.answer, ret_placed, error);
	return !choice.explained || note_refusal(db, &wanted, how, &choice.answer, error);
}

bool placing_explain(struct store_connection *db, const char *reservation, json_t **ret_reasons,
		     struct error *error)
{
	CLEANUP(placing_choice) struct placing_choice choice = {0};
	CLEANUP(store_rows) struct store_rows rows = {0};
	CLEANUP(pool) struct pool pool = {0};
	CLEANUP(wanted) struct wanted wanted = {0};
	struct placement_request *request = &wanted.request;

	*ret_reasons = NULL;
	if (!store_query(db, "SELECT 1 FROM reservations WHERE id = $1 AND state = 'pending'",
			 STORE_PARAMS(store_text(reservation)), &rows, error))
		return false;
	if (rows.count == 0)
		return true;
	if (!load_wanted(db, reservation, &wanted, error) ||
	    !pool_load(db, wanted.pool, &pool, error))
		return false;
	if (request->to_ms <= request->from_ms)
		return true;
	if (!placing_choose(db, &pool, &(struct placing_turn){reservation, wanted.created_ms},
			    request, PLACING_REASONS, &choice, error))
		return false;
	if (choice.answer.members_count == 0)
		*ret_reasons = placing_reasons(&choice.answer);
	return true;
}

/* --- repairing --- */

static bool load_rest(struct store_connection *db, const char *reservation, struct store_rows *rest,
		      struct error *error)
{
	return store_query(db,
			   "SELECT node, to_ms FROM allocations WHERE reservation = $1 AND state "
			   "IN ('placed', 'bound') ORDER BY node",
			   STORE_PARAMS(store_text(reservation)), rest, error);
}

/* Nodes of the rest are none for the lost part; it ends with them, and has to be where they are. */
static void apply_rest(const struct store_rows *rest, struct view *view,
		       struct placement_request *request)
{
	request->nodes = 1;
	for (size_t i = 0; i < rest->count; i++) {
		struct placement_node *node = view_find(view, store_get_text(rest, i, 0));

		request->to_ms = store_get_int(rest, i, 1);
		if (!node)
			continue;
		node->member = true;
		if (request->same != PLACEMENT_SAME_NOTHING)
			request->domain = node->labels[request->same];
	}
}

/* *ret_done is false when no node goes with the rest; then nothing happened. */
static bool replace_part(struct store_connection *db, const char *reservation, bool *ret_done,
			 struct error *error)
{
	CLEANUP(placing_choice) struct placing_choice choice = {0};
	CLEANUP(wanted) struct wanted wanted = {0};
	CLEANUP(store_rows) struct store_rows rest = {0}, gangs = {0};
	CLEANUP(pool) struct pool pool = {0};
	struct placement_request *request = &wanted.request;
	struct placing_turn turn;

	*ret_done = false;
	if (!load_rest(db, reservation, &rest, error))
		return false;
	if (rest.count == 0)
		return true;
	if (!load_wanted(db, reservation, &wanted, error) ||
	    !pool_load(db, wanted.pool, &pool, error))
		return false;
	/* Who waits and came first keeps what it was planned for. */
	turn = (struct placing_turn){reservation, wanted.created_ms};
	if (!load_gangs_before(db, &pool, &turn, &gangs, error) ||
	    !plan_gangs(db, &pool, &turn, &gangs, &choice, error))
		return false;
	apply_rest(&rest, &choice.view, request);
	if (pool.archived || request->to_ms <= request->from_ms)
		return true;
	apply_pool(&pool, request);
	request->waits = choice.waits;
	request->waits_count = choice.waits_count;
	placement_decide(request, choice.view.nodes, choice.view.count, &choice.answer);
	if (choice.answer.members_count == 0)
		return true;
	*ret_done = true;
	return allocation_book_part(db, reservation, request, &choice.answer.members[0], error);
}

bool placing_failed(struct store_connection *db, struct allocation *allocation, const char *why,
		    struct error *error)
{
	bool replaced, placed;

	if (!allocation_fail(db, allocation, why, error) ||
	    !replace_part(db, allocation->reservation, &replaced, error))
		return false;
	return replaced ||
	       (allocation_unplace_all(db, allocation->reservation, why, error) &&
		placing_try(db, allocation->reservation, PLACING_AGAIN, &placed, error));
}

bool placing_lost(struct store_connection *db, struct allocation *allocation, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db, "SELECT 1 FROM reservations WHERE id = $1 AND state = 'placed'",
			 STORE_PARAMS(store_text(allocation->reservation)), &rows, error))
		return false;
	return rows.count > 0 ? placing_failed(db, allocation, "NodeLost", error)
			      : allocation_lose(db, allocation, error);
}
