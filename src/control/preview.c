#include "control/placing.h"
#include "control/quotas.h"
#include "control/reservations.h"

static struct placement_request request_of(const struct reserve_request *asked, struct wall now)
{
	int64_t from_ms = asked->start_ms > now.ms ? asked->start_ms : now.ms;
	int64_t end_from_ms = asked->start_ms ? asked->start_ms : now.ms;

	return (struct placement_request){
		.needs = asked->needs,
		.needs_count = asked->needs_count,
		.from_ms = from_ms,
		.to_ms = end_from_ms + asked->duration_ms,
		.limited = asked->limited,
		.vcpus = asked->vcpus,
		.memory_bytes = asked->memory_bytes,
		.hugepages = asked->hugepages,
		.spot = asked->spot,
		.nodes = asked->gang_nodes,
		.same = asked->gang_same,
	};
}

static json_t *member_answer(const struct placement_member *member)
{
	json_t *devices = json_array();

	for (size_t i = 0; i < member->atoms_count; i++) {
		const struct placement_atom *atom = &member->node->atoms[member->atoms[i]];

		json_array_append_new(devices, json_pack("{s:s, s:s, s:s, s:s}", "atom", atom->atom,
							 "class", placement_class_name(atom->class),
							 "gpu", member->node->gpus[atom->gpu].uuid,
							 "visibleDevice", atom->visible_device));
	}
	return json_pack("{s:s, s:o}", "id", member->node->id, "devices", devices);
}

/* What a create would have answered. */
static const char *state_of(const struct placement_answer *answer)
{
	if (answer->members_count > 0)
		return "placed";
	return answer->never ? "denied" : "pending";
}

static json_t *preview_answer(const struct placing_choice *choice)
{
	const struct placement_answer *answer = &choice->answer;
	json_t *nodes = json_array(), *preview;

	for (size_t i = 0; i < answer->members_count; i++)
		json_array_append_new(nodes, member_answer(&answer->members[i]));
	preview = json_pack("{s:b, s:s, s:o, s:o}", "fits", answer->members_count > 0, "state",
			    state_of(answer), "nodes", nodes, "reasons", placing_reasons(answer));
	if (answer->members_count == 0 && choice->first_fit_ms < INT64_MAX)
		json_object_set_new(preview, "firstFitAt", work_time(choice->first_fit_ms));
	return preview;
}

/* A quota in the way is the only reason: nobody looks for room then. */
static bool check_quota(struct store_connection *db, const struct reserve_request *asked,
			const struct placement_request *request, json_t **ret_refusal,
			struct error *error)
{
	CLEANUP(json_ref) json_t *reasons = json_array();
	const struct quota_question question = {
		.tenant = asked->tenant,
		.pool = asked->pool,
		.needs = asked->needs,
		.needs_count = asked->needs_count,
		.copies = asked->gang_nodes > 1 ? asked->gang_nodes : 1,
		.from_ms = request->from_ms,
		.to_ms = request->to_ms,
	};
	bool within;

	if (!quota_check(db, &question, reasons, &within, error))
		return false;
	*ret_refusal = within ? NULL
			      : json_pack("{s:b, s:s, s:[], s:O}", "fits", false, "state", "denied",
					  "nodes", "reasons", reasons);
	return true;
}

/* RES-50: the same decision as create, and nothing is written. */
static bool capacity_preview(struct store_connection *db, const struct control_call *call,
			     json_t **ret_answer, struct error *error)
{
	CLEANUP(placing_choice) struct placing_choice choice = {0};
	const struct placing_turn last = {0};
	CLEANUP(pool) struct pool pool = {0};
	struct placement_request request;
	struct reserve_request asked;

	if (!access_check(call->principal, ACCESS_CAPACITY_READ, error) ||
	    !reserve_request_parse(call->body, true, store_now(db), &asked, error) ||
	    !pool_load(db, asked.pool, &pool, error) ||
	    !reservation_check_owner(call, &asked, &pool, error) ||
	    !pool_check_active(&pool, error))
		return false;
	request = request_of(&asked, store_now(db));
	if (!check_quota(db, &asked, &request, ret_answer, error))
		return false;
	if (*ret_answer)
		return true;
	if (!placing_choose(db, &pool, &last, &request, PLACING_TIMES, &choice, error))
		return false;
	*ret_answer = preview_answer(&choice);
	return true;
}
WORK_CALL(capacity_preview, STORE_READ)
