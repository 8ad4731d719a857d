#include "gpu/belief.h"
#include "gpu/child.h"
#include "gpu/klog.h"
#include "gpu/smi.h"
#include "gpu/source_internal.h"
#include "sys/durable.h"

#include <stdio.h>

#define ASK_AGAIN_MS 500 /* between two questions, however many XIDs there are */
#define NUMA_MAX     32  /* bytes of a number */

struct driver {
	struct source source;
	enum source_kind kind;
	char *devices, *module; /* in sysfs */
	struct belief belief;
	struct belief_file *file;
	struct klog *log;     /* NULL: none is followed */
	struct child *child;  /* NULL: nvidia-smi alone is asked */
	struct smi_tool *smi; /* NULL: NVML alone is asked */
	bool by_smi;          /* this machine has no NVML */
	struct error no_nvml; /* why */
	struct mono asked;
	struct mono waiting; /* since when an answer is waited for */
	bool asking;         /* one is under way, of a moment that may be past */
	bool ask_due;        /* something happened since */
	bool stale;
	bool inside; /* a call of ours: who called finds out by itself */
};

static struct driver *driver_of(const struct source *source)
{
	return (struct driver *)source;
}

static void changed(struct driver *driver)
{
	driver->stale = true;
	if (!driver->inside)
		driver->source.on_change(driver->source.arg);
}

/* --- asking --- */

static void ask(struct driver *driver)
{
	driver->ask_due = false;
	driver->asked = loop_now(driver->source.loop);
	if (!driver->asking) {
		driver->waiting = driver->asked;
		belief_ask(&driver->belief);
	}
	driver->asking = true;
	if (driver->by_smi)
		smi_tool_ask(driver->smi);
	else
		child_ask(driver->child);
}

/* Each pass; sooner if something happened, but not as often as things may happen. */
static void ask_if_due(struct driver *driver)
{
	int64_t since = mono_until(driver->asked, loop_now(driver->source.loop));

	if (since >= SOURCE_PASS_MS ||
	    (driver->ask_due && !driver->asking && since >= ASK_AGAIN_MS))
		ask(driver);
}

static void ask_soon(struct driver *driver)
{
	driver->ask_due = true;
	ask_if_due(driver);
}

/* --- what the driver says --- */

/* Each load of the driver makes its folder in sysfs anew, under a number that isn't used twice. */
static void follow_driver(struct driver *driver)
{
	if (belief_driver(&driver->belief, durable_stamp(driver->module).inode))
		changed(driver);
}

/* -1 when the kernel doesn't know it, or the machine has but one node. */
static int32_t read_numa(const struct driver *driver, const char *pci)
{
	CLEANUP(buf) struct buf path = {0}, text = {0};
	struct error ignored;
	long numa;
	char *end;

	buf_printf(&path, "%s/%s/numa_node", driver->devices, pci);
	if (!*pci || !durable_read(buf_text(&path), 65536, &text, &ignored) ||
	    text.length >= NUMA_MAX)
		return INVENTORY_NUMA_UNKNOWN;
	numa = strtol(buf_text(&text), &end, 10);
	return *end == '\n' && numa >= 0 && numa <= UINT16_MAX ? (int32_t)numa
							       : INVENTORY_NUMA_UNKNOWN;
}

static void on_reading(void *arg, struct reading *reading)
{
	struct driver *driver = arg;
	int32_t numa[INVENTORY_MAX_GPUS] = {0};

	assert(reading->gpus.count <= INVENTORY_MAX_GPUS);
	for (size_t i = 0; i < reading->gpus.count; i++)
		numa[i] = read_numa(driver, reading->gpus.items[i].pci);
	driver->asking = false;
	follow_driver(driver);
	belief_reading(&driver->belief, reading, numa);
	source_put_reading(&driver->source, reading);
	driver->source.error = (struct error){0};
	driver->source.settled = true;
	changed(driver);
}

