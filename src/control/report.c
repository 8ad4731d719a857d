#include "base/utf8.h"
#include "control/allocation.h"
#include "control/core/node_conditions.h"
#include "control/placing.h"
#include "control/room.h"
#include "control/stream.h"
#include "control/waking.h"
#include "sys/log.h"

#include <stdio.h>

#define MAX_CONDITION_TYPE   64
#define MAX_CONDITION_REASON 64
#define MAX_AHEAD_MS         ((int64_t)60 * 1000)
#define SEEN_AGAIN_MS        ((int64_t)1000)

struct report_work {
	const struct control_report *report;
	struct control_report_result result;
	char ignored[ERROR_WHAT_SIZE]; /* why it had no effect; "" when it had */
	char unknown[ERROR_WHAT_SIZE]; /* conditions new on this node and not known here; "" none */
};

/* A report that can't be used: acknowledged, since sending it again would not make it better. */
static bool ignore(struct report_work *work, const char *format, ...) PRINTF(2, 3);
static bool ignore(struct report_work *work, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(work->ignored, sizeof work->ignored, format, args);
	va_end(args);
	return true;
}

/* Text of a node, fit for the database: at most `max` bytes of UTF-8, cut between characters. */
static const char *text_of(struct arena *arena, const char *text, size_t max)
{
	CLEANUP(buf) struct buf out = {0};
	CLEANUP(free) char *head = NULL;

	text = text ? text : "";
	head = mem_dup(text, strnlen(text, max) + 1);
	head[strnlen(text, max)] = '\0';
	utf8_add_clean(&out, head);
	return arena_strdup(arena, buf_text(&out));
}

/* --- conditions --- */

static bool load_conditions(struct store_connection *db, const char *node, struct store_rows *rows,
			    struct error *error)
{
	return store_query(db,
			   "SELECT type, reason, message, since_ms FROM node_conditions "
			   "WHERE node = $1 AND type <> $2 ORDER BY type",
			   STORE_PARAMS(store_text(node), store_text(NODE_INVENTORY_REFUSED)), rows,
			   error);
}

static bool publish_condition(struct store_connection *db, const struct node *node,
			      const struct node_condition *condition, bool holds,
			      struct error *error)
{
	return work_event(db, node->tenant, "node.condition.changed", node->id,
			  json_pack("{s:s, s:b, s:s, s:s}", "type", condition->type, "status",
				    holds, "reason", condition->reason, "message",
				    condition->message),
			  error);
}

static bool apply_condition_change(struct store_connection *db, const struct node *node,
				   const struct node_condition_change *change, struct error *error)
{
	const struct node_condition *now = change->now;

	if (!now)
		return store_exec(
			       db, "DELETE FROM node_conditions WHERE node = $1 AND type = $2",
			       STORE_PARAMS(store_text(node->id), store_text(change->before->type)),
			       error) &&
		       publish_condition(db, node, change->before, false, error);
	return store_exec(db,
			  "INSERT INTO node_conditions (node, type, reason, message, since_ms) "
			  "VALUES ($1, $2, $3, $4, $5) ON CONFLICT (node, type) DO UPDATE SET "
			  "reason = excluded.reason, message = excluded.message",
			  STORE_PARAMS(store_text(node->id), store_text(now->type),
				       store_text(now->reason), store_text(now->message),
				       store_int(now->since_ms)),
			  error) &&
	       publish_condition(db, node, now, true, error);
}

/* GW-30: of a newer bcd. It counts as advice, and is logged when it comes, not while it stays. */
static void note_unknown(struct report_work *work, const struct node_condition_change *change)
{
	size_t used = strlen(work->unknown);

	if (change->now && !change->before && !node_condition_is_known(change->now->type))
		snprintf(work->unknown + used, sizeof work->unknown - used, "%s%s",
			 used ? ", " : "", change->now->type);
}

