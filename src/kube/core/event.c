#include "kube/core/event.h"

#include "base/hash.h"
#include "base/utc.h"
#include "base/utf8.h"
#include "text/tree.h"

#include <stdio.h>
#include <time.h>

/* One kind of event: same object, reason, action and note. */
struct kind {
	uint64_t hash; /* 0: a free place */
	char namespace[KUBE_EVENT_UID_SIZE], name[KUBE_EVENT_NAME_SIZE];
	int64_t count;
	struct mono last, told;
};

struct kube_event_memory {
	struct kind kinds[KUBE_EVENT_MEMORY];
	int64_t spent;     /* calls of the burst that are used up */
	struct mono since; /* when `spent` was true */
};

struct kube_event_memory *kube_event_memory_create(void)
{
	return mem_alloc(sizeof(struct kube_event_memory));
}

void kube_event_memory_destroy(struct kube_event_memory *memory)
{
	free(memory);
}

/* --- which kind --- */

static uint64_t hash_event(const struct kube_event *event)
{
	const char *const texts[] = {
		event->regarding.resource->plural,
		event->regarding.namespace,
		event->regarding.name,
		event->uid,
		event->reason,
		event->action,
		event->note,
	};
	uint64_t hash = HASH_START;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		hash = hash_add(hash, texts[i], strlen(texts[i]) + 1); /* apart by their NUL */
	return hash ? hash : 1;
}

/* The kind's place, or the one to take for it: a free one, else the longest unused. */
static struct kind *place_of(struct kube_event_memory *memory, uint64_t hash)
{
	struct kind *oldest = &memory->kinds[0];

	for (size_t i = 0; i < KUBE_EVENT_MEMORY; i++)
		if (memory->kinds[i].hash == hash)
			return &memory->kinds[i];
	for (size_t i = 0; i < KUBE_EVENT_MEMORY; i++) {
		struct kind *kind = &memory->kinds[i];

		if (kind->hash == 0)
			return kind;
		if (kind->last.ms < oldest->last.ms)
			oldest = kind;
	}
	return oldest;
}

/* --- how often --- */

static bool may_call(struct kube_event_memory *memory, struct mono now)
{
	int64_t refilled = mono_until(memory->since, now) / KUBE_EVENT_REFILL_MS;

	if (memory->spent == 0 || refilled >= memory->spent) {
		memory->spent = 0;
		memory->since = now;
	} else {
		memory->spent -= refilled;
		memory->since = mono_after(memory->since, refilled * KUBE_EVENT_REFILL_MS);
	}
	if (memory->spent >= KUBE_EVENT_BURST)
		return false;
	memory->spent++;
	return true;
}

static void name_new(struct kind *kind, const struct kube_event *event, uint64_t random)
{
	/* An Event of a node, which has no namespace, is in "default". */
	const char *namespace = event->regarding.namespace;

	str_copy(kind->namespace, sizeof kind->namespace, *namespace ? namespace : "default");
	/* A name is a DNS subdomain of at most 253 bytes: the object's, cut, and 16 digits. */
	snprintf(kind->name, sizeof kind->name, "%.230s.%016llx", event->regarding.name,
		 (unsigned long long)random);
}

static struct kube_event_plan plan_of(enum kube_event_step step, const struct kind *kind)
{
	struct kube_event_plan plan = {.step = step, .count = kind->count};

	memcpy(plan.namespace, kind->namespace, sizeof plan.namespace);
	memcpy(plan.name, kind->name, sizeof plan.name);
	return plan;
}

struct kube_event_plan kube_event_note(struct kube_event_memory *memory,
				       const struct kube_event *event, struct mono now,
				       uint64_t random)
{
	uint64_t hash = hash_event(event);
	struct kind *kind = place_of(memory, hash);
	bool known = kind->hash == hash && mono_until(kind->last, now) < KUBE_EVENT_FORGET_MS;

	if (!known) {
		if (!may_call(memory, now))
			return (struct kube_event_plan){.step = KUBE_EVENT_QUIET};
		*kind = (struct kind){.hash = hash, .count = 1, .last = now, .told = now};
		name_new(kind, event, random);
		return plan_of(KUBE_EVENT_MAKE, kind);
	}
	kind->count++;
	kind->last = now;
	if (mono_until(kind->told, now) < KUBE_EVENT_PAUSE_MS || !may_call(memory, now))
		return plan_of(KUBE_EVENT_QUIET, kind);
	kind->told = now;
	return plan_of(KUBE_EVENT_COUNT, kind);
}

