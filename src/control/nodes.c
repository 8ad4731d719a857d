#include "control/nodes.h"

#include "control/core/node_conditions.h"

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

#define NODE_SELECT                                                                                \
	"SELECT n.id, n.pool, p.site, p.tenant, n.hostname, n.kubernetes_node_name, n.state, "     \
	"n.trust, "                                                                                \
	"s.connected, s.seen_ms, n.bcd_version, n.capabilities, n.simulated, "                     \
	"n.simulated_reason, n.spec_generation, n.stored_generation, n.created_ms, n.vcpus, "      \
	"n.memory_bytes, n.hugepages_2mi, n.hugepages_1gi "                                        \
	"FROM nodes n JOIN pools p ON p.id = n.pool LEFT JOIN node_streams s ON s.node = n.id "    \
	"WHERE "
#define NODE_PAGE                                                                                  \
	"n.id > $1 AND ($2 = '' OR p.tenant = $2) AND ($4 = '' OR n.pool = $4) AND ($5 = '' OR "   \
	"n.state = $5) ORDER BY n.id LIMIT $3"

/* A node's parts are looked up for one node, or at once for all of a page: in order of the node,
 * which is the first column. */
#define OF_ONE  "= $1"
#define OF_PAGE "IN (SELECT n.id FROM nodes n JOIN pools p ON p.id = n.pool WHERE " NODE_PAGE ")"

enum part {
	PART_LABELS,
	PART_GPUS,
	PART_DEVICES, /* the inventory has them */
	PART_GONE,    /* booked though the inventory has them no more */
	PART_CONDITIONS,
	PART_SHARES, /* of the host, that are booked now */
	PARTS,
};

struct part_sql {
	const char *one, *page;
	bool timed; /* has now as its last parameter */
};

#define PART(sql)       {sql(OF_ONE, ""), sql(OF_PAGE, ""), false}
#define TIMED_PART(sql) {sql(OF_ONE, "$2"), sql(OF_PAGE, "$6"), true}

#define LABELS_SQL(nodes, now)                                                                     \
	"SELECT node, name, value, system FROM node_labels WHERE node " nodes " ORDER BY node, "   \
	"name"
#define GPUS_SQL(nodes, now)                                                                       \
	"SELECT node, uuid, model, memory_bytes, pci, numa, healthy, cause FROM gpus WHERE "       \
	"node " nodes " ORDER BY node, pci, uuid"
/* What begins on a device that somebody was handed and hasn't given back is booked next, not now: the
 * allocation is `a`, its devices are `d`. */
#define WAITS_FOR_DEVICES                                                                          \
	"a.state = 'placed' AND a.assigned_generation IS NULL AND EXISTS (SELECT 1 FROM "          \
	"allocations h JOIN allocation_devices e ON e.allocation = h.id WHERE h.node = a.node "    \
	"AND h.id <> a.id AND h.state IN ('placed', 'bound', 'releasing') AND "                    \
	"h.assigned_generation IS NOT NULL AND e.atom = d.atom)"
#define DEVICES_SQL(nodes, now)                                                                    \
	"SELECT m.node, m.atom, m.class, m.profile, m.gpu, m.healthy, m.cause, b.reservation, "    \
	"b.id FROM atoms m LEFT JOIN (SELECT a.node, a.id, a.reservation, d.atom FROM "            \
	"allocations a JOIN allocation_devices d ON d.allocation = a.id WHERE a.node " nodes       \
	" AND a.state IN ('placed', 'bound', 'releasing') AND a.from_ms <= " now                   \
	" AND NOT (" WAITS_FOR_DEVICES                                                             \
	")) AS b ON b.node = m.node AND b.atom = m.atom WHERE m.node " nodes                       \
	" ORDER BY m.node, m.gpu, m.leaf_lo, m.atom"
#define GONE_SQL(nodes, now)                                                                       \
	"SELECT a.node, d.atom, d.class, d.profile, d.gpu, 0, 'gone', a.reservation, a.id FROM "   \
	"allocations a JOIN allocation_devices d ON d.allocation = a.id WHERE a.node " nodes       \
	" AND a.state IN ('placed', 'bound', 'releasing') AND a.from_ms <= " now                   \
	" AND NOT (" WAITS_FOR_DEVICES                                                             \
	") AND NOT EXISTS (SELECT 1 FROM atoms m WHERE m.node = a.node AND m.atom = d.atom) "      \
	"ORDER BY a.node, d.atom"
#define CONDITIONS_SQL(nodes, now)                                                                 \
	"SELECT node, type, reason, message, since_ms FROM node_conditions WHERE node " nodes      \
	" ORDER BY node, type"
#define SHARES_SQL(nodes, now)                                                                     \
	"SELECT a.node, a.vcpus, a.memory_bytes, a.hugepages_2mi, a.hugepages_1gi FROM "           \
	"allocations a WHERE a.node " nodes " AND a.state IN ('placed', 'bound', 'releasing') "    \
	"AND a.from_ms <= " now " AND NOT EXISTS (SELECT 1 FROM allocation_devices d WHERE "       \
	"d.allocation = a.id AND " WAITS_FOR_DEVICES ") ORDER BY a.node, a.id"

