#include "control/nodes.h"

#include "control/allocation.h"
#include "control/core/body.h"
#include "control/core/node_conditions.h"
#include "control/placing.h"

/* --- rows --- */

bool node_load(struct store_connection *db, const char *id, struct node *ret_node, bool *ret_found,
	       struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct node node = {0};

	if (!store_query(db,
			 "SELECT n.id, n.pool, p.tenant, n.trust, n.state, n.machine_key, "
			 "n.capabilities, n.spec_generation, n.sent_generation, "
			 "n.stored_generation, n.hello_sequence, n.acknowledged, n.has_inventory, "
			 "n.has_conditions FROM nodes n JOIN pools p ON p.id = n.pool "
			 "WHERE n.id = $1",
			 STORE_PARAMS(store_text(id)), &rows, error))
		return false;
	*ret_found = rows.count == 1;
	if (rows.count == 0)
		return true;
	if (!control_trust_parse(store_get_text(&rows, 0, 3), &node.trust))
		return error_set(error, ERROR_INTERNAL, "node '%s': unknown trust", id);
	str_copy(node.id, ID_SIZE, store_get_text(&rows, 0, 0));
	str_copy(node.pool, ID_SIZE, store_get_text(&rows, 0, 1));
	str_copy(node.tenant, ID_SIZE, store_get_text(&rows, 0, 2));
	str_copy(node.state, sizeof node.state, store_get_text(&rows, 0, 4));
	str_copy(node.machine_key, sizeof node.machine_key, store_get_text(&rows, 0, 5));
	node.capabilities = work_parse(store_get_text(&rows, 0, 6));
	node.spec_generation = store_get_int(&rows, 0, 7);
	node.sent_generation = store_get_int(&rows, 0, 8);
	node.stored_generation = store_get_int(&rows, 0, 9);
	node.hello_sequence = store_get_int(&rows, 0, 10);
	node.acknowledged = store_get_int(&rows, 0, 11);
	node.has_inventory = store_get_int(&rows, 0, 12) != 0;
	node.has_conditions = store_get_int(&rows, 0, 13) != 0;
	node_deinit(ret_node);
	*ret_node = node;
	return true;
}

void node_deinit(struct node *node)
{
	json_decref(node->capabilities);
	*node = (struct node){0};
}

bool node_has_capability(const json_t *capabilities, const char *name)
{
	for (size_t i = 0; i < json_array_size(capabilities); i++) {
		if (str_equal(json_string_value(json_array_get(capabilities, i)), name))
			return true;
	}
	return false;
}

bool node_set_state(struct store_connection *db, struct node *node, const char *state,
		    struct error *error)
{
	if (str_equal(node->state, state))
		return true;
	str_copy(node->state, sizeof node->state, state);
	return store_exec(db, "UPDATE nodes SET state = $2 WHERE id = $1",
			  STORE_PARAMS(store_text(node->id), store_text(state)), error) &&
	       work_event(db, node->tenant, "node.state.changed", node->id,
			  json_pack("{s:s}", "state", state), error);
}

/* --- answers --- */

/* GW-2, GW-24: what the node's bcd announced, and nothing that anybody set. */
static json_t *system_labels(const char *capabilities_text)
{
	CLEANUP(json_ref) json_t *capabilities = work_parse(capabilities_text);
	json_t *labels = json_object();

	for (size_t i = 0; i < json_array_size(capabilities); i++) {
		CLEANUP(json_ref)
		json_t *name = json_sprintf("bc.dev/capability.%s",
					    json_string_value(json_array_get(capabilities, i)));

		json_object_set_new(labels, json_string_value(name), json_string("true"));
	}
	return labels;
}

static void set_health(json_t *object, const struct store_rows *rows, size_t row, size_t healthy,
		       size_t cause)
{
	json_object_set_new(object, "healthy", json_boolean(store_get_int(rows, row, healthy)));
	if (store_get_text(rows, row, cause)[0] != '\0')
		json_object_set_new(object, "cause", work_text_of(rows, row, cause));
}

