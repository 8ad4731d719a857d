/*
 * driver: NVML's functions over a scene. With OLD_DRIVER defined, only what a driver of 2018 had.
 */
#include "handle.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define MIB (1ll << 20)

/* --- the library --- */

#ifdef OLD_DRIVER
API unsigned nvmlInit(void)
{
	return scene_init(__func__);
}
#else
API unsigned nvmlInit_v2(void)
{
	return scene_init(__func__);
}

API unsigned nvmlInitWithFlags(unsigned flags)
{
	(void)flags;
	return scene_init("nvmlInit_v2");
}
#endif

API unsigned nvmlShutdown(void)
{
	return NVML_SUCCESS;
}

API const char *nvmlErrorString(unsigned status)
{
	switch (status) {
	case NVML_SUCCESS:
		return "Success";
	case NVML_ERROR_NOT_SUPPORTED:
		return "Not Supported";
	case NVML_ERROR_GPU_IS_LOST:
		return "GPU is lost";
	default:
		return "Unknown Error";
	}
}

API unsigned nvmlSystemGetDriverVersion(char *out, unsigned size)
{
	unsigned status = scene_begin(__func__);
	const char *text;

	if (status != NVML_SUCCESS)
		return status;
	status = scene_text(scene_root(), "driver", &text);
	if (status == NVML_SUCCESS)
		status = put_text(out, size, text);
	scene_end();
	return status;
}

API unsigned nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	unsigned status = scene_begin(__func__);
	int major, minor;
	const char *text;

	if (status != NVML_SUCCESS)
		return status;
	status = scene_text(scene_root(), "cuda", &text);
	if (status == NVML_SUCCESS && sscanf(text, "%d.%d", &major, &minor) == 2)
		*version = major * 1000 + minor * 10;
	scene_end();
	return status;
}

/* --- GPUs --- */

static unsigned count_gpus(const char *function, unsigned *count)
{
	unsigned status = scene_begin(function);

	if (status != NVML_SUCCESS)
		return status;
	*count = (unsigned)json_array_size(json_object_get(scene_root(), "gpus"));
	scene_end();
	return NVML_SUCCESS;
}

static unsigned gpu_at(const char *function, unsigned index, void **device)
{
	unsigned status = scene_begin(function);
	const json_t *gpu;

	if (status != NVML_SUCCESS)
		return status;
	gpu = json_array_get(json_object_get(scene_root(), "gpus"), index);
	status = gpu ? forced(gpu, "handle") : NVML_ERROR_INVALID_ARGUMENT;
	if (status == NVML_SUCCESS)
		*device = handle_of(json_string_value(json_object_get(gpu, "uuid")), "");
	scene_end();
	return status;
}

static unsigned put_pci(const char *function, void *device, struct nvml_pci *pci, bool newest);

#ifdef OLD_DRIVER
API unsigned nvmlDeviceGetCount(unsigned *count)
{
	return count_gpus(__func__, count);
}

API unsigned nvmlDeviceGetHandleByIndex(unsigned index, void **device)
{
	return gpu_at(__func__, index, device);
}

API unsigned nvmlDeviceGetPciInfo_v2(void *device, struct nvml_pci *pci)
{
	return put_pci(__func__, device, pci, false);
}
#else
API unsigned nvmlDeviceGetCount_v2(unsigned *count)
{
	return count_gpus(__func__, count);
}

API unsigned nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
	return gpu_at(__func__, index, device);
}

API unsigned nvmlDeviceGetPciInfo_v3(void *device, struct nvml_pci *pci)
{
	return put_pci(__func__, device, pci, true);
}
#endif

API unsigned nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
	unsigned status = scene_begin(__func__);

	if (status != NVML_SUCCESS)
		return status;
	status = find_uuid(json_object_get(scene_root(), "gpus"), uuid) ? NVML_SUCCESS
									: NVML_ERROR_NOT_FOUND;
	if (status == NVML_SUCCESS)
		*device = handle_of(uuid, "");
	scene_end();
	return status;
}

static unsigned find_index(const json_t *gpu, unsigned *index)
{
	const json_t *gpus = json_object_get(scene_root(), "gpus");

	for (*index = 0; *index < json_array_size(gpus); (*index)++)
		if (json_array_get(gpus, *index) == gpu)
			return NVML_SUCCESS;
	return NVML_ERROR_UNKNOWN;
}