void kube_event_forget(struct kube_event_memory *memory, const char *name)
{
	for (size_t i = 0; i < KUBE_EVENT_MEMORY; i++)
		if (memory->kinds[i].hash && str_equal(memory->kinds[i].name, name))
			memory->kinds[i] = (struct kind){0};
}

/* --- what is sent --- */

bool kube_time_parse(const char *text, struct wall *ret_time)
{
	struct tm parts = {0};
	int used = 0, hours = 0, minutes = 0;
	char sign = 'Z';

	if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
		   &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &used) != 6)
		return false;
	text += used;
	if (*text == '.')
		text += 1 + strspn(text + 1, "0123456789");
	if (!str_equal(text, "Z") &&
	    (sscanf(text, "%c%2d:%2d", &sign, &hours, &minutes) != 3 || !strchr("+-", sign)))
		return false;
	parts.tm_year -= 1900;
	parts.tm_mon -= 1;
	ret_time->ms = timegm(&parts) * 1000;
	ret_time->ms -= (sign == '-' ? -1 : 1) * (hours * 60 + minutes) * 60000;
	return true;
}

static json_t *time_of(struct wall now)
{
	char text[UTC_SIZE];

	utc_format(text, now);
	return tree_string(text);
}

static json_t *reference(const struct kube_event *event)
{
	const struct kube_resource *resource = event->regarding.resource;
	CLEANUP(buf) struct buf version = {0};
	json_t *object = json_object();

	buf_printf(&version, "%s%s%s", resource->group, *resource->group ? "/" : "",
		   resource->version);
	tree_set(object, "apiVersion", tree_string(buf_text(&version)));
	tree_set(object, "kind", tree_string(resource->object));
	tree_set(object, "name", tree_string(event->regarding.name));
	if (*event->regarding.namespace)
		tree_set(object, "namespace", tree_string(event->regarding.namespace));
	if (*event->uid)
		tree_set(object, "uid", tree_string(event->uid));
	return object;
}

static json_t *source_of(const struct kube_reporter *reporter)
{
	json_t *source = json_object();

	tree_set(source, "component", tree_string(reporter->component));
	tree_set(source, "host", tree_string(reporter->node));
	return source;
}

/* Cut between two characters. */
static json_t *note_of(const char *note)
{
	CLEANUP(buf) struct buf clean = {0};
	const char *text;
	size_t length = 0, next;

	utf8_add_clean(&clean, note);
	text = buf_text(&clean);
	while (text[length] && length + (next = utf8_length(text + length)) <= KUBE_EVENT_NOTE_MAX)
		length += next;
	json_t *value = json_stringn(text, length);
	if (!value)
		abort();
	return value;
}

struct kube_request kube_event_create(const struct kube_event_plan *plan,
				      const struct kube_event *event,
				      const struct kube_reporter *reporter, struct wall now)
{
	CLEANUP(tree) json_t *object = json_object();
	json_t *metadata = json_object();

	assert(plan->step == KUBE_EVENT_MAKE);
	tree_set(metadata, "name", tree_string(plan->name));
	tree_set(metadata, "namespace", tree_string(plan->namespace));
	tree_set(object, "apiVersion", tree_string("v1"));
	tree_set(object, "kind", tree_string("Event"));
	tree_set(object, "metadata", metadata);
	tree_set(object, "involvedObject", reference(event));
	tree_set(object, "type", tree_string(event->warning ? "Warning" : "Normal"));
	tree_set(object, "reason", tree_string(event->reason));
	tree_set(object, "action", tree_string(event->action));
	tree_set(object, "message", note_of(event->note));
	tree_set(object, "count", json_integer(1));
	tree_set(object, "firstTimestamp", time_of(now));
	tree_set(object, "lastTimestamp", time_of(now));
	tree_set(object, "source", source_of(reporter));
	tree_set(object, "reportingComponent", tree_string(reporter->component));
	tree_set(object, "reportingInstance", tree_string(reporter->node));
	return kube_create(&KUBE_EVENT, plan->namespace, object);
}

struct kube_request kube_event_count(const struct kube_event_plan *plan, struct wall now)
{
	CLEANUP(tree) json_t *patch = json_object();

	assert(plan->step == KUBE_EVENT_COUNT && plan->count >= 2);
	tree_set(patch, "count", json_integer(plan->count));
	tree_set(patch, "lastTimestamp", time_of(now));
	return kube_patch_merge((struct kube_ref){&KUBE_EVENT, plan->namespace, plan->name}, patch);
}
