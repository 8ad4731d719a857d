#include "node/core/release.h"

#include <stdio.h>

static const char *const entry_keys[] = {"allocation",  "devices",  "since", "bootId",
					 "sinceBootMs", "reported", NULL};
static const char *const top_keys[] = {"version", "releases", NULL};
static const char *const device_keys[] = {"atom", "class", "uuid", "visibleDevice", NULL};

void release_entry_deinit(struct release_entry *entry)
{
	if (!entry)
		return;
	vec_deinit(&entry->devices);
	json_decref(entry->extra);
}

void releases_deinit(struct releases *releases)
{
	if (!releases)
		return;
	for (size_t i = 0; i < releases->entries.count; i++)
		release_entry_deinit(&releases->entries.items[i]);
	vec_deinit(&releases->entries);
	json_decref(releases->extra);
	releases->extra = NULL;
}

void releases_copy(const struct releases *from, struct releases *ret_to)
{
	struct releases to = {.extra = json_incref(from->extra)};

	for (size_t i = 0; i < from->entries.count; i++) {
		const struct release_entry *source = &from->entries.items[i];
		struct release_entry *entry = vec_push(&to.entries);

		*entry = *source;
		memset(&entry->devices, 0, sizeof entry->devices);
		for (size_t j = 0; j < source->devices.count; j++)
			*vec_push(&entry->devices) = source->devices.items[j];
		json_incref(entry->extra);
	}
	*ret_to = to;
}

struct release_entry *releases_find(const struct releases *releases, const char *allocation)
{
	for (size_t i = 0; i < releases->entries.count; i++)
		if (str_equal(releases->entries.items[i].allocation, allocation))
			return &releases->entries.items[i];
	return NULL;
}

static struct release_entry *add_entry(struct releases *releases, const char *allocation,
				       struct wall wall, struct mono now, const char *boot_id)
{
	struct release_entry *entry = vec_push(&releases->entries);

	str_copy(entry->allocation, sizeof entry->allocation, allocation);
	str_copy(entry->boot_id, sizeof entry->boot_id, boot_id);
	entry->since = wall.ms / 1000;
	entry->since_boot_ms = now.ms;
	return entry;
}

void releases_add(struct releases *releases, const struct hold *hold, struct wall wall,
		  struct mono now, const char *boot_id)
{
	struct release_entry *entry;

	entry = releases_find(releases, hold->allocation);
	if (entry && !entry->reported && entry->devices.count > 0)
		return;
	releases_remove(releases, hold->allocation);
	entry = add_entry(releases, hold->allocation, wall, now, boot_id);
	for (size_t i = 0; i < hold->devices.count; i++) {
		struct release_device *device = vec_push(&entry->devices);

		device->atom = hold->devices.items[i].atom;
		str_copy(device->visible, sizeof device->visible, hold->devices.items[i].visible);
	}
}

bool releases_add_withdrawn(struct releases *releases, const struct spec *spec,
			    const struct holds *holds, struct wall wall, struct mono now,
			    const char *boot_id)
{
	struct releases_room room = releases_room(releases);
	const struct hold nothing = {0};
	bool added = false;

	for (size_t i = 0; i < spec->withdrawn.count; i++) {
		const char *allocation = spec->withdrawn.items[i].allocation;

		if (releases_find(releases, allocation) || holds_find(holds, allocation) ||
		    !releases_room_take(&room, &nothing, false))
			continue; /* for want of room: a later Spec names it again */
		add_entry(releases, allocation, wall, now, boot_id);
		added = true;
	}
	return added;
}

void releases_remove(struct releases *releases, const char *allocation)
{
	for (size_t i = 0; i < releases->entries.count; i++) {
		if (!str_equal(releases->entries.items[i].allocation, allocation))
			continue;
		release_entry_deinit(&releases->entries.items[i]);
		vec_remove(&releases->entries, i);
		return;
	}
}

/* --- writing --- */

static json_t *format_entry(const struct release_entry *entry)
{
	json_t *devices = json_array(), *object;

	for (size_t i = 0; i < entry->devices.count; i++) {
		const struct release_device *device = &entry->devices.items[i];
		char atom[ATOM_TEXT_SIZE], uuid[ATOM_UUID_SIZE];

		atom_format(atom, &device->atom);
		atom_uuid_format(uuid, device->atom.gpu);
		json_array_append_new(devices,
				      json_pack("{s:s, s:s, s:s, s:s}", "atom", atom, "class",
						atom_class_name(device->atom.class), "uuid", uuid,
						"visibleDevice", device->visible));
	}
	object = json_pack("{s:s, s:o, s:I, s:s, s:I, s:b}", "allocation", entry->allocation,
			   "devices", devices, "since", (json_int_t)entry->since, "bootId",
			   entry->boot_id, "sinceBootMs", (json_int_t)entry->since_boot_ms,
			   "reported", entry->reported);
	if (entry->extra)
		json_object_update_missing(object, entry->extra);
	return object;
}

