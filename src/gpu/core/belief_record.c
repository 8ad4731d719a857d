#include "gpu/core/belief.h"
#include "gpu/core/pci.h"

#define MAX_XIDS HEALTH_MAX_XIDS

/* --- writing --- */

static json_t *cut_json(const struct cut *cut)
{
	json_t *object = json_object();

	tree_set(object, "uuid", tree_string(cut->told.uuid));
	tree_set(object, "gi", json_integer(cut->told.gi));
	tree_set(object, "ci", json_integer(cut->told.ci));
	tree_set(object, "profile", tree_string(cut->told.profile));
	tree_set(object, "lo", json_integer(cut->range.lo));
	tree_set(object, "hi", json_integer(cut->range.hi));
	return object;
}

static json_t *gpu_json(const struct belief_gpu *gpu)
{
	json_t *object = json_object(), *migs = json_array(), *xids = json_array();
	char uuid[ATOM_UUID_SIZE];

	atom_uuid_format(uuid, gpu->uuid);
	tree_set(object, "uuid", tree_string(uuid));
	tree_set(object, "pci", tree_string(gpu->pci));
	tree_set(object, "model", tree_string(gpu->model));
	tree_set(object, "minor", json_integer(gpu->minor));
	tree_set(object, "numa", json_integer(gpu->numa));
	tree_set(object, "memoryBytes", json_integer(gpu->memory_bytes));
	tree_set(object, "migEnabled", json_boolean(gpu->mig_enabled));
	vec_each (&gpu->cuts, const struct cut *cut)
		tree_append(migs, cut_json(cut));
	tree_set(object, "mig", migs);
	for (size_t i = 0; i < gpu->facts.xid_count; i++)
		tree_append(xids, json_integer(gpu->facts.xids[i]));
	tree_set(object, "xids", xids);
	tree_set(object, "asked", json_boolean(gpu->asked));
	return object;
}

static json_t *strays_json(const struct belief *belief)
{
	json_t *array = json_array();

	vec_each (&belief->strays, const struct belief_stray *stray) {
		json_t *object = json_object();

		tree_set(object, "pci", tree_string(stray->pci));
		tree_set(object, "xid", json_integer(stray->xid));
		tree_append(array, object);
	}
	return array;
}

json_t *belief_json(const struct belief *belief)
{
	json_t *object = json_object(), *gpus = json_array();

	tree_set(object, "version", json_integer(BELIEF_RECORD_VERSION));
	tree_set(object, "bootId", tree_string(belief->boot_id));
	tree_set(object, "driver", json_integer((json_int_t)(belief->driver & INT64_MAX)));
	tree_set(object, "logSequence",
		 json_integer((json_int_t)(belief->log_sequence & INT64_MAX)));
	vec_each (&belief->gpus, const struct belief_gpu *gpu)
		tree_append(gpus, gpu_json(gpu));
	tree_set(object, "gpus", gpus);
	tree_set(object, "strays", strays_json(belief));
	return object;
}

/* --- reading --- */

static bool bad(const char *where, const char *key, const char *why, struct error *error)
{
	char field[ERROR_FIELD_SIZE];

	tree_path(field, where, key);
	return error_field(error, field, "%s", why);
}

static bool read_cut(const json_t *object, const char *where, struct cut *cut, struct error *error)
{
	struct reading_mig *told = &cut->told;

	told->start = -1;
	if (!field_object(object, where, error) ||
	    !field_text(object, where, "uuid", true, told->uuid, sizeof told->uuid, error) ||
	    !field_int(object, where, "gi", true, 0, ATOM_MAX_NUMBER, &told->gi, error) ||
	    !field_int(object, where, "ci", true, 0, ATOM_MAX_NUMBER, &told->ci, error) ||
	    !field_text(object, where, "profile", true, told->profile, sizeof told->profile,
			error) ||
	    !field_int(object, where, "lo", true, 0, ATOM_LEAVES - 1, &cut->range.lo, error) ||
	    !field_int(object, where, "hi", true, 1, ATOM_LEAVES, &cut->range.hi, error))
		return false;
	return cut->range.lo < cut->range.hi || bad(where, "hi", "must be above lo", error);
}

static bool read_cuts(const json_t *object, const char *where, struct belief_gpu *gpu,
		      struct error *error)
{
	char item[FIELD_WHERE_SIZE];
	json_t *array;

	if (!field_array(object, where, "mig", true, READING_MAX_MIG, &array, error))
		return false;
	for (size_t i = 0; i < json_array_size(array); i++) {
		tree_path_item(item, where, "mig", i);
		if (!read_cut(json_array_get(array, i), item, vec_push(&gpu->cuts), error))
			return false;
	}
	return true;
}

static bool read_xids(const json_t *object, const char *where, struct belief_gpu *gpu,
		      struct error *error)
{
	json_t *array;