static bool add_gpus(struct store_connection *db, const char *node, json_t *answer,
		     struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	json_t *gpus = json_array();

	json_object_set_new(answer, "gpus", gpus);
	if (!store_query(db,
			 "SELECT uuid, model, memory_bytes, pci, numa, healthy, cause FROM gpus "
			 "WHERE node = $1 ORDER BY pci, uuid",
			 STORE_PARAMS(store_text(node)), &rows, error))
		return false;
	for (size_t i = 0; i < rows.count; i++) {
		json_t *gpu = json_pack(
			"{s:o, s:o, s:o, s:o, s:o}", "uuid", work_text_of(&rows, i, 0), "model",
			work_text_of(&rows, i, 1), "memoryBytes", work_int_of(&rows, i, 2), "pci",
			work_text_of(&rows, i, 3), "numa", work_int_of(&rows, i, 4));

		set_health(gpu, &rows, i, 5, 6);
		json_array_append_new(gpus, gpu);
	}
	return true;
}

/* Columns: atom, class, profile, gpu, healthy, cause, reservation, allocation. */
static void append_devices(const struct store_rows *rows, json_t *devices)
{
	for (size_t i = 0; i < rows->count; i++) {
		json_t *device = json_pack("{s:o, s:o}", "atom", work_text_of(rows, i, 0), "class",
					   work_text_of(rows, i, 1));

		if (store_get_text(rows, i, 2)[0] != '\0')
			json_object_set_new(device, "profile", work_text_of(rows, i, 2));
		json_object_set_new(device, "gpu", work_text_of(rows, i, 3));
		set_health(device, rows, i, 4, 5);
		if (!store_is_null(rows, i, 6)) {
			json_object_set_new(device, "reservationId", work_text_of(rows, i, 6));
			json_object_set_new(device, "allocationId", work_text_of(rows, i, 7));
		}
		json_array_append_new(devices, device);
	}
}

/* What the inventory has, and what is booked though the inventory has it no more. */
static bool add_devices(struct store_connection *db, const char *node, json_t *answer,
			struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0}, gone = {0};
	json_t *devices = json_array();

	json_object_set_new(answer, "devices", devices);
	if (!store_query(db,
			 "SELECT m.atom, m.class, m.profile, m.gpu, m.healthy, m.cause, "
			 "a.reservation, a.id FROM atoms m LEFT JOIN (allocation_devices d JOIN "
			 "allocations a ON a.id = d.allocation AND a.state IN ('placed', 'bound', "
			 "'releasing') AND a.from_ms <= $2 AND a.node = $1) ON d.atom = m.atom "
			 "WHERE m.node = $1 ORDER BY m.gpu, m.leaf_lo, m.atom",
			 STORE_PARAMS(store_text(node), store_int(store_now(db).ms)), &rows,
			 error) ||
	    !store_query(db,
			 "SELECT d.atom, d.class, d.profile, d.gpu, 0, 'gone', a.reservation, a.id "
			 "FROM allocations a JOIN allocation_devices d ON d.allocation = a.id "
			 "WHERE a.node = $1 AND a.state IN ('placed', 'bound', 'releasing') AND "
			 "a.from_ms <= $2 AND NOT EXISTS (SELECT 1 FROM atoms m WHERE m.node = $1 "
			 "AND m.atom = d.atom) ORDER BY d.atom",
			 STORE_PARAMS(store_text(node), store_int(store_now(db).ms)), &gone, error))
		return false;
	append_devices(&rows, devices);
	append_devices(&gone, devices);
	return true;
}

static bool add_conditions(struct store_connection *db, const char *node, bool tenant_controlled,
			   bool stale, json_t *answer, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	json_t *conditions = json_array();

	json_object_set_new(answer, "conditions", conditions);
	if (!store_query(db,
			 "SELECT type, reason, message, since_ms FROM node_conditions WHERE node = "
			 "$1 ORDER BY type",
			 STORE_PARAMS(store_text(node)), &rows, error))
		return false;
	for (size_t i = 0; i < rows.count; i++) {
		const char *type = store_get_text(&rows, i, 0);
		json_t *condition =
			json_pack("{s:o, s:o, s:o, s:o, s:b}", "type", work_text(type), "reason",
				  work_text_of(&rows, i, 1), "message", work_text_of(&rows, i, 2),
				  "since", work_time(store_get_int(&rows, i, 3)), "noSchedule",
				  node_condition_no_schedule(type, tenant_controlled));

		if (stale)
			json_object_set_new(condition, "stale", json_true());
		json_array_append_new(conditions, condition);
	}
	return true;
}