static bool apply_conditions(struct store_connection *db, struct report_work *work,
			     struct node *node, struct error *error)
{
	const struct control_report *report = work->report;
	CLEANUP(store_rows) struct store_rows rows = {0};
	CLEANUP(arena) struct arena arena = {0};
	struct node_condition before[CONTROL_MAX_CONDITIONS], now[CONTROL_MAX_CONDITIONS];
	struct node_condition_changes changes = {0};
	int64_t now_ms = store_now(db).ms;
	bool done = true;

	if (report->conditions.count > CONTROL_MAX_CONDITIONS)
		return ignore(work, "%zu conditions, at most %d are taken",
			      report->conditions.count, CONTROL_MAX_CONDITIONS);
	if (!load_conditions(db, node->id, &rows, error))
		return false;
	assert(rows.count <= CONTROL_MAX_CONDITIONS);
	for (size_t i = 0; i < rows.count; i++)
		before[i] = (struct node_condition){
			store_get_text(&rows, i, 0), store_get_text(&rows, i, 1),
			store_get_text(&rows, i, 2), store_get_int(&rows, i, 3)};
	for (size_t i = 0; i < report->conditions.count; i++) {
		const struct control_condition *from = &report->conditions.items[i];
		bool sane = from->since.ms > 0 && from->since.ms <= now_ms + MAX_AHEAD_MS;

		now[i] =
			(struct node_condition){text_of(&arena, from->type, MAX_CONDITION_TYPE),
						text_of(&arena, from->reason, MAX_CONDITION_REASON),
						text_of(&arena, from->message, CONTROL_MAX_TEXT),
						sane ? from->since.ms : now_ms};
	}
	node_conditions_diff(before, rows.count, now, report->conditions.count, &changes);
	for (size_t i = 0; i < changes.count && done; i++) {
		note_unknown(work, &changes.items[i]);
		done = apply_condition_change(db, node, &changes.items[i], error);
	}
	vec_deinit(&changes);
	node->has_conditions = true;
	work->result.look_again = true;
	return done;
}

/* --- inventory --- */

static bool is_uuid(const char *text)
{
	static const char allowed[] = "0123456789abcdefghijklmnopqrstuvwxyz-";
	size_t length = strnlen(text, 65);

	return length > 0 && length <= 64 && strspn(text, allowed) == length;
}

static const struct control_gpu *find_gpu(const struct control_inventory *inventory,
					  const char *uuid)
{
	for (size_t i = 0; i < inventory->gpus_count; i++) {
		if (str_equal(inventory->gpus[i].uuid, uuid))
			return &inventory->gpus[i];
	}
	return NULL;
}

/* "gpu/<uuid>" for all of a GPU, a name below it for a part. */
static bool is_atom_of(const char *atom, const char *uuid, enum placement_class class)
{
	static const char *const parts[] = {
		[PLACEMENT_CLASS_MIG] = "/gi", [PLACEMENT_CLASS_SLOT] = "/s"};
	size_t uuid_length = strlen(uuid);

	if (strlen(atom) > 128 || !str_starts(atom, "gpu/") ||
	    strncmp(atom + 4, uuid, uuid_length) != 0)
		return false;
	atom += 4 + uuid_length;
	return class == PLACEMENT_CLASS_GPU ? !*atom : str_starts(atom, parts[class]);
}

static bool check_atom(const struct control_inventory *inventory, const struct control_atom *atom,
		       struct error *error)
{
	enum placement_class class;

