#include "node/core/gpumetrics.h"

#include <stdio.h>

#define DCGM_PREFIX "DCGM_FI_DEV_"

static const struct exporter_holder nobody = {"", "", "", ""};

/* --- who has a device --- */

struct owner {
	const char *state; /* "free", "bound", "releasing" */
	const char *allocation, *reservation;
	const struct exporter_holder *holder; /* never NULL */
};

static const struct exporter_holder *find_holder(const struct exporter_view *view,
						 const struct hold_device *device,
						 const char *allocation)
{
	char id[HOLDS_ID_SIZE];

	holds_device_id(id, device, allocation);
	for (size_t i = 0; i < view->holder_count; i++)
		if (str_equal(view->holders[i].id, id))
			return &view->holders[i];
	return &nobody;
}

static bool find_release(const struct exporter_view *view, const struct atom *atom,
			 struct owner *owner)
{
	vec_each (&view->releases->entries, const struct release_entry *entry) {
		if (entry->reported)
			continue;
		vec_each (&entry->devices, const struct release_device *device) {
			const struct hold_device as_held = {.atom = device->atom};

			if (!atom_equal(&device->atom, atom))
				continue;
			*owner = (struct owner){"releasing", entry->allocation, "",
						find_holder(view, &as_held, entry->allocation)};
			return true;
		}
	}
	return false;
}

static struct owner find_owner(const struct exporter_view *view, const struct atom *atom)
{
	struct owner owner = {"free", "", "", &nobody};

	if (!view->holds)
		return owner;
	vec_each (view->holds, const struct hold *hold)
		vec_each (&hold->devices, const struct hold_device *device)
			if (atom_equal(&device->atom, atom))
				return (struct owner){"bound", hold->allocation, hold->reservation,
						      find_holder(view, device, hold->allocation)};
	(void)find_release(view, atom, &owner);
	return owner;
}

static void label_holder(struct buf *labels, const struct exporter_holder *holder)
{
	exposition_label(labels, "namespace", holder->namespace);
	exposition_label(labels, "pod", holder->pod);
	exposition_label(labels, "container", holder->container);
}

/* --- GPUs --- */

/* One GPU, and what all of its samples begin with. */
struct gpu {
	const struct inventory_gpu *now;
	const struct reading_gpu *reading; /* NULL: unknown */
	const struct exporter_xids *xids;  /* NULL: unknown */
	struct buf labels, dcgm_labels;
};
struct gpus VEC_BODY(struct gpu);

static const struct reading_gpu *find_reading(const struct reading *reading,
					      const struct inventory_gpu *gpu)
{
	if (!reading)
		return NULL;
	vec_each (&reading->gpus, const struct reading_gpu *one)
		if (one->has_uuid ? atom_uuid_equal(one->uuid, gpu->uuid)
				  : *one->pci && str_equal(one->pci, gpu->pci))
			return one;
	return NULL;
}

static void label_gpu(const struct exporter_view *view, struct gpu *gpu, size_t number)
{
	const struct atom whole = {.class = ATOM_GPU, .gpu = gpu->now->uuid};
	const struct owner owner = find_owner(view, &whole);
	char uuid[ATOM_UUID_SIZE], visible[ATOM_VISIBLE_SIZE];

	atom_uuid_format(uuid, gpu->now->uuid);
	snprintf(visible, sizeof visible, "GPU-%s", uuid);
	exposition_label_number(&gpu->labels, "gpu", (int64_t)number);
	exposition_label(&gpu->labels, "uuid", visible);
	exposition_label(&gpu->labels, "pci", gpu->now->pci);
	exposition_label_number(&gpu->labels, "minor", gpu->now->minor);
	exposition_label(&gpu->labels, "model", gpu->now->model);
	exposition_label(&gpu->labels, "allocation", owner.allocation);
	label_holder(&gpu->labels, owner.holder);
}

/* "00000000:1A:00.0", as DCGM writes it. */
static void dcgm_pci(char out[INVENTORY_PCI_SIZE + 8], const char *pci)
{
	unsigned domain, bus, device, function;

	out[0] = '\0';
	if (sscanf(pci, "%8x:%2x:%2x.%1x", &domain, &bus, &device, &function) == 4)
		snprintf(out, INVENTORY_PCI_SIZE + 8, "%08X:%02X:%02X.%X", domain, bus, device,
			 function);
}

