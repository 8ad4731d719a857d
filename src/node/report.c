#include "node/core/inventory_report.h"
#include "node/state.h"
#include "proto/message.h"
#include "sys/log.h"

MESSAGE_TYPE(inventory, Bettercompute__V1__Inventory, bettercompute__v1__inventory)

const char *node_gpu_api(const struct node *node)
{
	return node->spec && *node->spec->gpu_api ? node->spec->gpu_api : node->config->gpu_api;
}

struct converge_host node_host(const struct node *node)
{
	const struct config *config = node->config;
	int64_t memory = node->machine.memory_bytes - (config->reserved_memory_mib << 20);

	return (struct converge_host){
		.vcpus = node->machine.vcpus > config->reserved_vcpu
				 ? node->machine.vcpus - config->reserved_vcpu
				 : 1,
		.memory_bytes = memory > 0 ? memory : 1,
	};
}

struct inventory_report report_inventory(const struct node *node)
{
	struct converge_host host = node_host(node);

	return (struct inventory_report){
		.inventory = source_inventory(node->gpus),
		.node_name = node->config->node_name,
		.hostname = node->machine.hostname,
		.kernel = node->machine.kernel,
		.vcpus = host.vcpus,
		.memory_bytes = host.memory_bytes,
		.gpu_api = node->config->gpu_api,
	};
}

/* --- conditions --- */

static bool holds_devices(const struct node *node)
{
	return node->holds.count > 0 || node->releases.entries.count > 0;
}

/* "default/web (main): deleted by force, still there; ...". */
static const char *who_holds(const struct node *node, const struct release_entry *entry,
			     struct arena *arena)
{
	CLEANUP(clingers) struct clingers clingers = {0};
	CLEANUP(buf) struct buf text = {0};

	reaper_clingers(node->reaper, entry, &clingers);
	vec_each (&clingers, const struct clinger *clinger)
		buf_printf(&text, "%s%s%s%s", text.length > 0 ? "; " : "", clinger->name,
			   *clinger->state ? ": " : "", clinger->state);
	return arena_strdup(arena, buf_text(&text));
}

static void look_at_conditions(struct node *node, struct mono now)
{
	const struct release_entry *stuck[RELEASES_MAX];
	CLEANUP(arena) struct arena texts = {0};
	const char *stuck_by[RELEASES_MAX];
	const struct error *api = reaper_trouble(node->reaper);
	const struct error *gpus = source_error(node->gpus);
	const struct error *log = source_log_error(node->gpus);
	struct conditions conditions = {0};
	struct conditions_view view = {
		.stuck = stuck,
		.stuck_by = stuck_by,
		.holds_devices = holds_devices(node),
		.pod_failures = node->holders_failures,
		.pod_failing_ms = mono_until(node->holders_failing_since, now),
		.pod_error = node->holders_error,
		.api_error = api ? api->what : NULL,
		.releases_marker = node->marker ? node->marker_path : NULL,
		.releases_way = node->outside.who,
		.holds_error = node->holds_error.code ? node->holds_error.what : NULL,
		.spec_error = node->spec_error.code ? node->spec_error.what : NULL,
		.gpus_error = gpus ? gpus->what : NULL,
		.gpus_next = gpus && *gpus->hint ? gpus->hint : NULL,
		.gpu_strangers = source_strangers(node->gpus),
		.health_marker = source_marker(node->gpus),
		.kernel_log_error = log ? log->what : NULL,
		.host_units = node->config->host_units,
	};

	if (!view.spec_error && node->uplink && *uplink_spec_error(node->uplink))
		view.spec_error = uplink_spec_error(node->uplink);
	vec_each (&node->pending, const struct node_release *release) {
		if (!release->plan.stuck)
			continue;
		stuck[view.stuck_count] = releases_find(&node->releases, release->allocation);
		stuck_by[view.stuck_count] = who_holds(node, stuck[view.stuck_count], &texts);
		view.stuck_count++;
	}
	conditions_decide(&view, &node->conditions, clock_wall(), &conditions);
	if (!conditions_equal(&conditions, &node->conditions))
		node->conditions_due = true;
	vec_deinit(&node->conditions);
	node->conditions = conditions;
}

/* --- inventory --- */

static void look_at_inventory(struct node *node)
{
	CLEANUP(arena) struct arena arena = {0};
	CLEANUP(buf) struct buf packed = {0};
	struct inventory_report report = report_inventory(node);
	struct error error;

	if (!source_settled(node->gpus))
		return; /* "no GPUs" would be heard as "they are gone" */
	if (!inventory_pack(inventory_report_message(&report, &arena), &packed, &error)) {
		log_failure(LOG_ERROR, "inventory", &error, "the one of before stands");
		return;
	}
	if (packed.length == node->inventory_told.length && packed.length > 0 &&
	    memcmp(packed.data, node->inventory_told.data, packed.length) == 0)
		return;
	buf_deinit(&node->inventory_told);
	node->inventory_told = packed;
	packed = (struct buf){0};
	node->inventory_due = true;
}

void report_look(struct node *node, struct mono now)
{
	char lineage[SPEC_LINEAGE_SIZE];

	look_at_inventory(node);
	look_at_conditions(node, now);
	if (!node->uplink)
		return;
	if (uplink_take_welcome(node->uplink, lineage)) {
		str_copy(node->lineage, sizeof node->lineage, lineage);
		node->sent = 0;
		/* Told at every Hello, whatever was told before (GW-28). */
		node->inventory_due = source_settled(node->gpus);
		node->conditions_due = true;
	}
	uplink_renew(node->uplink, clock_wall());
}

/* --- the queue --- */

bool report_may_go(const struct node *node)
{
	return node->uplink && uplink_phase(node->uplink) == UPLINK_OPEN &&
	       (!node->spec || str_equal(node->spec->lineage, node->lineage));
}

static void send_report(struct node *node, const struct report *report)
{
	const struct inventory_report inventory = report_inventory(node);
	const struct uplink_truth truth = {&inventory, &node->conditions};
	CLEANUP(buf) struct buf message = {0};
	struct error error;

	if (!uplink_pack_report(report, &truth, &message, &error)) {
		log_failure(LOG_ERROR, "report.pack", &error, "it is left out");
		return;
	}
	uplink_send(node->uplink, &message);
}

/* Everything on disk that this stream hasn't carried yet; a number is sent only once it is on disk.
 */
static void send_reports(struct node *node)
{
	for (size_t i = 0; i < node->reports.queue.count; i++) {
		const struct report *report = &node->reports.queue.items[i];

		if (report->sequence > node->reports_stored)
			return; /* it is being written: the next turn */
		if (report->sequence <= node->sent)
			continue;
		if (uplink_full(node->uplink))
			return; /* on_drain wakes us */
		send_report(node, report);
		node->sent = report->sequence;
	}
}

void report_step(struct node *node, struct mono now)
{
	const struct uplink_hello hello = {
		.boot_id = node->boot_id,
		.hostname = node->machine.hostname,
		.spec = node->spec,
		.last_sequence = node->reports.sequence,
		.has_gpus = source_inventory(node->gpus)->gpus.count > 0,
		.serves_kubelet = config_hosted(node->config),
		.has_holds = holds_devices(node) || node->holds_error.code != ERROR_NONE,
	};
	bool timed;
	struct mono again;

	/* The Hello says what this machine can do; before its GPUs were read nobody knows. */
	if (!node->uplink || !source_settled(node->gpus))
		return;
	again = uplink_step(node->uplink, &hello, now, &timed);
	if (timed)
		node_again(node, again);
	if (report_may_go(node))
		send_reports(node);
}
