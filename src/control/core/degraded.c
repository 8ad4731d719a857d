#include "control/core/degraded.h"

#include "base/buf.h"
#include "base/vec.h"
#include "control/core/stuck.h"
#include "control/core/timestamp.h"

/* Of how many nodes it is told what they say: a gang may have many. */
#define MAX_TOLD 3

/* In order of precedence (RES-47). */
enum cause_kind {
	CAUSE_BINDING_LOST,
	CAUSE_FOREIGN_EXPOSURE,
	CAUSE_UNREACHABLE,
	CAUSE_ATOM_UNHEALTHY,
	CAUSE_UNOFFERED,
};

static const char *const REASONS[] = {
	[CAUSE_BINDING_LOST] = "BindingLost",    [CAUSE_FOREIGN_EXPOSURE] = "ForeignGpuExposure",
	[CAUSE_UNREACHABLE] = "NodeUnreachable", [CAUSE_ATOM_UNHEALTHY] = "AtomUnhealthy",
	[CAUSE_UNOFFERED] = "GpuApiUnsupported",
};

struct cause {
	enum cause_kind kind;
	const struct degraded_allocation *allocation;
	const struct degraded_device *device; /* CAUSE_ATOM_UNHEALTHY */
	int64_t since_ms;
};

struct causes VEC_BODY(struct cause);

static int compare_causes(const void *a, const void *b)
{
	const struct cause *left = a, *right = b;
	int order;

	if (left->kind != right->kind)
		return left->kind < right->kind ? -1 : 1;
	order = strcmp(left->allocation->node, right->allocation->node);
	if (order != 0 || !left->device)
		return order;
	return strcmp(left->device->atom, right->device->atom);
}

static void list_causes(const struct degraded_allocation *allocation, struct causes *causes)
{
	if (!allocation->bound)
		return;
	if (allocation->lost_reason && *allocation->lost_reason)
		*vec_push(causes) = (struct cause){CAUSE_BINDING_LOST, allocation, NULL,
						   allocation->lost_since_ms};
	if (allocation->foreign_exposure)
		*vec_push(causes) = (struct cause){CAUSE_FOREIGN_EXPOSURE, allocation, NULL,
						   allocation->foreign_since_ms};
	if (allocation->unreachable)
		*vec_push(causes) = (struct cause){CAUSE_UNREACHABLE, allocation, NULL,
						   allocation->unreachable_since_ms};
	for (size_t i = 0; i < allocation->devices_count; i++) {
		const struct degraded_device *device = &allocation->devices[i];

		if (!device->healthy)
			*vec_push(causes) = (struct cause){CAUSE_ATOM_UNHEALTHY, allocation, device,
							   device->since_ms};
	}
	if (allocation->unoffered)
		*vec_push(causes) = (struct cause){CAUSE_UNOFFERED, allocation, NULL,
						   allocation->unoffered_since_ms};
}

static void describe(const struct cause *cause, struct buf *text)
{
	const struct degraded_allocation *allocation = cause->allocation;

	switch (cause->kind) {
	case CAUSE_BINDING_LOST:
		buf_printf(text, "%s can't keep the binding: %s", allocation->node,
			   allocation->lost_reason);
		break;
	case CAUSE_FOREIGN_EXPOSURE:
		buf_printf(text, "GPUs exposed outside bcd on %s", allocation->node);
		break;
	case CAUSE_UNREACHABLE:
		buf_printf(text, "%s has not been heard of", allocation->node);
		break;
	case CAUSE_ATOM_UNHEALTHY:
		buf_printf(text, "%s on %s: %s", cause->device->atom, allocation->node,
			   cause->device->cause && *cause->device->cause ? cause->device->cause
									 : "unhealthy");
		break;
	case CAUSE_UNOFFERED:
		buf_printf(text, "%s offers nothing by the pool's gpuApi, no new pod gets a GPU",
			   allocation->node);
		break;
	}
}

static json_t *condition(const char *type, const char *reason, const char *message,
			 int64_t since_ms)
{
	char since[TIMESTAMP_SIZE];

	timestamp_format(since, (struct wall){since_ms});
	return json_pack("{s:s, s:s, s:s, s:s}", "type", type, "reason", reason, "message", message,
			 "since", since);
}