static void label_dcgm(const struct exporter_view *view, struct gpu *gpu, size_t number)
{
	const struct atom whole = {.class = ATOM_GPU, .gpu = gpu->now->uuid};
	struct buf *labels = &gpu->dcgm_labels;
	char uuid[ATOM_UUID_SIZE], text[ATOM_VISIBLE_SIZE];

	exposition_label_number(labels, "gpu", (int64_t)number);
	atom_uuid_format(uuid, gpu->now->uuid);
	snprintf(text, sizeof text, "GPU-%s", uuid);
	exposition_label(labels, "UUID", text);
	dcgm_pci(text, gpu->now->pci);
	exposition_label(labels, "pci_bus_id", text);
	snprintf(text, sizeof text, "nvidia%d", (int)gpu->now->minor);
	exposition_label(labels, "device", text);
	exposition_label(labels, "modelName", gpu->now->model);
	exposition_label(labels, "Hostname", view->hostname);
	label_holder(labels, find_owner(view, &whole).holder);
}

static void gather_gpus(const struct exporter_view *view, struct gpus *gpus)
{
	for (size_t i = 0; i < view->inventory->gpus.count; i++) {
		struct gpu *gpu = vec_push(gpus);

		gpu->now = &view->inventory->gpus.items[i];
		gpu->reading = find_reading(view->reading, gpu->now);
		gpu->xids = view->xids ? &view->xids[i] : NULL;
		label_gpu(view, gpu, i);
		if (view->dcgm_names)
			label_dcgm(view, gpu, i);
	}
}

static void free_gpus(struct gpus *gpus)
{
	vec_each (gpus, struct gpu * gpu) {
		buf_deinit(&gpu->labels);
		buf_deinit(&gpu->dcgm_labels);
	}
	vec_deinit(gpus);
}

/* One sample of a GPU with one label more. */
static void add_labelled(struct exposition *out, const struct gpu *gpu, const char *name,
			 const char *value, int64_t number)
{
	CLEANUP(buf) struct buf labels = {0};

	buf_add(&labels, gpu->labels.data, gpu->labels.length);
	exposition_label(&labels, name, value);
	exposition_add(out, buf_text(&labels), number);
}

/* What a driver counts and measures. Rows of one name stand together. */
static const struct gauge_row {
	enum reading_gauge gauge;
	const char *name, *type, *help;
	const char *labels; /* constant; NULL: none but the GPU's */
	int exponent;       /* of ten: from the reading's unit to ours */
} gauge_rows[] = {
	{GAUGE_GPU_UTIL_PERCENT, "gpu_utilization_ratio", "gauge",
	 "Part of the last sample period in which a kernel ran.", NULL, -2},
	{GAUGE_MEMORY_UTIL_PERCENT, "gpu_memory_utilization_ratio", "gauge",
	 "Part of the last sample period in which memory was read or written.", NULL, -2},
	{GAUGE_MEMORY_USED_BYTES, "gpu_memory_used_bytes", "gauge", "Memory in use.", NULL, 0},
	{GAUGE_MEMORY_FREE_BYTES, "gpu_memory_free_bytes", "gauge", "Memory not in use.", NULL, 0},
	{GAUGE_TEMPERATURE_C, "gpu_temperature_celsius", "gauge", "Temperature of the GPU.", NULL,
	 0},
	{GAUGE_MEMORY_TEMPERATURE_C, "gpu_memory_temperature_celsius", "gauge",
	 "Temperature of the GPU's memory.", NULL, 0},
	{GAUGE_POWER_MW, "gpu_power_watts", "gauge", "Power drawn.", NULL, -3},
	{GAUGE_ENERGY_MJ, "gpu_energy_joules_total", "counter",
	 "Energy used since the driver was loaded.", NULL, -3},
	{GAUGE_SM_CLOCK_MHZ, "gpu_sm_clock_hertz", "gauge", "Clock of the multiprocessors.", NULL,
	 6},
	{GAUGE_MEMORY_CLOCK_MHZ, "gpu_memory_clock_hertz", "gauge", "Clock of the memory.", NULL,
	 6},
	{GAUGE_ECC_CORRECTED_VOLATILE, "gpu_ecc_errors_total", "counter",
	 "ECC errors: volatile since the driver was loaded, aggregate of the GPU's life.",
	 "kind=\"corrected\",count=\"volatile\"", 0},
	{GAUGE_ECC_UNCORRECTED_VOLATILE, "gpu_ecc_errors_total", NULL, NULL,
	 "kind=\"uncorrected\",count=\"volatile\"", 0},
	{GAUGE_ECC_CORRECTED_AGGREGATE, "gpu_ecc_errors_total", NULL, NULL,
	 "kind=\"corrected\",count=\"aggregate\"", 0},
	{GAUGE_ECC_UNCORRECTED_AGGREGATE, "gpu_ecc_errors_total", NULL, NULL,
	 "kind=\"uncorrected\",count=\"aggregate\"", 0},
	{GAUGE_REMAPPED_CORRECTABLE_ROWS, "gpu_remapped_rows_total", "counter",
	 "Rows of memory that were replaced, by the errors they had.", "kind=\"correctable\"", 0},
	{GAUGE_REMAPPED_UNCORRECTABLE_ROWS, "gpu_remapped_rows_total", NULL, NULL,
	 "kind=\"uncorrectable\"", 0},
	{GAUGE_PCIE_REPLAYS, "gpu_pcie_replays_total", "counter", "Packets sent again over PCIe.",
	 NULL, 0},
};