	if (!placement_class_parse(atom->class, &class))
		return error_set(error, ERROR_INVALID_INPUT, "atom '%.130s': unknown class '%.40s'",
				 atom->atom, atom->class);
	if (!is_atom_of(atom->atom, atom->gpu, class))
		return error_set(error, ERROR_INVALID_INPUT,
				 "atom '%.130s' is no %s of GPU '%.70s'", atom->atom, atom->class,
				 atom->gpu);
	if (!find_gpu(inventory, atom->gpu))
		return error_set(error, ERROR_INVALID_INPUT, "atom '%s': its GPU isn't listed",
				 atom->atom);
	if (atom->leaf_lo < 0 || atom->leaf_lo >= atom->leaf_hi || atom->leaf_hi > PLACEMENT_LEAVES)
		return error_set(error, ERROR_INVALID_INPUT, "atom '%s': [%d, %d) is no part of %d",
				 atom->atom, atom->leaf_lo, atom->leaf_hi, PLACEMENT_LEAVES);
	if (class == PLACEMENT_CLASS_GPU && (atom->leaf_lo > 0 || atom->leaf_hi < PLACEMENT_LEAVES))
		return error_set(error, ERROR_INVALID_INPUT,
				 "atom '%s': [%d, %d) is less than a whole GPU", atom->atom,
				 atom->leaf_lo, atom->leaf_hi);
	return true;
}

/* What can't be right is refused whole: half an inventory would take GPUs away that are there. */
static bool check_inventory(const struct control_inventory *inventory, struct error *error)
{
	if (inventory->gpus_count > CONTROL_MAX_GPUS || inventory->atoms_count > CONTROL_MAX_ATOMS)
		return error_set(error, ERROR_RESOURCES_EXHAUSTED,
				 "%zu GPUs with %zu atoms, at most %d with %d are taken",
				 inventory->gpus_count, inventory->atoms_count, CONTROL_MAX_GPUS,
				 CONTROL_MAX_ATOMS);
	if (inventory->vcpus < 0 || inventory->memory_bytes < 0)
		return error_set(error, ERROR_INVALID_INPUT, "negative vCPUs or memory");
	for (size_t i = 0; i < inventory->gpus_count; i++) {
		const char *uuid = inventory->gpus[i].uuid;

		if (!is_uuid(uuid))
			return error_set(error, ERROR_INVALID_INPUT, "'%.70s' is no GPU's uuid",
					 uuid);
		if (find_gpu(inventory, uuid) != &inventory->gpus[i])
			return error_set(error, ERROR_INVALID_INPUT, "GPU '%s' is listed twice",
					 uuid);
	}
	for (size_t i = 0; i < inventory->atoms_count; i++) {
		if (!check_atom(inventory, &inventory->atoms[i], error))
			return false;
	}
	return true;
}

/* The rows of a node's GPUs or atoms, in order of their first column, and which of them an inventory
 * has. Mostly it has all of them as they are: then nothing is written. */
struct known {
	struct store_rows rows;
	bool *named;
	bool changed;
};

static void known_cleanup(struct known *known)
{
	store_rows_deinit(&known->rows);
	free(known->named);
}

static bool load_known(struct store_connection *db, const char *sql, const char *node,
		       struct known *known, struct error *error)
{
	if (!store_query(db, sql, STORE_PARAMS(store_text(node)), &known->rows, error))
		return false;
	known->named = mem_alloc((known->rows.count + 1) * sizeof *known->named);
	return true;
}

static bool same_value(const struct store_rows *rows, size_t row, size_t column,
		       const struct store_value *value)
{
	return value->kind == STORE_TEXT ? str_equal(store_get_text(rows, row, column), value->text)
					 : store_get_int(rows, row, column) == value->number;
}

/* Names the row with the first of these values as its key. Is it there, and the same? */
static bool is_known(struct known *known, const struct store_value *values)
{
	const struct store_rows *rows = &known->rows;
	size_t low = 0, high = rows->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(store_get_text(rows, middle, 0), values[0].text) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == rows->count || !same_value(rows, low, 0, &values[0]))
		return false;
	known->named[low] = true;
	for (size_t column = 1; column < rows->columns; column++) {
		if (!same_value(rows, low, column, &values[column]))
			return false;
	}
	return true;
}