void releases_format(const struct releases *releases, struct buf *out)
{
	CLEANUP(tree)
	json_t *tree = json_pack("{s:i, s:[]}", "version", RELEASES_VERSION, "releases");

	for (size_t i = 0; i < releases->entries.count; i++)
		json_array_append_new(json_object_get(tree, "releases"),
				      format_entry(&releases->entries.items[i]));
	if (releases->extra)
		json_object_update_missing(tree, releases->extra);
	tree_dump_pretty(out, tree);
}

struct releases_room releases_room(const struct releases *releases)
{
	CLEANUP(buf) struct buf text = {0};

	releases_format(releases, &text);
	return (struct releases_room){
		.entries = RELEASES_MAX - releases->entries.count,
		.bytes = text.length < RELEASES_MAX_FILE ? RELEASES_MAX_FILE - text.length : 0,
	};
}

bool releases_room_take(struct releases_room *room, const struct hold *hold, bool in_place)
{
	/* No number and no id is longer. */
	static const char longest[] = "ffffffff-ffff-ffff-ffff-ffffffffffff";
	CLEANUP(releases) struct releases alone = {0};
	CLEANUP(buf) struct buf text = {0};

	if (!in_place && room->entries == 0)
		return false;
	releases_add(&alone, hold, (struct wall){INT64_MAX}, (struct mono){INT64_MAX}, longest);
	str_copy(alone.entries.items[0].allocation, ID_SIZE, longest);
	releases_format(&alone, &text);
	if (text.length > room->bytes)
		return false;
	room->bytes -= text.length;
	room->entries -= !in_place;
	return true;
}

/* --- reading --- */

/* The members that this bcd doesn't know, or NULL. */
static json_t *unknown_members(json_t *object, const char *const *keys)
{
	json_t *extra = json_copy(object);

	for (; *keys; keys++)
		json_object_del(extra, *keys);
	if (json_object_size(extra) > 0)
		return extra;
	json_decref(extra);
	return NULL;
}

static bool parse_device(json_t *object, const char *where, struct release_device *device,
			 struct error *error)
{
	char atom[ATOM_TEXT_SIZE] = "", class[16] = "", uuid[ATOM_UUID_SIZE] = "",
	     wanted[ATOM_UUID_SIZE];

	if (!field_object(object, where, error) ||
	    !tree_check_keys(object, where, device_keys, error) ||
	    !field_text(object, where, "atom", true, atom, sizeof atom, error) ||
	    !field_text(object, where, "class", true, class, sizeof class, error) ||
	    !field_text(object, where, "uuid", true, uuid, sizeof uuid, error) ||
	    !field_text(object, where, "visibleDevice", true, device->visible,
			sizeof device->visible, error))
		return false;
	if (!atom_parse(atom, &device->atom, error))
		return error_wrap(error, "%s", where);
	atom_uuid_format(wanted, device->atom.gpu);
	if (!str_equal(class, atom_class_name(device->atom.class)) || !str_equal(uuid, wanted))
		return error_field(error, where, "atom, class and uuid disagree");
	return true;
}

static bool parse_entry(json_t *object, const char *where, const struct releases *before,
			struct release_entry *entry, struct error *error)
{
	json_t *devices;

	if (!field_object(object, where, error) ||
	    !field_text(object, where, "allocation", true, entry->allocation,
			sizeof entry->allocation, error) ||
	    !field_array(object, where, "devices", true, HOLDS_MAX_DEVICES, &devices, error) ||
	    !field_number(object, where, "since", true, 0, INT64_MAX, &entry->since, error) ||
	    !field_text(object, where, "bootId", true, entry->boot_id, sizeof entry->boot_id,
			error) ||
	    !field_number(object, where, "sinceBootMs", true, 0, INT64_MAX, &entry->since_boot_ms,
			  error) ||
	    !field_bool(object, where, "reported", true, &entry->reported, error))
		return false;
	if (!id_valid(entry->allocation, "alc"))
		return error_field(error, where, "allocation '%s' is no id", entry->allocation);
	if (releases_find(before, entry->allocation))
		return error_field(error, where, "allocation '%s' is there twice",
				   entry->allocation);
	for (size_t i = 0; i < json_array_size(devices); i++) {
		struct release_device device = {0};
		char item[FIELD_WHERE_SIZE];

		tree_path_item(item, where, "devices", i);
		if (!parse_device(json_array_get(devices, i), item, &device, error))
			return false;
		*vec_push(&entry->devices) = device;
	}
	entry->extra = unknown_members(object, entry_keys);
	return true;
}

