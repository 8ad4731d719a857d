/*
 * nvml_api: what bcd uses of NVIDIA's management library, in our own words.
 *
 * Names, numbers and layouts are those of NVIDIA's public header (tests/peer/nvml holds each of them
 * to it). Functions that exist in several versions are looked up newest first (nvml/library.c), so
 * only the forms that all of them share are declared here.
 */
#pragma once

#include <stddef.h>

/* What a call returns. Others exist; they are taken as NVML_ERROR_UNKNOWN. */
#define NVML_SUCCESS                         0
#define NVML_ERROR_UNINITIALIZED             1
#define NVML_ERROR_INVALID_ARGUMENT          2
#define NVML_ERROR_NOT_SUPPORTED             3
#define NVML_ERROR_NO_PERMISSION             4
#define NVML_ERROR_NOT_FOUND                 6
#define NVML_ERROR_INSUFFICIENT_SIZE         7
#define NVML_ERROR_DRIVER_NOT_LOADED         9
#define NVML_ERROR_TIMEOUT                   10
#define NVML_ERROR_IRQ_ISSUE                 11
#define NVML_ERROR_FUNCTION_NOT_FOUND        13
#define NVML_ERROR_CORRUPTED_INFOROM         14
#define NVML_ERROR_GPU_IS_LOST               15
#define NVML_ERROR_RESET_REQUIRED            16
#define NVML_ERROR_OPERATING_SYSTEM          17
#define NVML_ERROR_LIB_RM_VERSION_MISMATCH   18
#define NVML_ERROR_IN_USE                    19
#define NVML_ERROR_MEMORY                    20
#define NVML_ERROR_NO_DATA                   21
#define NVML_ERROR_INSUFFICIENT_RESOURCES    23
#define NVML_ERROR_ARGUMENT_VERSION_MISMATCH 25
#define NVML_ERROR_DEPRECATED                26
#define NVML_ERROR_NOT_READY                 27
#define NVML_ERROR_GPU_NOT_FOUND             28
#define NVML_ERROR_UNKNOWN                   999

/* Room for the texts that a call writes, NUL included. */
#define NVML_UUID_SIZE    96
#define NVML_NAME_SIZE    96
#define NVML_DRIVER_SIZE  80
#define NVML_PCI_SIZE     32
#define NVML_OLD_PCI_SIZE 16

#define NVML_MIG_ENABLED 1

#define NVML_TEMPERATURE_GPU          0
#define NVML_CLOCK_SM                 1
#define NVML_CLOCK_MEM                2
#define NVML_MEMORY_ERROR_CORRECTED   0
#define NVML_MEMORY_ERROR_UNCORRECTED 1
#define NVML_ECC_VOLATILE             0
#define NVML_ECC_AGGREGATE            1

/* Fields of nvmlDeviceGetFieldValues(). */
#define NVML_FI_DEV_MEMORY_TEMP             82
#define NVML_FI_DEV_GET_GPU_RECOVERY_ACTION 230

#define NVML_RECOVERY_NONE          0
#define NVML_RECOVERY_GPU_RESET     1
#define NVML_RECOVERY_NODE_REBOOT   2
#define NVML_RECOVERY_DRAIN_P2P     3
#define NVML_RECOVERY_DRAIN_RESET   4
#define NVML_RECOVERY_IMEX_DOMAIN   5
#define NVML_RECOVERY_BUS_RESET     6
#define NVML_RECOVERY_SYSTEM_REBOOT 7

#define NVML_EVENT_XID 0x8ull

#define NVML_NO_INSTANCE 0xffffffffu /* an event that no MIG instance is named for */

/* Handles; they stay valid until nvmlShutdown(), whatever becomes of the GPU. */
struct nvml_device;
struct nvml_gpu_instance;
struct nvml_event_set;

/* Versions 2 and 3 of it; before version 3 `bus_id` is not what is filled. */
struct nvml_pci {
	char old_bus_id[NVML_OLD_PCI_SIZE];
	unsigned domain, bus, device;
	unsigned device_id, subsystem_id;
	char bus_id[NVML_PCI_SIZE];
};

struct nvml_memory {
	unsigned long long total, free, used;
};

#define NVML_MEMORY_V2 (sizeof(struct nvml_memory_v2) | 2u << 24)
struct nvml_memory_v2 {
	unsigned version; /* NVML_MEMORY_V2 */
	unsigned long long total, reserved, free, used;
};

struct nvml_utilization {
	unsigned gpu, memory; /* percent */
};

struct nvml_attributes {
	unsigned multiprocessors;
	unsigned copy_engines, decoders, encoders, jpegs, ofas; /* shared */
	unsigned gpu_instance_slices, compute_instance_slices;
	unsigned long long memory_mb;
};

struct nvml_placement {
	unsigned start, size;
};

struct nvml_gpu_instance_info {
	struct nvml_device *device;
	unsigned id, profile_id;
	struct nvml_placement placement; /* in memory slices */
};

enum nvml_value_type {
	NVML_VALUE_DOUBLE,
	NVML_VALUE_UNSIGNED_INT,
	NVML_VALUE_UNSIGNED_LONG,
	NVML_VALUE_UNSIGNED_LONG_LONG,
	NVML_VALUE_SIGNED_LONG_LONG,
	NVML_VALUE_SIGNED_INT,
	NVML_VALUE_UNSIGNED_SHORT,
};

union nvml_value {
	double real;
	int si;
	unsigned ui;
	unsigned long ul;
	unsigned long long ull;
	signed long long sll;
	unsigned short us;
};