static bool put_gpu(struct store_connection *db, struct arena *arena, const char *node,
		    const struct control_gpu *gpu, struct known *known, struct error *error)
{
	const struct store_value values[] = {
		store_text(node),
		store_text(gpu->uuid),
		store_text(text_of(arena, gpu->model, 128)),
		store_text(text_of(arena, gpu->pci, 64)),
		store_int(gpu->memory_bytes),
		store_int(gpu->numa),
		store_int(gpu->health.healthy),
		store_text(text_of(arena, gpu->health.cause, CONTROL_MAX_TEXT)),
	};

	if (is_known(known, values + 1))
		return true;
	known->changed = true;
	return store_exec(
		db,
		"INSERT INTO gpus (node, uuid, model, pci, memory_bytes, numa, healthy, cause, "
		"seen) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0) ON CONFLICT (node, uuid) DO "
		"UPDATE SET model = excluded.model, pci = excluded.pci, memory_bytes = "
		"excluded.memory_bytes, numa = excluded.numa, healthy = excluded.healthy, "
		"cause = excluded.cause",
		values, ARRAY_SIZE(values), error);
}

/* `since_ms` stays while the health does. */
static bool put_atom(struct store_connection *db, struct arena *arena, const char *node,
		     const struct control_atom *atom, struct known *known, struct error *error)
{
	const struct store_value values[] = {
		store_text(node),
		store_text(text_of(arena, atom->atom, 128)),
		store_text(atom->class),
		store_text(text_of(arena, atom->profile, 64)),
		store_text(atom->gpu),
		store_text(text_of(arena, atom->visible_device, 128)),
		store_int(atom->leaf_lo),
		store_int(atom->leaf_hi),
		store_int(atom->numa),
		store_int(atom->memory_bytes),
		store_int(atom->health.healthy),
		store_text(text_of(arena, atom->health.cause, CONTROL_MAX_TEXT)),
		store_int(store_now(db).ms),
	};

	if (is_known(known, values + 1))
		return true;
	known->changed = true;
	return store_exec(
		db,
		"INSERT INTO atoms (node, atom, class, profile, gpu, visible_device, leaf_lo, "
		"leaf_hi, numa, memory_bytes, healthy, cause, since_ms, seen) VALUES ($1, $2, $3, "
		"$4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 0) ON CONFLICT (node, atom) DO "
		"UPDATE SET class = excluded.class, profile = excluded.profile, gpu = "
		"excluded.gpu, visible_device = excluded.visible_device, leaf_lo = "
		"excluded.leaf_lo, leaf_hi = excluded.leaf_hi, numa = excluded.numa, memory_bytes "
		"= excluded.memory_bytes, since_ms = CASE WHEN atoms.healthy = excluded.healthy "
		"AND atoms.cause = excluded.cause THEN atoms.since_ms ELSE excluded.since_ms END, "
		"healthy = excluded.healthy, cause = excluded.cause",
		values, ARRAY_SIZE(values), error);
}

/* What the inventory hasn't named is gone. */
static bool drop_unnamed(struct store_connection *db, const char *sql, const char *node,
			 struct known *known, struct error *error)
{
	for (size_t i = 0; i < known->rows.count; i++) {
		if (known->named[i])
			continue;
		known->changed = true;
		if (!store_exec(db, sql,
				STORE_PARAMS(store_text(node),
					     store_text(store_get_text(&known->rows, i, 0))),
				error))
			return false;
	}
	return true;
}

static bool put_devices(struct store_connection *db, struct arena *arena,
			const struct control_report *report, bool *ret_changed, struct error *error)
{
	const struct control_inventory *inventory = &report->inventory;
	CLEANUP(known) struct known gpus = {0}, atoms = {0};
	const char *node = report->node;

	if (!load_known(db,
			"SELECT uuid, model, pci, memory_bytes, numa, healthy, cause FROM gpus "
			"WHERE node = $1 ORDER BY uuid",
			node, &gpus, error) ||
	    !load_known(db,
			"SELECT atom, class, profile, gpu, visible_device, leaf_lo, leaf_hi, numa, "
			"memory_bytes, healthy, cause FROM atoms WHERE node = $1 ORDER BY atom",
			node, &atoms, error))
		return false;
	for (size_t i = 0; i < inventory->gpus_count; i++) {
		if (!put_gpu(db, arena, node, &inventory->gpus[i], &gpus, error))
			return false;
	}
	for (size_t i = 0; i < inventory->atoms_count; i++) {
		if (!put_atom(db, arena, node, &inventory->atoms[i], &atoms, error))
			return false;
	}
	if (!drop_unnamed(db, "DELETE FROM atoms WHERE node = $1 AND atom = $2", node, &atoms,
			  error) ||
	    !drop_unnamed(db, "DELETE FROM gpus WHERE node = $1 AND uuid = $2", node, &gpus, error))
		return false;
	*ret_changed = gpus.changed || atoms.changed;
	return true;
}

