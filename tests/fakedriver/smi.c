/*
 * smi: a nvidia-smi that asks the fake NVML, as NVIDIA's asks theirs: `-q -x`, `-L`, `mig -lgi` and
 * `--query-gpu=FIELDS --format=csv`. Its layout follows the scene's driver version (README.md).
 */
#include "scene.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB        (1ull << 20)
#define MAX_GPUS   64
#define VALUE_SIZE 128

/* driver.c */
unsigned nvmlInit_v2(void);
unsigned nvmlDeviceGetCount_v2(unsigned *);
unsigned nvmlDeviceGetHandleByIndex_v2(unsigned, void **);
unsigned nvmlSystemGetDriverVersion(char *, unsigned);
unsigned nvmlDeviceGetUUID(void *, char *, unsigned);
unsigned nvmlDeviceGetName(void *, char *, unsigned);
unsigned nvmlDeviceGetPciInfo_v3(void *, struct nvml_pci *);
unsigned nvmlDeviceGetMinorNumber(void *, unsigned *);
unsigned nvmlDeviceGetMemoryInfo_v2(void *, struct nvml_memory_v2 *);
unsigned nvmlDeviceGetUtilizationRates(void *, struct nvml_utilization *);
unsigned nvmlDeviceGetTemperature(void *, unsigned, unsigned *);
unsigned nvmlDeviceGetPowerUsage(void *, unsigned *);
unsigned nvmlDeviceGetClockInfo(void *, unsigned, unsigned *);
unsigned nvmlDeviceGetPcieReplayCounter(void *, unsigned *);
unsigned nvmlDeviceGetTotalEccErrors(void *, unsigned, unsigned, unsigned long long *);
unsigned nvmlDeviceGetRemappedRows(void *, unsigned *, unsigned *, unsigned *, unsigned *);
unsigned nvmlDeviceGetFieldValues(void *, int, struct nvml_field *);
unsigned nvmlDeviceGetMigMode(void *, unsigned *, unsigned *);
unsigned nvmlDeviceGetMaxMigDeviceCount(void *, unsigned *);
unsigned nvmlDeviceGetMigDeviceHandleByIndex(void *, unsigned, void **);
unsigned nvmlDeviceGetGpuInstanceId(void *, unsigned *);
unsigned nvmlDeviceGetComputeInstanceId(void *, unsigned *);
unsigned nvmlDeviceGetGpuInstanceById(void *, unsigned, void **);
unsigned nvmlGpuInstanceGetInfo(void *, struct nvml_gpu_instance_info *);

static int driver_major;
static int exit_status;

static const char *text_of(unsigned status)
{
	switch (status) {
	case NVML_ERROR_NO_PERMISSION:
		return "Insufficient Permissions";
	case NVML_ERROR_NOT_FOUND:
		return "Not Found";
	case NVML_ERROR_DRIVER_NOT_LOADED:
		return "Driver Not Loaded";
	case NVML_ERROR_GPU_IS_LOST:
		return "GPU is lost";
	case NVML_ERROR_RESET_REQUIRED:
		return "GPU requires reset";
	case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
		return "Driver/library version mismatch";
	default:
		return "Unknown Error";
	}
}

/* --- one value, as it is printed --- */

struct value {
	char text[VALUE_SIZE];
};

static struct value failed(unsigned status)
{
	struct value value;

	if (status == NVML_ERROR_NOT_SUPPORTED || status == NVML_ERROR_INVALID_ARGUMENT)
		snprintf(value.text, VALUE_SIZE, "N/A");
	else
		snprintf(value.text, VALUE_SIZE, "[%s]", text_of(status));
	return value;
}

__attribute__((format(printf, 2, 3))) static struct value say(unsigned status, const char *format,
							      ...)
{
	struct value value;
	va_list arguments;

	if (status != NVML_SUCCESS)
		return failed(status);
	va_start(arguments, format);
	vsnprintf(value.text, VALUE_SIZE, format, arguments);
	va_end(arguments);
	return value;
}

/* In power and clocks it has a word of its own for what NVML can't explain. */
static struct value or_err(unsigned status, struct value value)
{
	return status == NVML_ERROR_UNKNOWN ? say(NVML_SUCCESS, "ERR!") : value;
}

