#include "nvml/session.h"

#include "gpu/core/pci.h"
#include "nvml/library.h"
#include "nvml/mig.h"

#include <stdio.h>

void session_deinit(struct session *session)
{
	vec_deinit(&session->gpus);
}

static bool fail(struct error *error, const char *doing, unsigned status)
{
	error_set(error, ERROR_UNAVAILABLE, "%s: %s", doing, nvml_text(status));
	if (status == NVML_ERROR_LIB_RM_VERSION_MISMATCH)
		error_hint(error, "Load the driver that was installed, or start the machine anew.");
	if (status == NVML_ERROR_DRIVER_NOT_LOADED)
		error_hint(error, "Load the driver: modprobe nvidia.");
	if (status == NVML_ERROR_NO_PERMISSION)
		error_hint(error, "Run bcd as root, or let it open /dev/nvidia*.");
	return false;
}

bool session_open(const char *path, const char *root, struct session *ret_session,
		  struct error *error)
{
	struct session session = {0};
	unsigned status;

	if (!library_load(path, root, &session.nvml, error))
		return false;
	status = session.nvml.init();
	if (status != NVML_SUCCESS)
		return fail(error, "initialise NVML", status);
	*ret_session = session;
	return true;
}

/* --- one GPU --- */

static void read_identity(struct look *look, struct session_gpu *known)
{
	struct reading_gpu *gpu = look->gpu;
	char uuid[NVML_UUID_SIZE] = "", name[NVML_NAME_SIZE] = "", pci[NVML_PCI_SIZE];
	struct nvml_pci place = {0};
	unsigned minor;

	if (look_ask(look, uuid, uuid, sizeof uuid)) {
		gpu->has_uuid = atom_uuid_parse(uuid, &gpu->uuid);
		if (!gpu->has_uuid)
			look_error(look, "uuid", "it is none");
	}
	if (look_ask(look, pci, &place)) {
		snprintf(pci, sizeof pci, "%08x:%02x:%02x.0", place.domain, place.bus & 0xff,
			 place.device & 0xff);
		if (!pci_parse(pci, gpu->pci))
			look_error(look, "pci", "it is none");
	}
	if (look_ask(look, name, name, sizeof name))
		reading_text(gpu->model, sizeof gpu->model, name);
	if (look_ask(look, minor, &minor) && minor <= READING_MAX_MINOR)
		gpu->minor = (int32_t)minor;
	if (!gpu->has_uuid || gpu->lost)
		return;
	*known = (struct session_gpu){
		.device = look->device,
		.uuid = gpu->uuid,
		.minor = gpu->minor,
		.answers = true,
	};
	memcpy(known->pci, gpu->pci, sizeof known->pci);
	memcpy(known->model, gpu->model, sizeof known->model);
}

static void read_compute(struct look *look)
{
	int major, minor;

	if (!look_ask(look, compute, &major, &minor) || major <= 0 || minor < 0 ||
	    major > READING_MAX_COMPUTE || minor > READING_MAX_COMPUTE)
		return;
	look->gpu->compute_major = major;
	look->gpu->compute_minor = minor;
}

static void read_memory(struct look *look)
{
	struct nvml_memory_v2 memory = {.version = NVML_MEMORY_V2};
	struct nvml_memory old;
	struct reading_gpu *gpu = look->gpu;

	/* version 1 counts what the driver keeps for itself as used */
	if (!look_ask(look, memory_v2, &memory)) {
		if (!look_ask(look, memory, &old))
			return;
		memory = (struct nvml_memory_v2){
			.total = old.total, .free = old.free, .used = old.used};
	}
	if (memory.total == 0 || memory.total > (unsigned long long)READING_MAX_MEMORY)
		return; /* the memory is the machine's (GB10) */
	gpu->memory_bytes = look_number(memory.total);
	gpu->gauges[GAUGE_MEMORY_USED_BYTES] = look_number(memory.used);
	gpu->gauges[GAUGE_MEMORY_FREE_BYTES] = look_number(memory.free);
}

