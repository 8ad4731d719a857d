#include "cli/view.h"
#include "cli/page.h"
#include "cli/table.h"
#include "cli/when.h"

#include <stdio.h>

#define LATER_MS 5000 /* a start so near is now: clocks of two machines differ */

const char *view_text(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

int64_t view_number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static bool read_time(const json_t *object, const char *key, struct wall *ret_time)
{
	const char *text = view_text(object, key);

	return text && when_parse(text, ret_time);
}

const char *view_relative(struct arena *arena, const json_t *object, const char *key,
			  struct wall now)
{
	char text[WHEN_SIZE];
	struct wall time;

	if (!read_time(object, key, &time))
		return NULL;
	when_format_relative(text, time, now);
	return arena_strdup(arena, text);
}

const char *view_contact(struct arena *arena, const json_t *node, struct wall now)
{
	const char *seen = view_relative(arena, node, "lastSeenAt", now);
	const char *joined = view_relative(arena, node, "createdAt", now);

	if (json_is_true(json_object_get(node, "connected")))
		return "connected";
	if (seen)
		return arena_printf(arena, "seen %s", seen);
	return joined ? arena_printf(arena, "never connected, joined %s", joined)
		      : "never connected";
}

const char *view_exact(struct arena *arena, const json_t *object, const char *key)
{
	char text[WHEN_SIZE];
	struct wall time;

	if (!read_time(object, key, &time))
		return NULL;
	when_format_exact(text, time);
	return arena_strdup(arena, text);
}

const char *view_second(struct arena *arena, const json_t *object, const char *key)
{
	char text[WHEN_SIZE];
	struct wall time;

	if (!read_time(object, key, &time))
		return NULL;
	when_format_second(text, time);
	return arena_strdup(arena, text);
}

const char *view_when(struct arena *arena, const json_t *object, const char *key, struct wall now)
{
	const char *exact = view_exact(arena, object, key);

	return exact ? arena_printf(arena, "%s (%s)", view_relative(arena, object, key, now), exact)
		     : NULL;
}

static const char *keep(struct arena *arena, const struct buf *text)
{
	return text->length ? arena_strdup(arena, buf_text(text)) : NULL;
}

const char *view_devices(struct arena *arena, const json_t *devices)
{
	CLEANUP(buf) struct buf text = {0};
	size_t index;
	json_t *item;

	json_array_foreach(devices, index, item)
	{
		const char *class = view_text(item, "class"), *profile = view_text(item, "profile");
		buf_printf(&text, "%s%lld %s%s%s", index ? " + " : "",
			   (long long)view_number(item, "count"), class ? class : "?",
			   profile ? " " : "", profile ? profile : "");
	}
	return keep(arena, &text);
}

const char *view_booking(struct arena *arena, const json_t *reservation)
{
	const json_t *list = json_object_get(reservation, "devices");
	const char *devices = view_devices(arena, list);
	int64_t nodes = view_number(json_object_get(reservation, "gang"), "nodes");
	bool many = json_array_size(list) > 1;

	if (devices && nodes > 0)
		devices = arena_printf(arena, "%lld × %s%s%s", (long long)nodes, many ? "(" : "",
				       devices, many ? ")" : "");
	return devices && json_is_true(json_object_get(reservation, "spot"))
		       ? arena_printf(arena, "%s, spot", devices)
		       : devices;
}

/* "NVIDIA H100 80GB HBM3" is an "H100" in a line. */
static void add_model(struct buf *out, size_t count, const char *model)
{
	const char *name =
		model && str_starts(model, "NVIDIA ") ? model + strlen("NVIDIA ") : model;

	buf_printf(out, "%s%zu × %.*s", out->length ? ", " : "", count ? count : 1,
		   name ? (int)strcspn(name, " ") : 3, name ? name : "GPU");
}

const char *view_gpus(struct arena *arena, const json_t *node)
{
	CLEANUP(buf) struct buf text = {0};
	const json_t *gpus = json_object_get(node, "gpus");
	size_t index;
	json_t *item;

	/* Models in the order of their first GPU. */
	json_array_foreach(gpus, index, item)
	{
		const char *model = view_text(item, "model");
		size_t count = 0, first = index;
		for (size_t i = 0; i < json_array_size(gpus); i++) {
			const char *other = view_text(json_array_get(gpus, i), "model");
			if (!model || !other || !str_equal(model, other))
				continue;
			count++;
			first = i < first ? i : first;
		}
		if (first == index)
			add_model(&text, count, model);
	}
	if (json_is_true(json_object_get(node, "simulated")) && text.length)
		buf_add_text(&text, " simulated");
	return keep(arena, &text);
}

const char *view_nodes(struct arena *arena, const json_t *reservation)
{
	const json_t *allocations = json_object_get(reservation, "allocations");
	size_t count = 0, index;
	const char *first = NULL;
	json_t *item;

	json_array_foreach(allocations, index, item)
	{
		if (!view_is_place(reservation, index))
			continue;
		first = first ? first : view_text(item, "nodeId");
		count++;
	}
	return count > 1 ? arena_printf(arena, "%s +%zu", first, count - 1) : first;
}

static bool is_live(const char *state)
{
	return !str_equal(state, "released") && !str_equal(state, "failed");
}

/* What it has, or when it is over, had: what failed before was put somewhere else. */
static bool counts(const json_t *reservation, const json_t *allocation)
{
	const char *whole = view_text(reservation, "state"),
		   *state = view_text(allocation, "state");

	if (!view_text(allocation, "nodeId"))
		return false;
	if (!whole || !state || is_live(state))
		return true;
	return view_terminal(whole) && (!str_equal(state, "failed") || str_equal(whole, "failed"));
}

bool view_is_place(const json_t *reservation, size_t index)
{
	const json_t *allocations = json_object_get(reservation, "allocations");
	const json_t *here = json_array_get(allocations, index);

	if (!counts(reservation, here))
		return false;
	for (size_t i = 0; i < index; i++) {
		const json_t *other = json_array_get(allocations, i);

		if (counts(reservation, other) &&
		    str_equal(view_text(other, "nodeId"), view_text(here, "nodeId")))
			return false;
	}
	return true;
}

/* Devices in the midst of a sentence, too, as short as the tables have them: "(gpu/6f1c…, gpu/9a20…)". */
static void add_message(struct buf *text, const char *message)
{
	static const char ENDS[] = " ,;:()'\n";

	while (*message) {
		size_t length = strcspn(message, ENDS);
		CLEANUP(buf) struct buf word = {0};

		buf_add(&word, message, length);
		if (str_starts(message, "gpu/"))
			table_add_device(text, buf_text(&word));
		else
			buf_add(text, message, length);
		message += length;
		for (; *message && strchr(ENDS, *message); message++)
			buf_add_char(text, *message);
	}
}

const char *view_conditions(struct arena *arena, const json_t *conditions)
{
	CLEANUP(buf) struct buf text = {0};
	size_t index;
	json_t *item;

	json_array_foreach(conditions, index, item)
	{
		const char *type = view_text(item, "type"), *message = view_text(item, "message");
		if (type && str_equal(type, "HostUnsupported")) /* nothing is wrong */
			continue;
		buf_printf(&text, "%s%s%s", text.length ? " · " : "", type ? type : "?",
			   message && message[0] ? ": " : "");
		add_message(&text, message ? message : "");
	}
	return keep(arena, &text);
}

const char *view_condition(struct arena *arena, const json_t *object, const char *type)
{
	CLEANUP(buf) struct buf text = {0};
	size_t index;
	json_t *item;

	json_array_foreach(json_object_get(object, "conditions"), index, item)
	{
		const char *here = view_text(item, "type"), *message = view_text(item, "message");

		if (here && message && str_equal(here, type))
			add_message(&text, message);
	}
	return keep(arena, &text);
}

bool view_has_condition(const json_t *object, const char *type)
{
	size_t index;
	json_t *item;

	json_array_foreach(json_object_get(object, "conditions"), index, item)
	{
		const char *here = view_text(item, "type");
		if (here && str_equal(here, type))
			return true;
	}
	return false;
}

bool view_terminal(const char *state)
{
	static const char *const STATES[] = {"released",  "denied",  "failed",
					     "cancelled", "expired", "preempted"};

	for (size_t i = 0; i < ARRAY_SIZE(STATES); i++) {
		if (str_equal(STATES[i], state))
			return true;
	}
	return false;
}

bool view_over(const json_t *item)
{
	const char *state = view_text(item, "state");

	return view_text(item, "revokedAt") ||
	       (state && (view_terminal(state) || str_equal(state, "archived") ||
			  str_equal(state, "retired") || str_equal(state, "revoked")));
}

bool view_start_is_ahead(const json_t *reservation, struct wall now)
{
	struct wall start;

	return read_time(reservation, "startAt", &start) && start.ms > now.ms + LATER_MS;
}

const char *view_starts(struct arena *arena, const json_t *reservation, struct wall now)
{
	const char *state = view_text(reservation, "state");

	if (!state || (!str_equal(state, "pending") && !str_equal(state, "placed")) ||
	    !view_start_is_ahead(reservation, now))
		return NULL;
	return view_relative(arena, reservation, "startAt", now);
}

const char *view_state(const json_t *reservation)
{
	const char *state = view_text(reservation, "state");

	if (!state || !str_equal(state, "released"))
		return state;
	if (view_has_condition(reservation, "DevicesHeld"))
		return "releasing";
	return view_has_condition(reservation, "ReleaseUnconfirmed") ? "released, unconfirmed"
								     : state;
}

const char *view_ends_exact(struct arena *arena, const json_t *reservation)
{
	const char *state = view_text(reservation, "state");
	const char *asked = view_exact(arena, reservation, "releaseRequestedAt");

	return state && view_terminal(state) && asked ? asked
						      : view_exact(arena, reservation, "endAt");
}

const char *view_sick_gpus(struct arena *arena, const json_t *node)
{
	size_t index, count = 0;
	json_t *gpu;

	json_array_foreach(json_object_get(node, "gpus"), index, gpu) count +=
		json_is_false(json_object_get(gpu, "healthy"));
	return count ? arena_printf(arena, "%zu GPU%s unhealthy", count, count == 1 ? "" : "s")
		     : NULL;
}

const char *view_gone_devices(struct arena *arena, const json_t *node)
{
	size_t index, count = 0;
	json_t *device;

	json_array_foreach(json_object_get(node, "devices"), index, device)
	{
		const char *cause = view_text(device, "cause");

		count += cause && str_equal(cause, "gone") && view_text(device, "reservationId");
	}
	return count ? arena_printf(arena, "%zu booked device%s gone", count, count == 1 ? "" : "s")
		     : NULL;
}

const char *view_ends(struct arena *arena, const json_t *reservation, struct wall now)
{
	const char *state = view_text(reservation, "state");
	const char *ends = view_relative(arena, reservation, "endAt", now);
	const char *asked = view_relative(arena, reservation, "releaseRequestedAt", now);

	if (state && view_terminal(state)) {
		const char *when = asked ? asked : ends;
		return when ? arena_printf(arena, "ended %s", when) : NULL;
	}
	return ends;
}

const char *view_atom(struct arena *arena, const char *atom)
{
	CLEANUP(buf) struct buf text = {0};

	table_add_device(&text, atom);
	return arena_strdup(arena, buf_text(&text));
}

const char *view_hours(struct arena *arena, int64_t seconds)
{
	return arena_printf(arena, "%lld.%02lld", (long long)seconds / 3600,
			    (long long)seconds % 3600 / 36);
}

const char *view_quota_devices(struct arena *arena, const json_t *quota)
{
	const json_t *used = json_object_get(quota, "used");

	if (!json_is_integer(json_object_get(quota, "maxDevices")))
		return NULL;
	return arena_printf(arena, "%lld of %lld", (long long)view_number(used, "devices"),
			    (long long)view_number(quota, "maxDevices"));
}

const char *view_quota_hours(struct arena *arena, const json_t *quota)
{
	const json_t *used = json_object_get(quota, "used");

	if (!json_is_integer(json_object_get(quota, "gpuHoursPerMonth")))
		return NULL;
	return arena_printf(arena, "%s of %lld", view_hours(arena, view_number(used, "gpuSeconds")),
			    (long long)view_number(quota, "gpuHoursPerMonth"));
}

const char *view_map(struct arena *arena, const json_t *map)
{
	CLEANUP(buf) struct buf text = {0};
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)map, key, value)
	{
		const char *here = json_string_value(value);
		buf_printf(&text, "%s%s=%s", text.length ? ", " : "", key, here ? here : "?");
	}
	return keep(arena, &text);
}

