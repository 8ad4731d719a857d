#include "gpu/core/scenario.h"

#include <stdio.h>

#define MAX_MEMORY_MIB (16 << 20)

static const char *const top_keys[] = {"version", "driver", "nodes", "gpus", NULL};
static const char *const node_keys[] = {"prefix",    "base", "control", "uvm",
					"uvm_tools", "caps", NULL};
static const char *const gpu_keys[] = {"uuid",      "model",    "memory_mib", "pci",
				       "numa",      "minor",    "slots",      "mig",
				       "row_remap", "recovery", "xids",       "ecc_uncorrectable",
				       "lost",      "hang",     "gauges",     NULL};
static const char *const mig_keys[] = {"profile", "start", "size", "gi", "ci", "uuid", NULL};
static const char *const recoveries[] = {"none", "reset", "reboot", "drain"};

bool scenario_recovery_valid(const char *recovery)
{
	for (size_t i = 0; i < ARRAY_SIZE(recoveries); i++)
		if (str_equal(recovery, recoveries[i]))
			return true;
	return false;
}

void scenario_deinit(struct scenario *scenario)
{
	if (!scenario)
		return;
	for (size_t i = 0; i < scenario->gpus.count; i++)
		vec_deinit(&scenario->gpus.items[i].mig);
	vec_deinit(&scenario->gpus);
}

/* --- reading --- */

static bool bad(const char *where, const char *key, const char *why, struct error *error)
{
	char field[ERROR_FIELD_SIZE];

	snprintf(field, sizeof field, "%s.%s", where, key);
	return error_field(error, field, "%s", why);
}

static bool one_line(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == '"' || *text == '\\')
			return false;
	return true;
}

static bool read_line(json_t *object, const char *where, const char *key, bool required, char *out,
		      size_t size, struct error *error)
{
	if (!field_text(object, where, key, required, out, size, error))
		return false;
	return one_line(out) || bad(where, key, "must be one line without quotes", error);
}

static bool read_path(json_t *object, const char *key, char *out, struct error *error)
{
	if (!read_line(object, "nodes", key, false, out, INVENTORY_PATH_SIZE, error))
		return false;
	return *out == '/' || bad("nodes", key, "must be an absolute path", error);
}

static bool read_nodes(json_t *tree, struct inventory_nodes *nodes, struct error *error)
{
	json_t *object;

	if (!field_child(tree, "", "nodes", false, &object, error))
		return false;
	if (!object)
		return true;
	return tree_check_keys(object, "nodes", node_keys, error) &&
	       read_path(object, "prefix", nodes->gpu_prefix, error) &&
	       field_int(object, "nodes", "base", false, 0, 4096, &nodes->gpu_base, error) &&
	       read_path(object, "control", nodes->control, error) &&
	       read_path(object, "uvm", nodes->uvm, error) &&
	       read_path(object, "uvm_tools", nodes->uvm_tools, error) &&
	       read_path(object, "caps", nodes->caps, error);
}

int32_t scenario_profile_eighths(const char *profile, int64_t memory_mib)
{
	int slices, used = 0;
	int64_t eighths;
	long gigabytes;

	if (sscanf(profile, "%1dg.%4ldgb%n", &slices, &gigabytes, &used) != 2 || used == 0 ||
	    profile[used] || slices < 1 || gigabytes < 1)
		return 0;
	eighths = (gigabytes * 8 * 1024 + memory_mib / 2) / memory_mib;
	return eighths < 1 ? 1 : eighths > 8 ? 0 : (int32_t)eighths;
}

static bool read_mig(json_t *object, const char *where, const struct scenario_gpu *gpu,
		     struct scenario_mig *mig, struct error *error)
{
	struct atom_uuid uuid;