static struct value uuid_of(void *device)
{
	char text[NVML_UUID_SIZE] = "";
	unsigned status = nvmlDeviceGetUUID(device, text, sizeof text);

	return say(status, "%s", text);
}

static struct value name_of(void *device)
{
	char text[NVML_NAME_SIZE] = "";
	unsigned status = nvmlDeviceGetName(device, text, sizeof text);

	return say(status, "%s", text);
}

static struct value pci_of(void *device)
{
	struct nvml_pci pci = {0};
	unsigned status = nvmlDeviceGetPciInfo_v3(device, &pci);

	return say(status, "%s", pci.bus_id);
}

static struct value minor_of(void *device)
{
	unsigned number, status = nvmlDeviceGetMinorNumber(device, &number);

	return say(status, "%u", number);
}

enum part {
	TOTAL,
	RESERVED,
	USED,
	FREE
};

static struct value memory_of(void *device, enum part part)
{
	struct nvml_memory_v2 memory = {.version = NVML_MEMORY_V2};
	unsigned status = nvmlDeviceGetMemoryInfo_v2(device, &memory);
	unsigned long long parts[] = {memory.total, memory.reserved, memory.used, memory.free};

	return say(status, "%llu MiB", parts[part] / MIB);
}

static struct value utilization_of(void *device, bool memory)
{
	struct nvml_utilization both = {0};
	unsigned status = nvmlDeviceGetUtilizationRates(device, &both);

	return say(status, "%u %%", memory ? both.memory : both.gpu);
}

static struct value temperature_of(void *device)
{
	unsigned number, status = nvmlDeviceGetTemperature(device, 0, &number);

	return say(status, "%d C", (int)number);
}

static unsigned field_of(void *device, unsigned id, unsigned *ret_number)
{
	struct nvml_field field = {.id = id};
	unsigned status = nvmlDeviceGetFieldValues(device, 1, &field);

	*ret_number = field.value.ui;
	return status != NVML_SUCCESS ? status : field.status;
}

static struct value memory_temperature_of(void *device)
{
	unsigned number, status = field_of(device, NVML_FI_DEV_MEMORY_TEMP, &number);

	return say(status, "%d C", (int)number);
}

static struct value recovery_of(void *device)
{
	static const char *const actions[] = {"None", "Reset", "Reboot", "Drain P2P",
					      "Drain and Reset"};
	unsigned number, status = field_of(device, NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, &number);

	return say(status, "%s",
		   status == NVML_SUCCESS && number < 5 ? actions[number] : "Unknown");
}

static struct value power_of(void *device)
{
	unsigned number, status = nvmlDeviceGetPowerUsage(device, &number);

	/* tests keep to what two digits can say */
	return or_err(status, say(status, "%u.%02u W", number / 1000, number % 1000 / 10));
}

static struct value clock_of(void *device, unsigned kind)
{
	unsigned number, status = nvmlDeviceGetClockInfo(device, kind, &number);

	return or_err(status, say(status, "%u MHz", number));
}

static struct value replays_of(void *device)
{
	unsigned number, status = nvmlDeviceGetPcieReplayCounter(device, &number);

	return say(status, "%u", number);
}

static struct value ecc_of(void *device, bool uncorrected, bool aggregate)
{
	unsigned long long count;
	unsigned status = nvmlDeviceGetTotalEccErrors(device, uncorrected, aggregate, &count);

	return say(status, "%llu", count);
}

enum rows {
	CORRECTABLE,
	UNCORRECTABLE,
	PENDING,
	FAILURE
};

static struct value rows_of(void *device, enum rows which)
{
	unsigned rows[4],
		status = nvmlDeviceGetRemappedRows(device, &rows[0], &rows[1], &rows[2], &rows[3]);

	if (which == PENDING || which == FAILURE)
		return say(status, "%s", rows[which] ? "Yes" : "No");
	return say(status, "%u", rows[which]);
}

static struct value mig_mode_of(void *device, bool pending)
{
	unsigned modes[2], status = nvmlDeviceGetMigMode(device, &modes[0], &modes[1]);

	return say(status, "%s", modes[pending] ? "Enabled" : "Disabled");
}

/* --- the machine --- */

