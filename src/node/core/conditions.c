#include "node/core/conditions.h"

#include <stddef.h>

const struct condition *conditions_find(const struct conditions *conditions, const char *type)
{
	for (size_t i = 0; i < conditions->count; i++)
		if (str_equal(conditions->items[i].type, type))
			return &conditions->items[i];
	return NULL;
}

/* Which devices, as far as there is room for them. */
static void add_devices(struct buf *one, const struct release_entry *entry, size_t room)
{
	for (size_t j = 0; j < entry->devices.count; j++) {
		char atom[ATOM_TEXT_SIZE];

		atom_format(atom, &entry->devices.items[j].atom);
		if (one->length + strlen(atom) + 3 > room) {
			buf_printf(one, "%s%zu more", j ? " and " : " (", entry->devices.count - j);
			break;
		}
		buf_printf(one, "%s%s", j ? ", " : " (", atom);
	}
	if (entry->devices.count > 0)
		buf_add_char(one, ')');
}

/* What keeps each of them, then its devices; what doesn't fit is left out and counted (GW-29). The
 * control plane tells a reservation what begins with its allocation (control/core/degraded.h). */
static void write_releases(const struct conditions_releases *releases, struct buf *text)
{
	const size_t room = CONDITIONS_MESSAGE_SIZE - 1 - sizeof "; and 1000 more";
	const size_t more = sizeof " and 1000 more)";

	for (size_t i = 0; i < releases->count; i++) {
		const struct release_entry *entry = releases->entries[i];
		const char *why = releases->why ? releases->why[i] : "";
		bool named = false;
		CLEANUP(buf) struct buf one = {0};

		buf_printf(&one, "%s%s", i ? "; " : "", entry->allocation);
		if (*why && text->length + one.length + strlen(why) + 2 + more <= room) {
			buf_printf(&one, ": %s", why);
			named = releases->named && releases->named[i];
		}
		if (text->length + one.length + more > room) {
			buf_printf(text, "; and %zu more", releases->count - i);
			break;
		}
		if (!named)
			add_devices(&one, entry, room - more - text->length);
		buf_add(text, one.data, one.length);
	}
}

/* --- those of which more is to be said than one text of the view --- */

static bool is_pending(const struct conditions_view *view, struct buf *text)
{
	write_releases(&view->pending, text);
	return view->pending.count > 0;
}

static bool is_stuck(const struct conditions_view *view, struct buf *text)
{
	write_releases(&view->stuck, text);
	return view->stuck.count > 0;
}

static bool pod_resources_gone(const struct conditions_view *view, struct buf *text)
{
	buf_printf(
		text,
		"released devices can't be checked, and none is bound before it is known that no "
		"pod has it: the kubelet's pod-resources socket doesn't answer: %s. See to the "
		"kubelet, and to its folder pod-resources/",
		view->pod_error ? view->pod_error : "");
	return view->holds_devices && view->pod_failures > 0 &&
	       (view->pod_failures >= CONDITIONS_POD_FAILURES ||
		view->pod_failing_ms >= CONDITIONS_POD_MS);
}

static bool processes_unseen(const struct conditions_view *view, struct buf *text)
{
	buf_printf(
		text,
		"released GPUs count as held, and none is bound: whether a pod's process has one "
		"open can't be seen: %s. Give bcd the capabilities that its unit has",
		view->process_error ? view->process_error : "");
	return view->process_error && view->process_failing_ms >= CONDITIONS_POD_MS;
}

static bool plugins_fail(const struct conditions_view *view, struct buf *text)
{
	buf_printf(text,
		   "the kubelet can't be told what is bound, or it can't be seen whether it still "
		   "listens: pods may get none of it: %s. See to the kubelet and to its folder; it "
		   "is tried again",
		   view->plugin_error ? view->plugin_error : "");
	return view->plugin_error && view->plugin_failing_ms >= CONDITIONS_POD_MS;
}