	if (!field_object(object, where, error) ||
	    !tree_check_keys(object, where, mig_keys, error) ||
	    !read_line(object, where, "profile", true, mig->profile, sizeof mig->profile, error))
		return false;
	mig->size = scenario_profile_eighths(mig->profile, gpu->memory_mib);
	if (!mig->size)
		return bad(where, "profile", "is not a profile of this GPU such as \"1g.10gb\"",
			   error);
	if (!field_int(object, where, "size", false, 1, 8, &mig->size, error) ||
	    !field_int(object, where, "start", true, 0, 8 - mig->size, &mig->start, error) ||
	    !field_int(object, where, "gi", true, 0, 14, &mig->gi, error) ||
	    !field_int(object, where, "ci", false, 0, 7, &mig->ci, error) ||
	    !field_text(object, where, "uuid", true, mig->uuid, sizeof mig->uuid, error))
		return false;
	if (!str_starts(mig->uuid, "MIG-") || !atom_uuid_parse(mig->uuid + strlen("MIG-"), &uuid))
		return bad(where, "uuid", "must be MIG- and a UUID in lower case", error);
	for (size_t i = 0; i < gpu->mig.count; i++) {
		const struct scenario_mig *other = &gpu->mig.items[i];

		if (mig->start < other->start + other->size &&
		    other->start < mig->start + mig->size)
			return bad(where, "start", "overlaps another instance", error);
		if (mig->gi == other->gi && mig->ci == other->ci)
			return bad(where, "gi", "is another instance's", error);
	}
	return true;
}

static bool read_migs(json_t *object, const char *where, struct scenario_gpu *gpu,
		      struct error *error)
{
	char item[FIELD_WHERE_SIZE];
	json_t *array;

	if (!field_array(object, where, "mig", false, SCENARIO_MAX_MIG, &array, error))
		return false;
	for (size_t i = 0; array && i < json_array_size(array); i++) {
		struct scenario_mig mig = {0};

		tree_path_item(item, where, "mig", i);
		if (!read_mig(json_array_get(array, i), item, gpu, &mig, error))
			return false;
		*vec_push(&gpu->mig) = mig;
	}
	return true;
}

static bool read_faults(json_t *object, const char *where, struct scenario_gpu *gpu,
			struct error *error)
{
	struct health_facts *facts = &gpu->facts;
	char remap[16] = "none";
	json_t *xids;

	if (!field_text(object, where, "row_remap", false, remap, sizeof remap, error))
		return false;
	if (!health_row_remap_parse(remap, &facts->row_remap))
		return bad(where, "row_remap", "must be none, pending or failed", error);
	if (!field_number(object, where, "ecc_uncorrectable", false, 0, INT32_MAX,
			  &facts->ecc_uncorrectable, error) ||
	    !field_bool(object, where, "lost", false, &facts->lost, error) ||
	    !field_bool(object, where, "hang", false, &facts->hang, error) ||
	    !field_text(object, where, "recovery", false, gpu->recovery, sizeof gpu->recovery,
			error) ||
	    !field_array(object, where, "xids", false, HEALTH_MAX_XIDS, &xids, error))
		return false;
	for (size_t i = 0; xids && i < json_array_size(xids); i++) {
		json_int_t xid = json_integer_value(json_array_get(xids, i)); /* else 0 */

		if (xid < 1 || xid > 9999)
			return bad(where, "xids", "must be numbers between 1 and 9999", error);
		facts->xids[facts->xid_count++] = (int32_t)xid;
	}
	return scenario_recovery_valid(gpu->recovery) ||
	       bad(where, "recovery", "must be none, reset, reboot or drain", error);
}

static bool read_gauges(json_t *object, const char *where, struct scenario_gpu *gpu,
			struct error *error)
{
	const char *keys[GAUGES + 1] = {NULL};
	char child_where[FIELD_WHERE_SIZE];
	json_t *child;

