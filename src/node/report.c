#include "base/utf8.h"
#include "node/core/clinging.h"
#include "node/core/gpu_api.h"
#include "node/core/inventory_report.h"
#include "node/records.h"
#include "node/state.h"
#include "proto/message.h"
#include "sys/log.h"

#define PLUGIN_ERROR_MAX 300 /* bytes of each: both classes have room in a condition */

MESSAGE_TYPE(inventory, Bettercompute__V1__Inventory, bettercompute__v1__inventory)

bool node_offers(const struct node *node, struct buf *why)
{
	return gpu_api_offers(node->config->gpu_api, node->spec ? node->spec->gpu_api : "", why);
}

struct admission_share node_host(const struct node *node)
{
	const struct config *config = node->config;
	const struct admission_share machine = {node->machine.vcpus, node->machine.memory_bytes,
						node->machine.hugepages};
	const struct admission_share reserved = {
		.vcpus = config->reserved_vcpu,
		.memory_bytes = config->reserved_memory_mib << 20,
	};

	return admission_bookable(&machine, &reserved);
}

struct inventory_report report_inventory(const struct node *node)
{
	struct admission_share host = node_host(node);

	return (struct inventory_report){
		.inventory = source_inventory(node->gpus),
		.node_name = node->config->node_name,
		.hostname = node->machine.hostname,
		.kernel = node->machine.kernel,
		.host = host,
		.gpu_api = node->config->gpu_api,
	};
}

/* --- conditions --- */

static bool holds_devices(const struct node *node)
{
	return node->holds.count > 0 || node->releases.entries.count > 0;
}

static const char *who_holds(const struct node *node, const struct release_entry *entry,
			     bool *ret_named, struct arena *arena)
{
	CLEANUP(clingers) struct clingers clingers = {0};
	VEC(struct clinging_holder) holders = {0};
	CLEANUP(buf) struct buf text = {0};

	reaper_clingers(node->reaper, entry, &clingers);
	vec_each (&clingers, const struct clinger *clinger)
		*vec_push(&holders) = (struct clinging_holder){clinger->name, clinger->uid,
							       clinger->id, clinger->plan};
	*ret_named = clinging_describe(entry, holders.items, holders.count, &text);
	vec_deinit(&holders);
	return arena_strdup(arena, buf_text(&text));
}

/* What keeps it: who holds its devices, or why that isn't known; "" while nobody is known to. */
static const char *what_keeps(const struct node *node, const struct release_entry *entry,
			      bool *ret_named, struct arena *arena)
{
	const char *who = who_holds(node, entry, ret_named, arena);
	bool silent = node->holders_failures >= CONDITIONS_POD_FAILURES;

	if (!silent)
		return who;
	return arena_printf(arena,
			    "%s, the kubelet's pod-resources doesn't answer: %s. Start the "
			    "kubelet: until it answers they count as held",
			    *who ? arena_printf(arena, "last known to be %s", who)
				 : "not known who holds its devices",
			    node->holders_error);
}

/* What is booked beyond the machine; NULL when nothing is, or when it isn't known what is bound. */
static const char *overbooked(const struct node *node, struct arena *arena)
{
	struct admission_share host = node_host(node);
	struct admission_share taken = converge_booked(&node->holds, &node->releases, "");
	CLEANUP(buf) struct buf text = {0};

	if (node->holds_error.code == ERROR_NONE && admission_overbooked(&host, &taken, &text))
		return arena_strdup(arena, buf_text(&text));
	return NULL;
}

/* Of a kubelet that isn't ours something else is said. */
static const char *unoffered(const struct node *node, struct arena *arena)
{
	CLEANUP(buf) struct buf why = {0};

	if (!node_serves_kubelet(node) || node_offers(node, &why))
		return NULL;
	return arena_strdup(arena, buf_text(&why));
}

/* Until the control plane has heard all of it. */
static const char *reports_error(struct node *node)
{
	bool waits = node->reports.queue.count > 0 &&
		     node->reports.queue.items[0].sequence <= node->reports_anew;

	if (node->reports_error.code == ERROR_NONE)
		return NULL;
	if (waits || node->unread || node->reports_stored < node->reports_anew)
		return node->reports_error.what;
	node->reports_error = (struct error){0};
	return NULL;
}