static void read_row_remap(struct look *look)
{
	unsigned correctable, uncorrectable, pending, failed;

	if (!look_ask(look, remapped, &correctable, &uncorrectable, &pending, &failed))
		return;
	look->gpu->gauges[GAUGE_REMAPPED_CORRECTABLE_ROWS] = correctable;
	look->gpu->gauges[GAUGE_REMAPPED_UNCORRECTABLE_ROWS] = uncorrectable;
	if (failed)
		look->gpu->row_remap = HEALTH_REMAP_FAILED;
	else if (pending)
		look->gpu->row_remap = HEALTH_REMAP_PENDING;
}

static void read_ecc(struct look *look)
{
	static const struct {
		enum reading_gauge gauge;
		unsigned kind, span;
	} counters[] = {
		{GAUGE_ECC_CORRECTED_VOLATILE, NVML_MEMORY_ERROR_CORRECTED, NVML_ECC_VOLATILE},
		{GAUGE_ECC_UNCORRECTED_VOLATILE, NVML_MEMORY_ERROR_UNCORRECTED, NVML_ECC_VOLATILE},
		{GAUGE_ECC_CORRECTED_AGGREGATE, NVML_MEMORY_ERROR_CORRECTED, NVML_ECC_AGGREGATE},
		{GAUGE_ECC_UNCORRECTED_AGGREGATE, NVML_MEMORY_ERROR_UNCORRECTED,
		 NVML_ECC_AGGREGATE},
	};
	struct reading_gpu *gpu = look->gpu;
	unsigned long long count;

	for (size_t i = 0; i < ARRAY_SIZE(counters); i++)
		if (look_ask(look, ecc, counters[i].kind, counters[i].span, &count))
			gpu->gauges[counters[i].gauge] = look_number(count);
	if (gpu->gauges[GAUGE_ECC_UNCORRECTED_VOLATILE] > 0)
		gpu->ecc_uncorrectable = gpu->gauges[GAUGE_ECC_UNCORRECTED_VOLATILE];
}

/* False: the GPU or the driver has no such field. */
static bool read_field(struct look *look, unsigned id, int64_t *ret_number)
{
	struct nvml_field field = {.id = id, .status = NVML_ERROR_NOT_SUPPORTED};

	if (!look_ask(look, fields, 1, &field) || !look_got(look, "fields", field.status))
		return false;
	switch (field.type) {
	case NVML_VALUE_DOUBLE:
		*ret_number = (int64_t)field.value.real;
		return field.value.real > -1e15 && field.value.real < 1e15;
	case NVML_VALUE_UNSIGNED_INT:
		*ret_number = field.value.ui;
		return true;
	case NVML_VALUE_UNSIGNED_LONG:
	case NVML_VALUE_UNSIGNED_LONG_LONG:
		*ret_number = look_number(field.value.ull);
		return true;
	case NVML_VALUE_SIGNED_LONG_LONG:
		*ret_number = field.value.sll;
		return true;
	case NVML_VALUE_SIGNED_INT:
		*ret_number = field.value.si;
		return true;
	case NVML_VALUE_UNSIGNED_SHORT:
		*ret_number = field.value.us;
		return true;
	default:
		return false;
	}
}

/* Advice that is newer than this table asks for something: never for nothing. */
static enum health_recovery recovery_of(int64_t action)
{
	switch (action) {
	case NVML_RECOVERY_NONE:
		return HEALTH_RECOVERY_NONE;
	case NVML_RECOVERY_NODE_REBOOT:
	case NVML_RECOVERY_SYSTEM_REBOOT:
		return HEALTH_RECOVERY_REBOOT;
	case NVML_RECOVERY_DRAIN_P2P:
	case NVML_RECOVERY_IMEX_DOMAIN:
		return HEALTH_RECOVERY_DRAIN_P2P;
	case NVML_RECOVERY_DRAIN_RESET:
		return HEALTH_RECOVERY_DRAIN_RESET;
	case NVML_RECOVERY_GPU_RESET:
	case NVML_RECOVERY_BUS_RESET:
	default:
		return HEALTH_RECOVERY_RESET;
	}
}