	for (size_t i = 0; i < GAUGES; i++) {
		keys[i] = reading_gauge_name((enum reading_gauge)i);
		gpu->gauges[i] = READING_UNKNOWN;
	}
	if (!field_child(object, where, "gauges", false, &child, error))
		return false;
	if (!child)
		return true;
	tree_path(child_where, where, "gauges");
	if (!tree_check_keys(child, child_where, keys, error))
		return false;
	for (size_t i = 0; i < GAUGES; i++)
		if (!field_number(child, child_where, keys[i], false, SCENARIO_MIN_GAUGE, INT64_MAX,
				  &gpu->gauges[i], error))
			return false;
	return true;
}

static bool read_gpu(json_t *object, const char *where, const struct scenario *scenario,
		     struct scenario_gpu *gpu, struct error *error)
{
	char uuid[ATOM_VISIBLE_SIZE];

	gpu->numa = INVENTORY_NUMA_UNKNOWN;
	gpu->slots = SCENARIO_SLOTS_DEFAULT;
	gpu->minor = (int32_t)scenario->gpus.count;
	str_copy(gpu->recovery, sizeof gpu->recovery, "none");
	if (!field_object(object, where, error) ||
	    !tree_check_keys(object, where, gpu_keys, error) ||
	    !field_text(object, where, "uuid", true, uuid, sizeof uuid, error))
		return false;
	if (!atom_uuid_parse(uuid, &gpu->uuid))
		return bad(where, "uuid", "must be GPU- and a UUID in lower case", error);
	if (!read_line(object, where, "model", true, gpu->model, sizeof gpu->model, error) ||
	    !field_number(object, where, "memory_mib", true, 1024, MAX_MEMORY_MIB, &gpu->memory_mib,
			  error) ||
	    !read_line(object, where, "pci", false, gpu->pci, sizeof gpu->pci, error) ||
	    !field_int(object, where, "numa", false, -1, 1023, &gpu->numa, error) ||
	    !field_int(object, where, "minor", false, 0, 255, &gpu->minor, error) ||
	    !field_int(object, where, "slots", false, 0, SCENARIO_MAX_SLOTS, &gpu->slots, error) ||
	    !read_migs(object, where, gpu, error) || !read_faults(object, where, gpu, error) ||
	    !read_gauges(object, where, gpu, error))
		return false;
	if (gpu->mig.count > 0 && gpu->slots > 0)
		return bad(where, "slots", "and mig exclude each other", error);
	for (size_t i = 0; i < scenario->gpus.count; i++) {
		const struct scenario_gpu *other = &scenario->gpus.items[i];

		if (atom_uuid_equal(other->uuid, gpu->uuid))
			return bad(where, "uuid", "is another GPU's", error);
		if (other->minor == gpu->minor)
			return bad(where, "minor", "is another GPU's", error);
	}
	return true;
}

/* Terminals that nobody uses, one a GPU: they can be opened, and each has its own number. */
static void default_nodes(struct inventory_nodes *nodes)
{
	*nodes = (struct inventory_nodes){
		.gpu_prefix = "/dev/tty",
		.gpu_base = 20,
		.control = "/dev/tty60",
		.uvm = "/dev/tty61",
		.uvm_tools = "/dev/tty62",
		.caps = "/dev/tty63",
	};
}

bool scenario_read(json_t *tree, struct scenario *ret_scenario, struct error *error)
{
	CLEANUP(scenario) struct scenario scenario = {0};
	json_t *gpus;

	default_nodes(&scenario.nodes);
	if (!field_object(tree, "", error) || !field_version(tree, SCENARIO_VERSION, error) ||
	    !tree_check_keys(tree, "", top_keys, error))
		return false;
	if (!field_text(tree, "", "driver", true, scenario.driver, sizeof scenario.driver, error) ||
	    !read_nodes(tree, &scenario.nodes, error) ||
	    !field_array(tree, "", "gpus", false, INVENTORY_MAX_GPUS, &gpus, error))
		return false;
	if (!one_line(scenario.driver))
		return error_field(error, "driver", "must be one line without quotes");
	for (size_t i = 0; gpus && i < json_array_size(gpus); i++) {
		char where[FIELD_WHERE_SIZE];
		struct scenario_gpu gpu = {0};

		tree_path_item(where, "", "gpus", i);
		if (!read_gpu(json_array_get(gpus, i), where, &scenario, &gpu, error)) {
			vec_deinit(&gpu.mig);
			return false;
		}
		*vec_push(&scenario.gpus) = gpu;
	}
	*ret_scenario = scenario;
	scenario = (struct scenario){0};
	return true;
}