API unsigned nvmlDeviceGetIndex(void *device, unsigned *index)
{
	ON(device, any, status = find_index(gpu, index));
}

API unsigned nvmlDeviceGetUUID(void *device, char *out, unsigned size)
{
	ON(device, any, {
		const char *text;

		status = scene_text(mig ? mig : gpu, "uuid", &text);
		if (status == NVML_SUCCESS)
			status = put_text(out, size, text);
	});
}

API unsigned nvmlDeviceGetName(void *device, char *out, unsigned size)
{
	ON(device, any, {
		char both[256];
		const char *name, *profile;

		status = scene_text(gpu, "name", &name);
		if (status == NVML_SUCCESS && mig) {
			status = scene_text(mig, "profile", &profile);
			if (status == NVML_SUCCESS)
				snprintf(both, sizeof both, "%s MIG %s", name, profile);
			name = both;
		}
		if (status == NVML_SUCCESS)
			status = put_text(out, size, name);
	});
}

API unsigned nvmlDeviceGetMinorNumber(void *device, unsigned *minor)
{
	ON(device, any, status = mig ? NVML_ERROR_NOT_SUPPORTED : put_number(gpu, "minor", minor));
}

/* NVIDIA's own plugin asks; bcd does not. */
API unsigned nvmlDeviceGetCudaComputeCapability(void *device, unsigned *major, unsigned *minor)
{
	ON(device, any, {
		status = put_number(gpu, "compute_major", major);
		if (status == NVML_SUCCESS)
			status = put_number(gpu, "compute_minor", minor);
	});
}

API unsigned nvmlDeviceGetGpuInstanceProfileInfo(void *device, unsigned profile, void *info)
{
	ON(device, any, {
		(void)gpu, (void)profile, (void)info;
		status = NVML_ERROR_NOT_SUPPORTED;
	});
}

static unsigned fill_pci(const json_t *gpu, struct nvml_pci *pci, bool newest)
{
	const char *text;
	unsigned function, status = scene_text(gpu, "pci", &text);

	if (status != NVML_SUCCESS)
		return status;
	if (newest)
		memset(pci, 0, sizeof *pci);
	if (sscanf(text, "%x:%x:%x.%x", &pci->domain, &pci->bus, &pci->device, &function) < 3)
		return NVML_ERROR_UNKNOWN;
	snprintf(pci->old_bus_id, sizeof pci->old_bus_id, "%04X:%02X:%02X.0", pci->domain & 0xffff,
		 pci->bus & 0xff, pci->device & 0xff);
	if (newest)
		snprintf(pci->bus_id, sizeof pci->bus_id, "%08X:%02X:%02X.0", pci->domain, pci->bus,
			 pci->device);
	return NVML_SUCCESS;
}

static unsigned put_pci(const char *function, void *device, struct nvml_pci *pci, bool newest)
{
	const json_t *gpu = NULL;
	unsigned status = scene_begin(function);

	if (status != NVML_SUCCESS)
		return status;
	status = find_gpu(device, &gpu);
	if (status == NVML_SUCCESS)
		status = fill_pci(gpu, pci, newest);
	scene_end();
	return status;
}

/* --- memory --- */

static unsigned find_memory(const json_t *gpu, const json_t *mig, struct nvml_memory_v2 *memory)
{
	long long total, reserved, used;
	unsigned status = mig ? scene_number(mig, "memory_bytes", &total)
			      : scene_number(gpu, "memory_total_bytes", &total);

	if (status != NVML_SUCCESS)
		return status;
	reserved = mig ? 0 : scene_number_or(gpu, "memory_reserved_bytes", 0);
	used = mig ? 0 : scene_number_or(gpu, "memory_used_bytes", 0);
	memory->total = (unsigned long long)total;
	memory->reserved = (unsigned long long)reserved;
	memory->used = (unsigned long long)used;
	memory->free = memory->total - memory->reserved - memory->used; /* it may wrap */
	if (!mig && scene_number(gpu, "memory_free_bytes", &total) == NVML_SUCCESS)
		memory->free = (unsigned long long)total;
	return NVML_SUCCESS;
}