struct nvml_field {
	unsigned id, scope;
	long long timestamp, latency_us;
	unsigned type; /* enum nvml_value_type, or one that is newer */
	unsigned status;
	union nvml_value value;
};

struct nvml_event {
	struct nvml_device *device;
	unsigned long long type, data;           /* NVML_EVENT_XID; the XID */
	unsigned gpu_instance, compute_instance; /* NVML_NO_INSTANCE; not in version 1 */
};

/*
 * Each function that we call: F(member, arguments, "newest name", "older name" or NULL). Those of
 * NVML_REQUIRED are in each driver; the others may be absent, and are NULL then.
 */
/* clang-format off */
#define NVML_REQUIRED(F) \
	F(init, (void), "nvmlInit_v2", "nvmlInit") \
	F(count, (unsigned *count), "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount") \
	F(by_index, (unsigned index, struct nvml_device **device), \
	  "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex") \
	F(uuid, (struct nvml_device *device, char *out, unsigned size), "nvmlDeviceGetUUID", NULL) \
	F(pci, (struct nvml_device *device, struct nvml_pci *pci), \
	  "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2") \
	F(name, (struct nvml_device *device, char *out, unsigned size), "nvmlDeviceGetName", NULL)

#define NVML_OPTIONAL(F) \
	F(driver, (char *out, unsigned size), "nvmlSystemGetDriverVersion", NULL) \
	F(minor, (struct nvml_device *device, unsigned *minor), "nvmlDeviceGetMinorNumber", NULL) \
	F(memory, (struct nvml_device *device, struct nvml_memory *memory), \
	  "nvmlDeviceGetMemoryInfo", NULL) \
	F(memory_v2, (struct nvml_device *device, struct nvml_memory_v2 *memory), \
	  "nvmlDeviceGetMemoryInfo_v2", NULL) \
	F(compute, (struct nvml_device *device, int *major, int *minor), \
	  "nvmlDeviceGetCudaComputeCapability", NULL) \
	F(mig_mode, (struct nvml_device *device, unsigned *current, unsigned *pending), \
	  "nvmlDeviceGetMigMode", NULL) \
	F(mig_max, (struct nvml_device *device, unsigned *count), \
	  "nvmlDeviceGetMaxMigDeviceCount", NULL) \
	F(mig_by_index, (struct nvml_device *device, unsigned index, struct nvml_device **mig), \
	  "nvmlDeviceGetMigDeviceHandleByIndex", NULL) \
	F(gi_id, (struct nvml_device *mig, unsigned *id), "nvmlDeviceGetGpuInstanceId", NULL) \
	F(ci_id, (struct nvml_device *mig, unsigned *id), "nvmlDeviceGetComputeInstanceId", NULL) \
	F(attributes, (struct nvml_device *mig, struct nvml_attributes *attributes), \
	  "nvmlDeviceGetAttributes_v2", NULL) \
	F(gi_by_id, (struct nvml_device *device, unsigned id, struct nvml_gpu_instance **gi), \
	  "nvmlDeviceGetGpuInstanceById", NULL) \
	F(gi_info, (struct nvml_gpu_instance *gi, struct nvml_gpu_instance_info *info), \
	  "nvmlGpuInstanceGetInfo", NULL) \
	F(remapped, \
	  (struct nvml_device *device, unsigned *correctable, unsigned *uncorrectable, \
	   unsigned *pending, unsigned *failed), "nvmlDeviceGetRemappedRows", NULL) \
	F(ecc, (struct nvml_device *device, unsigned kind, unsigned span, \
	  unsigned long long *count), "nvmlDeviceGetTotalEccErrors", NULL) \
	F(fields, (struct nvml_device *device, int count, struct nvml_field *fields), \
	  "nvmlDeviceGetFieldValues", NULL) \
	F(utilization, (struct nvml_device *device, struct nvml_utilization *utilization), \
	  "nvmlDeviceGetUtilizationRates", NULL) \
	F(temperature, (struct nvml_device *device, unsigned sensor, unsigned *celsius), \
	  "nvmlDeviceGetTemperature", NULL) \
	F(power, (struct nvml_device *device, unsigned *milliwatts), \
	  "nvmlDeviceGetPowerUsage", NULL) \
	F(energy, (struct nvml_device *device, unsigned long long *millijoules), \
	  "nvmlDeviceGetTotalEnergyConsumption", NULL) \
	F(clock, (struct nvml_device *device, unsigned kind, unsigned *mhz), \
	  "nvmlDeviceGetClockInfo", NULL) \
	F(replays, (struct nvml_device *device, unsigned *count), \
	  "nvmlDeviceGetPcieReplayCounter", NULL) \
	F(events_create, (struct nvml_event_set **set), "nvmlEventSetCreate", NULL) \
	F(events_free, (struct nvml_event_set *set), "nvmlEventSetFree", NULL) \
	F(events_register, \
	  (struct nvml_device *device, unsigned long long types, struct nvml_event_set *set), \
	  "nvmlDeviceRegisterEvents", NULL) \
	F(events_wait, \
	  (struct nvml_event_set *set, struct nvml_event *event, unsigned timeout_ms), \
	  "nvmlEventSetWait_v2", "nvmlEventSetWait")
/* clang-format on */

/* The library's functions, as loaded. */
struct nvml {
	void *handle;
#define NVML_MEMBER(member, arguments, newest, older) unsigned(*member) arguments;
	NVML_REQUIRED(NVML_MEMBER)
	NVML_OPTIONAL(NVML_MEMBER)
#undef NVML_MEMBER
};

/* "GPU is lost" and so on: the word for people. Never NULL. */
const char *nvml_text(unsigned status);