/* What conditions say of releases; entries and texts are borrowed. */
struct releases_told {
	const struct release_entry *entries[RELEASES_MAX];
	const char *why[RELEASES_MAX];
	bool named[RELEASES_MAX];
	size_t count;
};

/* One that is under way is told of once it is known who is in its way. */
static void tell_release(const struct node *node, const struct node_release *release,
			 struct releases_told *pending, struct releases_told *stuck,
			 struct arena *texts)
{
	const struct release_entry *entry = releases_find(&node->releases, release->allocation);
	struct releases_told *told = release->plan.stuck ? stuck : pending;
	bool named = false;
	const char *keeps = entry ? what_keeps(node, entry, &named, texts) : "";

	if (!entry || (!release->plan.stuck && !*keeps))
		return;
	told->entries[told->count] = entry;
	told->named[told->count] = named;
	told->why[told->count++] = *keeps ? keeps : release->plan.why ? release->plan.why : "";
}

static const char *process_error(const struct node *node)
{
	if (node->processes_failing && (node->releases.entries.count > 0 || node->marker))
		return node->processes.error.what;
	return node->doubted ? strays_trouble(node) : NULL;
}

/* Of each resource that the kubelet can't be told of, why; NULL: of none. */
static const char *plugin_error(const struct node *node, struct mono now, int64_t *failing_ms,
				struct arena *arena)
{
	CLEANUP(buf) struct buf text = {0};

	for (size_t i = 0; i < ATOM_CLASSES; i++) {
		struct deviceplugin_state state = deviceplugin_state(node->plugins[i]);
		char resource[OFFER_RESOURCE_SIZE];

		if (!state.failing)
			continue;
		offer_resource(resource, (enum atom_class)i);
		buf_printf(&text, "%s%s: %.*s", text.length > 0 ? "; " : "", resource,
			   PLUGIN_ERROR_MAX, state.error);
		if (*failing_ms < mono_until(state.failing_since, now))
			*failing_ms = mono_until(state.failing_since, now);
	}
	return text.length > 0 ? arena_strdup(arena, buf_text(&text)) : NULL;
}

/* What processes alone have, of pods that the kubelet says nothing of; NULL: nothing. */
static const char *gpus_open(const struct node *node, struct arena *arena)
{
	CLEANUP(buf) struct buf text = {0};

	vec_each (&node->strays.items, const struct stray *stray) {
		char atom[ATOM_TEXT_SIZE];

		if (!stray->process)
			continue;
		atom_format(atom, &stray->atom);
		buf_printf(&text, "%s%s by %s", text.length > 0 ? "; " : "", atom, stray->who);
	}
	return text.length > 0 ? arena_strdup(arena, buf_text(&text)) : NULL;
}

