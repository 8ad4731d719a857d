/* view's reasons: why what was asked for was not given, in words. */
#include "cli/view.h"

/* Why a node can't give what was asked for, as what follows "2 nodes: ". */
static const struct {
	const char *reason, *text;
} REASONS[] = {
	{"PoolEmpty", "the pool has no nodes"},
	{"TenantControlled", "controlled by its tenant, so it is not lent to others"},
	{"NodeNotReady", "not ready yet, draining or gone"},
	{"NodeUnreachable", "not heard of for a while"},
	{"KubernetesBindingUnsupported", "its bcd can't offer devices to a kubelet"},
	{"DraUnsupported", "its bcd has no DRA driver, which the pool's gpuApi asks for"},
	{"GpuApiDiffers", "its config.toml has another gpu_api than the pool, make them the same"},
	{"AssignmentLimitsUnsupported", "its bcd can't limit CPUs and memory"},
	{"NodeRefused", "refused this reservation a moment ago"},
	{"DeviceClassMissing", "too few devices of this kind"},
	{"DevicesUnhealthy", "too few healthy devices"},
	{"DevicesBusy", "too few devices free in that time"},
	{"HostVcpuShort", "too few host CPUs free in that time"},
	{"HostMemoryShort", "too little host memory free in that time"},
	{"HostHugepagesShort", "too few huge pages free in that time"},
	{"ForeignGpuExposure", "something else offers its GPUs to pods"},
	{"KubernetesReleaseStuck", "a release there doesn't end, `nodes show` says why"},
	{"KubernetesReleasesUnreadable", "its record of releases can't be read"},
	{"PodResourcesUnavailable", "the kubelet doesn't say which pods hold devices"},
	{"HostUnsupported", "the host can't do this"},
	{"SpotOnly", "only for spot reservations, say --spot"},
	{"TopologyUnknown", "no label tells where it stands"},
	{"TopologyElsewhere", "not together with enough others"},
	{"GangMember", "in this gang already"},
	{"WaitingGang", "kept for a gang that waits"},
	{"TooFewNodes", "free, but too few of them for the gang"},
	{"QuotaExceeded", "over the tenant's quota"},
};

static const char *reason_text(const char *reason)
{
	for (size_t i = 0; i < ARRAY_SIZE(REASONS); i++) {
		if (str_equal(REASONS[i].reason, reason))
			return REASONS[i].text;
	}
	return NULL;
}

/* "99 GPUs" for whole GPUs alone, else as view_devices. */
static const char *asked_text(struct arena *arena, const json_t *devices)
{
	const json_t *first = json_array_get(devices, 0);
	const char *class = view_text(first, "class");
	int64_t count = view_number(first, "count");

	if (json_array_size(devices) == 1 && class && str_equal(class, "gpu"))
		return arena_printf(arena, "%lld GPU%s", (long long)count, count == 1 ? "" : "s");
	return view_devices(arena, devices);
}

/* The first quota in the way has said it in a sentence; of the next ones the numbers do. */
static void add_quota(struct arena *arena, struct buf *out, const json_t *item, const char *quota)
{
	const char *unit = view_text(item, "unit");
	int64_t used = view_number(item, "used"), limit = view_number(item, "limit");

	if (unit && str_equal(unit, "gpuSeconds"))
		buf_printf(out, "over '%s' too: %s of %lld GPU-hours", quota,
			   view_hours(arena, used), (long long)limit / 3600);
	else
		buf_printf(out, "over '%s' too: %lld of %lld device%s", quota, (long long)used,
			   (long long)limit, limit == 1 ? "" : "s");
}

static void add_reason(struct arena *arena, struct buf *out, const json_t *reasons, size_t index,
		       const json_t *devices)
{
	const json_t *item = json_array_get(reasons, index);
	bool alone = json_array_size(reasons) == 1;
	const char *quota = view_text(item, "quotaId");
	const char *reason = view_text(item, "reason"), *asked = asked_text(arena, devices);
	const json_t *nodes = json_object_get(item, "nodes"),
		     *largest = json_object_get(item, "largest");
	long long count = json_is_array(nodes) ? (long long)json_array_size(nodes)
					       : (long long)json_integer_value(nodes);
	long long most = (long long)json_integer_value(largest);
	const char *text = reason ? reason_text(reason) : NULL;
	const char *message = view_text(item, "message");

	if (quota && index > 0 && view_text(json_array_get(reasons, index - 1), "quotaId")) {
		add_quota(arena, out, item, quota);
		return;
	}
	if (message) { /* it has said all of it */
		buf_printf(out, "%s%s%s%s", message, reason ? " (" : "", reason ? reason : "",
			   reason ? ")" : "");
		return;
	}
	if (alone && asked && reason && str_equal(reason, "DeviceClassMissing")) {
		buf_printf(out, "no node has %s", asked);
		if (most)
			buf_printf(out, "; the largest has %lld", most);
		buf_printf(out, " (%s)", reason);
		return;
	}
	if (count)
		buf_printf(out, "%lld node%s: ", count, count == 1 ? "" : "s");
	buf_add_text(out, text ? text : reason ? reason : "?");
	if (largest)
		buf_printf(out, ", at most %lld on one node", most);
	if (text)
		buf_printf(out, " (%s)", reason);
}

const char *view_reasons(struct arena *arena, const json_t *reasons, const json_t *devices)
{
	CLEANUP(buf) struct buf text = {0};

	for (size_t i = 0; i < json_array_size(reasons); i++) {
		if (i)
			buf_add_text(&text, " · ");
		add_reason(arena, &text, reasons, i, devices);
	}
	return text.length ? arena_strdup(arena, buf_text(&text)) : NULL;
}

const char *view_reason(struct arena *arena, const json_t *reasons, size_t index,
			const json_t *devices)
{
	CLEANUP(buf) struct buf text = {0};

	add_reason(arena, &text, reasons, index, devices);
	return text.length ? arena_strdup(arena, buf_text(&text)) : NULL;
}
