#include "control/core/reserve_request.h"

#include "base/duration.h"
#include "control/core/body.h"
#include "control/core/timestamp.h"

#include <stdio.h>

#define GIB ((int64_t)1 << 30)

/* "1g.10gb", "1g.10gb+me": digits, letters, '.', '+', '-'. */
static bool is_profile(const char *text)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789.+-";

	return strspn(text, allowed) == strlen(text);
}

static bool read_need(const json_t *json, size_t index, struct placement_need *ret_need,
		      struct error *error)
{
	static const char *const known[] = {"class", "profile", "count", NULL};
	static const char *const classes[] = {"gpu", "gpu.mig", "gpu.slot", NULL};
	char path[BODY_PATH_SIZE], field[BODY_PATH_SIZE];
	struct placement_need need = {0};
	int64_t count = 0;
	struct body body;
	int class = 0;

	snprintf(path, sizeof path, "devices[%zu]", index);
	if (!body_open(json, path, known, &body, error) ||
	    !body_choice(&body, "class", BODY_REQUIRED, classes, &class, error) ||
	    !body_text(&body, "profile", BODY_OPTIONAL, 32, &need.profile, error) ||
	    !body_int(&body, "count", BODY_REQUIRED, 1, RESERVE_MAX_DEVICES, &count, error))
		return false;
	if (!placement_class_parse(classes[class], &need.class))
		assert(false);
	need.count = (int)count;
	body_path(field, &body, "profile");
	if (need.profile && need.class != PLACEMENT_CLASS_MIG)
		return error_field(error, field, "only gpu.mig has profiles");
	if (need.profile && !is_profile(need.profile))
		return error_field(error, field, "'%s' is not a profile such as 1g.10gb",
				   need.profile);
	*ret_need = need;
	return true;
}

static bool read_needs(const json_t *devices, struct reserve_request *request, struct error *error)
{
	int64_t total = 0;

	if (!devices)
		return error_field(error, "devices", "is missing");
	if (!json_is_array(devices) || json_array_size(devices) == 0)
		return error_field(error, "devices", "must be a list of at least one");
	if (json_array_size(devices) > RESERVE_MAX_NEEDS)
		return error_field(error, "devices", "has %zu entries, at most %d are allowed",
				   json_array_size(devices), RESERVE_MAX_NEEDS);
	request->needs_count = json_array_size(devices);
	for (size_t i = 0; i < request->needs_count; i++) {
		if (!read_need(json_array_get(devices, i), i, &request->needs[i], error))
			return false;
		total += request->needs[i].count;
	}
	if (total > RESERVE_MAX_DEVICES)
		return error_field(error, "devices",
				   "asks for %lld devices, at most %d are allowed",
				   (long long)total, RESERVE_MAX_DEVICES);
	return true;
}

static bool read_resources(const json_t *json, struct reserve_request *request, struct error *error)
{
	static const char *const known[] = {"vcpu", "memoryGiB", RESERVE_HUGEPAGES_2MI,
					    RESERVE_HUGEPAGES_1GI, NULL};
	int64_t gib = -1, small = 0, large = 0;
	struct body body;

	if (!json)
		return true;
	if (!body_open(json, "resources", known, &body, error) ||
	    !body_int(&body, "vcpu", BODY_OPTIONAL, 1, RESERVE_MAX_VCPU, &request->vcpus, error) ||
	    !body_int(&body, "memoryGiB", BODY_OPTIONAL, 1, RESERVE_MAX_GIB, &gib, error) ||
	    !body_int(&body, RESERVE_HUGEPAGES_2MI, BODY_OPTIONAL, 1, RESERVE_MAX_GIB, &small,
		      error) ||
	    !body_int(&body, RESERVE_HUGEPAGES_1GI, BODY_OPTIONAL, 1, RESERVE_MAX_GIB, &large,
		      error))
		return false;
	if (gib > 0)
		request->memory_bytes = gib * GIB;
	request->hugepages.bytes[HUGEPAGES_2MI] = small * GIB;
	request->hugepages.bytes[HUGEPAGES_1GI] = large * GIB;
	request->limited = json_object_size(json) > 0;
	return true;
}

/* *ret_ms stays when the field isn't there. */
static bool read_start(const struct body *body, struct wall now, int64_t *ret_ms,
		       struct error *error)
{
	const char *start;
	struct wall time;

	if (!body_text(body, "startAt", BODY_OPTIONAL, 40, &start, error))
		return false;
	if (!start)
		return true;
	if (!timestamp_parse(start, "startAt", &time, error))
		return false;
	if (time.ms < now.ms - RESERVE_LATE_MS) {
		error_field(error, "startAt", "lies in the past");
		return error_hint(error, "Without a start it starts at once.");
	}
	if (time.ms > now.ms + RESERVE_MAX_MS)
		return error_field(error, "startAt", "lies more than 366 days ahead");
	*ret_ms = time.ms;
	return true;
}

static bool read_times(const struct body *body, struct wall now, struct reserve_request *request,
		       struct error *error)
{
	const char *duration;

	return body_text(body, "duration", BODY_REQUIRED, 32, &duration, error) &&
	       duration_parse(duration, "duration", RESERVE_MIN_MS, RESERVE_MAX_MS,
			      &request->duration_ms, error) &&
	       read_start(body, now, &request->start_ms, error);
}

static int64_t count_devices(const struct reserve_request *request)
{
	int64_t count = 0;

	for (size_t i = 0; i < request->needs_count; i++)
		count += request->needs[i].count;
	return count;
}