/* Of each index; NULL for a GPU that has no handle, which is complained of. */
static unsigned find_gpus(void *gpus[MAX_GPUS])
{
	unsigned count = 0;

	if (nvmlDeviceGetCount_v2(&count) != NVML_SUCCESS || count > MAX_GPUS)
		exit(255);
	for (unsigned i = 0; i < count; i++)
		if (nvmlDeviceGetHandleByIndex_v2(i, &gpus[i]) != NVML_SUCCESS)
			gpus[i] = NULL;
	return count;
}

static void complain(unsigned index)
{
	const json_t *gpu = json_array_get(json_object_get(scene_root(), "gpus"), index);
	const char *where = json_string_value(json_object_get(scene_root(), "smi_complains"));
	FILE *stream = where && strcmp(where, "stderr") == 0 ? stderr : stdout;
	const char *status = json_string_value(json_object_get(gpu, "handle")), *pci = "";
	unsigned domain = 0, bus = 0, device = 0, number = status ? scene_status(status) : 0;

	(void)!scene_text(gpu, "pci", &pci);
	sscanf(pci, "%x:%x:%x", &domain, &bus, &device);
	fprintf(stream, "Unable to determine the device handle for GPU%04X:%02X:%02X.0: %s%s\n",
		domain, bus, device, text_of(number),
		number == NVML_ERROR_GPU_IS_LOST ? ".  Reboot the system to recover this GPU" : "");
	fflush(stream);
	exit_status = (int)scene_number_or(scene_root(), "smi_exit", number & 0xff);
}

static void complain_of_all(void *const gpus[MAX_GPUS], unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (!gpus[i])
			complain(i);
}

/* --- the report --- */

static void element(const char *name, struct value value)
{
	printf("\t\t\t<%s>%s</%s>\n", name, value.text, name);
}

static struct value word(const char *text)
{
	return say(NVML_SUCCESS, "%s", text);
}

static void report_instances(void *gpu)
{
	unsigned max, gi, ci, current = 0, pending;
	void *mig;

	printf("\t\t<mig_devices>\n");
	if (nvmlDeviceGetMigMode(gpu, &current, &pending) != NVML_SUCCESS || !current ||
	    nvmlDeviceGetMaxMigDeviceCount(gpu, &max) != NVML_SUCCESS)
		max = 0;
	for (unsigned i = 0; i < max; i++) {
		if (nvmlDeviceGetMigDeviceHandleByIndex(gpu, i, &mig) != NVML_SUCCESS ||
		    nvmlDeviceGetGpuInstanceId(mig, &gi) != NVML_SUCCESS ||
		    nvmlDeviceGetComputeInstanceId(mig, &ci) != NVML_SUCCESS)
			continue;
		printf("\t\t\t<mig_device>\n");
		element("index", say(NVML_SUCCESS, "%u", i));
		element("gpu_instance_id", say(NVML_SUCCESS, "%u", gi));
		element("compute_instance_id", say(NVML_SUCCESS, "%u", ci));
		printf("\t\t\t<fb_memory_usage>\n");
		element("total", memory_of(mig, TOTAL));
		element("used", memory_of(mig, USED));
		printf("\t\t\t</fb_memory_usage>\n\t\t\t</mig_device>\n");
	}
	printf("%s\t\t</mig_devices>\n", max ? "" : "\t\t\tNone\n");
}

/* NVML counts all memories together: here all of them are DRAM's. */
static struct value none_of(struct value count)
{
	return count.text[0] >= '0' && count.text[0] <= '9' ? word("0") : count;
}

static void report_ecc(void *gpu, const char *name, bool aggregate)
{
	struct value corrected = ecc_of(gpu, false, aggregate);
	struct value uncorrected = ecc_of(gpu, true, aggregate);

	printf("\t\t<%s>\n", name);
	element("sram_correctable", none_of(corrected));
	if (driver_major < 530) {
		element("sram_uncorrectable", none_of(uncorrected));
	} else {
		element("sram_uncorrectable_parity", none_of(uncorrected));
		element("sram_uncorrectable_secded", none_of(uncorrected));
	}
	element("dram_correctable", corrected);
	element("dram_uncorrectable", uncorrected);
	printf("\t\t</%s>\n", name);
}