static const struct part_sql PART_SQL[PARTS] = {
	[PART_LABELS] = PART(LABELS_SQL),         [PART_GPUS] = PART(GPUS_SQL),
	[PART_DEVICES] = TIMED_PART(DEVICES_SQL), [PART_GONE] = TIMED_PART(GONE_SQL),
	[PART_CONDITIONS] = PART(CONDITIONS_SQL), [PART_SHARES] = TIMED_PART(SHARES_SQL),
};

struct parts {
	struct store_rows rows[PARTS];
	size_t next[PARTS];
};

static void parts_cleanup(struct parts *parts)
{
	for (size_t i = 0; i < PARTS; i++)
		store_rows_deinit(&parts->rows[i]);
}

#define MAX_PAGE_PARAMS 5

static bool load_parts(struct store_connection *db, bool page, const struct store_value *params,
		       size_t count, struct parts *parts, struct error *error)
{
	struct store_value timed[MAX_PAGE_PARAMS + 1];

	assert(count <= MAX_PAGE_PARAMS);
	memcpy(timed, params, count * sizeof *params);
	timed[count] = store_int(store_now(db).ms);
	for (size_t i = 0; i < PARTS; i++) {
		const struct part_sql *part = &PART_SQL[i];

		if (!store_query(db, page ? part->page : part->one, timed, count + part->timed,
				 &parts->rows[i], error))
			return false;
	}
	return true;
}

/* The node's next row of a part. */
static bool next_row(struct parts *parts, enum part part, const char *node, size_t *ret_row)
{
	size_t row = parts->next[part];

	if (row == parts->rows[part].count ||
	    !str_equal(store_get_text(&parts->rows[part], row, 0), node))
		return false;
	parts->next[part]++;
	*ret_row = row;
	return true;
}

/* What is said of the node, by operators and by the system. */
static void add_labels(struct parts *parts, const char *node, json_t *answer)
{
	const struct store_rows *rows = &parts->rows[PART_LABELS];
	json_t *labels = json_object_get(answer, "labels");
	bool spot = false;
	size_t row;

	while (next_row(parts, PART_LABELS, node, &row)) {
		const char *name = store_get_text(rows, row, 1);

		json_object_set_new(labels, name, work_text_of(rows, row, 2));
		spot = spot ||
		       (str_equal(name, NODE_LABEL_CAPACITY) && store_get_int(rows, row, 3) != 0 &&
			str_equal(store_get_text(rows, row, 2), "spot"));
	}
	json_object_set_new(answer, "spot", json_boolean(spot));
}

static void set_health(json_t *object, const struct store_rows *rows, size_t row, size_t healthy,
		       size_t cause)
{
	json_object_set_new(object, "healthy", json_boolean(store_get_int(rows, row, healthy)));
	if (store_get_text(rows, row, cause)[0] != '\0')
		json_object_set_new(object, "cause", work_text_of(rows, row, cause));
}

static void add_gpus(struct parts *parts, const char *node, json_t *answer)
{
	const struct store_rows *rows = &parts->rows[PART_GPUS];
	json_t *gpus = json_array();
	size_t row;

	json_object_set_new(answer, "gpus", gpus);
	while (next_row(parts, PART_GPUS, node, &row)) {
		json_t *gpu = json_pack(
			"{s:o, s:o, s:o, s:o, s:o}", "uuid", work_text_of(rows, row, 1), "model",
			work_text_of(rows, row, 2), "memoryBytes", work_int_of(rows, row, 3), "pci",
			work_text_of(rows, row, 4), "numa", work_int_of(rows, row, 5));

		set_health(gpu, rows, row, 6, 7);
		json_array_append_new(gpus, gpu);
	}
}

static void append_devices(struct parts *parts, enum part part, const char *node, json_t *devices)
{
	const struct store_rows *rows = &parts->rows[part];
	size_t row;

	while (next_row(parts, part, node, &row)) {
		json_t *device = json_pack("{s:o, s:o}", "atom", work_text_of(rows, row, 1),
					   "class", work_text_of(rows, row, 2));

		if (store_get_text(rows, row, 3)[0] != '\0')
			json_object_set_new(device, "profile", work_text_of(rows, row, 3));
		json_object_set_new(device, "gpu", work_text_of(rows, row, 4));
		set_health(device, rows, row, 5, 6);
		if (!store_is_null(rows, row, 7)) {
			json_object_set_new(device, "reservationId", work_text_of(rows, row, 7));
			json_object_set_new(device, "allocationId", work_text_of(rows, row, 8));
		}
		json_array_append_new(devices, device);
	}
}

static void add_devices(struct parts *parts, const char *node, json_t *answer)
{
	json_t *devices = json_array();

	json_object_set_new(answer, "devices", devices);
	append_devices(parts, PART_DEVICES, node, devices);
	append_devices(parts, PART_GONE, node, devices);
}

