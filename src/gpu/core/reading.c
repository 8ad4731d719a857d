#include "gpu/core/reading.h"

#include "gpu/core/pci.h"

#include <stdio.h>

#define MAX_NUMBER INT64_MAX
#define MIN_GAUGE  (-(int64_t)1000) /* temperatures below zero are real */
#define MAX_EIGHTH 8

static const char *const reading_keys[] = {"source", "driver", "gpus", NULL};
static const char *const gpu_keys[] = {
	"uuid",     "pci",    "model",         "minor",         "memory_bytes", "mig_enabled",
	"mig",      "lost",   "needs_reset",   "error",         "row_remap",    "ecc_uncorrectable",
	"recovery", "gauges", "compute_major", "compute_minor", "mig_capable",  NULL};
static const char *const mig_keys[] = {"gi",    "ci",   "profile",      "uuid",
				       "start", "size", "memory_bytes", NULL};

static const char *const gauge_names[] = {
	[GAUGE_GPU_UTIL_PERCENT] = "gpu_util_percent",
	[GAUGE_MEMORY_UTIL_PERCENT] = "memory_util_percent",
	[GAUGE_MEMORY_USED_BYTES] = "memory_used_bytes",
	[GAUGE_MEMORY_FREE_BYTES] = "memory_free_bytes",
	[GAUGE_TEMPERATURE_C] = "temperature_c",
	[GAUGE_MEMORY_TEMPERATURE_C] = "memory_temperature_c",
	[GAUGE_POWER_MW] = "power_mw",
	[GAUGE_ENERGY_MJ] = "energy_mj",
	[GAUGE_SM_CLOCK_MHZ] = "sm_clock_mhz",
	[GAUGE_MEMORY_CLOCK_MHZ] = "memory_clock_mhz",
	[GAUGE_ECC_CORRECTED_VOLATILE] = "ecc_corrected_volatile",
	[GAUGE_ECC_UNCORRECTED_VOLATILE] = "ecc_uncorrected_volatile",
	[GAUGE_ECC_CORRECTED_AGGREGATE] = "ecc_corrected_aggregate",
	[GAUGE_ECC_UNCORRECTED_AGGREGATE] = "ecc_uncorrected_aggregate",
	[GAUGE_REMAPPED_CORRECTABLE_ROWS] = "remapped_correctable_rows",
	[GAUGE_REMAPPED_UNCORRECTABLE_ROWS] = "remapped_uncorrectable_rows",
	[GAUGE_PCIE_REPLAYS] = "pcie_replays",
};
static_assert(ARRAY_SIZE(gauge_names) == GAUGES, "each gauge has a name");

const char *reading_gauge_name(enum reading_gauge gauge)
{
	assert((size_t)gauge < GAUGES);
	return gauge_names[gauge];
}

void reading_deinit(struct reading *reading)
{
	if (!reading)
		return;
	vec_each (&reading->gpus, struct reading_gpu * gpu)
		vec_deinit(&gpu->mig);
	vec_deinit(&reading->gpus);
}

struct reading_gpu reading_gpu_unknown(void)
{
	struct reading_gpu gpu = {.minor = -1, .memory_bytes = READING_UNKNOWN};