static void on_nvml_reading(void *arg, struct reading *reading)
{
	struct driver *driver = arg;

	driver->by_smi = false;
	driver->source.name = "nvml";
	on_reading(driver, reading);
}

static void on_smi_reading(void *arg, struct reading *reading)
{
	struct driver *driver = arg;

	if (!driver->by_smi)
		return; /* NVML has come meanwhile */
	driver->source.name = "nvidia-smi";
	on_reading(driver, reading);
}

static void on_failure(struct driver *driver, const struct error *error, bool stuck)
{
	struct error told = *error;

	driver->asking = false;
	if (stuck)
		error_wrap(&told, "a process hangs in the driver and can't be killed");
	belief_failure(&driver->belief, told.what);
	driver->source.error = told;
	driver->source.failures++;
	driver->source.settled = true;
	changed(driver);
}

static void on_nvml_failure(void *arg, const struct error *error, bool stuck)
{
	struct driver *driver = arg;

	if (error->code == ERROR_NOT_FOUND && driver->smi) {
		driver->no_nvml = *error;
		if (driver->by_smi)
			return;
		driver->by_smi = true;
		ask(driver);
		return;
	}
	driver->by_smi = false;
	on_failure(driver, error, stuck);
}

static void on_smi_failure(void *arg, const struct error *error, bool stuck)
{
	struct driver *driver = arg;
	struct error told = *error;

	if (!driver->by_smi)
		return;
	if (error->code == ERROR_NOT_FOUND && driver->no_nvml.code == ERROR_NOT_FOUND) {
		error_set(&told, ERROR_NOT_FOUND, "no NVIDIA driver on this machine: %s; %s",
			  driver->no_nvml.what, error->what);
		error_hint(&told,
			   "Install NVIDIA's driver; GPUs are simulated only when asked for: "
			   "[gpu] source = \"sim\".");
	}
	on_failure(driver, &told, stuck);
}

/* --- XIDs --- */

static void on_log_event(void *arg, const struct klog_event *event)
{
	struct driver *driver = arg;

	follow_driver(driver); /* what a driver suffered before this one is over before it begins */
	if (belief_event(&driver->belief, event))
		changed(driver);
	ask_soon(driver);
}

static void on_log_lost(void *arg)
{
	struct driver *driver = arg;

	driver->source.log_lost++;
	ask_soon(driver);
	changed(driver);
}

static bool follows_log(const struct driver *driver)
{
	return driver->log && !klog_error(driver->log);
}

static void on_nvml_xid(void *arg, const struct frame_xid *xid)
{
	struct driver *driver = arg;
	struct klog_event event = {.kind = KLOG_XID, .xid = xid->xid};

	str_copy(event.pci, sizeof event.pci, xid->pci);
	/* The number alone doesn't tell; the log does, and says it too. */
	event.nonfatal = xid_has_nonfatal(xid->xid) && follows_log(driver);
	follow_driver(driver);
	if (xid->has_uuid ? belief_xid(&driver->belief, xid->uuid, &event)
			  : belief_event(&driver->belief, &event))
		changed(driver);
	ask_soon(driver);
}

/* --- the source --- */

static void show(struct driver *driver)
{
	struct inventory inventory = {0};

	belief_inventory(&driver->belief, driver->source.slots, &inventory);
	source_put_inventory(&driver->source, &inventory);
	driver->stale = false;
}

static void tell(struct driver *driver)
{
	driver->source.log_error = driver->log ? klog_error(driver->log) : NULL;
	driver->source.record_error = belief_file_error(driver->file);
	driver->source.marker = belief_file_marker(driver->file);
	driver->source.strangers = *driver->belief.strangers ? driver->belief.strangers : NULL;
}

/* A whole pass without NVML's answer: it may come yet, but till then nothing is known. (nvidia-smi takes
 * its time on a machine with many GPUs; its own deadline is what counts.) */