static void report_rows(void *gpu)
{
	if (strcmp(rows_of(gpu, PENDING).text, "N/A") == 0) {
		printf("\t\t<remapped_rows>N/A</remapped_rows>\n");
		return;
	}
	printf("\t\t<remapped_rows>\n");
	element("remapped_row_corr", rows_of(gpu, CORRECTABLE));
	element("remapped_row_unc", rows_of(gpu, UNCORRECTABLE));
	element("remapped_row_pending", rows_of(gpu, PENDING));
	element("remapped_row_failure", rows_of(gpu, FAILURE));
	printf("\t\t</remapped_rows>\n");
}

static void report_power(void *gpu)
{
	const char *name = driver_major < 530 ? "power_readings" : "gpu_power_readings";

	printf("\t\t<%s>\n", name);
	if (driver_major < 550) {
		element("power_draw", power_of(gpu));
	} else {
		element("average_power_draw", power_of(gpu));
		element("instant_power_draw", power_of(gpu));
	}
	printf("\t\t</%s>\n", name);
}

static void report_gpu(void *gpu)
{
	struct value pci = pci_of(gpu);

	printf("\t<gpu id=\"%s\">\n", pci.text);
	element("product_name", name_of(gpu));
	printf("\t\t<mig_mode>\n");
	element("current_mig", mig_mode_of(gpu, false));
	element("pending_mig", mig_mode_of(gpu, true));
	printf("\t\t</mig_mode>\n");
	report_instances(gpu);
	element("serial", word("N/A"));
	element("uuid", uuid_of(gpu));
	element("minor_number", minor_of(gpu));
	if (driver_major >= 565)
		element("gpu_recovery_action", recovery_of(gpu));
	printf("\t\t<pci>\n");
	element("pci_bus_id", pci);
	element("replay_counter", replays_of(gpu));
	printf("\t\t</pci>\n\t\t<fb_memory_usage>\n");
	element("total", memory_of(gpu, TOTAL));
	element("reserved", memory_of(gpu, RESERVED));
	element("used", memory_of(gpu, USED));
	element("free", memory_of(gpu, FREE));
	printf("\t\t</fb_memory_usage>\n\t\t<utilization>\n");
	element("gpu_util", utilization_of(gpu, false));
	element("memory_util", utilization_of(gpu, true));
	printf("\t\t</utilization>\n\t\t<ecc_errors>\n");
	report_ecc(gpu, "volatile", false);
	report_ecc(gpu, "aggregate", true);
	printf("\t\t</ecc_errors>\n");
	report_rows(gpu);
	printf("\t\t<temperature>\n");
	element("gpu_temp", temperature_of(gpu));
	element("memory_temp", memory_temperature_of(gpu));
	printf("\t\t</temperature>\n");
	report_power(gpu);
	printf("\t\t<clocks>\n");
	element("graphics_clock", clock_of(gpu, NVML_CLOCK_SM));
	element("sm_clock", clock_of(gpu, NVML_CLOCK_SM));
	element("mem_clock", clock_of(gpu, NVML_CLOCK_MEM));
	printf("\t\t</clocks>\n\t\t<processes>\n\t\t</processes>\n\t</gpu>\n\n");
}

static int report(const char *driver)
{
	void *gpus[MAX_GPUS];
	unsigned count = find_gpus(gpus);

	if (count == 0) {
		printf("No devices were found\n");
		return 6;
	}
	complain_of_all(gpus, count);
	printf("<?xml version=\"1.0\" ?>\n"
	       "<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n<nvidia_smi_log>\n");
	if (driver_major < 610)
		printf("\t<driver_version>%s</driver_version>\n", driver);
	else
		printf("\t<driver_version>%s [Deprecated; will be removed in CUDA 14.0. Use KMD "
		       "Version instead]</driver_version>\n\t<kmd_version>%s</kmd_version>\n",
		       driver, driver);
	printf("\t<attached_gpus>%u</attached_gpus>\n", count);
	for (unsigned i = 0; i < count; i++)
		if (gpus[i])
			report_gpu(gpus[i]);
	printf("</nvidia_smi_log>\n");
	return exit_status;
}

/* --- the lists --- */