static bool put_host(struct store_connection *db, struct arena *arena,
		     const struct control_report *report, struct error *error)
{
	const struct control_inventory *inventory = &report->inventory;

	return store_exec(
		db,
		"UPDATE nodes SET kubernetes_node_name = $2, hostname = $3, kernel = $4, vcpus = "
		"$5, memory_bytes = $6, simulated = $7, simulated_reason = $8, driver_version = "
		"$9, gpu_api = $10 WHERE id = $1",
		STORE_PARAMS(store_text(report->node),
			     store_text(text_of(arena, inventory->kubernetes_node_name, 253)),
			     store_text(text_of(arena, inventory->hostname, 253)),
			     store_text(text_of(arena, inventory->kernel, 128)),
			     store_int(inventory->vcpus), store_int(inventory->memory_bytes),
			     store_int(inventory->simulated),
			     store_text(text_of(arena, inventory->simulated_reason, 253)),
			     store_text(text_of(arena, inventory->driver_version, 64)),
			     store_text(text_of(arena, inventory->gpu_api, 32))),
		error);
}

/* An inventory that was refused shows as a condition until a good one comes. */
static bool mark_inventory(struct store_connection *db, const struct node *node, const char *why,
			   struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct node_condition condition = {NODE_INVENTORY_REFUSED, "InvalidInventory", why,
					   store_now(db).ms};
	struct node_condition_change change = {.now = why ? &condition : NULL,
					       .before = &condition};

	if (why)
		return apply_condition_change(db, node, &change, error);
	condition.message = "";
	if (!store_query(db, "SELECT 1 FROM node_conditions WHERE node = $1 AND type = $2",
			 STORE_PARAMS(store_text(node->id), store_text(NODE_INVENTORY_REFUSED)),
			 &rows, error))
		return false;
	return rows.count == 0 || apply_condition_change(db, node, &change, error);
}

static bool apply_inventory(struct store_connection *db, struct report_work *work,
			    struct node *node, struct error *error)
{
	const struct control_report *report = work->report;
	CLEANUP(arena) struct arena arena = {0};
	bool changed, had = node->has_inventory && str_equal(node->state, "ready");
	struct error wrong;

	work->result.look_again = true;
	if (!check_inventory(&report->inventory, &wrong)) {
		ignore(work, "inventory: %s", wrong.what);
		return mark_inventory(db, node, text_of(&arena, wrong.what, ERROR_WHAT_SIZE - 1),
				      error);
	}
	node->has_inventory = true;
	return put_host(db, &arena, report, error) &&
	       put_devices(db, &arena, report, &changed, error) &&
	       ((!changed && had) || room_renew(db, report->node, error)) &&
	       mark_inventory(db, node, NULL, error);
}

/* --- allocations --- */

/* The allocation that a report speaks of. *ret_known is false when it isn't this node's. */
static bool load_allocation(struct store_connection *db, struct report_work *work, const char *id,
			    struct allocation *ret_allocation, bool *ret_known, struct error *error)
{
	*ret_known = false;
	if (!id_valid(id, "alc"))
		return ignore(work, "'%.40s' is no allocation", id);
	if (!allocation_load(db, id, ret_allocation, ret_known, error))
		return false;
	if (*ret_known && str_equal(ret_allocation->node, work->report->node))
		return true;
	*ret_known = false;
	return ignore(work, "allocation '%s' isn't one of this node", id);
}

