#include "control/nodes.h"

#include "control/allocation.h"
#include "control/core/body.h"
#include "control/core/label.h"
#include "control/core/node_conditions.h"
#include "control/placing.h"
#include "control/room.h"
#include "control/thing.h"

#include <stdio.h>

/* --- rows --- */

bool node_load(struct store_connection *db, const char *id, struct node *ret_node, bool *ret_found,
	       struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct node node = {0};

	if (!store_query(
		    db,
		    "SELECT n.id, n.pool, p.tenant, n.trust, n.state, n.machine_key, "
		    "n.capabilities, n.spec_generation, n.sent_generation, "
		    "n.stored_generation, n.hello_sequence, n.acknowledged, n.has_inventory, "
		    "n.has_conditions, s.epoch, s.connected, s.seen_ms FROM nodes n JOIN pools "
		    "p ON p.id = n.pool LEFT JOIN node_streams s ON s.node = n.id WHERE n.id "
		    "= $1",
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
	node.epoch = store_get_int(&rows, 0, 14);
	node.connected = store_get_int(&rows, 0, 15) != 0;
	node.seen_ms = store_get_int(&rows, 0, 16);
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

/* GW-2, GW-24: what the node's bcd announced. */
static json_t *capability_labels(const char *capabilities_text)
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

/* What is said of the node, by operators and by the system. */
static bool add_labels(struct store_connection *db, const char *node, json_t *answer,
		       struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	json_t *labels = json_object_get(answer, "labels");
	bool spot = false;

	if (!store_query(db,
			 "SELECT name, value, system FROM node_labels WHERE node = $1 ORDER BY "
			 "name",
			 STORE_PARAMS(store_text(node)), &rows, error))
		return false;
	for (size_t i = 0; i < rows.count; i++) {
		const char *name = store_get_text(&rows, i, 0);

		json_object_set_new(labels, name, work_text_of(&rows, i, 1));
		spot = spot ||
		       (str_equal(name, NODE_LABEL_CAPACITY) && store_get_int(&rows, i, 2) != 0 &&
			str_equal(store_get_text(&rows, i, 1), "spot"));
	}
	json_object_set_new(answer, "spot", json_boolean(spot));
	return true;
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

#define NODE_SELECT                                                                                \
	"SELECT n.id, n.pool, p.site, p.tenant, n.hostname, n.kubernetes_node_name, n.state, "     \
	"n.trust, "                                                                                \
	"s.connected, s.seen_ms, n.bcd_version, n.capabilities, n.simulated, "                     \
	"n.simulated_reason, n.spec_generation, n.stored_generation, n.created_ms "                \
	"FROM nodes n JOIN pools p ON p.id = n.pool LEFT JOIN node_streams s ON s.node = n.id "    \
	"WHERE "

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
	json_object_set_new(answer, "labels", capability_labels(store_get_text(rows, row, 11)));
	json_object_set_new(answer, "simulated", json_boolean(store_get_int(rows, row, 12)));
	if (store_get_text(rows, row, 13)[0] != '\0')
		json_object_set_new(answer, "simulatedReason", work_text_of(rows, row, 13));
	json_object_set_new(answer, "specGeneration", work_int_of(rows, row, 14));
	json_object_set_new(answer, "storedGeneration", work_int_of(rows, row, 15));
	work_set_time(answer, "createdAt", rows, row, 16);
	return answer;
}

static bool node_answer(struct store_connection *db, const struct store_rows *rows, size_t row,
			json_t **ret_answer, struct error *error)
{
	const char *id = store_get_text(rows, row, 0);
	int64_t now_ms = store_now(db).ms;
	bool tenant_controlled = str_equal(store_get_text(rows, row, 7),
					   control_trust_name(CONTROL_TRUST_TENANT_CONTROLLED));
	bool stale = now_ms - store_get_int(rows, row, 9) >= NODE_CONDITIONS_STALE_MS;
	CLEANUP(json_ref) json_t *answer = node_head(rows, row, now_ms);

	if (!add_labels(db, id, answer, error) || !add_gpus(db, id, answer, error) ||
	    !add_devices(db, id, answer, error) ||
	    !add_conditions(db, id, tenant_controlled, stale, answer, error))
		return false;
	*ret_answer = TAKE(answer);
	return true;
}

static const struct thing NODE = {
	.kind = "node",
	.prefix = "node",
	.read = ACCESS_NODES_READ,
	.one = NODE_SELECT "n.id = $1",
	.page = NODE_SELECT "n.id > $1 AND ($2 = '' OR p.tenant = $2) AND ($4 = '' OR n.pool = $4) "
			    "AND ($5 = '' OR n.state = $5) ORDER BY n.id LIMIT $3",
	.filters = 2,
	.tenant_column = 3,
	.answer = node_answer,
};

static bool node_get(struct store_connection *db, const struct control_call *call,
		     json_t **ret_answer, struct error *error)
{
	return thing_get(db, call, &NODE, ret_answer, error);
}
WORK_CALL(node_get, STORE_READ)

static bool node_list(struct store_connection *db, const struct control_call *call,
		      json_t **ret_answer, struct error *error)
{
	return thing_list(db, call, &NODE, ret_answer, error);
}
WORK_CALL(node_list, STORE_READ)

/* --- labels --- */

static bool check_label(const char *name, const json_t *value, struct error *error)
{
	char path[BODY_PATH_SIZE];

	snprintf(path, sizeof path, "labels.%s", name);
	if (!label_name_valid(name, strlen(name)))
		return error_field(error, path, "is not a label's name");
	if (label_reserved_domain(name) && !label_is_topology(name)) {
		error_field(error, path, "labels under %s can't be set",
			    label_reserved_domain(name));
		return error_hint(error, "Of ours, bc.dev/topology.rack, .block and .nvlinkDomain "
					 "are yours to set.");
	}
	if (!json_is_null(value) &&
	    (!json_is_string(value) ||
	     !label_value_valid(json_string_value(value), json_string_length(value))))
		return error_field(error, path,
				   "must be null or a label's value: at most %d letters, digits, "
				   "'-', '_', '.'",
				   LABEL_PART_MAX);
	return true;
}

struct node_change {
	const json_t *labels; /* NULL: none */
	bool has_spot, spot;
};

static bool check_labels(const json_t *labels, struct error *error)
{
	const char *name;
	json_t *value;

	if (!json_is_object(labels))
		return error_field(error, "labels", "must be an object");
	if (json_object_size(labels) > CONTROL_MAX_LABELS)
		return error_field(error, "labels", "has %zu labels, at most %d are allowed",
				   json_object_size(labels), CONTROL_MAX_LABELS);
	json_object_foreach((json_t *)labels, name, value)
	{
		if (!check_label(name, value, error))
			return false;
	}
	return true;
}

static bool read_change(const json_t *json, struct node_change *ret_change, struct error *error)
{
	static const char *const known[] = {"labels", "spot", NULL};
	struct node_change change = {0};
	struct body body;

	if (!body_open(json, "", known, &body, error) ||
	    !body_bool(&body, "spot", &change.spot, error))
		return false;
	change.has_spot = json_object_get(json, "spot") != NULL;
	change.labels = json_object_get(json, "labels");
	if (!change.labels && !change.has_spot)
		return error_field(error, "labels", "is missing, and so is spot");
	*ret_change = change;
	return !change.labels || check_labels(change.labels, error);
}

/* What the system says of a node stays. */
static bool set_label(struct store_connection *db, const char *node, const char *name,
		      const json_t *value, struct error *error)
{
	if (json_is_null(value))
		return store_exec(db,
				  "DELETE FROM node_labels WHERE node = $1 AND name = $2 AND "
				  "system = 0",
				  STORE_PARAMS(store_text(node), store_text(name)), error);
	return store_exec(db,
			  "INSERT INTO node_labels (node, name, value, system) VALUES ($1, $2, $3, "
			  "0) ON CONFLICT (node, name) DO UPDATE SET value = excluded.value "
			  "WHERE node_labels.system = 0",
			  STORE_PARAMS(store_text(node), store_text(name),
				       store_text(json_string_value(value))),
			  error);
}

static bool check_labels_count(struct store_connection *db, const char *node, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db, "SELECT count(*) FROM node_labels WHERE node = $1 AND system = 0",
			 STORE_PARAMS(store_text(node)), &rows, error))
		return false;
	return store_get_int(&rows, 0, 0) <= CONTROL_MAX_LABELS ||
	       error_set(error, ERROR_RESOURCES_EXHAUSTED,
			 "node '%s' would have %lld labels, at most %d are allowed", node,
			 (long long)store_get_int(&rows, 0, 0), CONTROL_MAX_LABELS);
}

static bool set_labels(struct store_connection *db, const char *node, const json_t *labels,
		       struct error *error)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)labels, name, value)
	{
		if (!set_label(db, node, name, value, error))
			return false;
	}
	return check_labels_count(db, node, error);
}