static const char *profile_in(const struct value *name)
{
	const char *found = strstr(name->text, " MIG ");

	return found ? found + strlen(" MIG ") : "";
}

static void list_instances(void *gpu)
{
	unsigned max;
	void *mig;

	if (nvmlDeviceGetMaxMigDeviceCount(gpu, &max) != NVML_SUCCESS)
		return;
	for (unsigned i = 0; i < max; i++) {
		struct value name;

		if (nvmlDeviceGetMigDeviceHandleByIndex(gpu, i, &mig) != NVML_SUCCESS)
			continue;
		name = name_of(mig);
		printf("  MIG %-12sDevice %2u: (UUID: %s)\n", profile_in(&name), i,
		       uuid_of(mig).text);
	}
}

static int list(void)
{
	void *gpus[MAX_GPUS];
	unsigned count = find_gpus(gpus);

	complain_of_all(gpus, count);
	for (unsigned i = 0; i < count; i++) {
		if (!gpus[i])
			continue;
		printf("GPU %u: %s (UUID: %s)\n", i, name_of(gpus[i]).text, uuid_of(gpus[i]).text);
		list_instances(gpus[i]);
	}
	return exit_status;
}

/* Compute instances of one GPU instance share its line. */
static bool place_instances(void *gpu, unsigned index)
{
	unsigned max, gi, listed[16], count = 0;
	struct nvml_gpu_instance_info info;
	void *mig, *instance;

	if (nvmlDeviceGetMaxMigDeviceCount(gpu, &max) != NVML_SUCCESS)
		return false;
	for (unsigned i = 0; i < max; i++) {
		struct value name;
		const char *profile, *whole;
		bool again = false;

		if (nvmlDeviceGetMigDeviceHandleByIndex(gpu, i, &mig) != NVML_SUCCESS ||
		    nvmlDeviceGetGpuInstanceId(mig, &gi) != NVML_SUCCESS ||
		    nvmlDeviceGetGpuInstanceById(gpu, gi, &instance) != NVML_SUCCESS ||
		    nvmlGpuInstanceGetInfo(instance, &info) != NVML_SUCCESS)
			continue;
		for (unsigned j = 0; j < count; j++)
			again = again || listed[j] == gi;
		if (again)
			continue;
		listed[count++] = gi;
		name = name_of(mig);
		profile = profile_in(&name);
		whole = strstr(profile, "c.");
		printf("|%4u  MIG %-15s%6d%9u%11u:%-6u|\n+----------------------------------------"
		       "-----------------+\n",
		       index, whole ? whole + 2 : profile, 19, gi, info.placement.start,
		       info.placement.size);
	}
	return count > 0;
}

static int places(void)
{
	void *gpus[MAX_GPUS];
	unsigned count = find_gpus(gpus);
	bool any = false;

	printf("+---------------------------------------------------------+\n"
	       "| GPU instances:                                          |\n"
	       "| GPU   Name               Profile  Instance   Placement  |\n"
	       "|                            ID       ID       Start:Size |\n"
	       "|=========================================================|\n");
	for (unsigned i = 0; i < count; i++)
		any = (gpus[i] && place_instances(gpus[i], i)) || any;
	if (!any)
		printf("No GPU instances found: Not Found\n");
	return any ? 0 : 6;
}

/* --- a table --- */