API unsigned nvmlDeviceGetMemoryInfo(void *device, struct nvml_memory *out)
{
	ON(device, gpu_or_mig, {
		struct nvml_memory_v2 memory = {0};

		status = find_memory(gpu, mig, &memory);
		if (status == NVML_SUCCESS)
			*out = (struct nvml_memory){memory.total, memory.free,
						    memory.used + memory.reserved};
	});
}

#ifndef OLD_DRIVER
API unsigned nvmlDeviceGetMemoryInfo_v2(void *device, struct nvml_memory_v2 *out)
{
	if (out->version != NVML_MEMORY_V2)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	ON(device, gpu_or_mig, status = find_memory(gpu, mig, out));
}
#endif

/* --- errors and rows --- */

API unsigned nvmlDeviceGetEccMode(void *device, unsigned *current, unsigned *pending)
{
	ON(device, gpu_only, {
		status = put_number(gpu, "ecc_mode", current);
		if (status == NVML_SUCCESS)
			*pending = *current;
	});
}

API unsigned nvmlDeviceGetTotalEccErrors(void *device, unsigned kind, unsigned span,
					 unsigned long long *count)
{
	static const char *const names[2][2] = {
		{"ecc_corrected_volatile", "ecc_corrected_aggregate"},
		{"ecc_uncorrected_volatile", "ecc_uncorrected_aggregate"},
	};

	if (kind > 1 || span > 1)
		return NVML_ERROR_INVALID_ARGUMENT;
	ON(device, gpu_only, {
		long long number;

		status = scene_number_or(gpu, "ecc_mode", 0) == 1
				 ? scene_number(gpu, names[kind][span], &number)
				 : NVML_ERROR_NOT_SUPPORTED;
		if (status == NVML_SUCCESS)
			*count = (unsigned long long)number;
	});
}

#ifndef OLD_DRIVER
API unsigned nvmlDeviceGetRemappedRows(void *device, unsigned *correctable, unsigned *uncorrectable,
				       unsigned *pending, unsigned *failed)
{
	ON(device, gpu_only, {
		status = put_number(gpu, "remapped_correctable_rows", correctable);
		*uncorrectable = (unsigned)scene_number_or(gpu, "remapped_uncorrectable_rows", 0);
		*pending = (unsigned)scene_number_or(gpu, "remap_pending", 0);
		*failed = (unsigned)scene_number_or(gpu, "remap_failure", 0);
	});
}

static void fill_field(const json_t *gpu, struct nvml_field *field)
{
	const char *name = field->id == NVML_FI_DEV_MEMORY_TEMP ? "memory_temperature_c"
			   : field->id == NVML_FI_DEV_GET_GPU_RECOVERY_ACTION ? "recovery"
									      : NULL;

	field->timestamp = (long long)time(NULL) * 1000000;
	field->latency_us = 10;
	field->type = NVML_VALUE_UNSIGNED_INT;
	field->value.ull = 0;
	field->status =
		name ? put_number(gpu, name, &field->value.ui) : NVML_ERROR_INVALID_ARGUMENT;
}

API unsigned nvmlDeviceGetFieldValues(void *device, int count, struct nvml_field *fields)
{
	ON(device, gpu_only, {
		for (int i = 0; i < count; i++)
			fill_field(gpu, &fields[i]);
	});
}
#endif

/* --- gauges --- */

API unsigned nvmlDeviceGetUtilizationRates(void *device, struct nvml_utilization *out)
{
	ON(device, gpu_only, {
		status = put_number(gpu, "gpu_util_percent", &out->gpu);
		out->memory = (unsigned)scene_number_or(gpu, "memory_util_percent", 0);
	});
}

API unsigned nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *out)
{
	(void)sensor;
	ON(device, gpu_only, status = put_number(gpu, "temperature_c", out));
}

API unsigned nvmlDeviceGetPowerUsage(void *device, unsigned *out)
{
	ON(device, gpu_only, status = put_number(gpu, "power_mw", out));
}

API unsigned nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *out)
{
	ON(device, gpu_only, {
		long long number;

		status = scene_number(gpu, "energy_mj", &number);
		if (status == NVML_SUCCESS)
			*out = (unsigned long long)number;
	});
}