static void add_degraded(const struct causes *causes, json_t *conditions)
{
	CLEANUP(buf) struct buf message = {0};
	json_t *listed, *degraded;
	enum cause_kind headline;
	size_t alike = 0;

	if (causes->count == 0)
		return;
	headline = causes->items[0].kind;
	listed = json_array();
	vec_each (causes, const struct cause *cause) {
		CLEANUP(buf) struct buf text = {0};
		json_t *row;

		describe(cause, &text);
		if (cause->kind == headline && alike++ < MAX_TOLD)
			buf_printf(&message, "%s%s", alike > 1 ? "; " : "", buf_text(&text));
		row = json_pack("{s:s, s:s, s:s}", "reason", REASONS[cause->kind], "message",
				buf_text(&text), "node", cause->allocation->node);
		if (cause->device)
			json_object_set_new(row, "device", json_string(cause->device->atom));
		json_array_append_new(listed, row);
	}
	if (alike > MAX_TOLD)
		buf_printf(&message, "; and %zu more", alike - MAX_TOLD);
	degraded = condition("Degraded", REASONS[headline], buf_text(&message),
			     causes->items[0].since_ms);
	json_object_set_new(degraded, "causes", listed);
	json_array_append_new(conditions, degraded);
}

/* One condition for all the nodes that it is about, since the first of them. */
struct about_nodes {
	struct buf text;
	int64_t since_ms;
};

static void name_node(struct about_nodes *about, const char *what, const char *node,
		      int64_t since_ms)
{
	bool first = about->text.length == 0;

	buf_printf(&about->text, "%s%s", first ? what : ", ", node);
	if (first || since_ms < about->since_ms)
		about->since_ms = since_ms;
}

static void add_about(struct about_nodes *about, const char *type, const char *reason,
		      json_t *conditions)
{
	if (about->text.length > 0)
		json_array_append_new(conditions, condition(type, reason, buf_text(&about->text),
							    about->since_ms));
	buf_deinit(&about->text);
}

/* As the tables have it: "2026-11-30 02:00 UTC". */
static void add_time(struct buf *text, int64_t ms)
{
	char at[TIMESTAMP_SIZE];

	timestamp_format(at, (struct wall){ms});
	buf_printf(text, "%.10s %.5s UTC", at, at + strlen("2026-11-30T"));
}

/* A node tells of all its releases, "alc_a: …; alc_b: …": what is said of this one, without its name.
 * NULL: of others alone. An older bcd names nobody first: all of it. */
static const char *own_word(const struct degraded_allocation *allocation, struct buf *text)
{
	const char *said = allocation->stuck, *next;
	size_t length = strlen(allocation->id);

	if (!said || !str_starts(said, "alc_"))
		return said;
	while (!str_starts(said, allocation->id) || !str_starts(said + length, ": ")) {
		said = strstr(said, "; alc_");
		if (!said)
			return NULL;
		said += strlen("; ");
	}
	said += length + strlen(": ");
	next = strstr(said, "; alc_");
	buf_add(text, said, next ? (size_t)(next - said) : strlen(said));
	return buf_text(text);
}

static void tell_holders(const struct degraded_allocation *allocation, struct buf *text)
{
	CLEANUP(buf) struct buf word = {0};
	const char *said = own_word(allocation, &word);

	buf_printf(text, "%s%s", text->length > 0 ? " " : "", allocation->node);
	if (allocation->unreachable) {
		buf_add_text(text, " has not been heard of since ");
		add_time(text, allocation->unreachable_since_ms);
		if (said)
			buf_printf(text, ", its last word: %s", said);
	} else if (said) {
		buf_printf(text, " says: %s", said);
	} else {
		buf_add_text(text, " has yet to say that no pod holds a device");
	}
	buf_add_char(text, '.');
}