static bool parse_tree(json_t *tree, struct releases *releases, struct error *error)
{
	int32_t version = 0;
	json_t *array;

	if (!field_object(tree, "", error) ||
	    !field_int(tree, "", "version", true, 0, INT32_MAX, &version, error))
		return false;
	if (version != RELEASES_VERSION)
		return error_field(error, "version", "is %d; this bcd reads version %d",
				   (int)version, RELEASES_VERSION);
	if (!field_array(tree, "", "releases", true, RELEASES_MAX, &array, error))
		return false;
	for (size_t i = 0; i < json_array_size(array); i++) {
		struct release_entry entry = {0};
		char where[FIELD_WHERE_SIZE];

		tree_path_item(where, "", "releases", i);
		if (!parse_entry(json_array_get(array, i), where, releases, &entry, error)) {
			release_entry_deinit(&entry);
			return false;
		}
		*vec_push(&releases->entries) = entry;
	}
	releases->extra = unknown_members(tree, top_keys);
	return true;
}

bool releases_parse(const char *text, size_t length, struct releases *ret_releases,
		    struct error *error)
{
	CLEANUP(releases) struct releases releases = {0};
	CLEANUP(tree) json_t *tree = NULL;

	if (!tree_parse(text, length, RELEASES_MAX_FILE, RELEASES_FILE, &tree, error))
		return false;
	if (!parse_tree(tree, &releases, error))
		return error_wrap(error, RELEASES_FILE);
	*ret_releases = releases;
	releases = (struct releases){0};
	return true;
}

/* --- the decision --- */

const char *release_step_name(enum release_step step)
{
	switch (step) {
	case RELEASE_FORGET:
		return "forget";
	case RELEASE_WITHDRAW:
		return "withdraw";
	case RELEASE_ASK:
		return "ask";
	case RELEASE_REPORT:
		return "report";
	case RELEASE_DONE:
		return "done";
	}
	assert(false && "a step of no name");
	return "";
}

struct mono release_asked(const struct release_entry *entry, const char *boot_id, struct mono now)
{
	bool same_boot = *boot_id && str_equal(entry->boot_id, boot_id);

	if (same_boot && entry->since_boot_ms <= now.ms)
		return (struct mono){entry->since_boot_ms};
	return now;
}

static struct mono later(struct mono a, struct mono b)
{
	return a.ms > b.ms ? a : b;
}

/* A listing counts when it was asked for after this. */
static struct mono evidence_from(const struct release_view *view)
{
	return later(view->withdrawn,
		     later(mono_after(view->given, RELEASE_SETTLE_MS),
			   mono_after(view->kubelet_since, RELEASE_KUBELET_SETTLE_MS)));
}

static struct release_plan ask(const struct release_view *view, struct mono now, const char *why)
{
	bool young = mono_until(view->asked, now) < RELEASE_YOUNG_MS;
	struct mono again = evidence_from(view);

	if (view->answer != RELEASE_ANSWER_NONE && mono_until(again, view->answered) >= 0)
		again = later(again, mono_after(view->answered,
						young ? RELEASE_ASK_MS : RELEASE_ASK_OLD_MS));
	return (struct release_plan){.step = RELEASE_ASK, .again = again, .why = why};
}

static struct release_plan judge(const struct release_view *view, struct mono now)
{
	if (view->wanted && view->bound)
		return (struct release_plan){.step = RELEASE_FORGET, .why = "bound again"};
	if (view->bound)
		return (struct release_plan){.step = RELEASE_WITHDRAW, .why = "to be withdrawn"};
	if (view->reported)
		return (struct release_plan){.step = RELEASE_DONE, .why = "released"};
	if (!view->worker)
		return (struct release_plan){.step = RELEASE_REPORT, .why = "never a worker"};
	if (view->answer != RELEASE_ANSWER_NONE &&
	    mono_until(evidence_from(view), view->answered) < 0)
		return ask(view, now, "waits for the kubelet to settle");
	switch (view->answer) {
	case RELEASE_ANSWER_NONE:
		return ask(view, now, "the kubelet is to be asked");
	case RELEASE_ANSWER_FAILED:
		return ask(view, now, "the kubelet doesn't answer");
	case RELEASE_ANSWER_HELD:
		return ask(view, now, "pods hold devices");
	case RELEASE_ANSWER_UNSEEN:
		return ask(view, now, "the pods' processes can't be looked at");
	case RELEASE_ANSWER_OPEN:
		return ask(view, now, "a pod's process has a device open");
	case RELEASE_ANSWER_FREE:
		return (struct release_plan){.step = RELEASE_REPORT, .why = "no pod holds it"};
	}
	assert(false && "an answer of no kind");
	return ask(view, now, "");
}

struct release_plan release_decide(const struct release_view *view, struct mono now)
{
	struct release_plan plan = judge(view, now);

	plan.stuck = plan.step == RELEASE_ASK && mono_until(view->asked, now) >= RELEASE_STUCK_MS;
	return plan;
}