static void add_gauge(struct exposition *out, const struct gauge_row *row, const struct gpu *gpu)
{
	int64_t value = gpu->reading ? gpu->reading->gauges[row->gauge] : READING_UNKNOWN;
	CLEANUP(buf) struct buf labels = {0};

	if (value == READING_UNKNOWN)
		return;
	buf_add(&labels, gpu->labels.data, gpu->labels.length);
	if (row->labels)
		buf_printf(&labels, ",%s", row->labels);
	exposition_add_scaled(out, buf_text(&labels), value, row->exponent);
}

static void add_gauges(struct exposition *out, const struct gpus *gpus)
{
	for (size_t i = 0; i < ARRAY_SIZE(gauge_rows); i++) {
		const struct gauge_row *row = &gauge_rows[i];

		if (row->type)
			exposition_family(out, row->name, row->type, row->help);
		vec_each (gpus, const struct gpu *gpu)
			add_gauge(out, row, gpu);
	}
}

/* A count at the beginning would make a new series with each error. */
static const char *cause_without_count(const char *cause)
{
	const char *at = cause;

	while (*at >= '0' && *at <= '9')
		at++;
	return at > cause && *at == ' ' ? at + 1 : cause;
}

static void add_health(struct exposition *out, const struct gpus *gpus)
{
	exposition_family(out, "gpu_healthy", "gauge", "Whether the GPU may be handed out.");
	vec_each (gpus, const struct gpu *gpu)
		exposition_add(out, buf_text(&gpu->labels), gpu->now->health.healthy);
	exposition_family(out, "gpu_unhealthy_info", "gauge", "Why it may not.");
	vec_each (gpus, const struct gpu *gpu)
		if (!gpu->now->health.healthy)
			add_labelled(out, gpu, "cause", cause_without_count(gpu->now->health.cause),
				     1);
	exposition_family(out, "gpu_xid_active", "gauge",
			  "An XID that was seen and that nothing has cleared.");
	vec_each (gpus, const struct gpu *gpu)
		for (size_t i = 0; gpu->xids && i < gpu->xids->count; i++) {
			char xid[16];

			snprintf(xid, sizeof xid, "%d", (int)gpu->xids->active[i]);
			add_labelled(out, gpu, "xid", xid, 1);
		}
	exposition_family(
		out, "gpu_xid_last", "gauge",
		"The last XID that was heard of, whether it means a fault or not; 0: none.");
	vec_each (gpus, const struct gpu *gpu)
		if (gpu->xids)
			exposition_add(out, buf_text(&gpu->labels), gpu->xids->last);
}

static void add_repair(struct exposition *out, const struct gpus *gpus)
{
	exposition_family(out, "gpu_row_remap_pending", "gauge",
			  "Whether a row of memory is replaced at the next reset.");
	vec_each (gpus, const struct gpu *gpu)
		if (gpu->reading)
			exposition_add(out, buf_text(&gpu->labels),
				       gpu->reading->row_remap == HEALTH_REMAP_PENDING);
	exposition_family(out, "gpu_row_remap_failed", "gauge",
			  "Whether a row of memory could not be replaced.");
	vec_each (gpus, const struct gpu *gpu)
		if (gpu->reading)
			exposition_add(out, buf_text(&gpu->labels),
				       gpu->reading->row_remap == HEALTH_REMAP_FAILED);
	exposition_family(out, "gpu_recovery_action", "gauge", "What the driver advises to do.");
	vec_each (gpus, const struct gpu *gpu)
		if (gpu->reading && gpu->reading->recovery != HEALTH_RECOVERY_UNKNOWN)
			add_labelled(out, gpu, "action",
				     health_recovery_name(gpu->reading->recovery), 1);
}