static void doubt_silence(struct driver *driver)
{
	struct error error;

	if (!driver->source.settled || driver->by_smi || !driver->asking ||
	    *driver->belief.failure ||
	    mono_until(driver->waiting, loop_now(driver->source.loop)) < SOURCE_PASS_MS)
		return;
	error_set(&error, ERROR_UNAVAILABLE, "the driver has not answered for %d s",
		  SOURCE_PASS_MS / 1000);
	belief_failure(&driver->belief, error.what);
	driver->source.error = error;
	driver->stale = true;
}

static bool look(struct source *source)
{
	struct driver *driver = driver_of(source);
	bool another;

	driver->inside = true;
	follow_driver(driver);
	if (driver->log)
		klog_look(driver->log);
	doubt_silence(driver);
	ask_if_due(driver);
	if (belief_file_look(driver->file))
		driver->stale = true;
	another = driver->stale;
	if (another)
		show(driver);
	tell(driver);
	driver->inside = false;
	return another;
}

static int32_t last_xid(const struct source *source, struct atom_uuid uuid)
{
	const struct belief_gpu *gpu = belief_find(&driver_of(source)->belief, uuid);

	return gpu ? gpu->last_xid : 0;
}

static const struct health_facts *facts(const struct source *source, struct atom_uuid uuid)
{
	const struct belief_gpu *gpu = belief_find(&driver_of(source)->belief, uuid);

	return gpu ? &gpu->facts : NULL;
}

static void destroy(struct source *source)
{
	struct driver *driver = driver_of(source);

	child_destroy(driver->child);
	smi_tool_destroy(driver->smi);
	klog_destroy(driver->log);
	belief_file_destroy(driver->file);
	belief_deinit(&driver->belief);
	source_deinit(source);
	free(driver->devices);
	free(driver->module);
	free(driver);
}

static const struct source_ops driver_ops = {destroy, look, last_xid, facts};

static void make_readers(struct driver *driver, const struct source_options *options)
{
	static const struct child_handlers child_handlers = {on_nvml_reading, on_nvml_failure,
							     on_nvml_xid};
	static const struct smi_tool_handlers smi_handlers = {on_smi_reading, on_smi_failure};
	const struct child_options child_options = {
		.program = options->program,
		.nvml_library = options->nvml_library,
		.root = options->root,
		.deadline_ms = options->deadline_ms,
	};
	const struct smi_tool_options smi_options = {
		.program = options->nvidia_smi,
		.root = options->root,
		.deadline_ms = options->deadline_ms,
	};

	if (driver->kind != SOURCE_NVML)
		driver->smi =
			smi_tool_create(driver->source.loop, &smi_options, &smi_handlers, driver);
	if (driver->kind != SOURCE_NVIDIA_SMI)
		driver->child =
			child_create(driver->source.loop, &child_options, &child_handlers, driver);
	else
		driver->by_smi = true;
}

static char *path_in(const char *folder, const char *name)
{
	struct buf path = {0};

	buf_printf(&path, "%s/%s", folder, name);
	return buf_take_text(&path);
}

struct source *driver_create(struct loop *loop, const struct source_options *options,
			     loop_fn *on_change, void *arg)
{
	static const struct klog_handlers log_handlers = {on_log_event, on_log_lost};
	struct driver *driver = mem_alloc(sizeof *driver);

	source_init(&driver->source, &driver_ops, loop, options, on_change, arg);
	driver->inside = true;
	driver->kind = options->kind;
	driver->devices = path_in(options->sys, "bus/pci/devices");
	driver->module = path_in(options->sys, "module/nvidia");
	driver->belief.policy = options->xids;
	driver->file = belief_file_create(loop, options->data, &driver->belief);
	follow_driver(driver);
	make_readers(driver, options);
	ask(driver);
	if (*options->kernel_log)
		driver->log = klog_create(loop, options->kernel_log, driver->belief.log_sequence,
					  &log_handlers, driver);
	show(driver);
	tell(driver);
	driver->inside = false;
	return &driver->source;
}
