#include "node/core/conditions.h"

#include <stdio.h>

const struct condition *conditions_find(const struct conditions *conditions, const char *type)
{
	for (size_t i = 0; i < conditions->count; i++)
		if (str_equal(conditions->items[i].type, type))
			return &conditions->items[i];
	return NULL;
}

static void add(struct conditions *conditions, const char *type, const char *reason,
		const char *message)
{
	struct condition *condition = vec_push(conditions);

	str_copy(condition->type, sizeof condition->type, type);
	str_copy(condition->reason, sizeof condition->reason, reason);
	str_copy(condition->message, sizeof condition->message, message);
}

/* Words until the message is full, then how many things are missing (GW-29). */
static void add_stuck(struct conditions *conditions, const struct conditions_view *view)
{
	CLEANUP(buf) struct buf text = {0};
	const size_t room = CONDITIONS_MESSAGE_SIZE - 1 - sizeof ", and 1000 more";

	for (size_t i = 0; i < view->stuck_count; i++) {
		const struct release_entry *entry = view->stuck[i];
		const char *by = view->stuck_by ? view->stuck_by[i] : NULL;
		CLEANUP(buf) struct buf one = {0};

		buf_printf(&one, "%spods hold devices of released %s%s", i ? "; " : "",
			   entry->allocation, entry->devices.count > 0 ? ":" : "");
		for (size_t j = 0; j < entry->devices.count; j++) {
			char atom[ATOM_TEXT_SIZE];

			atom_format(atom, &entry->devices.items[j].atom);
			if (text.length + one.length + strlen(atom) + 2 > room) {
				buf_printf(&one, " and %zu more", entry->devices.count - j);
				break;
			}
			buf_printf(&one, "%s %s", j ? "," : "", atom);
		}
		if (text.length + one.length > room) {
			buf_printf(&text, ", and %zu more", view->stuck_count - i);
			break;
		}
		buf_add(&text, one.data, one.length);
		if (by && *by && text.length + strlen(by) + 4 <= room)
			buf_printf(&text, " [%s]", by);
	}
	add(conditions, CONDITION_RELEASE_STUCK, "PodsHoldDevices", buf_text(&text));
}

static bool pod_resources_gone(const struct conditions_view *view)
{
	return view->holds_devices && view->pod_failures > 0 &&
	       (view->pod_failures >= CONDITIONS_POD_FAILURES ||
		view->pod_failing_ms >= CONDITIONS_POD_MS);
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
	char text[CONDITIONS_MESSAGE_SIZE];

	if (view->stuck_count > 0)
		add_stuck(&conditions, view);
	if (pod_resources_gone(view)) {
		snprintf(text, sizeof text,
			 "released devices can't be checked: the kubelet's pod-resources socket "
			 "doesn't answer: %s",
			 view->pod_error);
		add(&conditions, CONDITION_POD_RESOURCES, "PodResourcesFailing", text);
	}
	if (view->api_error) {
		snprintf(text, sizeof text,
			 "pods that hold released devices can't be deleted, the kubelet alone ends "
			 "them: %s",
			 view->api_error);
		add(&conditions, CONDITION_API, "ApiServerFailing", text);
	}
	if (view->releases_marker) {
		snprintf(
			text, sizeof text,
			"pending releases could not be read; every GPU is claimed until no pod can "
			"hold one, or until %s is removed%s%s",
			view->releases_marker,
			view->releases_way && *view->releases_way ? "; in the way: " : "",
			view->releases_way ? view->releases_way : "");
		add(&conditions, CONDITION_RELEASES_UNREADABLE, "ReleasesFileUnreadable", text);
	}
	if (view->holds_error)
		add(&conditions, CONDITION_HOLDS_UNREADABLE, "CdiSpecUnreadable",
		    view->holds_error);
	if (view->spec_error)
		add(&conditions, CONDITION_SPEC_UNREADABLE, "SpecFileUnreadable", view->spec_error);
	if (view->gpus_error) {
		snprintf(text, sizeof text, "%s%s%s", view->gpus_error, view->gpus_next ? ". " : "",
			 view->gpus_next ? view->gpus_next : "");
		add(&conditions, CONDITION_GPUS_UNREADABLE, "GpuSourceUnreadable", text);
	}
	if (view->gpu_strangers) {
		snprintf(text, sizeof text,
			 "the driver can't say which GPU this is, so nothing can be booked of it: "
			 "%s",
			 view->gpu_strangers);
		add(&conditions, CONDITION_GPU_UNIDENTIFIED, "GpuWithoutUuid", text);
	}
	if (view->health_marker) {
		snprintf(text, sizeof text,
			 "what was known of the GPUs' health could not be read; every GPU is "
			 "unhealthy until the driver is loaded again, the machine boots, or %s is "
			 "removed",
			 view->health_marker);
		add(&conditions, CONDITION_HEALTH_UNREADABLE, "HealthFileUnreadable", text);
	}
	if (view->kernel_log_error) {
		snprintf(text, sizeof text,
			 "XIDs are known only as far as NVML tells them: the kernel's log can't be "
			 "followed: %s",
			 view->kernel_log_error);
		add(&conditions, CONDITION_KERNEL_LOG, "KernelLogFailing", text);
	}
	if (!view->host_units)
		add(&conditions, CONDITION_HOST_UNITS, "HostManagedExternally",
		    "informational, nothing is wrong: host section UNSUPPORTED: this host's units "
		    "are managed by others; bcd only binds GPUs");
	vec_sort(&conditions, compare_conditions);
	for (size_t i = 0; i < conditions.count; i++) {
		const struct condition *old = conditions_find(before, conditions.items[i].type);

		conditions.items[i].since = old ? old->since : now;
	}
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