static void add_gpus(struct exposition *out, const struct gpus *gpus)
{
	add_health(out, gpus);
	exposition_family(out, "gpu_memory_size_bytes", "gauge", "Memory of the GPU.");
	vec_each (gpus, const struct gpu *gpu)
		if (gpu->now->memory_bytes > 0)
			exposition_add(out, buf_text(&gpu->labels), gpu->now->memory_bytes);
	add_gauges(out, gpus);
	add_repair(out, gpus);
}

/* --- the names that a DCGM exporter uses, in its units --- */

static const struct dcgm_row {
	enum reading_gauge gauge;
	const char *name, *type, *help;
	int exponent, shift; /* of ten; right, of two */
} dcgm_rows[] = {
	{GAUGE_SM_CLOCK_MHZ, "SM_CLOCK", "gauge", "SM clock frequency (MHz).", 0, 0},
	{GAUGE_MEMORY_CLOCK_MHZ, "MEM_CLOCK", "gauge", "Memory clock frequency (MHz).", 0, 0},
	{GAUGE_MEMORY_TEMPERATURE_C, "MEMORY_TEMP", "gauge", "Memory temperature (C).", 0, 0},
	{GAUGE_TEMPERATURE_C, "GPU_TEMP", "gauge", "GPU temperature (C).", 0, 0},
	{GAUGE_POWER_MW, "POWER_USAGE", "gauge", "Power draw (W).", -3, 0},
	{GAUGE_ENERGY_MJ, "TOTAL_ENERGY_CONSUMPTION", "counter", "Energy (mJ).", 0, 0},
	{GAUGE_PCIE_REPLAYS, "PCIE_REPLAY_COUNTER", "counter", "PCIe retries.", 0, 0},
	{GAUGE_GPU_UTIL_PERCENT, "GPU_UTIL", "gauge", "GPU utilization (%).", 0, 0},
	{GAUGE_MEMORY_UTIL_PERCENT, "MEM_COPY_UTIL", "gauge", "Memory utilization (%).", 0, 0},
	{GAUGE_MEMORY_FREE_BYTES, "FB_FREE", "gauge", "Memory free (MiB).", 0, 20},
	{GAUGE_MEMORY_USED_BYTES, "FB_USED", "gauge", "Memory used (MiB).", 0, 20},
	{GAUGE_ECC_CORRECTED_VOLATILE, "ECC_SBE_VOL_TOTAL", "counter",
	 "Corrected ECC errors since the driver was loaded.", 0, 0},
	{GAUGE_ECC_UNCORRECTED_VOLATILE, "ECC_DBE_VOL_TOTAL", "counter",
	 "Uncorrected ECC errors since the driver was loaded.", 0, 0},
	{GAUGE_ECC_CORRECTED_AGGREGATE, "ECC_SBE_AGG_TOTAL", "counter",
	 "Corrected ECC errors of the GPU's life.", 0, 0},
	{GAUGE_ECC_UNCORRECTED_AGGREGATE, "ECC_DBE_AGG_TOTAL", "counter",
	 "Uncorrected ECC errors of the GPU's life.", 0, 0},
	{GAUGE_REMAPPED_UNCORRECTABLE_ROWS, "UNCORRECTABLE_REMAPPED_ROWS", "counter",
	 "Rows replaced after uncorrectable errors.", 0, 0},
	{GAUGE_REMAPPED_CORRECTABLE_ROWS, "CORRECTABLE_REMAPPED_ROWS", "counter",
	 "Rows replaced after correctable errors.", 0, 0},
};

static void add_dcgm(struct buf *text, const struct gpus *gpus)
{
	struct exposition to = {.text = text, .prefix = DCGM_PREFIX}, *out = &to;

	for (size_t i = 0; i < ARRAY_SIZE(dcgm_rows); i++) {
		const struct dcgm_row *row = &dcgm_rows[i];

		exposition_family(out, row->name, row->type, row->help);
		vec_each (gpus, const struct gpu *gpu) {
			int64_t value =
				gpu->reading ? gpu->reading->gauges[row->gauge] : READING_UNKNOWN;

			if (value != READING_UNKNOWN)
				exposition_add_scaled(out, buf_text(&gpu->dcgm_labels),
						      value >> row->shift, row->exponent);
		}
	}
	exposition_family(out, "ROW_REMAP_FAILURE", "gauge", "Whether replacing a row failed.");
	vec_each (gpus, const struct gpu *gpu)
		if (gpu->reading)
			exposition_add(out, buf_text(&gpu->dcgm_labels),
				       gpu->reading->row_remap == HEALTH_REMAP_FAILED);
	exposition_family(out, "XID_ERRORS", "gauge", "The last XID; 0: none.");
	vec_each (gpus, const struct gpu *gpu)
		if (gpu->xids)
			exposition_add(out, buf_text(&gpu->dcgm_labels), gpu->xids->last);
}