/* --- writing --- */

static void format_gauges(const struct scenario_gpu *gpu, struct buf *out)
{
	const char *before = "gauges = {";

	for (size_t i = 0; i < GAUGES; i++) {
		if (gpu->gauges[i] == READING_UNKNOWN)
			continue;
		buf_printf(out, "%s %s = %lld", before, reading_gauge_name((enum reading_gauge)i),
			   (long long)gpu->gauges[i]);
		before = ",";
	}
	if (*before == ',')
		buf_add_text(out, " }\n");
}

static void format_gpu(const struct scenario_gpu *gpu, struct buf *out)
{
	const struct health_facts *facts = &gpu->facts;
	char uuid[ATOM_UUID_SIZE];

	atom_uuid_format(uuid, gpu->uuid);
	buf_printf(out, "\n[[gpus]]\nuuid = \"GPU-%s\"\nmodel = \"%s\"\nmemory_mib = %lld\n", uuid,
		   gpu->model, (long long)gpu->memory_mib);
	buf_printf(out, "pci = \"%s\"\nnuma = %d\nminor = %d\n", gpu->pci, (int)gpu->numa,
		   (int)gpu->minor);
	if (gpu->slots != SCENARIO_SLOTS_DEFAULT)
		buf_printf(out, "slots = %d\n", (int)gpu->slots);
	if (gpu->mig.count > 0)
		buf_add_text(out, "mig = [\n");
	for (size_t i = 0; i < gpu->mig.count; i++) {
		const struct scenario_mig *mig = &gpu->mig.items[i];

		buf_printf(out,
			   "  { profile = \"%s\", start = %d, size = %d, gi = %d, ci = %d, "
			   "uuid = \"%s\" },\n",
			   mig->profile, (int)mig->start, (int)mig->size, (int)mig->gi,
			   (int)mig->ci, mig->uuid);
	}
	if (gpu->mig.count > 0)
		buf_add_text(out, "]\n");
	buf_printf(out, "row_remap = \"%s\"\necc_uncorrectable = %lld\nrecovery = \"%s\"\nxids = [",
		   health_row_remap_name(facts->row_remap), (long long)facts->ecc_uncorrectable,
		   gpu->recovery);
	for (size_t i = 0; i < facts->xid_count; i++)
		buf_printf(out, "%s%d", i ? ", " : "", (int)facts->xids[i]);
	buf_printf(out, "]\nlost = %s\nhang = %s\n", facts->lost ? "true" : "false",
		   facts->hang ? "true" : "false");
	format_gauges(gpu, out);
}

void scenario_format(const struct scenario *scenario, struct buf *out)
{
	const struct inventory_nodes *nodes = &scenario->nodes;

	buf_printf(out,
		   "# Simulated GPUs. bcd watches this file; `bcd sim set` edits it.\n"
		   "version = %d\ndriver = \"%s\"\n",
		   SCENARIO_VERSION, scenario->driver);
	buf_add_text(out, "\n# What stands on the host for /dev/nvidia<minor> and its friends.\n"
			  "[nodes]\n");
	buf_printf(out, "prefix = \"%s\"\nbase = %d\n", nodes->gpu_prefix, (int)nodes->gpu_base);
	buf_printf(out, "control = \"%s\"\nuvm = \"%s\"\nuvm_tools = \"%s\"\ncaps = \"%s\"\n",
		   nodes->control, nodes->uvm, nodes->uvm_tools, nodes->caps);
	for (size_t i = 0; i < scenario->gpus.count; i++) {
		buf_printf(out, "\n# GPU %zu", i); /* as scenario_find() counts */
		format_gpu(&scenario->gpus.items[i], out);
	}
}