static bool read_topology(const json_t *json, enum placement_same *ret_same, struct error *error)
{
	static const char *const known[] = {"same", NULL};
	static const char *const sames[] = {"rack", "block", "nvlinkDomain", NULL};
	struct body body;
	int same;

	if (!json)
		return true;
	if (!body_open(json, "gang.topology", known, &body, error) ||
	    !body_choice(&body, "same", BODY_REQUIRED, sames, &same, error))
		return false;
	if (!placement_same_parse(sames[same], ret_same))
		assert(false);
	return true;
}

static bool read_gang(const json_t *json, struct reserve_request *request, struct error *error)
{
	static const char *const known[] = {"nodes", "topology", NULL};
	struct body body;
	int64_t nodes, total;

	if (!json)
		return true;
	if (!body_open(json, "gang", known, &body, error) ||
	    !body_int(&body, "nodes", BODY_REQUIRED, 1, RESERVE_MAX_DEVICES, &nodes, error) ||
	    !read_topology(json_object_get(json, "topology"), &request->gang_same, error))
		return false;
	total = nodes * count_devices(request);
	if (total > RESERVE_MAX_DEVICES)
		return error_field(error, "gang.nodes",
				   "asks for %lld devices in all, at most %d are allowed",
				   (long long)total, RESERVE_MAX_DEVICES);
	request->gang_nodes = (int)nodes;
	return true;
}

bool reserve_request_parse(const json_t *json, bool preview, struct wall now,
			   struct reserve_request *ret_request, struct error *error)
{
	static const char *const known[] = {"tenantId", "poolId",  "devices",   "duration",
					    "startAt",  "binding", "resources", "spot",
					    "gang",     NULL};
	static const char *const create_known[] = {
		"tenantId",  "poolId", "devices", "duration",       "startAt", "binding",
		"resources", "spot",   "gang",    "idempotencyKey", NULL};
	static const char *const bindings[] = {"kubernetes", NULL};
	struct reserve_request request = {.vcpus = -1, .memory_bytes = -1};
	struct body body;
	int binding;

	if (!body_open(json, "", preview ? known : create_known, &body, error) ||
	    !body_id(&body, "tenantId", BODY_REQUIRED, "ten", &request.tenant, error) ||
	    !body_id(&body, "poolId", BODY_REQUIRED, "pool", &request.pool, error) ||
	    !read_needs(json_object_get(json, "devices"), &request, error) ||
	    !read_times(&body, now, &request, error) ||
	    !body_choice(&body, "binding", BODY_REQUIRED, bindings, &binding, error) ||
	    !read_resources(json_object_get(json, "resources"), &request, error) ||
	    !body_bool(&body, "spot", &request.spot, error) ||
	    !read_gang(json_object_get(json, "gang"), &request, error) ||
	    !body_idempotency_key(&body, &request.idempotency_key, error))
		return false;
	*ret_request = request;
	return true;
}

bool reserve_change_parse(const json_t *json, struct wall now, struct reserve_change *ret_change,
			  struct error *error)
{
	static const char *const known[] = {"duration", "endAt", "startAt", NULL};
	struct reserve_change change = {0};
	const char *duration, *end;
	struct wall time = {0};
	struct body body;

	if (!body_open(json, "", known, &body, error) ||
	    !body_text(&body, "duration", BODY_OPTIONAL, 32, &duration, error) ||
	    !body_text(&body, "endAt", BODY_OPTIONAL, 40, &end, error) ||
	    !read_start(&body, now, &change.start_ms, error))
		return false;
	if (duration && end)
		return error_field(error, "endAt", "can't be given together with duration");
	if (!duration && !end && change.start_ms == 0)
		return error_field(error, "duration", "is missing, or endAt, or startAt");
	if (duration && !duration_parse(duration, "duration", RESERVE_MIN_MS, RESERVE_MAX_MS,
					&change.duration_ms, error))
		return false;
	if (end && !timestamp_parse(end, "endAt", &time, error))
		return false;
	if (end && time.ms <= now.ms) {
		error_field(error, "endAt", "the end lies in the past");
		return error_hint(error, "To end it now, release it.");
	}
	change.end_ms = time.ms;
	*ret_change = change;
	return true;
}

json_t *reserve_gang_pack(int64_t nodes, enum placement_same same)
{
	json_t *gang = json_pack("{s:I}", "nodes", nodes);

	if (same != PLACEMENT_SAME_NOTHING)
		json_object_set_new(gang, "topology",
				    json_pack("{s:s}", "same", placement_same_name(same)));
	return gang;
}

json_t *reserve_needs_pack(const struct placement_need *needs, size_t count)
{
	json_t *devices = json_array();

	for (size_t i = 0; i < count; i++) {
		json_t *need = json_pack("{s:s}", "class", placement_class_name(needs[i].class));

		if (needs[i].profile)
			json_object_set_new(need, "profile", json_string(needs[i].profile));
		json_object_set_new(need, "count", json_integer(needs[i].count));
		json_array_append_new(devices, need);
	}
	return devices;
}

bool reserve_needs_unpack(const json_t *devices, struct placement_need needs[RESERVE_MAX_NEEDS],
			  size_t *ret_count)
{
	size_t count = json_array_size(devices);

	if (count == 0 || count > RESERVE_MAX_NEEDS)
		return false;
	for (size_t i = 0; i < count; i++) {
		struct error ignored; /* it was checked when it was stored */

		if (!read_need(json_array_get(devices, i), i, &needs[i], &ignored))
			return false;
	}
	*ret_count = count;
	return true;
}