static bool api_fails(const struct conditions_view *view, struct buf *text)
{
	const char *hint = view->api_hint && *view->api_hint
				   ? view->api_hint
				   : "See to the API server, or to [kubernetes] kubeconfig";

	if (view->api_error && view->api_partial) {
		buf_printf(text,
			   "it can't be told which pods are gone, and what they had stays held: "
			   "%s. See to that pod's object; the other pods are ended as ever",
			   view->api_error);
		return true;
	}
	buf_printf(text, "%s: %s. %s",
		   view->api_needed
			   ? "pods that hold released devices can't be deleted, the kubelet alone "
			     "ends them"
			   : "devices are offered and released all the same, but the Node's labels "
			     "aren't kept and no pod can be deleted",
		   view->api_error ? view->api_error : "", hint);
	return view->api_error;
}

static bool releases_unread(const struct conditions_view *view, struct buf *text)
{
	const char *way = view->releases_way ? view->releases_way : "";

	buf_printf(text,
		   "pending releases could not be read; every GPU is claimed until no pod can hold "
		   "one, or until %s is removed%s%s",
		   view->releases_marker ? view->releases_marker : "", *way ? "; in the way: " : "",
		   way);
	return view->releases_marker;
}

static bool records_unwritable(const struct conditions_view *view, struct buf *text)
{
	if (view->write_error)
		buf_printf(text,
			   "nothing is bound, withdrawn or reported as released%s: what is decided "
			   "can't be recorded: %s. %s",
			   view->withheld ? ", nor given to a pod" : "", view->write_error->what,
			   view->write_error->hint);
	return view->write_error;
}

static bool gpus_unread(const struct conditions_view *view, struct buf *text)
{
	buf_printf(text, "%s%s%s", view->gpus_error ? view->gpus_error : "",
		   view->gpus_next ? ". " : "", view->gpus_next ? view->gpus_next : "");
	return view->gpus_error;
}

static bool others_configure(const struct conditions_view *view, struct buf *text)
{
	buf_add_text(text, "informational, nothing is wrong: host section UNSUPPORTED: this host's "
			   "units are managed by others; bcd only binds GPUs");
	return !view->host_units;
}

/* --- all --- */

#define TOLD(member) offsetof(struct conditions_view, member)

/* Either what decides and writes the message, or a text of the view, which is NULL while all is well,
 * and what stands around it. */