API unsigned nvmlDeviceGetClockInfo(void *device, unsigned kind, unsigned *out)
{
	ON(device, gpu_only, {
		status = kind == NVML_CLOCK_SM    ? put_number(gpu, "sm_clock_mhz", out)
			 : kind == NVML_CLOCK_MEM ? put_number(gpu, "memory_clock_mhz", out)
						  : NVML_ERROR_NOT_SUPPORTED;
	});
}

API unsigned nvmlDeviceGetPcieReplayCounter(void *device, unsigned *out)
{
	ON(device, gpu_only, status = put_number(gpu, "pcie_replays", out));
}

/* --- MIG --- */

#ifndef OLD_DRIVER
API unsigned nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending)
{
	ON(device, gpu_only, {
		status = put_number(gpu, "mig_mode", current);
		*pending = (unsigned)scene_number_or(gpu, "mig_pending", *current);
	});
}

API unsigned nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count)
{
	ON(device, gpu_only, {
		unsigned mode;

		*count = scene_number_or(gpu, "mig_slices", 8) == 8 ? 7 : 4;
		status = put_number(gpu, "mig_mode", &mode);
	});
}

API unsigned nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **out)
{
	ON(device, gpu_only, {
		const json_t *one = json_array_get(json_object_get(gpu, "mig"), index);

		if (one)
			*out = handle_of(((struct handle *)device)->gpu,
					 json_string_value(json_object_get(one, "uuid")));
		else
			status = NVML_ERROR_NOT_FOUND;
	});
}

API unsigned nvmlDeviceIsMigDeviceHandle(void *device, unsigned *is)
{
	ON(device, any, *is = mig != NULL);
}

API unsigned nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *device, void **out)
{
	ON(device, find_mig, *out = handle_of(((struct handle *)device)->gpu, ""));
}

API unsigned nvmlDeviceGetGpuInstanceId(void *device, unsigned *id)
{
	ON(device, find_mig, status = put_number(mig, "gi", id));
}

API unsigned nvmlDeviceGetComputeInstanceId(void *device, unsigned *id)
{
	ON(device, find_mig, status = put_number(mig, "ci", id));
}

/* "3g.40gb" has three, and so has "1c.3g.40gb", of which its compute instance has one. */
static void slices_of(const json_t *mig, unsigned *gi, unsigned *ci)
{
	const char *profile = "";

	(void)!scene_text(mig, "profile", &profile);
	if (sscanf(profile, "%uc.%ug", ci, gi) == 2)
		return;
	if (sscanf(profile, "%ug", gi) != 1)
		*gi = (unsigned)scene_number_or(mig, "size", 1);
	*ci = *gi;
}

API unsigned nvmlDeviceGetAttributes_v2(void *device, struct nvml_attributes *out)
{
	ON(device, find_mig, {
		long long memory;

		status = scene_number(mig, "memory_bytes", &memory);
		if (status == NVML_SUCCESS) {
			memset(out, 0, sizeof *out);
			slices_of(mig, &out->gpu_instance_slices, &out->compute_instance_slices);
			out->memory_mb = (unsigned long long)(memory / MIB);
		}
	});
}

/* An instance's handle is that of the first MIG device in it. */
static unsigned find_instance(const struct handle *handle, unsigned gi, void **out)
{
	const json_t *gpu = NULL, *migs, *one;
	unsigned status = find_gpu(handle, &gpu);

	if (status != NVML_SUCCESS)
		return status;
	migs = json_object_get(gpu, "mig");
	for (size_t i = 0; i < json_array_size(migs); i++) {
		one = json_array_get(migs, i);
		if (scene_number_or(one, "gi", -1) != gi)
			continue;
		*out = handle_of(handle->gpu, json_string_value(json_object_get(one, "uuid")));
		return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}

API unsigned nvmlDeviceGetGpuInstanceById(void *device, unsigned id, void **out)
{
	unsigned status = scene_begin(__func__);

	if (status != NVML_SUCCESS)
		return status;
	status = find_instance(device, id, out);
	scene_end();
	return status;
}

API unsigned nvmlGpuInstanceGetInfo(void *instance, struct nvml_gpu_instance_info *out)
{
	ON(instance, find_mig, {
		memset(out, 0, sizeof *out);
		status = put_number(mig, "start", &out->placement.start);
		if (status == NVML_SUCCESS)
			status = put_number(mig, "size", &out->placement.size);
		out->id = (unsigned)scene_number_or(mig, "gi", 0);
	});
}

#endif