#define NODE_COLUMNS                                                                               \
	"n.id, n.pool, p.site, p.tenant, n.hostname, n.kubernetes_node_name, n.state, n.trust, "   \
	"s.connected, s.seen_ms, n.bcd_version, n.capabilities, n.simulated, "                     \
	"n.simulated_reason, n.spec_generation, n.stored_generation, n.created_ms"
#define NODE_FROM                                                                                  \
	" FROM nodes n JOIN pools p ON p.id = n.pool LEFT JOIN node_streams s ON s.node = n.id "

/* The columns of the node's own row, without its parts. */
static json_t *node_head(const struct store_rows *rows, size_t row, int64_t now_ms)
{
	bool connected = store_get_int(rows, row, 8) != 0 &&
			 now_ms - store_get_int(rows, row, 9) < NODE_UNREACHABLE_MS;
	json_t *answer = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "id",
				   work_text_of(rows, row, 0), "poolId", work_text_of(rows, row, 1),
				   "siteId", work_text_of(rows, row, 2), "tenantId",
				   work_text_of(rows, row, 3), "hostname",
				   work_text_of(rows, row, 4), "kubernetesNodeName",
				   work_text_of(rows, row, 5), "state", work_text_of(rows, row, 6),
				   "trust", work_text_of(rows, row, 7), "connected", connected);

	work_set_time(answer, "lastSeenAt", rows, row, 9);
	if (store_get_text(rows, row, 10)[0] != '\0')
		json_object_set_new(answer, "bcdVersion", work_text_of(rows, row, 10));
	json_object_set_new(answer, "labels", system_labels(store_get_text(rows, row, 11)));
	json_object_set_new(answer, "simulated", json_boolean(store_get_int(rows, row, 12)));
	if (store_get_text(rows, row, 13)[0] != '\0')
		json_object_set_new(answer, "simulatedReason", work_text_of(rows, row, 13));
	json_object_set_new(answer, "specGeneration", work_int_of(rows, row, 14));
	json_object_set_new(answer, "storedGeneration", work_int_of(rows, row, 15));
	work_set_time(answer, "createdAt", rows, row, 16);
	return answer;
}

static bool build_answer(struct store_connection *db, const struct store_rows *rows, size_t row,
			 json_t **ret_answer, struct error *error)
{
	const char *id = store_get_text(rows, row, 0);
	int64_t now_ms = store_now(db).ms;
	bool tenant_controlled = str_equal(store_get_text(rows, row, 7),
					   control_trust_name(CONTROL_TRUST_TENANT_CONTROLLED));
	bool stale = now_ms - store_get_int(rows, row, 9) >= NODE_CONDITIONS_STALE_MS;
	CLEANUP(json_ref) json_t *answer = node_head(rows, row, now_ms);

	if (!add_gpus(db, id, answer, error) || !add_devices(db, id, answer, error) ||
	    !add_conditions(db, id, tenant_controlled, stale, answer, error))
		return false;
	*ret_answer = TAKE(answer);
	return true;
}

static bool answer_node(struct store_connection *db, const struct control_call *call,
			const char *id, json_t **ret_answer, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db, "SELECT " NODE_COLUMNS NODE_FROM "WHERE n.id = $1",
			 STORE_PARAMS(store_text(id)), &rows, error))
		return false;
	if (rows.count == 0 || !access_reaches(call->principal, store_get_text(&rows, 0, 3)))
		return work_not_found(error, "node", id);
	return build_answer(db, &rows, 0, ret_answer, error);
}

static bool node_get(struct store_connection *db, const struct control_call *call,
		     json_t **ret_answer, struct error *error)
{
	return access_check(call->principal, ACCESS_NODES_READ, error) &&
	       work_path_id(call, "node", "node", error) &&
	       answer_node(db, call, call->id, ret_answer, error);
}
WORK_CALL(node_get, STORE_READ)