static void read_gauges(struct look *look)
{
	int64_t *gauges = look->gpu->gauges, number;
	struct nvml_utilization utilization;
	unsigned long long energy;
	unsigned value;

	if (look_ask(look, utilization, &utilization)) {
		gauges[GAUGE_GPU_UTIL_PERCENT] = utilization.gpu;
		gauges[GAUGE_MEMORY_UTIL_PERCENT] = utilization.memory;
	}
	if (look_ask(look, temperature, NVML_TEMPERATURE_GPU, &value))
		gauges[GAUGE_TEMPERATURE_C] = (int32_t)value; /* below zero it wraps */
	if (read_field(look, NVML_FI_DEV_MEMORY_TEMP, &number))
		gauges[GAUGE_MEMORY_TEMPERATURE_C] = (int32_t)number;
	if (look_ask(look, power, &value))
		gauges[GAUGE_POWER_MW] = value;
	if (look_ask(look, energy, &energy))
		gauges[GAUGE_ENERGY_MJ] = look_number(energy);
	if (look_ask(look, clock, NVML_CLOCK_SM, &value))
		gauges[GAUGE_SM_CLOCK_MHZ] = value;
	if (look_ask(look, clock, NVML_CLOCK_MEM, &value))
		gauges[GAUGE_MEMORY_CLOCK_MHZ] = value;
	if (look_ask(look, replays, &value))
		gauges[GAUGE_PCIE_REPLAYS] = value;
}

static void read_device(struct look *look, struct session_gpu *known)
{
	int64_t action;

	read_identity(look, known);
	read_compute(look);
	read_memory(look);
	mig_read(look);
	read_row_remap(look);
	read_ecc(look);
	if (read_field(look, NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, &action))
		look->gpu->recovery = recovery_of(action);
	read_gauges(look);
	known->answers &= !look->gpu->lost;
}

/* --- the machine --- */

static bool is_listed(const struct reading *reading, struct atom_uuid uuid)
{
	vec_each (&reading->gpus, const struct reading_gpu *gpu)
		if (gpu->has_uuid && atom_uuid_equal(gpu->uuid, uuid))
			return true;
	return false;
}

/* Who was at an index that no longer answers, unless it is elsewhere now. */
static void name_from_before(const struct session *session, struct reading *reading)
{
	for (size_t i = 0; i < reading->gpus.count && i < session->gpus.count; i++) {
		const struct session_gpu *known = &session->gpus.items[i];
		struct reading_gpu *gpu = &reading->gpus.items[i];

		if (gpu->has_uuid || !known->device || is_listed(reading, known->uuid))
			continue;
		gpu->has_uuid = true;
		gpu->uuid = known->uuid;
		gpu->minor = known->minor;
		memcpy(gpu->pci, known->pci, sizeof gpu->pci);
		memcpy(gpu->model, known->model, sizeof gpu->model);
	}
}

/* An index that is no longer one is a GPU that went since they were counted. */
static bool read_index(struct session *session, unsigned index, struct reading *reading,
		       struct error *error)
{
	struct look look = {.nvml = &session->nvml};
	unsigned status = session->nvml.by_index(index, &look.device);

	if (status == NVML_ERROR_INVALID_ARGUMENT)
		return true;
	look.gpu = vec_push(&reading->gpus);
	*look.gpu = reading_gpu_unknown();
	while (session->gpus.count <= index)
		vec_push(&session->gpus);
	session->gpus.items[index].answers = false;
	if (look_got(&look, "handle", status))
		read_device(&look, &session->gpus.items[index]);
	else if (!look.stale)
		look_error(&look, "handle", nvml_text(status)); /* without it there is no GPU */
	return !look.stale || fail(error, "read the GPUs", look.stale);
}

bool session_read(struct session *session, struct reading *ret_reading, struct error *error)
{
	CLEANUP(reading) struct reading reading = {.source = "nvml"};
	char driver[NVML_DRIVER_SIZE] = "";
	unsigned count, status = session->nvml.count(&count);

	if (status != NVML_SUCCESS)
		return fail(error, "count the GPUs", status);
	if (count > INVENTORY_MAX_GPUS)
		return error_set(error, ERROR_RESOURCES_EXHAUSTED,
				 "%u GPUs are more than the %d of one machine", count,
				 INVENTORY_MAX_GPUS);
	if (session->nvml.driver && session->nvml.driver(driver, sizeof driver) == NVML_SUCCESS)
		reading_text(reading.driver, sizeof reading.driver, driver);
	for (unsigned i = 0; i < count; i++)
		if (!read_index(session, i, &reading, error))
			return false;
	name_from_before(session, &reading);
	*ret_reading = reading;
	reading = (struct reading){0};
	return true;
}