/* Its value of this name; false: there is no such field. */
static bool query_one(void *gpu, const char *driver, const char *name, struct value *ret_value)
{
	const struct {
		const char *name;
		struct value value;
	} fields[] = {
		{"driver_version", word(driver)},
		{"uuid", uuid_of(gpu)},
		{"name", name_of(gpu)},
		{"pci.bus_id", pci_of(gpu)},
		{"memory.total", memory_of(gpu, TOTAL)},
		{"memory.used", memory_of(gpu, USED)},
		{"memory.free", memory_of(gpu, FREE)},
		{"utilization.gpu", utilization_of(gpu, false)},
		{"utilization.memory", utilization_of(gpu, true)},
		{"temperature.gpu", temperature_of(gpu)},
		{"temperature.memory", memory_temperature_of(gpu)},
		{"power.draw", power_of(gpu)},
		{"clocks.current.sm", clock_of(gpu, NVML_CLOCK_SM)},
		{"clocks.current.memory", clock_of(gpu, NVML_CLOCK_MEM)},
		{"ecc.errors.corrected.volatile.total", ecc_of(gpu, false, false)},
		{"ecc.errors.uncorrected.volatile.total", ecc_of(gpu, true, false)},
		{"ecc.errors.corrected.aggregate.total", ecc_of(gpu, false, true)},
		{"ecc.errors.uncorrected.aggregate.total", ecc_of(gpu, true, true)},
		{"remapped_rows.correctable", rows_of(gpu, CORRECTABLE)},
		{"remapped_rows.uncorrectable", rows_of(gpu, UNCORRECTABLE)},
		{"remapped_rows.pending", rows_of(gpu, PENDING)},
		{"remapped_rows.failure", rows_of(gpu, FAILURE)},
		{"mig.mode.current", mig_mode_of(gpu, false)},
		{"gpu_recovery_action", recovery_of(gpu)},
	};

	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
		if (strcmp(fields[i].name, name) != 0)
			continue;
		*ret_value = fields[i].value;
		if (strcmp(ret_value->text, "N/A") == 0)
			strcpy(ret_value->text, "[N/A]");
		if (strncmp(name, "temperature", strlen("temperature")) == 0)
			ret_value->text[strcspn(ret_value->text, " ")] = '\0'; /* no unit here */
		return true;
	}
	return false;
}

static int query_row(void *gpu, const char *driver, const char *names)
{
	char name[64];

	for (const char *separator = ""; *names; separator = ", ") {
		size_t length = strcspn(names, ",");
		struct value value;

		snprintf(name, sizeof name, "%.*s", (int)length, names);
		if (!query_one(gpu, driver, name, &value)) {
			printf("Field \"%s\" is not a valid field to query.\n", name);
			return 2;
		}
		printf("%s%s", separator, value.text);
		names += length + (names[length] == ',');
	}
	printf("\n");
	return 0;
}

static int query(const char *driver, const char *names)
{
	void *gpus[MAX_GPUS];
	unsigned count = find_gpus(gpus);
	int status = 0;

	complain_of_all(gpus, count);
	for (unsigned i = 0; i < count && status == 0; i++)
		if (gpus[i])
			status = query_row(gpus[i], driver, names);
	return status ? status : exit_status;
}

/* --- the program --- */

/* It calls more functions than we do: one that hangs is among them. */
static void hang_if_any(void)
{
	const char *function =
		json_string_value(json_array_get(json_object_get(scene_root(), "hang"), 0));

	if (function && scene_begin(function) == NVML_SUCCESS)
		scene_end();
}

static int start(char *driver, unsigned size)
{
	unsigned status = nvmlInit_v2();

	if (status == NVML_ERROR_DRIVER_NOT_LOADED) {
		printf("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA "
		       "driver. Make sure that the latest NVIDIA driver is installed and "
		       "running.\n\n");
		return 9;
	}
	if (status != NVML_SUCCESS) {
		printf("Failed to initialize NVML: %s\n", text_of(status));
		if (status == NVML_ERROR_LIB_RM_VERSION_MISMATCH)
			printf("NVML library version: 570.124\n");
		return status > 255 ? 255 : (int)status;
	}
	hang_if_any();
	if (nvmlSystemGetDriverVersion(driver, size) == NVML_SUCCESS)
		sscanf(driver, "%d", &driver_major);
	return 0;
}

int main(int argc, char **argv)
{
	static const char query_gpu[] = "--query-gpu=";
	char driver[NVML_DRIVER_SIZE] = "";
	int status = start(driver, sizeof driver);

	if (status)
		return status;
	if (argc == 3 && strcmp(argv[1], "-q") == 0 && strcmp(argv[2], "-x") == 0)
		return report(driver);
	if (argc == 2 && strcmp(argv[1], "-L") == 0)
		return list();
	if (argc == 3 && strcmp(argv[1], "mig") == 0 && strcmp(argv[2], "-lgi") == 0)
		return places();
	if (argc == 3 && strncmp(argv[1], query_gpu, strlen(query_gpu)) == 0 &&
	    strcmp(argv[2], "--format=csv,noheader") == 0)
		return query(driver, argv[1] + strlen(query_gpu));
	printf("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n");
	return 2;
}