	if (!field_array(object, where, "xids", true, MAX_XIDS, &array, error))
		return false;
	for (size_t i = 0; i < json_array_size(array); i++) {
		json_int_t xid = json_integer_value(json_array_get(array, i)); /* else 0 */

		if (xid < 1 || xid > XID_MAX)
			return bad(where, "xids", "must be numbers between 1 and 9999", error);
		gpu->facts.xids[gpu->facts.xid_count++] = (int32_t)xid;
	}
	return true;
}

static bool read_pci(const json_t *object, const char *where, char out[INVENTORY_PCI_SIZE],
		     struct error *error)
{
	char pci[INVENTORY_PCI_SIZE];

	if (!field_text(object, where, "pci", true, out, INVENTORY_PCI_SIZE, error))
		return false;
	return !*out || (pci_parse(out, pci) && str_equal(pci, out)) ||
	       bad(where, "pci", "must be as \"0000:1a:00.0\"", error);
}

static bool read_place(const json_t *object, const char *where, struct belief_gpu *gpu,
		       struct error *error)
{
	char uuid[ATOM_UUID_SIZE];

	if (!field_text(object, where, "uuid", true, uuid, sizeof uuid, error))
		return false;
	if (!atom_uuid_parse(uuid, &gpu->uuid))
		return bad(where, "uuid", "must be a UUID in lower case", error);
	return read_pci(object, where, gpu->pci, error);
}

static bool read_gpu(const json_t *object, const char *where, struct belief_gpu *gpu,
		     struct error *error)
{
	return field_object(object, where, error) && read_place(object, where, gpu, error) &&
	       field_text(object, where, "model", true, gpu->model, sizeof gpu->model, error) &&
	       field_int(object, where, "minor", true, -1, READING_MAX_MINOR, &gpu->minor, error) &&
	       field_int(object, where, "numa", true, -1, 65535, &gpu->numa, error) &&
	       field_number(object, where, "memoryBytes", true, 0, READING_MAX_MEMORY,
			    &gpu->memory_bytes, error) &&
	       field_bool(object, where, "migEnabled", true, &gpu->mig_enabled, error) &&
	       read_cuts(object, where, gpu, error) && read_xids(object, where, gpu, error) &&
	       field_bool(object, where, "asked", true, &gpu->asked, error);
}

static bool read_gpus(const json_t *object, struct belief *belief, struct error *error)
{
	char where[FIELD_WHERE_SIZE];
	json_t *array;

	if (!field_array(object, "", "gpus", true, INVENTORY_MAX_GPUS, &array, error))
		return false;
	for (size_t i = 0; i < json_array_size(array); i++) {
		struct belief_gpu *gpu = vec_push(&belief->gpus);

		tree_path_item(where, "", "gpus", i);
		if (!read_gpu(json_array_get(array, i), where, gpu, error))
			return false;
		for (size_t j = 0; j < i; j++)
			if (atom_uuid_equal(belief->gpus.items[j].uuid, gpu->uuid))
				return bad(where, "uuid", "is another GPU's", error);
	}
	return true;
}

/* Absent in records of before. */
static bool read_strays(const json_t *object, struct belief *belief, struct error *error)
{
	char where[FIELD_WHERE_SIZE];
	json_t *array;

	if (!field_array(object, "", "strays", false, BELIEF_MAX_STRAYS, &array, error))
		return false;
	for (size_t i = 0; array && i < json_array_size(array); i++) {
		const json_t *item = json_array_get(array, i);
		struct belief_stray *stray = vec_push(&belief->strays);

		tree_path_item(where, "", "strays", i);
		if (!field_object(item, where, error) ||
		    !read_pci(item, where, stray->pci, error) ||
		    !field_int(item, where, "xid", true, 1, XID_MAX, &stray->xid, error))
			return false;
	}
	return true;
}

bool belief_read_record(struct belief *belief, const json_t *object, struct error *error)
{
	CLEANUP(belief) struct belief read = {0};
	int64_t driver = 0, sequence = 0;

	assert(belief->gpus.count == 0);
	if (!field_object(object, "", error) ||
	    !field_version(object, BELIEF_RECORD_VERSION, error))
		return false;
	if (!field_text(object, "", "bootId", true, read.boot_id, sizeof read.boot_id, error) ||
	    !field_number(object, "", "driver", true, 0, INT64_MAX, &driver, error) ||
	    !field_number(object, "", "logSequence", true, 0, INT64_MAX, &sequence, error) ||
	    !read_gpus(object, &read, error) || !read_strays(object, &read, error))
		return false;
	if (!str_equal(read.boot_id, belief->boot_id))
		return true;
	belief->gpus = read.gpus;
	belief->strays = read.strays;
	read.gpus = (struct belief_gpus){0};
	read.strays = (struct belief_strays){0};
	belief->driver = (uint64_t)driver;
	belief->log_sequence = (uint64_t)sequence;
	return true;
}