/* When it ends without the word of a node that is heard of, somebody having its devices next. */
static int64_t give_up_ms(const struct degraded_allocation *allocation)
{
	int64_t last_ms = allocation->own_end_ms + STUCK_MAX_CARRY_MS;

	return allocation->handover_ms < last_ms || allocation->unreachable
		       ? allocation->handover_ms
		       : last_ms;
}

/* What ends it when the node's word doesn't come, and why then. What nearly never happens goes to `next`. */
static void tell_next(const struct degraded_allocation *allocation, struct buf *text,
		      struct buf *next)
{
	int64_t never_bound_ms = allocation->releasing_since_ms + STUCK_DEFERRED_MS;
	bool never_bound = !allocation->was_bound && !allocation->unreachable;

	if (allocation->handover_ms != 0 &&
	    !(never_bound && never_bound_ms < give_up_ms(allocation))) {
		buf_add_text(text, " Somebody has the devices next: they are handed on at ");
		add_time(text, give_up_ms(allocation));
		buf_add_text(text, " whatever the node says.");
	} else if (allocation->unreachable) {
		buf_printf(text,
			   " The devices stay booked until it is back, or declared lost: "
			   "better-compute nodes retire %s --lost.",
			   allocation->node);
	} else if (never_bound) {
		buf_add_text(text, " It never said that it bound them: they are free once it has "
				   "heard of the end, at the earliest at ");
		add_time(text, never_bound_ms);
		buf_add_char(text, '.');
	} else {
		buf_printf(next,
			   "%sShould %s never say that nobody holds the devices, they are free at ",
			   next->length > 0 ? " " : "", allocation->node);
		add_time(next, allocation->own_end_ms + STUCK_MAX_CARRY_MS);
		buf_add_text(next, ", a day after the booking's own end.");
	}
}

static void tell_rest(const struct degraded_allocation *allocations, size_t count, size_t told,
		      struct buf *text)
{
	size_t releasing = 0;

	for (size_t i = 0; i < count; i++) {
		if (allocations[i].releasing && releasing++ >= told)
			buf_printf(text, "%s%s", releasing == told + 1 ? " Likewise: " : ", ",
				   allocations[i].node);
	}
	if (releasing > told)
		buf_add_char(text, '.');
}

static void add_devices_held(const struct degraded_allocation *allocations, size_t count,
			     json_t *conditions)
{
	struct about_nodes about = {0};
	CLEANUP(buf) struct buf next = {0};
	size_t told = 0;

	for (size_t i = 0; i < count && told < MAX_TOLD; i++) {
		if (!allocations[i].releasing)
			continue;
		tell_holders(&allocations[i], &about.text);
		tell_next(&allocations[i], &about.text, &next);
		told++;
	}
	tell_rest(allocations, count, told, &about.text);
	about.since_ms = INT64_MAX;
	for (size_t i = 0; i < count; i++)
		if (allocations[i].releasing && allocations[i].releasing_since_ms < about.since_ms)
			about.since_ms = allocations[i].releasing_since_ms;
	add_about(&about, "DevicesHeld", "PodsHoldDevices", conditions);
	if (next.length > 0)
		json_object_set_new(json_array_get(conditions, json_array_size(conditions) - 1),
				    "next", json_string(buf_text(&next)));
}

static void add_unconfirmed(const struct degraded_allocation *allocations, size_t count,
			    json_t *conditions)
{
	struct about_nodes about = {0};

	for (size_t i = 0; i < count; i++) {
		if (allocations[i].bound && allocations[i].unconfirmed)
			name_node(&about, "no kubelet says whether pods have what is bound on ",
				  allocations[i].node, allocations[i].unconfirmed_since_ms);
	}
	add_about(&about, "Unconfirmed", "PodResourcesUnavailable", conditions);
}

/* --- over, and not by the node's word --- */