/* --- meaning --- */

static void push_atoms(struct inventory *inventory, const struct inventory_gpu *gpu,
		       const struct scenario_gpu *from, int32_t slots)
{
	for (size_t i = 0; i < from->mig.count; i++) {
		const struct scenario_mig *mig = &from->mig.items[i];
		struct inventory_atom *atom = inventory_push_atom(
			inventory, gpu, ATOM_MIG, atom_mig_range(mig->start, mig->size));

		atom->atom.gi = (uint16_t)mig->gi;
		atom->atom.ci = (uint16_t)mig->ci;
		str_copy(atom->profile, sizeof atom->profile, mig->profile);
		str_copy(atom->visible, sizeof atom->visible, mig->uuid);
	}
	if (from->mig.count == 0) /* in MIG mode the GPU itself can't be used */
		inventory_push_whole(inventory, gpu, slots);
}

static enum health_recovery recovery_of(const char *recovery)
{
	enum health_recovery known;

	if (str_equal(recovery, "drain"))
		return HEALTH_RECOVERY_DRAIN_RESET;
	return health_recovery_parse(recovery, &known) ? known : HEALTH_RECOVERY_UNKNOWN;
}

void scenario_inventory(const struct scenario *scenario, int32_t slots, const char *reason,
			struct inventory *ret_inventory)
{
	struct inventory inventory = {.simulated = true, .nodes = scenario->nodes};

	str_copy(inventory.simulated_reason, sizeof inventory.simulated_reason, reason);
	str_copy(inventory.driver, sizeof inventory.driver, scenario->driver);
	for (size_t i = 0; i < scenario->gpus.count; i++) {
		const struct scenario_gpu *from = &scenario->gpus.items[i];
		struct inventory_gpu *gpu = vec_push(&inventory.gpus);
		struct health_facts facts = from->facts;

		facts.recovery = recovery_of(from->recovery);
		gpu->uuid = from->uuid;
		str_copy(gpu->model, sizeof gpu->model, from->model);
		str_copy(gpu->pci, sizeof gpu->pci, from->pci);
		gpu->memory_bytes = from->memory_mib << 20;
		gpu->numa = from->numa;
		gpu->minor = from->minor;
		gpu->health = health_decide(&facts);
		scenario_abilities(from, gpu);
		push_atoms(&inventory, gpu, from,
			   from->slots == SCENARIO_SLOTS_DEFAULT ? slots : from->slots);
	}
	inventory_sort(&inventory);
	*ret_inventory = inventory;
}

void scenario_reading(const struct scenario *scenario, struct reading *ret_reading)
{
	struct reading reading = {.source = "simulated"};

	str_copy(reading.driver, sizeof reading.driver, scenario->driver);
	vec_each (&scenario->gpus, const struct scenario_gpu *from) {
		struct reading_gpu *gpu = vec_push(&reading.gpus);

		*gpu = reading_gpu_unknown();
		gpu->has_uuid = true;
		gpu->uuid = from->uuid;
		str_copy(gpu->pci, sizeof gpu->pci, from->pci);
		str_copy(gpu->model, sizeof gpu->model, from->model);
		gpu->minor = from->minor;
		gpu->memory_bytes = from->memory_mib << 20;
		gpu->mig_enabled = from->mig.count > 0;
		gpu->lost = from->facts.lost;
		gpu->row_remap = from->facts.row_remap;
		gpu->ecc_uncorrectable = from->facts.ecc_uncorrectable;
		gpu->recovery = recovery_of(from->recovery);
		memcpy(gpu->gauges, from->gauges, sizeof gpu->gauges);
	}
	*ret_reading = reading;
}
