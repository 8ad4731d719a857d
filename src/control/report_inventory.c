#include "control/report.h"

#include "base/vec.h"
#include "control/core/node_conditions.h"
#include "control/room.h"

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
	if (inventory->vcpus < 0 || inventory->memory_bytes < 0 ||
	    inventory->hugepages.bytes[HUGEPAGES_2MI] < 0 ||
	    inventory->hugepages.bytes[HUGEPAGES_1GI] < 0)
		return error_set(error, ERROR_INVALID_INPUT,
				 "negative vCPUs, memory or huge pages");
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
	size_t row =
		vec_lower(rows->count, at, strcmp(store_get_text(rows, at, 0), values[0].text) < 0);

	if (row == rows->count || !same_value(rows, row, 0, &values[0]))
		return false;
	known->named[row] = true;
	for (size_t column = 1; column < rows->columns; column++) {
		if (!same_value(rows, row, column, &values[column]))
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
		store_text(report_text(arena, gpu->model, 128)),
		store_text(report_text(arena, gpu->pci, 64)),
		store_int(gpu->memory_bytes),
		store_int(gpu->numa),
		store_int(gpu->health.healthy),
		store_text(report_text(arena, gpu->health.cause, CONTROL_MAX_TEXT)),
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
		store_text(report_text(arena, atom->atom, 128)),
		store_text(atom->class),
		store_text(report_text(arena, atom->profile, 64)),
		store_text(atom->gpu),
		store_text(report_text(arena, atom->visible_device, 128)),
		store_int(atom->leaf_lo),
		store_int(atom->leaf_hi),
		store_int(atom->numa),
		store_int(atom->memory_bytes),
		store_int(atom->health.healthy),
		store_text(report_text(arena, atom->health.cause, CONTROL_MAX_TEXT)),
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
		"$9, gpu_api = $10, hugepages_2mi = $11, hugepages_1gi = $12 WHERE id = $1",
		STORE_PARAMS(store_text(report->node),
			     store_text(report_text(arena, inventory->kubernetes_node_name, 253)),
			     store_text(report_text(arena, inventory->hostname, 253)),
			     store_text(report_text(arena, inventory->kernel, 128)),
			     store_int(inventory->vcpus), store_int(inventory->memory_bytes),
			     store_int(inventory->simulated),
			     store_text(report_text(arena, inventory->simulated_reason, 253)),
			     store_text(report_text(arena, inventory->driver_version, 64)),
			     store_text(report_text(arena, inventory->gpu_api, 32)),
			     store_int(inventory->hugepages.bytes[HUGEPAGES_2MI]),
			     store_int(inventory->hugepages.bytes[HUGEPAGES_1GI])),
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
		return report_condition_change(db, node, &change, error);
	condition.message = "";
	if (!store_query(db, "SELECT 1 FROM node_conditions WHERE node = $1 AND type = $2",
			 STORE_PARAMS(store_text(node->id), store_text(NODE_INVENTORY_REFUSED)),
			 &rows, error))
		return false;
	return rows.count == 0 || report_condition_change(db, node, &change, error);
}

bool reported_inventory(struct store_connection *db, struct report_work *work, struct node *node,
			struct error *error)
{
	const struct control_report *report = work->report;
	CLEANUP(arena) struct arena arena = {0};
	bool changed, had = node->has_inventory && str_equal(node->state, "ready");
	struct error wrong;

	work->result.look_again = true;
	if (!check_inventory(&report->inventory, &wrong)) {
		report_ignore(work, "inventory: %s", wrong.what);
		return mark_inventory(db, node,
				      report_text(&arena, wrong.what, ERROR_WHAT_SIZE - 1), error);
	}
	node->has_inventory = work->eases = true;
	return put_host(db, &arena, report, error) &&
	       put_devices(db, &arena, report, &changed, error) &&
	       ((!changed && had) || room_renew(db, report->node, error)) &&
	       mark_inventory(db, node, NULL, error);
}