/* The nodes of one reason; the first allocation, NULL: none. */
static const struct degraded_allocation *
tell_given_up(const struct degraded_allocation *allocations, size_t count, const char *why,
	      const char *words, struct buf *text)
{
	const struct degraded_allocation *first = NULL;
	const char *before = text->length > 0 ? "; " : "";
	size_t given_up = 0;

	for (size_t i = 0; i < count; i++) {
		if (!allocations[i].given_up || !str_equal(allocations[i].given_up, why))
			continue;
		if (!first)
			first = &allocations[i];
		if (given_up++ < MAX_TOLD)
			buf_printf(text, "%s%s", given_up > 1 ? ", " : before, allocations[i].node);
	}
	if (given_up > MAX_TOLD)
		buf_printf(text, " and %zu more", given_up - MAX_TOLD);
	if (first)
		buf_printf(text,
			   " never said that no pod holds the devices: the release was ended %s",
			   words);
	return first;
}

static void add_unconfirmed_release(const struct degraded_allocation *allocations, size_t count,
				    json_t *conditions)
{
	CLEANUP(buf) struct buf text = {0};
	const struct degraded_allocation *next =
		tell_given_up(allocations, count, STUCK_BOOKED_NEXT,
			      "because somebody had booked them next", &text);
	const struct degraded_allocation *late =
		tell_given_up(allocations, count, STUCK_CARRIED_TOO_LONG,
			      "a day after the booking's own end", &text);
	const struct degraded_allocation *first = next ? next : late;

	if (first)
		json_array_append_new(conditions, condition("ReleaseUnconfirmed", first->given_up,
							    buf_text(&text), first->given_up_ms));
}

/* --- placed, and it could have begun --- */

/* NULL: nothing keeps it waiting that would be worth a word yet. */
static const char *why_waiting(const struct degraded_allocation *allocation, struct wall now)
{
	if (allocation->due_ms == 0 || allocation->due_ms > now.ms)
		return NULL;
	if (allocation->taken)
		return "DevicesHeld";
	if (now.ms < allocation->due_ms + DEGRADED_BIND_MS)
		return NULL;
	return allocation->unreachable ? "NodeUnreachable" : "NodeNotBound";
}

static void tell_waiting(const struct degraded_allocation *allocation, struct buf *text)
{
	buf_printf(text, "%s%s", text->length > 0 ? "; " : "", allocation->node);
	if (allocation->taken)
		buf_add_text(text, " hasn't got the devices back from the booking before");
	else if (!allocation->unreachable)
		buf_add_text(text, " has yet to bind the devices");
	if (allocation->unreachable) {
		buf_printf(text, "%s has not been heard of since ",
			   allocation->taken ? ", and" : "");
		add_time(text, allocation->unreachable_since_ms);
	} else if (allocation->unready &&
		   (allocation->taken || !str_starts(allocation->unready, "alc_"))) {
		/* What it says of its releases is about others, which keep nothing here. */
		buf_printf(text, " (it says: %s)", allocation->unready);
	}
}

static void add_waiting(const struct degraded_allocation *allocations, size_t count,
			struct wall now, json_t *conditions)
{
	CLEANUP(buf) struct buf text = {0};
	const char *reason = NULL;
	int64_t since_ms = 0;
	size_t waiting = 0;

	for (size_t i = 0; i < count; i++) {
		const char *why = why_waiting(&allocations[i], now);

		if (!why)
			continue;
		if (!reason || allocations[i].due_ms < since_ms) {
			since_ms = allocations[i].due_ms;
			reason = why;
		}
		if (waiting++ < MAX_TOLD)
			tell_waiting(&allocations[i], &text);
	}
	if (waiting > MAX_TOLD)
		buf_printf(&text, "; and %zu more", waiting - MAX_TOLD);
	if (reason)
		json_array_append_new(conditions,
				      condition("Waiting", reason, buf_text(&text), since_ms));
}

json_t *degraded_conditions(const struct degraded_allocation *allocations, size_t count,
			    struct wall now)
{
	json_t *conditions = json_array();
	struct causes causes = {0};

	add_waiting(allocations, count, now, conditions);
	add_unconfirmed_release(allocations, count, conditions);
	add_devices_held(allocations, count, conditions);
	for (size_t i = 0; i < count; i++)
		list_causes(&allocations[i], &causes);
	vec_sort(&causes, compare_causes);
	add_degraded(&causes, conditions);
	add_unconfirmed(allocations, count, conditions);
	vec_deinit(&causes);
	return conditions;
}