	for (size_t i = 0; i < GAUGES; i++)
		gpu.gauges[i] = READING_UNKNOWN;
	return gpu;
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

void reading_text(char *out, size_t size, const char *text)
{
	size_t length;

	while (is_space(*text))
		text++;
	length = strlen(text);
	while (length > 0 && is_space(text[length - 1]))
		length--;
	if (length > size - 1)
		length = size - 1;
	for (size_t i = 0; i < length; i++)
		out[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	while (length > 0 && out[length - 1] == ' ') /* where it was cut */
		length--;
	out[length] = '\0';
}

/* --- writing --- */

/* Whatever a source put there, it can be read again. */
static void set_text(json_t *object, const char *name, const char *text)
{
	char clean[READING_ERROR_SIZE];

	static_assert(sizeof clean >= INVENTORY_MODEL_SIZE && sizeof clean >= ATOM_VISIBLE_SIZE,
		      "the longest text of a reading");
	reading_text(clean, sizeof clean, text);
	if (*clean)
		tree_set(object, name, tree_string(clean));
}

static void set_number(json_t *object, const char *name, int64_t number, int64_t unknown)
{
	if (number != unknown)
		tree_set(object, name, json_integer(number));
}

static void set_true(json_t *object, const char *name, bool value)
{
	if (value)
		tree_set(object, name, json_true());
}

static json_t *mig_json(const struct reading_mig *mig)
{
	json_t *object = json_object();

	tree_set(object, "gi", json_integer(mig->gi));
	tree_set(object, "ci", json_integer(mig->ci));
	set_text(object, "profile", mig->profile);
	set_text(object, "uuid", mig->uuid);
	set_number(object, "start", mig->start, -1);
	set_number(object, "size", mig->size, 0);
	set_number(object, "memory_bytes", mig->memory_bytes, READING_UNKNOWN);
	return object;
}

static json_t *gauges_json(const struct reading_gpu *gpu)
{
	json_t *object = json_object();

	for (size_t i = 0; i < GAUGES; i++)
		if (gpu->gauges[i] >= MIN_GAUGE) /* so not READING_UNKNOWN */
			tree_set(object, gauge_names[i], json_integer(gpu->gauges[i]));
	return object;
}

static json_t *gpu_json(const struct reading_gpu *gpu)
{
	json_t *object = json_object(), *migs = json_array();
	char uuid[ATOM_UUID_SIZE];

	if (gpu->has_uuid) {
		atom_uuid_format(uuid, gpu->uuid);
		tree_set(object, "uuid", tree_string(uuid));
	}
	set_text(object, "pci", gpu->pci);
	set_text(object, "model", gpu->model);
	set_number(object, "minor", gpu->minor, -1);
	set_number(object, "memory_bytes", gpu->memory_bytes, READING_UNKNOWN);
	set_number(object, "compute_major", gpu->compute_major, 0);
	if (gpu->compute_major > 0)
		tree_set(object, "compute_minor", json_integer(gpu->compute_minor));
	if (gpu->mig_capable != INVENTORY_MIG_UNKNOWN)
		tree_set(object, "mig_capable",
			 json_boolean(gpu->mig_capable == INVENTORY_MIG_CAPABLE));
	set_true(object, "mig_enabled", gpu->mig_enabled);
	vec_each (&gpu->mig, const struct reading_mig *mig)
		tree_append(migs, mig_json(mig));
	tree_set(object, "mig", migs);
	set_true(object, "lost", gpu->lost);
	set_true(object, "needs_reset", gpu->needs_reset);
	set_text(object, "error", gpu->error);
	tree_set(object, "row_remap", tree_string(health_row_remap_name(gpu->row_remap)));
	set_number(object, "ecc_uncorrectable", gpu->ecc_uncorrectable, 0);
	tree_set(object, "recovery", tree_string(health_recovery_name(gpu->recovery)));
	tree_set(object, "gauges", gauges_json(gpu));
	return object;
}

json_t *reading_json(const struct reading *reading)
{
	json_t *object = json_object(), *gpus = json_array();

	set_text(object, "source", reading->source);
	set_text(object, "driver", reading->driver);
	vec_each (&reading->gpus, const struct reading_gpu *gpu)
		tree_append(gpus, gpu_json(gpu));
	tree_set(object, "gpus", gpus);
	return object;
}

/* --- reading --- */

static bool bad(const char *where, const char *key, const char *why, struct error *error)
{
	char field[ERROR_FIELD_SIZE];

	tree_path(field, where, key);
	return error_field(error, field, "%s", why);
}

static bool read_text(const json_t *object, const char *where, const char *key, char *out,
		      size_t size, struct error *error)
{
	char clean[READING_ERROR_SIZE] = "";

	assert(size <= sizeof clean);
	if (!field_text(object, where, key, false, out, size, error))
		return false;
	reading_text(clean, sizeof clean, out);
	return str_equal(clean, out) ||
	       bad(where, key, "must be printable text without spaces around it", error);
}

static bool read_mig(const json_t *object, const char *where, struct reading_mig *mig,
		     struct error *error)
{
	*mig = (struct reading_mig){.start = -1, .memory_bytes = READING_UNKNOWN};
	return field_object(object, where, error) &&
	       tree_check_keys(object, where, mig_keys, error) &&
	       field_int(object, where, "gi", true, 0, ATOM_MAX_NUMBER, &mig->gi, error) &&
	       field_int(object, where, "ci", true, 0, ATOM_MAX_NUMBER, &mig->ci, error) &&
	       read_text(object, where, "profile", mig->profile, sizeof mig->profile, error) &&
	       read_text(object, where, "uuid", mig->uuid, sizeof mig->uuid, error) &&
	       field_int(object, where, "start", false, 0, MAX_EIGHTH - 1, &mig->start, error) &&
	       field_int(object, where, "size", false, 1, MAX_EIGHTH, &mig->size, error) &&
	       field_number(object, where, "memory_bytes", false, 0, MAX_NUMBER, &mig->memory_bytes,
			    error);
}

static bool read_migs(const json_t *object, const char *where, struct reading_gpu *gpu,
		      struct error *error)
{
	char item[FIELD_WHERE_SIZE];
	json_t *array;

	if (!field_array(object, where, "mig", false, READING_MAX_MIG, &array, error))
		return false;
	for (size_t i = 0; array && i < json_array_size(array); i++) {
		tree_path_item(item, where, "mig", i);
		if (!read_mig(json_array_get(array, i), item, vec_push(&gpu->mig), error))
			return false;
	}
	return true;
}

static bool read_identity(const json_t *object, const char *where, struct reading_gpu *gpu,
			  struct error *error)
{
	char uuid[ATOM_UUID_SIZE] = "", pci[INVENTORY_PCI_SIZE];

	if (!field_text(object, where, "uuid", false, uuid, sizeof uuid, error) ||
	    !field_text(object, where, "pci", false, gpu->pci, sizeof gpu->pci, error))
		return false;
	gpu->has_uuid = *uuid != '\0';
	if (gpu->has_uuid && !atom_uuid_parse(uuid, &gpu->uuid))
		return bad(where, "uuid", "must be a UUID in lower case", error);
	if (*gpu->pci && (!pci_parse(gpu->pci, pci) || !str_equal(pci, gpu->pci)))
		return bad(where, "pci", "must be as \"0000:1a:00.0\"", error);
	return true;
}

static bool read_health(const json_t *object, const char *where, struct reading_gpu *gpu,
			struct error *error)
{
	char remap[16] = "none", recovery[16] = "unknown";

	if (!field_bool(object, where, "lost", false, &gpu->lost, error) ||
	    !field_bool(object, where, "needs_reset", false, &gpu->needs_reset, error) ||
	    !read_text(object, where, "error", gpu->error, sizeof gpu->error, error) ||
	    !field_text(object, where, "row_remap", false, remap, sizeof remap, error) ||
	    !field_number(object, where, "ecc_uncorrectable", false, 0, MAX_NUMBER,
			  &gpu->ecc_uncorrectable, error) ||
	    !field_text(object, where, "recovery", false, recovery, sizeof recovery, error))
		return false;
	if (!health_row_remap_parse(remap, &gpu->row_remap))
		return bad(where, "row_remap", "must be none, pending or failed", error);
	return health_recovery_parse(recovery, &gpu->recovery) ||
	       bad(where, "recovery", "is not a recovery action", error);
}

static bool read_gauges(const json_t *object, const char *where, struct reading_gpu *gpu,
			struct error *error)
{
	char path[FIELD_WHERE_SIZE];
	json_t *gauges;

	if (!field_child(object, where, "gauges", false, &gauges, error))
		return false;
	tree_path(path, where, "gauges");
	for (size_t i = 0; gauges && i < GAUGES; i++)
		if (!field_number(gauges, path, gauge_names[i], false, MIN_GAUGE, MAX_NUMBER,
				  &gpu->gauges[i], error))
			return false;
	return true;
}

static bool read_abilities(const json_t *object, const char *where, struct reading_gpu *gpu,
			   struct error *error)
{
	bool capable = false;

	if (!field_int(object, where, "compute_major", false, 1, READING_MAX_COMPUTE,
		       &gpu->compute_major, error) ||
	    !field_int(object, where, "compute_minor", false, 0, READING_MAX_COMPUTE,
		       &gpu->compute_minor, error) ||
	    !field_bool(object, where, "mig_capable", false, &capable, error))
		return false;
	if (json_object_get(object, "mig_capable"))
		gpu->mig_capable = capable ? INVENTORY_MIG_CAPABLE : INVENTORY_MIG_INCAPABLE;
	return gpu->compute_major > 0 || gpu->compute_minor == 0 ||
	       bad(where, "compute_minor", "needs compute_major", error);
}

static bool read_gpu(const json_t *object, const char *where, struct reading_gpu *gpu,
		     struct error *error)
{
	*gpu = reading_gpu_unknown();
	return field_object(object, where, error) &&
	       tree_check_keys(object, where, gpu_keys, error) &&
	       read_identity(object, where, gpu, error) &&
	       read_text(object, where, "model", gpu->model, sizeof gpu->model, error) &&
	       field_int(object, where, "minor", false, 0, READING_MAX_MINOR, &gpu->minor, error) &&
	       field_number(object, where, "memory_bytes", false, 0, READING_MAX_MEMORY,
			    &gpu->memory_bytes, error) &&
	       read_abilities(object, where, gpu, error) &&
	       field_bool(object, where, "mig_enabled", false, &gpu->mig_enabled, error) &&
	       read_migs(object, where, gpu, error) && read_health(object, where, gpu, error) &&
	       read_gauges(object, where, gpu, error);
}

static bool read_all(const json_t *object, struct reading *reading, struct error *error)
{
	char where[FIELD_WHERE_SIZE];
	json_t *array;

	if (!field_object(object, "", error) || !tree_check_keys(object, "", reading_keys, error) ||
	    !read_text(object, "", "source", reading->source, sizeof reading->source, error) ||
	    !read_text(object, "", "driver", reading->driver, sizeof reading->driver, error) ||
	    !field_array(object, "", "gpus", true, INVENTORY_MAX_GPUS, &array, error))
		return false;
	for (size_t i = 0; i < json_array_size(array); i++) {
		tree_path_item(where, "", "gpus", i);
		if (!read_gpu(json_array_get(array, i), where, vec_push(&reading->gpus), error))
			return false;
	}
	return true;
}

bool reading_read(const json_t *object, struct reading *ret_reading, struct error *error)
{
	struct reading reading = {0};

	assert(ret_reading->gpus.count == 0);
	if (!read_all(object, &reading, error)) {
		reading_deinit(&reading);
		return false;
	}
	reading_deinit(ret_reading); /* an empty one may keep memory */
	*ret_reading = reading;
	return true;
}
