#include "node/core/exporter.h"

#include "node/core/gpumetrics.h"

#define PREFIX "bcd_"

enum class_count {
	COUNT_PRESENT,
	COUNT_HEALTHY,
	COUNT_BOUND,
	COUNT_OFFERED,
	COUNT_OFFERED_HEALTHY,
	CLASS_COUNTS,
};

static const struct {
	const char *name, *help;
} class_rows[CLASS_COUNTS] = {
	[COUNT_PRESENT] = {"devices_present", "Devices that this machine has, by class."},
	[COUNT_HEALTHY] = {"devices_healthy", "Those of them that are healthy."},
	[COUNT_BOUND] = {"devices_bound", "Devices that belong to an allocation."},
	[COUNT_OFFERED] = {"devices_offered", "Devices that the kubelet is told of."},
	[COUNT_OFFERED_HEALTHY] = {"devices_offered_healthy", "Those of them that are healthy."},
};

static int64_t count_class(const struct exporter_view *view, enum class_count what,
			   enum atom_class class)
{
	const struct offer *offer = &view->offers->classes[class];
	int64_t count = 0;

	if (what == COUNT_OFFERED)
		return (int64_t)offer->devices.count;
	if (what == COUNT_OFFERED_HEALTHY)
		return (int64_t)offer_healthy_count(offer);
	if (what == COUNT_BOUND)
		vec_each (view->holds, const struct hold *hold)
			vec_each (&hold->devices, const struct hold_device *device)
				count += device->atom.class == class;
	else
		vec_each (&view->inventory->atoms, const struct inventory_atom *atom)
			count += atom->atom.class == class &&
				 (what == COUNT_PRESENT || atom->health.healthy);
	return count;
}

static void class_labels(struct buf *labels, size_t class)
{
	exposition_label(labels, "class", atom_class_name((enum atom_class) class));
}

static void add_classes(struct exposition *out, const struct exporter_view *view)
{
	struct buf labels[ATOM_CLASSES] = {0};

	for (size_t i = 0; i < ATOM_CLASSES; i++)
		class_labels(&labels[i], i);
	for (size_t what = 0; what < CLASS_COUNTS; what++) {
		exposition_family(out, class_rows[what].name, "gauge", class_rows[what].help);
		for (size_t i = 0; i < ATOM_CLASSES; i++)
			if (what != COUNT_BOUND || view->holds)
				exposition_add(out, buf_text(&labels[i]),
					       count_class(view, (enum class_count)what,
							   (enum atom_class)i));
	}
	exposition_family(out, "device_plugin_registered", "gauge",
			  "Whether the kubelet has the resource from us; only of those served.");
	for (size_t i = 0; i < ATOM_CLASSES; i++)
		if (view->offers->classes[i].served)
			exposition_add(out, buf_text(&labels[i]), view->registered[i]);
	for (size_t i = 0; i < ATOM_CLASSES; i++)
		buf_deinit(&labels[i]);
}

static void add_node_info(struct exposition *out, const struct exporter_view *view)
{
	CLEANUP(buf) struct buf labels = {0};

	exposition_family(out, "build_info", "gauge", "The version that runs.");
	exposition_add(out, "version=\"" BC_VERSION "\"", 1);
	exposition_label(&labels, "node", view->node);
	exposition_label(&labels, "hostname", view->hostname);
	exposition_label(&labels, "kubernetes_node", view->kubernetes_node);
	exposition_label(&labels, "gpu_api", view->api);
	exposition_label(&labels, "source", view->source);
	exposition_label(&labels, "driver", view->inventory->driver);
	exposition_family(out, "node_info", "gauge", "This machine; source: where GPUs come from.");
	exposition_add(out, buf_text(&labels), 1);
	exposition_family(out, "start_timestamp_seconds", "gauge",
			  "When bcd started, as Unix time.");
	exposition_add_scaled(out, NULL, view->started.ms, -3);
}

