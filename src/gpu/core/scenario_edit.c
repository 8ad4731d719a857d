#include "gpu/core/scenario.h"

#include <stdio.h>

#define PRESET_MAX 16

/* --- presets --- */

static const struct preset {
	const char *name, *model;
	int64_t memory_mib;
	int32_t compute_major; /* .0 */
} presets[] = {
	{"H100", "NVIDIA H100 80GB HBM3", 81559, 9},
	{"H200", "NVIDIA H200", 143771, 9},
	{"A100", "NVIDIA A100-SXM4-80GB", 81920, 8},
};

void scenario_abilities(const struct scenario_gpu *from, struct inventory_gpu *gpu)
{
	for (size_t i = 0; i < ARRAY_SIZE(presets); i++) {
		if (!str_equal(from->model, presets[i].model))
			continue;
		gpu->compute_major = presets[i].compute_major;
		gpu->mig = INVENTORY_MIG_CAPABLE;
	}
	if (from->mig.count > 0)
		gpu->mig = INVENTORY_MIG_CAPABLE;
}

/* UUIDs that are distinct and look the part: a fixed mix of what they stand for. */
static struct atom_uuid mixed_uuid(uint64_t a, uint64_t b)
{
	struct atom_uuid uuid;
	uint64_t state = a * 0x9e3779b97f4a7c15u + b;

	for (size_t i = 0; i < ATOM_UUID_BYTES; i++) {
		state ^= state >> 30;
		state *= 0xbf58476d1ce4e5b9u;
		state ^= state >> 27;
		state += 0x94d049bb133111ebu;
		uuid.bytes[i] = (uint8_t)(state >> 56);
	}
	uuid.bytes[6] = (uint8_t)(0x40 | (uuid.bytes[6] & 15)); /* RFC 9562 version 4 */
	uuid.bytes[8] = (uint8_t)(0x80 | (uuid.bytes[8] & 63));
	return uuid;
}

static bool preset_error(const char *name, struct error *error)
{
	error_set(error, ERROR_INVALID_INPUT, "'%.40s' is not a preset", name);
	return error_hint(error, "Give %s, such as 8xH100.", SCENARIO_PRESETS);
}

bool scenario_preset(const char *name, uint64_t seed, struct scenario *ret_scenario,
		     struct error *error)
{
	CLEANUP(scenario) struct scenario scenario = {0};
	CLEANUP(tree)
	json_t *empty = json_pack("{s:i, s:s}", "version", SCENARIO_VERSION, "driver", "580.95.05");
	const struct preset *preset = NULL;
	int count = 0, used = 0;

	if (sscanf(name, "%2dx%n", &count, &used) != 1 || used == 0 || count < 1 ||
	    count > PRESET_MAX)
		return preset_error(name, error);
	for (size_t i = 0; i < ARRAY_SIZE(presets); i++)
		if (str_equal(name + used, presets[i].name))
			preset = &presets[i];
	if (!preset)
		return preset_error(name, error);
	if (!scenario_read(empty, &scenario, error))
		return false;
	for (int i = 0; i < count; i++) {
		struct scenario_gpu *gpu = vec_push(&scenario.gpus);

		gpu->uuid = mixed_uuid((uint64_t)(preset - presets) + 1, seed + (uint64_t)i);
		gpu->memory_mib = preset->memory_mib;
		gpu->minor = i;
		gpu->numa = count > 1 && i >= count / 2 ? 1 : 0;
		gpu->slots = SCENARIO_SLOTS_DEFAULT;
		str_copy(gpu->model, sizeof gpu->model, preset->model);
		str_copy(gpu->recovery, sizeof gpu->recovery, "none");
		for (size_t k = 0; k < GAUGES; k++)
			gpu->gauges[k] = READING_UNKNOWN;
		snprintf(gpu->pci, sizeof gpu->pci, "0000:%02x:00.0",
			 (0x1au + 0x0au * (unsigned)i) & 0xffu);
	}
	*ret_scenario = scenario;
	scenario = (struct scenario){0};
	return true;
}

/* --- finding --- */

static bool find_hint(struct error *error)
{
	return error_hint(error, "Give a number, or the beginning of a UUID: bcd sim show lists "
				 "both.");
}

bool scenario_find(const struct scenario *scenario, const char *name, size_t *ret_index,
		   struct error *error)
{
	size_t found = 0, matches = 0;
	int number = -1, used = 0;
	char uuid[ATOM_UUID_SIZE];