static void add_conditions(struct parts *parts, const char *node, bool tenant_controlled,
			   bool stale, json_t *answer)
{
	const struct store_rows *rows = &parts->rows[PART_CONDITIONS];
	json_t *conditions = json_array();
	size_t row;

	json_object_set_new(answer, "conditions", conditions);
	while (next_row(parts, PART_CONDITIONS, node, &row)) {
		const char *type = store_get_text(rows, row, 1);
		json_t *condition =
			json_pack("{s:o, s:o, s:o, s:o, s:b}", "type", work_text(type), "reason",
				  work_text_of(rows, row, 2), "message", work_text_of(rows, row, 3),
				  "since", work_time(store_get_int(rows, row, 4)), "noSchedule",
				  node_condition_no_schedule(type, tenant_controlled));

		if (stale)
			json_object_set_new(condition, "stale", json_true());
		json_array_append_new(conditions, condition);
	}
}

static struct host_share share_at(const struct store_rows *rows, size_t row, size_t column)
{
	return (struct host_share){store_get_int(rows, row, column),
				   store_get_int(rows, row, column + 1),
				   work_hugepages_of(rows, row, column + 2)};
}

/* Every machine has processors and memory: none left, or none booked, is said. */
static void set_share(json_t *answer, const char *field, const struct host_share *share)
{
	json_t *object = work_host_share(share);

	if (!json_object_get(object, "vcpu"))
		json_object_set_new(object, "vcpu", json_integer(0));
	if (!json_object_get(object, "memoryGiB"))
		json_object_set_new(object, "memoryGiB", json_integer(0));
	if (!json_object_get(object, "memoryMiB"))
		json_object_set_new(object, "memoryMiB", json_integer(0));
	json_object_set_new(answer, field, object);
}

static void add_booked_host(struct parts *parts, const char *node, json_t *answer)
{
	struct host_share booked = {0};
	size_t row;

	while (next_row(parts, PART_SHARES, node, &row)) {
		struct host_share one = share_at(&parts->rows[PART_SHARES], row, 1);

		booked.vcpus += one.vcpus;
		booked.memory_bytes += one.memory_bytes;
		for (int i = 0; i < HUGEPAGES_SIZES; i++)
			booked.hugepages.bytes[i] += one.hugepages.bytes[i];
	}
	set_share(answer, "hostBooked", &booked);
}

/* The columns of the node's own row, without its parts. */
static json_t *node_head(const struct store_rows *rows, size_t row, int64_t now_ms)
{
	struct host_share host = share_at(rows, row, 17);
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
	set_share(answer, "host", &host);
	return answer;
}

static json_t *whole_answer(const struct store_rows *rows, size_t row, struct parts *parts,
			    int64_t now_ms)
{
	const char *id = store_get_text(rows, row, 0);
	bool tenant_controlled = str_equal(store_get_text(rows, row, 7),
					   control_trust_name(CONTROL_TRUST_TENANT_CONTROLLED));
	bool stale = now_ms - store_get_int(rows, row, 9) >= NODE_CONDITIONS_STALE_MS;
	json_t *answer = node_head(rows, row, now_ms);

	add_labels(parts, id, answer);
	add_gpus(parts, id, answer);
	add_devices(parts, id, answer);
	add_booked_host(parts, id, answer);
	add_conditions(parts, id, tenant_controlled, stale, answer);
	return answer;
}

static bool node_answer(struct store_connection *db, const struct store_rows *rows, size_t row,
			json_t **ret_answer, struct error *error)
{
	const struct store_value id = store_text(store_get_text(rows, row, 0));
	CLEANUP(parts) struct parts parts = {0};

	if (!load_parts(db, false, &id, 1, &parts, error))
		return false;
	*ret_answer = whole_answer(rows, row, &parts, store_now(db).ms);
	return true;
}

static bool node_answers(struct store_connection *db, const struct store_value *params,
			 size_t params_count, const struct store_rows *rows, size_t count,
			 json_t *items, struct error *error)
{
	CLEANUP(parts) struct parts parts = {0};

	if (!load_parts(db, true, params, params_count, &parts, error))
		return false;
	for (size_t i = 0; i < count; i++)
		json_array_append_new(items, whole_answer(rows, i, &parts, store_now(db).ms));
	return true;
}

const struct thing NODE_THING = {
	.kind = "node",
	.prefix = "node",
	.read = ACCESS_NODES_READ,
	.one = NODE_SELECT "n.id = $1",
	.page = NODE_SELECT NODE_PAGE,
	.filters = 2,
	.tenant_column = 3,
	.answer = node_answer,
	.answers = node_answers,
};

static bool node_get(struct store_connection *db, const struct control_call *call,
		     json_t **ret_answer, struct error *error)
{
	return thing_get(db, call, &NODE_THING, ret_answer, error);
}
WORK_CALL(node_get, STORE_READ)

static bool node_list(struct store_connection *db, const struct control_call *call,
		      json_t **ret_answer, struct error *error)
{
	return thing_list(db, call, &NODE_THING, ret_answer, error);
}
WORK_CALL(node_list, STORE_READ)