/* It is bound from now on, or has been for long: said again, it changes nothing. While a release
 * is pending it stays pending (RES-31). */
static bool apply_bound(struct store_connection *db, struct report_work *work, struct error *error)
{
	const struct control_report *report = work->report;
	struct allocation allocation;
	bool known;

	if (!load_allocation(db, work, report->bound.allocation, &allocation, &known, error))
		return false;
	if (!known)
		return true;
	if (allocation.assigned_generation == 0 ||
	    report->spec_generation < allocation.assigned_generation)
		return ignore(work, "allocation '%s' wasn't in Spec %lld", allocation.id,
			      (long long)report->spec_generation);
	if (allocation.state == ALLOCATION_RELEASED || allocation.state == ALLOCATION_FAILED)
		return ignore(work, "allocation '%s' is %s", allocation.id,
			      allocation_state_name(allocation.state));
	return allocation_bind(db, &allocation, error);
}

/* The node can't keep what it had bound: the devices stay booked, since pods may still use them. */
static bool lose_binding(struct store_connection *db, const struct control_report *report,
			 const struct allocation *allocation, struct error *error)
{
	CLEANUP(arena) struct arena arena = {0};
	const char *reason =
		arena_printf(&arena, "%s: %s", report->failed.reason, report->failed.message);

	return store_exec(db, "UPDATE allocations SET lost_reason = $2, lost_ms = $3 WHERE id = $1",
			  STORE_PARAMS(store_text(allocation->id),
				       store_text(text_of(&arena, reason, CONTROL_MAX_TEXT)),
				       store_int(store_now(db).ms)),
			  error);
}

static bool apply_failed(struct store_connection *db, struct report_work *work, struct error *error)
{
	const struct control_report *report = work->report;
	CLEANUP(arena) struct arena arena = {0};
	struct allocation allocation;
	const char *reason;
	bool known;

	if (!load_allocation(db, work, report->failed.allocation, &allocation, &known, error))
		return false;
	if (!known)
		return true;
	if (allocation.assigned_generation == 0 ||
	    report->spec_generation < allocation.assigned_generation)
		return ignore(work, "allocation '%s' wasn't in Spec %lld", allocation.id,
			      (long long)report->spec_generation);
	reason = text_of(&arena, report->failed.reason, 64);
	work->result.look_again = true;
	switch (allocation.state) {
	case ALLOCATION_PLACED:
		return placing_failed(db, &allocation, reason, error);
	case ALLOCATION_BOUND:
		return lose_binding(db, report, &allocation, error);
	case ALLOCATION_RELEASING:
		/* It never got to bind it, so there is nothing to wait for. But the word of an
		 * early Spec is no word about a later one that still had it: then the node's own
		 * report is waited for, or STUCK_DEFERRED_MS. */
		return allocation.bound_ms != 0 ||
		       report->spec_generation < allocation.withdrawn_generation - 1 ||
		       allocation_finish(db, &allocation, reason, error);
	case ALLOCATION_RELEASED:
	case ALLOCATION_FAILED:
		break;
	}
	return ignore(work, "allocation '%s' is %s", allocation.id,
		      allocation_state_name(allocation.state));
}

static bool apply_released(struct store_connection *db, struct report_work *work,
			   struct error *error)
{
	const struct control_report *report = work->report;
	struct allocation allocation;
	bool known;

	if (!load_allocation(db, work, report->released.allocation, &allocation, &known, error))
		return false;
	if (!known)
		return true;
	if (!allocation_release_counts(allocation.state, allocation.withdrawn_generation,
				       report->spec_generation))
		return ignore(work, "allocation '%s' is %s, withdrawn by Spec %lld, not by %lld",
			      allocation.id, allocation_state_name(allocation.state),
			      (long long)allocation.withdrawn_generation,
			      (long long)report->spec_generation);
	work->result.look_again = true;
	return allocation_finish(db, &allocation, "Released", error);
}

/* --- one report --- */