	if (sscanf(name, "%3d%n", &number, &used) == 1 && !name[used]) {
		if (number < 0 || (size_t)number >= scenario->gpus.count) {
			error_set(error, ERROR_NOT_FOUND, "no GPU %d: there are %zu", number,
				  scenario->gpus.count);
			return find_hint(error);
		}
		*ret_index = (size_t)number;
		return true;
	}
	if (str_starts(name, "GPU-") || str_starts(name, "gpu/"))
		name += strlen("GPU-");
	for (size_t i = 0; i < scenario->gpus.count; i++) {
		atom_uuid_format(uuid, scenario->gpus.items[i].uuid);
		if (!*name || !str_starts(uuid, name))
			continue;
		found = i;
		matches++;
	}
	if (matches == 0) {
		error_set(error, ERROR_NOT_FOUND, "no GPU '%.60s'", name);
		return find_hint(error);
	}
	if (matches > 1) {
		error_set(error, ERROR_CONFLICT, "%zu GPUs start with '%.60s'", matches, name);
		return find_hint(error);
	}
	*ret_index = found;
	return true;
}

/* --- editing: each setter makes the TOML value's JSON, and the reader judges the whole --- */

static bool set_error(const char *assignment, const char *why, struct error *error)
{
	return error_set(error, ERROR_INVALID_INPUT, "'%.80s': %s", assignment, why);
}

static bool parse_number(const char *text, int64_t *ret_number)
{
	long long number;
	int used = 0;

	if (sscanf(text, "%9lld%n", &number, &used) != 1 || text[used])
		return false;
	*ret_number = number;
	return true;
}

static bool is_undo(const char *value)
{
	return str_equal(value, "none") || str_equal(value, "0");
}

static bool set_xids(struct scenario_gpu *gpu, const char *value, uint64_t fresh UNUSED)
{
	struct health_facts *facts = &gpu->facts;
	int xid, used;

	facts->xid_count = 0;
	if (is_undo(value))
		return true;
	for (;; value += used + 1) {
		used = 0;
		if (sscanf(value, "%4d%n", &xid, &used) != 1 || xid < 1 ||
		    facts->xid_count == HEALTH_MAX_XIDS)
			return false;
		facts->xids[facts->xid_count++] = xid;
		if (!value[used])
			return true;
		if (value[used] != ',')
			return false;
	}
}

/* "1g.10gb@0,1g.10gb@1", or "none". */
static bool set_mig(struct scenario_gpu *gpu, const char *value, uint64_t fresh)
{
	vec_clear(&gpu->mig);
	if (is_undo(value))
		return true;
	gpu->slots = SCENARIO_SLOTS_DEFAULT;
	for (;;) {
		struct scenario_mig *mig;
		char profile[INVENTORY_PROFILE_SIZE], uuid[ATOM_UUID_SIZE];
		int32_t eighths;
		int start, used = 0;

		if (sscanf(value, "%15[0-9a-z.]@%1d%n", profile, &start, &used) != 2 ||
		    gpu->mig.count == SCENARIO_MAX_MIG)
			return false;
		eighths = scenario_profile_eighths(profile, gpu->memory_mib);
		if (eighths == 0 || start + eighths > 8)
			return false;
		mig = vec_push(&gpu->mig);
		mig->size = eighths;
		str_copy(mig->profile, sizeof mig->profile, profile);
		mig->start = start;
		mig->gi = (int32_t)gpu->mig.count; /* 0 is the GPU as one instance */
		atom_uuid_format(uuid, mixed_uuid(fresh, gpu->mig.count));
		snprintf(mig->uuid, sizeof mig->uuid, "MIG-%s", uuid);
		if (!value[used])
			return true;
		if (value[used] != ',')
			return false;
		value += used + 1;
	}
}

static bool set_bool(bool *out, const char *value)
{
	*out = str_equal(value, "true") || str_equal(value, "1") || str_equal(value, "yes");
	return *out || is_undo(value) || str_equal(value, "false") || str_equal(value, "no");
}

static bool set_number(int32_t *out, const char *value, int32_t low, int32_t high)
{
	int64_t number;

	if (!parse_number(value, &number) || number < low || number > high)
		return false;
	*out = (int32_t)number;
	return true;
}