static void add_conditions(struct exposition *out, const struct exporter_view *view)
{
	exposition_family(out, "condition", "gauge",
			  "What is wrong, as the control plane hears it.");
	vec_each (view->conditions, const struct condition *condition) {
		CLEANUP(buf) struct buf labels = {0};

		exposition_label(&labels, "type", condition->type);
		exposition_label(&labels, "reason", condition->reason);
		exposition_add(out, buf_text(&labels), 1);
	}
}

static void add_seconds(struct exposition *out, const char *name, const char *help, int64_t ms)
{
	exposition_family(out, name, "gauge", help);
	if (ms >= 0)
		exposition_add_scaled(out, NULL, ms, -3);
}

static void add_releases(struct exposition *out, const struct exporter_view *view)
{
	int64_t pending = 0;

	vec_each (&view->releases->entries, const struct release_entry *entry)
		pending += !entry->reported;
	exposition_gauge(out, "releases_pending", "Allocations that are being taken back.",
			 pending);
	exposition_gauge(out, "releases_stuck", "Those of them that take more than five minutes.",
			 (int64_t)view->releases_stuck);
	add_seconds(out, "release_oldest_seconds", "Since when the oldest of them is pending.",
		    view->oldest_release_ms);
}

static void add_sources(struct exposition *out, const struct exporter_view *view)
{
	exposition_gauge(out, "gpus_readable", "Whether the GPUs could be read at the last look.",
			 view->gpus_readable);
	add_seconds(out, "gpu_reading_age_seconds", "How old the GPUs' figures are.",
		    view->reading_age_ms);
	exposition_counter(
		out, "gpu_reading_failures_total",
		"Tries to read the GPUs that failed: the driver hung, crashed or refused.",
		(int64_t)view->source_failures);
	exposition_counter(out, "kernel_log_gaps_total",
			   "Parts of the kernel's log that were lost before they were read, with "
			   "the XIDs that stood there.",
			   (int64_t)view->log_gaps);
	exposition_gauge(out, "holds_readable", "Whether what is bound can be read from disk.",
			 view->holds != NULL);
	add_seconds(out, "pod_list_age_seconds",
		    "How old the kubelet's list of pods is; asked for while devices are bound.",
		    view->pods_age_ms);
	exposition_gauge(out, "pod_list_failures", "Tries to get it that failed, in a row.",
			 view->pods_failures);
}

static void add_gateway(struct exposition *out, const struct exporter_view *view)
{
	exposition_gauge(out, "gateway_configured", "Whether there is a control plane to reach.",
			 view->gateway_configured);
	exposition_gauge(out, "gateway_connected", "Whether the stream to it is open.",
			 view->gateway_connected);
	exposition_family(out, "gateway_change_timestamp_seconds", "gauge",
			  "Since when it is, or isn't, as Unix time.");
	if (view->gateway_since.ms > 0)
		exposition_add_scaled(out, NULL, view->gateway_since.ms, -3);
	exposition_gauge(out, "reports_queued", "Reports that it hasn't acknowledged.",
			 (int64_t)view->reports_queued);
}

static void add_process(struct exposition *out, const struct exporter_figures *figures)
{
	exposition_counter(out, "record_writes_total", "Changes of the records on disk.",
			   (int64_t)figures->writes);
	exposition_counter(out, "record_write_failures_total", "Those of them that failed.",
			   (int64_t)figures->write_failures);
	exposition_family(out, "pass_duration_seconds", "histogram",
			  "One pass: looking, deciding, telling; no waiting.");
	exposition_add_histogram(out, NULL, &figures->turns);
}

void exporter_format(const struct exporter_view *view, struct buf *text)
{
	struct exposition to = {.text = text, .prefix = PREFIX}, *out = &to;

	add_node_info(out, view);
	add_classes(out, view);
	add_releases(out, view);
	add_conditions(out, view);
	add_sources(out, view);
	add_gateway(out, view);
	add_process(out, view->figures);
	gpumetrics_add(out, view);
}