/* --- devices: what can be booked, whole or in part --- */

struct device {
	struct atom atom;
	const struct inventory_atom *now; /* NULL: bound, and gone */
	struct health health;
	struct buf labels; /* of its numbers */
};
struct devices VEC_BODY(struct device);

static void add_device(struct devices *devices, const struct atom *atom,
		       const struct inventory_atom *now, struct health health)
{
	struct device *device = vec_push(devices);
	char text[ATOM_TEXT_SIZE];

	device->atom = *atom;
	device->now = now;
	device->health = health;
	atom_format(text, atom);
	exposition_label(&device->labels, "device", text);
	exposition_label(&device->labels, "class", atom_class_name(atom->class));
}

static void gather_devices(const struct exporter_view *view, struct devices *devices)
{
	vec_each (&view->inventory->atoms, const struct inventory_atom *atom)
		add_device(devices, &atom->atom, atom, atom->health);
	if (!view->holds)
		return;
	vec_each (view->holds, const struct hold *hold)
		vec_each (&hold->devices, const struct hold_device *device)
			if (!inventory_find_atom(view->inventory, &device->atom))
				add_device(devices, &device->atom, NULL, health_bad("gone"));
}

static void free_devices(struct devices *devices)
{
	vec_each (devices, struct device * device)
		buf_deinit(&device->labels);
	vec_deinit(devices);
}

static void label_number(struct buf *labels, const char *name, bool known, int64_t number)
{
	if (known)
		exposition_label_number(labels, name, number);
	else
		exposition_label(labels, name, "");
}

static void add_info(struct exposition *out, const struct exporter_view *view,
		     const struct device *device)
{
	const struct inventory_gpu *gpu = inventory_find_gpu(view->inventory, device->atom.gpu);
	const struct owner owner = find_owner(view, &device->atom);
	const bool mig = device->atom.class == ATOM_MIG;
	char uuid[ATOM_UUID_SIZE], text[ATOM_VISIBLE_SIZE];
	CLEANUP(buf) struct buf labels = {0};

	buf_add(&labels, device->labels.data, device->labels.length);
	label_number(&labels, "gpu", gpu != NULL, gpu ? gpu - view->inventory->gpus.items : 0);
	atom_uuid_format(uuid, device->atom.gpu);
	snprintf(text, sizeof text, "GPU-%s", uuid);
	exposition_label(&labels, "uuid", text);
	label_number(&labels, "gi", mig, device->atom.gi);
	label_number(&labels, "ci", mig, device->atom.ci);
	exposition_label(&labels, "profile", device->now ? device->now->profile : "");
	exposition_label(&labels, "visible", device->now ? device->now->visible : "");
	exposition_label(&labels, "state", owner.state);
	exposition_label(&labels, "allocation", owner.allocation);
	exposition_label(&labels, "reservation", owner.reservation);
	label_holder(&labels, owner.holder);
	exposition_add(out, buf_text(&labels), 1);
}

static void add_devices(struct exposition *out, const struct exporter_view *view)
{
	struct devices devices = {0};

	gather_devices(view, &devices);
	exposition_family(out, "device_info", "gauge",
			  "What can be booked, and who has it now: a GPU, a MIG instance, a slot.");
	vec_each (&devices, const struct device *device)
		add_info(out, view, device);
	exposition_family(out, "device_healthy", "gauge", "Whether it may be handed out.");
	vec_each (&devices, const struct device *device)
		exposition_add(out, buf_text(&device->labels), device->health.healthy);
	exposition_family(out, "device_memory_bytes", "gauge", "Its part of the GPU's memory.");
	vec_each (&devices, const struct device *device)
		if (device->now && device->now->memory_bytes > 0)
			exposition_add(out, buf_text(&device->labels), device->now->memory_bytes);
	free_devices(&devices);
}

void gpumetrics_add(struct exposition *out, const struct exporter_view *view)
{
	struct gpus gpus = {0};

	gather_gpus(view, &gpus);
	add_gpus(out, &gpus);
	add_devices(out, view);
	if (view->dcgm_names)
		add_dcgm(out->text, &gpus);
	free_gpus(&gpus);
}