static bool set_ecc(struct scenario_gpu *gpu, const char *value, uint64_t fresh UNUSED)
{
	gpu->facts.ecc_uncorrectable = 0;
	return is_undo(value) || (parse_number(value, &gpu->facts.ecc_uncorrectable) &&
				  gpu->facts.ecc_uncorrectable >= 0);
}

static bool set_row_remap(struct scenario_gpu *gpu, const char *value, uint64_t fresh UNUSED)
{
	return health_row_remap_parse(is_undo(value) ? "none" : value, &gpu->facts.row_remap);
}

static bool set_lost(struct scenario_gpu *gpu, const char *value, uint64_t fresh UNUSED)
{
	return set_bool(&gpu->facts.lost, value);
}

static bool set_hang(struct scenario_gpu *gpu, const char *value, uint64_t fresh UNUSED)
{
	return set_bool(&gpu->facts.hang, value);
}

static bool set_numa(struct scenario_gpu *gpu, const char *value, uint64_t fresh UNUSED)
{
	gpu->numa = INVENTORY_NUMA_UNKNOWN;
	return str_equal(value, "none") || set_number(&gpu->numa, value, -1, 1023);
}

static bool set_slots(struct scenario_gpu *gpu, const char *value, uint64_t fresh UNUSED)
{
	gpu->slots = SCENARIO_SLOTS_DEFAULT;
	return str_equal(value, "none") || set_number(&gpu->slots, value, 0, SCENARIO_MAX_SLOTS);
}

static bool set_recovery(struct scenario_gpu *gpu, const char *value, uint64_t fresh UNUSED)
{
	return scenario_recovery_valid(is_undo(value) ? "none" : value) &&
	       str_copy(gpu->recovery, sizeof gpu->recovery, is_undo(value) ? "none" : value);
}

static const struct setter {
	const char *key, *valid;
	bool (*set)(struct scenario_gpu *gpu, const char *value, uint64_t fresh);
} setters[] = {
	{"xid", "XID numbers such as 79 or 79,13; none", set_xids},
	{"xids", "XID numbers such as 79 or 79,13; none", set_xids},
	{"ecc", "a count of uncorrectable errors; none", set_ecc},
	{"row_remap", "pending, failed; none", set_row_remap},
	{"lost", "true; false", set_lost},
	{"hang", "true; false", set_hang},
	{"numa", "a node's number; none", set_numa},
	{"slots", "0 to 64; none for what bcd's configuration says", set_slots},
	{"mig", "instances that fit, such as 3g.40gb@0,1g.10gb@4; none", set_mig},
	{"recovery", "reset, reboot, drain; none", set_recovery},
};

/* A key that is a gauge's name: what the driver would measure. */
static bool set_gauge(struct scenario_gpu *gpu, const char *key, size_t length, const char *value,
		      bool *ret_done)
{
	for (size_t i = 0; i < GAUGES; i++) {
		const char *name = reading_gauge_name((enum reading_gauge)i);
		long long number = READING_UNKNOWN;
		int used = 0;

		if (strlen(name) != length || memcmp(name, key, length) != 0)
			continue;
		*ret_done = str_equal(value, "none") ||
			    (sscanf(value, "%18lld%n", &number, &used) == 1 && !value[used] &&
			     number >= SCENARIO_MIN_GAUGE);
		if (*ret_done)
			gpu->gauges[i] = number;
		return true;
	}
	return false;
}

bool scenario_set(struct scenario_gpu *gpu, const char *assignment, uint64_t fresh,
		  struct error *error)
{
	const char *value = strchr(assignment, '=');
	size_t length = value ? (size_t)(value - assignment) : 0;
	bool done;
	CLEANUP(buf) struct buf why = {0};

	if (!value || length == 0)
		return set_error(assignment, "give KEY=VALUE", error);
	for (size_t i = 0; i < ARRAY_SIZE(setters); i++) {
		const struct setter *setter = &setters[i];

		if (strlen(setter->key) != length || memcmp(setter->key, assignment, length) != 0)
			continue;
		if (setter->set(gpu, value + 1, fresh))
			return true;
		buf_printf(&why, "%s takes %s", setter->key, setter->valid);
		return set_error(assignment, buf_text(&why), error);
	}
	if (set_gauge(gpu, assignment, length, value + 1, &done))
		return done || set_error(assignment, "a gauge takes a whole number; none", error);
	return set_error(assignment,
			 "the keys are xid, ecc, row_remap, lost, hang, numa, slots, mig, recovery "
			 "and gauges such as temperature_c",
			 error);
}
