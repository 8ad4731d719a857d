#include "control/core/node_conditions.h"

/* All that bcd is known to report, and which of them keep new work away. */
static const struct {
	const char *type;
	bool no_schedule;
} TYPES[] = {
	{"ForeignGpuExposure", true},
	{"KubernetesReleaseStuck", true},
	{"KubernetesReleasesUnreadable", true},
	{"PodResourcesUnavailable", true},
	{"RecordsUnwritable", true},
	{"DevicePluginUnavailable", false},
	{"GpuApiUnsupported", false},
	{"GpuHealthUnreadable", false},
	{"GpuUnidentified", false},
	{"GpusUnreadable", false},
	{"HoldsUnreadable", false},
	{"HostResourcesShort", false},
	{"HostUnsupported", false},
	{"KernelLogUnreadable", false},
	{"KubernetesApiUnavailable", false},
	{"KubernetesBindingUnsupported", false},
	{"KubernetesGpuOpen", false},
	{"KubernetesNodeUnknown", false},
	{"KubernetesReleasePending", false},
	{"PodProcessesUnavailable", false},
	{"PreparedClaimsUnreadable", false},
	{"ReportsUnreadable", false},
	{"SpecUnreadable", false},
};

bool node_condition_no_schedule(const char *type, bool tenant_controlled)
{
	for (size_t i = 0; i < ARRAY_SIZE(TYPES); i++) {
		if (str_equal(TYPES[i].type, type))
			return TYPES[i].no_schedule && !tenant_controlled;
	}
	return false;
}

bool node_condition_is_known(const char *type)
{
	for (size_t i = 0; i < ARRAY_SIZE(TYPES); i++) {
		if (str_equal(TYPES[i].type, type))
			return true;
	}
	return false;
}

static const struct node_condition *find(const struct node_condition *set, size_t count,
					 const char *type)
{
	for (size_t i = 0; i < count; i++) {
		if (str_equal(set[i].type, type))
			return &set[i];
	}
	return NULL;
}

static bool same(const struct node_condition *a, const struct node_condition *b)
{
	return str_equal(a->reason, b->reason) && str_equal(a->message, b->message);
}

static int compare_changes(const void *a, const void *b)
{
	const struct node_condition_change *left = a, *right = b;

	return strcmp((left->now ? left->now : left->before)->type,
		      (right->now ? right->now : right->before)->type);
}

void node_conditions_diff(const struct node_condition *before, size_t before_count,
			  const struct node_condition *now, size_t now_count,
			  struct node_condition_changes *changes)
{
	for (size_t i = 0; i < before_count; i++) {
		if (!find(now, now_count, before[i].type))
			*vec_push(changes) = (struct node_condition_change){.before = &before[i]};
	}
	for (size_t i = 0; i < now_count; i++) {
		const struct node_condition *old = find(before, before_count, now[i].type);

		if (find(now, i, now[i].type) || (old && same(old, &now[i])))
			continue;
		*vec_push(changes) = (struct node_condition_change){.before = old, .now = &now[i]};
	}
	vec_sort(changes, compare_changes);
}