static bool node_list(struct store_connection *db, const struct control_call *call,
		      json_t **ret_answer, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	CLEANUP(json_ref) json_t *items = json_array();
	struct work_page page;

	if (!access_check(call->principal, ACCESS_NODES_READ, error) ||
	    !work_page(call, "node", &page, error) ||
	    !store_query(db,
			 "SELECT " NODE_COLUMNS NODE_FROM
			 "WHERE n.id > $1 AND ($2 = '' OR p.tenant = $2) AND ($4 = '' OR n.pool = "
			 "$4) AND ($5 = '' OR n.state = $5) ORDER BY n.id LIMIT $3",
			 STORE_PARAMS(store_text(page.after),
				      store_text(work_scope(call->principal)),
				      store_int(page.limit + 1),
				      store_text(call->pool_id ? call->pool_id : ""),
				      store_text(call->state ? call->state : "")),
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
WORK_CALL(node_list, STORE_READ)

/* --- retire --- */

/* What a lost node had: pods of what was bound are gone with it, what wasn't is placed elsewhere.
 */
static bool lose_allocation(struct store_connection *db, struct allocation *allocation,
			    struct error *error)
{
	bool placed;

	switch (allocation->state) {
	case ALLOCATION_PLACED:
		return allocation_fail(db, allocation, "NodeLost", error) &&
		       placing_try(db, allocation->reservation, &placed, error);
	case ALLOCATION_BOUND:
		return allocation_lose(db, allocation, error);
	case ALLOCATION_RELEASING:
		return allocation_finish(db, allocation, "NodeLost", error);
	case ALLOCATION_RELEASED:
	case ALLOCATION_FAILED:
		break;
	}
	return true;
}

static bool live_allocations(struct store_connection *db, const char *node, struct store_rows *rows,
			     struct error *error)
{
	return store_query(db,
			   "SELECT id FROM allocations WHERE node = $1 AND state IN ('placed', "
			   "'bound', 'releasing') ORDER BY id",
			   STORE_PARAMS(store_text(node)), rows, error);
}

static bool declare_lost(struct store_connection *db, struct node *node, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	/* First the state: what is placed again must not come back here. */
	if (!node_set_state(db, node, "lost", error) ||
	    !live_allocations(db, node->id, &rows, error))
		return false;
	for (size_t i = 0; i < rows.count; i++) {
		struct allocation allocation;
		bool found;

		if (!allocation_load(db, store_get_text(&rows, i, 0), &allocation, &found, error) ||
		    !lose_allocation(db, &allocation, error))
			return false;
	}
	return true;
}

static bool retire(struct store_connection *db, struct node *node, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!live_allocations(db, node->id, &rows, error))
		return false;
	if (rows.count > 0) {
		error_set(error, ERROR_INVALID_STATE, "node '%s' has %zu allocations, such as %s",
			  node->id, rows.count, store_get_text(&rows, 0, 0));
		return error_hint(error, "Release its reservations first, or declare it lost with "
					 "{\"lost\":true} when the machine is gone.");
	}
	return node_set_state(db, node, "retired", error);
}

static bool read_lost(const json_t *json, bool *ret_lost, struct error *error)
{
	static const char *const known[] = {"lost", NULL};
	struct body body;

	*ret_lost = false;
	return !json || (body_open(json, "", known, &body, error) &&
			 body_bool(&body, "lost", ret_lost, error));
}

static bool node_retire(struct store_connection *db, const struct control_call *call,
			json_t **ret_answer, struct error *error)
{
	CLEANUP(node) struct node node = {0};
	enum access_action action;
	bool lost, found;

	if (!read_lost(call->body, &lost, error))
		return false;
	action = lost ? ACCESS_NODES_DECLARE_LOST : ACCESS_NODES_RETIRE;
	if (!access_check(call->principal, action, error) ||
	    !work_path_id(call, "node", "node", error) ||
	    !node_load(db, call->id, &node, &found, error))
		return false;
	if (!found || !access_reaches(call->principal, node.tenant))
		return work_not_found(error, "node", call->id);
	if (!str_equal(node.state, "retired") && !(lost && str_equal(node.state, "lost")) &&
	    (!(lost ? declare_lost(db, &node, error) : retire(db, &node, error)) ||
	     !work_audit(db, call->principal, action, node.tenant, node.id, NULL, error)))
		return false;
	return answer_node(db, call, call->id, ret_answer, error);
}
WORK_CALL(node_retire, STORE_WRITE)