/* What the machine is rented as is the system's to say, since placement goes by it; whoever runs
 * the machine tells the system (RES-42). What is booked there already goes on. */
static bool set_spot(struct store_connection *db, const char *node, bool spot, struct error *error)
{
	if (!spot)
		return store_exec(db, "DELETE FROM node_labels WHERE node = $1 AND name = $2",
				  STORE_PARAMS(store_text(node), store_text(NODE_LABEL_CAPACITY)),
				  error);
	return store_exec(db,
			  "INSERT INTO node_labels (node, name, value, system) VALUES ($1, $2, "
			  "'spot', 1) ON CONFLICT (node, name) DO UPDATE SET value = 'spot', "
			  "system = 1",
			  STORE_PARAMS(store_text(node), store_text(NODE_LABEL_CAPACITY)), error);
}

static bool node_patch(struct store_connection *db, const struct control_call *call,
		       json_t **ret_answer, struct error *error)
{
	CLEANUP(thing_change) struct thing_change change = {0};
	struct node_change asked;

	return thing_change_begin(db, call, &NODE, ACCESS_NODES_PATCH, &change, error) &&
	       read_change(call->body, &asked, error) &&
	       (!asked.labels || set_labels(db, call->id, asked.labels, error)) &&
	       (!asked.has_spot || set_spot(db, call->id, asked.spot, error)) &&
	       thing_change_end(db, call, &change, ret_answer, error);
}
WORK_CALL(node_patch, STORE_WRITE)

