/* Changes of a node by a call: its labels, whether it may be taken away, its drain and its end. */
#include "control/allocation.h"
#include "control/core/body.h"
#include "control/core/label.h"
#include "control/nodes.h"
#include "control/placing.h"
#include "control/room.h"
#include "control/spec.h"

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

	return thing_change_begin(db, call, &NODE_THING, ACCESS_NODES_PATCH, &change, error) &&
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

	if (!thing_change_begin(db, call, &NODE_THING, action, &change, error) ||
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
	int64_t generation;

	if (!live_allocations(db, node->id, &rows, error))
		return false;
	if (rows.count > 0) {
		error_set(error, ERROR_INVALID_STATE, "node '%s' has %zu allocation%s, such as %s",
			  node->id, rows.count, rows.count == 1 ? "" : "s",
			  store_get_text(&rows, 0, 0));
		return error_hint(error, "Release its reservations first, or declare it lost with "
					 "{\"lost\":true} when the machine is gone.");
	}
	/* Its stream ends when the Spec that it is to have is refused. */
	return node_set_state(db, node, "retired", error) && room_refresh(db, node->id, error) &&
	       spec_changed(db, node->id, &generation, error);
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
	    !thing_change_begin(db, call, &NODE_THING,
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