static bool apply(struct store_connection *db, struct report_work *work, struct node *node,
		  struct error *error)
{
	switch (work->report->kind) {
	case CONTROL_REPORT_INVENTORY:
		return apply_inventory(db, work, node, error);
	case CONTROL_REPORT_CONDITIONS:
		return apply_conditions(db, work, node, error);
	case CONTROL_REPORT_BOUND:
		return apply_bound(db, work, error);
	case CONTROL_REPORT_FAILED:
		return apply_failed(db, work, error);
	case CONTROL_REPORT_RELEASED:
		return apply_released(db, work, error);
	case CONTROL_REPORT_KUBERNETES_RELEASED:
	case CONTROL_REPORT_OPERATION_RESULT:
		return true; /* nothing waits for them yet */
	case CONTROL_REPORT_UNKNOWN:
		return ignore(work, "a kind of report that this version doesn't know");
	}
	return ignore(work, "kind %d", (int)work->report->kind);
}

/* What bears on the reservations that run there is told to those who follow them. */
static bool apply_and_wake(struct store_connection *db, struct report_work *work, struct node *node,
			   struct error *error)
{
	CLEANUP(waking) struct waking waking = {0};
	enum control_report_kind kind = work->report->kind;

	if (kind != CONTROL_REPORT_INVENTORY && kind != CONTROL_REPORT_CONDITIONS &&
	    kind != CONTROL_REPORT_BOUND && kind != CONTROL_REPORT_FAILED)
		return apply(db, work, node, error);
	return waking_begin(db, node->id, &waking, error) && apply(db, work, node, error) &&
	       waking_end(db, node->id, &waking, error);
}

static bool note_seen(struct store_connection *db, const struct node *node, struct error *error)
{
	int64_t now_ms = store_now(db).ms;

	/* Whoever says much is not written down each time. */
	if (node->connected && now_ms >= node->seen_ms && now_ms - node->seen_ms < SEEN_AGAIN_MS)
		return true;
	return store_exec(db, "UPDATE node_streams SET seen_ms = $2, connected = 1 WHERE node = $1",
			  STORE_PARAMS(store_text(node->id), store_int(now_ms)), error);
}

static bool acknowledge(struct store_connection *db, const struct control_report *report,
			const struct node *node, struct error *error)
{
	return store_exec(
		       db,
		       "UPDATE nodes SET acknowledged = $2, has_inventory = $3, has_conditions = "
		       "$4 WHERE id = $1",
		       STORE_PARAMS(store_text(report->node), store_int(report->sequence),
				    store_int(node->has_inventory),
				    store_int(node->has_conditions)),
		       error) &&
	       note_seen(db, node, error);
}

static bool report_body(struct store_connection *db, void *argument, struct error *error)
{
	struct report_work *work = argument;
	const struct control_report *report = work->report;
	CLEANUP(node) struct node node = {0};

	work->result = (struct control_report_result){0};
	work->ignored[0] = work->unknown[0] = '\0';
	if (!stream_check(db, report->node, report->epoch, &node, error))
		return false;
	work->result.acknowledged = node.acknowledged;
	if (report->sequence <= node.acknowledged)
		return true;
	if (!apply_and_wake(db, work, &node, error) || !acknowledge(db, report, &node, error))
		return false;
	work->result.acknowledged = report->sequence;
	/* Adopting ends by itself: from here on the node can be judged. */
	return !str_equal(node.state, "adopting") || !node.has_inventory || !node.has_conditions ||
	       node_set_state(db, &node, "ready", error);
}

bool control_node_report(struct control *control, const struct control_report *report,
			 struct control_report_result *ret_result, struct error *error)
{
	struct report_work work = {.report = report};

	if (!store_run(control->connection, STORE_WRITE, report_body, &work, error))
		return false;
	if (work.ignored[0] != '\0')
		log_warn("report-ignored", work.ignored, "node", report->node, NULL);
	if (work.unknown[0] != '\0')
		log_warn("condition-unknown", "conditions not known here count as advice", "node",
			 report->node, "types", work.unknown, NULL);
	*ret_result = work.result;
	return true;
}