static void add_scalar_text(struct buf *out, const json_t *value)
{
	CLEANUP(free) char *text = NULL;

	if (json_is_string(value)) {
		buf_add_text(out, json_string_value(value));
		return;
	}
	text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
	buf_add_text(out, text ? text : "");
}

/* "compute:pools:create" is "create". */
static const char *action_text(const json_t *data)
{
	const char *action = view_text(data, "action"),
		   *colon = action ? strrchr(action, ':') : NULL;

	return colon ? colon + 1 : action;
}

static const char *condition_text(struct arena *arena, const json_t *data, const char *type)
{
	const char *message = view_text(data, "message"), *reason = view_text(data, "reason");
	const char *why = message && message[0] ? message : reason;

	if (json_is_false(json_object_get(data, "status")))
		return arena_printf(arena, "over: %s", type);
	return why && why[0] ? arena_printf(arena, "%s: %s", type, why) : type;
}

const char *view_event(struct arena *arena, const json_t *event)
{
	const json_t *data = json_object_get(event, "data");
	const char *state = view_text(data, "state"), *type = view_text(data, "type");
	CLEANUP(buf) struct buf text = {0};
	const char *key;
	json_t *value;

	if (type)
		return condition_text(arena, data, type);
	if (state)
		return str_equal(state, "released") &&
				       json_is_true(json_object_get(data, "devicesHeld"))
			       ? "releasing"
			       : state;
	if (action_text(data))
		return action_text(data);
	json_object_foreach((json_t *)data, key, value)
	{
		buf_printf(&text, "%s%s=", text.length ? ", " : "", key);
		add_scalar_text(&text, value);
	}
	return keep(arena, &text);
}

