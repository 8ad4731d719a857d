#include "control/spec.h"

#include "base/vec.h"
#include "control/nodes.h"
#include "control/pools.h"
#include "control/stream.h"

bool spec_changed(struct store_connection *db, const char *node, int64_t *ret_generation,
		  struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db,
			 "UPDATE nodes SET spec_generation = spec_generation + 1 WHERE id = $1 "
			 "RETURNING spec_generation",
			 STORE_PARAMS(store_text(node)), &rows, error))
		return false;
	assert(rows.count == 1);
	*ret_generation = store_get_int(&rows, 0, 0);
	return work_count(db, "outbox", error) &&
	       store_exec(db,
			  "INSERT INTO outbox (seq, at_ms, node, generation) "
			  "SELECT value, $1, $2, $3 FROM counters WHERE name = 'outbox'",
			  STORE_PARAMS(store_int(store_now(db).ms), store_text(node),
				       store_int(*ret_generation)),
			  error);
}

/* --- loading --- */

struct spec_work {
	const char *node;
	int64_t epoch;
	struct control_spec spec;
};

/* Devices come after their assignment's row, in one answer ordered by allocation. */
static void add_assignments(const struct store_rows *rows, struct control_spec *spec)
{
	struct control_spec_assignment *assignments =
		arena_alloc(&spec->arena, (rows->count + 1) * sizeof *assignments);
	struct control_spec_device *devices =
		arena_alloc(&spec->arena, (rows->count + 1) * sizeof *devices);
	size_t count = 0;

	for (size_t i = 0; i < rows->count; i++) {
		const char *allocation = store_get_text(rows, i, 0);
		struct control_spec_assignment *assignment = &assignments[count];

		devices[i] = (struct control_spec_device){
			.atom = arena_strdup(&spec->arena, store_get_text(rows, i, 5)),
			.class = arena_strdup(&spec->arena, store_get_text(rows, i, 6)),
			.visible_device = arena_strdup(&spec->arena, store_get_text(rows, i, 7)),
		};
		if (count > 0 && str_equal(assignments[count - 1].allocation, allocation)) {
			assignments[count - 1].devices_count++;
			continue;
		}
		*assignment = (struct control_spec_assignment){
			.allocation = arena_strdup(&spec->arena, allocation),
			.reservation = arena_strdup(&spec->arena, store_get_text(rows, i, 1)),
			.devices = &devices[i],
			.devices_count = 1,
			.end_ms = store_get_int(rows, i, 8),
			.limited = store_get_int(rows, i, 2) != 0,
			.vcpus = (int32_t)store_get_int(rows, i, 3),
			.memory_bytes = store_get_int(rows, i, 4),
			.hugepages = work_hugepages_of(rows, i, 9),
		};
		count++;
	}
	spec->assignments = assignments;
	spec->assignments_count = count;
}

/* GW-3: a bcd that doesn't know the binding, or the limits, is never sent one. */
static bool load_assignments(struct store_connection *db, const struct node *node,
			     struct control_spec *spec, struct error *error)
{
	bool limits = node_has_capability(node->capabilities, NODE_CAPABILITY_LIMITS);
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!node_has_capability(node->capabilities, NODE_CAPABILITY_KUBERNETES))
		return true;
	if (!store_query(db,
			 "SELECT a.id, a.reservation, a.limited, a.vcpus, a.memory_bytes, d.atom, "
			 "d.class, d.visible_device, a.to_ms, a.hugepages_2mi, a.hugepages_1gi "
			 "FROM allocations a "
			 "JOIN allocation_devices d ON d.allocation = a.id "
			 "WHERE a.node = $1 AND a.state IN ('placed', 'bound') AND "
			 "a.assigned_generation IS NOT NULL AND (a.limited = 0 OR $2 = 1) "
			 "ORDER BY a.id, d.ordinal",
			 STORE_PARAMS(store_text(node->id), store_int(limits)), &rows, error))
		return false;
	add_assignments(&rows, spec);
	return true;
}