static void look_at_conditions(struct node *node, struct mono now)
{
	struct releases_told pending = {0}, stuck = {0};
	CLEANUP(arena) struct arena texts = {0};
	const struct error *reaper = reaper_trouble(node->reaper);
	const struct error *api = reaper ? reaper : labels_trouble(node->labels);
	const struct error *gpus = source_error(node->gpus);
	const struct error *log = source_log_error(node->gpus);
	struct conditions conditions = {0};
	int64_t plugin_ms = 0;
	struct conditions_view view = {
		.holds_devices = holds_devices(node) || node->doubted,
		.pod_failures = node->holders_failures,
		.pod_failing_ms = mono_until(node->holders_failing_since, now),
		.pod_error = node->holders_error,
		.process_error = process_error(node),
		.process_failing_ms =
			mono_until(node->processes_failing ? node->processes_failing_since
							   : node->doubted_since,
				   now),
		.plugin_error = plugin_error(node, now, &plugin_ms, &texts),
		.gpus_open = gpus_open(node, &texts),
		.api_error = api ? api->what : NULL,
		.api_hint = api ? api->hint : NULL,
		.api_needed = reaper,
		.api_partial = reaper && reaper_partial(node->reaper),
		.unknown_node = labels_node_unknown(node->labels) ? node->config->node_name : NULL,
		.not_served = !config_hosted(node->config) && *node->config->node_name
				      ? node->config->node_name
				      : NULL,
		.exposure = exposure_open(node->exposure),
		.releases_marker = node->marker ? node->marker_path : NULL,
		.releases_way = node->misplaced ? node->misplaced_why : node->outside.who,
		.claims_error = node->listing.record.code ? node->listing.record.what : NULL,
		.write_error = records_trouble(node, now),
		.withheld = node->withheld.code != ERROR_NONE,
		.reports_error = reports_error(node),
		.holds_error = node->holds_error.code ? node->holds_error.what : NULL,
		.spec_error = node->spec_error.code ? node->spec_error.what : NULL,
		.gpus_error = gpus ? gpus->what : NULL,
		.gpus_next = gpus && *gpus->hint ? gpus->hint : NULL,
		.gpu_strangers = source_strangers(node->gpus),
		.health_marker = source_marker(node->gpus),
		.kernel_log_error = log ? log->what : NULL,
		.overbooked = overbooked(node, &texts),
		.unoffered = unoffered(node, &texts),
		.host_units = node->config->host_units,
	};

	view.plugin_failing_ms = plugin_ms;
	if (!view.spec_error && node->uplink && *uplink_spec_error(node->uplink))
		view.spec_error = uplink_spec_error(node->uplink);
	vec_each (&node->pending, const struct node_release *release)
		tell_release(node, release, &pending, &stuck, &texts);
	view.pending = (struct conditions_releases){pending.entries, pending.why, pending.named,
						    pending.count};
	view.stuck =
		(struct conditions_releases){stuck.entries, stuck.why, stuck.named, stuck.count};
	conditions_decide(&view, &node->conditions, clock_wall(), &conditions);
	if (!conditions_equal(&conditions, &node->conditions))
		node->conditions_due = node->conditions_untold = true;
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
	if (!node->gpus_changed && node->inventory_told.length > 0)
		return;
	node->gpus_changed = false;
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

/* An older control plane doesn't say where the node is; what isn't text can't be kept as it came. */
static void note_place(struct node *node, const struct uplink_welcome *welcome)
{
	struct node_place *place = &node->place;

	if (!*welcome->site || !*welcome->pool || !utf8_valid(welcome->site) ||
	    !utf8_valid(welcome->pool))
		return;
	str_copy(place->site, sizeof place->site, welcome->site);
	str_copy(place->pool, sizeof place->pool, welcome->pool);
	node->place_due = node->identity && (!str_equal(node->identity->site, place->site) ||
					     !str_equal(node->identity->pool, place->pool));
}

void report_look(struct node *node, struct mono now)
{
	struct uplink_welcome welcome;

	look_at_inventory(node);
	look_at_conditions(node, now);
	if (!node->uplink)
		return;
	if (uplink_take_welcome(node->uplink, &welcome)) {
		str_copy(node->lineage, sizeof node->lineage, welcome.lineage);
		note_place(node, &welcome);
		node->sent = 0;
		/* Told at every Hello, whatever was told before (GW-28). */
		node->inventory_due = source_settled(node->gpus);
		node->conditions_due = node->conditions_untold = true;
	}
	uplink_renew(node->uplink, clock_wall());
}

/* --- the queue --- */

bool report_may_go(const struct node *node)
{
	return node->uplink && uplink_phase(node->uplink) == UPLINK_OPEN &&
	       !(node->identity && node->identity->fresh) && /* what waits may be another's */
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
	uplink_send(node->uplink, report->sequence, &message);
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

/* A report needs a number that is on disk; while none gets there, what is wrong is told without one. */
static void tell_unrecorded(struct node *node)
{
	const struct report report = {.kind = REPORT_CONDITIONS};

	if (!records_fail(node) || !node->conditions_untold || uplink_full(node->uplink))
		return;
	send_report(node, &report);
	node->conditions_untold = false;
}

void report_step(struct node *node, struct mono now)
{
	const struct uplink_hello hello = {
		.boot_id = node->boot_id,
		.hostname = node->machine.hostname,
		.spec = node->unsynced ? NULL : node->spec,
		.unready = node->unread || (node->unsynced && !records_fail(node)),
		.last_sequence = node->reports.sequence,
		.has_gpus = source_inventory(node->gpus)->gpus.count > 0,
		.serves_kubelet = node_serves_kubelet(node),
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
	tell_unrecorded(node);
	if (report_may_go(node) && !node->unsynced)
		send_reports(node);
}