struct field_list {
	struct page *page;
	struct wall now;
};

static void add_fields(struct field_list *list, const char *prefix, const json_t *value);

static bool all_scalars(const json_t *array)
{
	size_t index;
	json_t *item;

	json_array_foreach(array, index, item)
	{
		if (json_is_array(item) || json_is_object(item))
			return false;
	}
	return true;
}

static void add_array(struct field_list *list, const char *name, const json_t *array)
{
	CLEANUP(buf) struct buf text = {0};
	size_t index;
	json_t *item;

	if (!all_scalars(array)) {
		json_array_foreach(array, index, item)
		{
			CLEANUP(buf) struct buf path = {0};
			buf_printf(&path, "%s[%zu]", name, index);
			add_fields(list, buf_text(&path), item);
		}
		return;
	}
	json_array_foreach(array, index, item)
	{
		if (index)
			buf_add_text(&text, ", ");
		add_scalar_text(&text, item);
	}
	page_line(list->page, name, text.length ? buf_text(&text) : "-");
}

static void add_scalar(struct field_list *list, const char *name, const json_t *value)
{
	CLEANUP(buf) struct buf text = {0};
	struct wall time;

	add_scalar_text(&text, value);
	if (json_is_string(value) && when_parse(json_string_value(value), &time)) {
		char relative[WHEN_SIZE], exact[WHEN_SIZE];
		when_format_relative(relative, time, list->now);
		when_format_exact(exact, time);
		page_linef(list->page, name, "%s (%s)", exact, relative);
		return;
	}
	page_line(list->page, name, text.length ? buf_text(&text) : "-");
}

static void add_fields(struct field_list *list, const char *prefix, const json_t *value)
{
	const char *key;
	json_t *item;

	if (json_is_array(value)) {
		add_array(list, prefix, value);
		return;
	}
	if (json_object_size(value) == 0) { /* an empty object says something too: it is there */
		add_scalar(list, prefix, value);
		return;
	}
	json_object_foreach((json_t *)value, key, item)
	{
		CLEANUP(buf) struct buf path = {0};
		buf_printf(&path, "%s%s%s", prefix, prefix[0] ? "." : "", key);
		add_fields(list, buf_text(&path), item);
	}
}

void view_fields(struct buf *out, const json_t *object, struct wall now, size_t width)
{
	CLEANUP(page) struct page page = {0};
	struct field_list list = {.page = &page, .now = now};

	add_fields(&list, "", object);
	page_render(&page, 0, width, out);
}