/* The node may never have had them: the Spec that did was overtaken, or lost with its stream. */
static bool load_withdrawn(struct store_connection *db, const struct node *node,
			   struct control_spec *spec, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	const char **withdrawn;

	if (!store_query(db,
			 "SELECT id FROM allocations WHERE node = $1 AND state = 'releasing' "
			 "ORDER BY id LIMIT $2",
			 STORE_PARAMS(store_text(node->id), store_int(CONTROL_MAX_WITHDRAWN)),
			 &rows, error))
		return false;
	withdrawn = arena_alloc(&spec->arena, (rows.count + 1) * sizeof *withdrawn);
	for (size_t i = 0; i < rows.count; i++)
		withdrawn[i] = arena_strdup(&spec->arena, store_get_text(&rows, i, 0));
	spec->withdrawn = withdrawn;
	spec->withdrawn_count = rows.count;
	return true;
}

static bool spec_body(struct store_connection *db, void *argument, struct error *error)
{
	struct spec_work *work = argument;
	struct control_spec *spec = &work->spec;
	CLEANUP(node) struct node node = {0};
	CLEANUP(pool) struct pool pool = {0};

	control_spec_deinit(spec);
	if (!stream_check(db, work->node, work->epoch, &node, error) ||
	    !pool_load(db, node.pool, &pool, error) || !load_assignments(db, &node, spec, error) ||
	    !load_withdrawn(db, &node, spec, error))
		return false;
	str_copy(spec->lineage, sizeof spec->lineage, store_connection_lineage(db));
	spec->generation = node.spec_generation;
	spec->gpu_api = arena_strdup(&spec->arena, pool.policy.gpu_api);
	if (node.sent_generation == node.spec_generation)
		return true;
	/* From here on the node may have it: a release then waits for its word. */
	return store_exec(db, "UPDATE nodes SET sent_generation = $2 WHERE id = $1",
			  STORE_PARAMS(store_text(node.id), store_int(node.spec_generation)),
			  error);
}

bool control_spec_load(struct control *control, const char *node, int64_t epoch,
		       struct control_spec *ret_spec, struct error *error)
{
	struct spec_work work = {.node = node, .epoch = epoch};

	if (!store_run(control->connection, STORE_WRITE, spec_body, &work, error)) {
		control_spec_deinit(&work.spec);
		return false;
	}
	*ret_spec = work.spec;
	return true;
}

void control_spec_deinit(struct control_spec *spec)
{
	arena_deinit(&spec->arena);
	*spec = (struct control_spec){0};
}

/* --- the outbox --- */

struct outbox_work {
	int64_t after;
	struct control_outbox outbox;
};

static bool outbox_body(struct store_connection *db, void *argument, struct error *error)
{
	struct outbox_work *work = argument;
	CLEANUP(store_rows) struct store_rows rows = {0};

	control_outbox_deinit(&work->outbox);
	work->outbox.last = work->after;
	if (work->after < 0) {
		if (!store_query(db, "SELECT value FROM counters WHERE name = 'outbox'",
				 STORE_NO_PARAMS, &rows, error))
			return false;
		work->outbox.last = store_get_int(&rows, 0, 0);
		return true;
	}
	if (!store_query(db,
			 "SELECT seq, node, generation FROM outbox WHERE seq > $1 "
			 "ORDER BY seq LIMIT $2",
			 STORE_PARAMS(store_int(work->after), store_int(CONTROL_OUTBOX_MAX)), &rows,
			 error))
		return false;
	for (size_t i = 0; i < rows.count; i++) {
		struct control_outbox_item *item = vec_push(&work->outbox);

		item->seq = store_get_int(&rows, i, 0);
		str_copy(item->node, ID_SIZE, store_get_text(&rows, i, 1));
		item->generation = store_get_int(&rows, i, 2);
		work->outbox.last = item->seq;
	}
	return true;
}

bool control_outbox_poll(struct control *control, int64_t after, struct control_outbox *ret_outbox,
			 struct error *error)
{
	struct outbox_work work = {.after = after};

	if (!store_run(control->connection, STORE_READ, outbox_body, &work, error)) {
		control_outbox_deinit(&work.outbox);
		return false;
	}
	control_outbox_deinit(ret_outbox);
	*ret_outbox = work.outbox;
	return true;
}

void control_outbox_deinit(struct control_outbox *outbox)
{
	vec_deinit(outbox);
}