/* --- drain --- */

/* From one state to the other; one that has it already stays as it is. */
static bool move_node(struct store_connection *db, const struct control_call *call,
		      enum access_action action, const char *from, const char *to,
		      json_t **ret_answer, struct error *error)
{
	CLEANUP(thing_change) struct thing_change change = {0};
	CLEANUP(node) struct node node = {0};
	bool found;

	if (!thing_change_begin(db, call, &NODE, action, &change, error) ||
	    !node_load(db, call->id, &node, &found, error))
		return false;
	assert(found);
	if (!str_equal(node.state, from) && !str_equal(node.state, to))
		return error_set(error, ERROR_INVALID_STATE, "node '%s' is %s, not %s", node.id,
				 node.state, from);
	return node_set_state(db, &node, to, error) &&
	       thing_change_end(db, call, &change, ret_answer, error);
}

static bool node_drain(struct store_connection *db, const struct control_call *call,
		       json_t **ret_answer, struct error *error)
{
	return move_node(db, call, ACCESS_NODES_DRAIN, "ready", "draining", ret_answer, error);
}
WORK_CALL(node_drain, STORE_WRITE)

static bool node_undrain(struct store_connection *db, const struct control_call *call,
			 json_t **ret_answer, struct error *error)
{
	return move_node(db, call, ACCESS_NODES_UNDRAIN, "draining", "ready", ret_answer, error);
}
WORK_CALL(node_undrain, STORE_WRITE)

/* --- retire --- */

/* What a lost node had: pods of what was bound are gone with it, what wasn't is placed elsewhere.
 */
static bool lose_allocation(struct store_connection *db, struct allocation *allocation,
			    struct error *error)
{
	switch (allocation->state) {
	case ALLOCATION_PLACED:
		return placing_failed(db, allocation, "NodeLost", error);
	case ALLOCATION_BOUND:
		return placing_lost(db, allocation, error);
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
	if (!node_set_state(db, node, "lost", error) || !room_refresh(db, node->id, error) ||
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
		error_set(error, ERROR_INVALID_STATE, "node '%s' has %zu allocation%s, such as %s",
			  node->id, rows.count, rows.count == 1 ? "" : "s",
			  store_get_text(&rows, 0, 0));
		return error_hint(error, "Release its reservations first, or declare it lost with "
					 "{\"lost\":true} when the machine is gone.");
	}
	return node_set_state(db, node, "retired", error) && room_refresh(db, node->id, error);
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
	CLEANUP(thing_change) struct thing_change change = {0};
	CLEANUP(node) struct node node = {0};
	bool lost, found, over;

	if (!read_lost(call->body, &lost, error) ||
	    !thing_change_begin(db, call, &NODE,
				lost ? ACCESS_NODES_DECLARE_LOST : ACCESS_NODES_RETIRE, &change,
				error) ||
	    !node_load(db, call->id, &node, &found, error))
		return false;
	assert(found);
	over = str_equal(node.state, "retired") || (lost && str_equal(node.state, "lost"));
	return (over || (lost ? declare_lost(db, &node, error) : retire(db, &node, error))) &&
	       thing_change_end(db, call, &change, ret_answer, error);
}
WORK_CALL(node_retire, STORE_WRITE)