static const struct row {
	const char *type, *reason;
	bool (*is_so)(const struct conditions_view *view, struct buf *text);
	size_t told;
	const char *before, *after;
} ROWS[] = {
	{CONDITION_RELEASE_PENDING, "PodsHoldDevices", is_pending, 0, NULL, NULL},
	{CONDITION_RELEASE_STUCK, "PodsHoldDevices", is_stuck, 0, NULL, NULL},
	{CONDITION_POD_RESOURCES, "PodResourcesFailing", pod_resources_gone, 0, NULL, NULL},
	{CONDITION_PROCESSES, "ProcessesUnreadable", processes_unseen, 0, NULL, NULL},
	{CONDITION_PLUGINS, "RegistrationFailing", plugins_fail, 0, NULL, NULL},
	{CONDITION_GPU_OPEN, "PodProcessesHaveGpus", NULL, TOLD(gpus_open),
	 "not bound to anybody while pods of which the kubelet says nothing have it open: ",
	 ". End what has it open"},
	{CONDITION_API, "ApiServerFailing", api_fails, 0, NULL, NULL},
	{CONDITION_NODE_UNKNOWN, "NodeNotFound", NULL, TOLD(unknown_node),
	 "the cluster has no Node '",
	 "', so nothing is offered: NODE_NAME (or kubernetes.node_name) must be the name of this "
	 "machine's Node"},
	{CONDITION_NOT_SERVED, "HostUnitsOn", NULL, TOLD(not_served),
	 "nothing is offered to the kubelet of Node '",
	 "', so no pod gets a GPU of it: host units are on, and this release has none. Have [host] "
	 "units = false in config.toml (of a DaemonSet: render it without hostUnits)"},
	{CONDITION_EXPOSURE, "OtherGpuPath", NULL, TOLD(exposure), "", ""},
	{CONDITION_RELEASES_UNREADABLE, "ReleasesFileUnreadable", releases_unread, 0, NULL, NULL},
	{CONDITION_CLAIMS_UNREADABLE, "PreparedFileUnreadable", NULL, TOLD(claims_error),
	 "every released device counts as held, and none is bound, since the record of prepared "
	 "claims can't be read: ",
	 ". When no pod of this node has a claim of gpu.bcd.dev, remove the file"},
	{CONDITION_RECORDS_UNWRITABLE, "RecordFileFailing", records_unwritable, 0, NULL, NULL},
	{CONDITION_REPORTS_UNREADABLE, "ReportsFileUnreadable", NULL, TOLD(reports_error),
	 "reports that waited could not be read; all that is held and pending is told anew, "
	 "nothing "
	 "is to be done: ",
	 ""},
	{CONDITION_HOLDS_UNREADABLE, "CdiSpecUnreadable", NULL, TOLD(holds_error),
	 "nothing is bound, given or released while what is bound can't be read; put the file in "
	 "order, or remove it once no pod uses its devices: the Spec binds them again: ",
	 ""},
	{CONDITION_SPEC_UNREADABLE, "SpecFileUnreadable", NULL, TOLD(spec_error),
	 "what is bound stays bound until the control plane sends a Spec that can be read, which "
	 "it "
	 "does at each connection: ",
	 ""},
	{CONDITION_GPUS_UNREADABLE, "GpuSourceUnreadable", gpus_unread, 0, NULL, NULL},
	{CONDITION_HEALTH_UNREADABLE, "HealthFileUnreadable", NULL, TOLD(health_marker),
	 "what was known of the GPUs' health could not be read; every GPU is unhealthy until the "
	 "driver is loaded again, the machine boots, or ",
	 " is removed"},
	{CONDITION_GPU_UNIDENTIFIED, "GpuWithoutUuid", NULL, TOLD(gpu_strangers),
	 "the driver can't say which GPU this is, so nothing can be booked of it: ",
	 ". See to that GPU and its driver"},
	{CONDITION_KERNEL_LOG, "KernelLogFailing", NULL, TOLD(kernel_log_error),
	 "XIDs are known only as far as NVML tells them: the kernel's log can't be followed: ",
	 ". It takes root or CAP_SYSLOG; [gpu] kernel_log says where it is"},
	{CONDITION_HOST_SHORT, "BookedBeyondMachine", NULL, TOLD(overbooked),
	 "this machine has less than is booked of it; what is bound stays, and what would need "
	 "more "
	 "is refused: ",
	 ". Put back what was taken out, or end bookings"},
	{CONDITION_GPU_API, "NotOffered", NULL, TOLD(unoffered),
	 "nothing is offered to the kubelet, and nothing more is bound: ", ""},
	{CONDITION_HOST_UNITS, "HostManagedExternally", others_configure, 0, NULL, NULL},
};

const char *conditions_type(size_t index)
{
	return index < ARRAY_SIZE(ROWS) ? ROWS[index].type : NULL;
}

static bool is_so(const struct row *row, const struct conditions_view *view, struct buf *text)
{
	const char *told;

	if (row->is_so)
		return row->is_so(view, text);
	told = *(const char *const *)((const char *)view + row->told);
	if (told)
		buf_printf(text, "%s%s%s", row->before, told, row->after);
	return told;
}

static int compare_conditions(const void *a, const void *b)
{
	const struct condition *left = a, *right = b;

	return strcmp(left->type, right->type);
}

void conditions_decide(const struct conditions_view *view, const struct conditions *before,
		       struct wall now, struct conditions *ret_conditions)
{
	struct conditions conditions = {0};

	for (size_t i = 0; i < ARRAY_SIZE(ROWS); i++) {
		const struct condition *old = conditions_find(before, ROWS[i].type);
		CLEANUP(buf) struct buf text = {0};
		struct condition *condition;

		if (!is_so(&ROWS[i], view, &text))
			continue;
		condition = vec_push(&conditions);
		str_copy(condition->type, sizeof condition->type, ROWS[i].type);
		str_copy(condition->reason, sizeof condition->reason, ROWS[i].reason);
		str_copy(condition->message, sizeof condition->message, buf_text(&text));
		condition->since = old ? old->since : now;
	}
	vec_sort(&conditions, compare_conditions);
	*ret_conditions = conditions;
}

bool conditions_equal(const struct conditions *a, const struct conditions *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (!str_equal(a->items[i].type, b->items[i].type) ||
		    !str_equal(a->items[i].reason, b->items[i].reason) ||
		    !str_equal(a->items[i].message, b->items[i].message))
			return false;
	return true;
}
