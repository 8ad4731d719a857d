#include "node/core/release.h"

#include <stdio.h>

static const char *const entry_keys[] = {"allocation",   "devices",  "since", "bootId",
					 "sinceBootMs",  "reported", "pods",  "outlived",
					 ADMISSION_KEYS, NULL};
static const char *const top_keys[] = {"version", "releases", "users", "usersBootId", NULL};
static const char *const device_keys[] = {"atom", "class", "uuid", "visibleDevice", NULL};

void release_entry_deinit(struct release_entry *entry)
{
	if (!entry)
		return;
	vec_deinit(&entry->devices);
	vec_deinit(&entry->pods);
	json_decref(entry->extra);
}

void releases_deinit(struct releases *releases)
{
	if (!releases)
		return;
	for (size_t i = 0; i < releases->entries.count; i++)
		release_entry_deinit(&releases->entries.items[i]);
	vec_deinit(&releases->entries);
	vec_deinit(&releases->users);
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
		memset(&entry->pods, 0, sizeof entry->pods);
		for (size_t j = 0; j < source->devices.count; j++)
			*vec_push(&entry->devices) = source->devices.items[j];
		for (size_t j = 0; j < source->pods.count; j++)
			*vec_push(&entry->pods) = source->pods.items[j];
		json_incref(entry->extra);
	}
	vec_each (&from->users, const struct release_user *user)
		*vec_push(&to.users) = *user;
	str_copy(to.users_boot_id, sizeof to.users_boot_id, from->users_boot_id);
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

bool releases_begin_boot(struct releases *releases, const struct holds *holds, const char *boot_id,
			 struct mono now)
{
	bool any = false;

	vec_each (&releases->entries, struct release_entry * entry) {
		if (*boot_id && str_equal(entry->boot_id, boot_id))
			continue;
		entry->since_boot_ms = now.ms;
		if (!*boot_id)
			continue;
		if (*entry->boot_id) {
			vec_clear(&entry->pods);
			entry->outlived = holds && !holds_find(holds, entry->allocation);
		}
		str_copy(entry->boot_id, sizeof entry->boot_id, boot_id);
		any = true;
	}
	return any;
}

void releases_add(struct releases *releases, const struct hold *hold, struct wall wall,
		  struct mono now, const char *boot_id)
{
	struct release_entry *entry;

	entry = releases_find(releases, hold->allocation);
	if (entry && !entry->reported && entry->devices.count > 0) {
		entry->outlived = false; /* it was bound again */
		return;
	}
	releases_remove(releases, hold->allocation);
	entry = add_entry(releases, hold->allocation, wall, now, boot_id);
	entry->share = hold->share;
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

static bool waits_for(const struct spec *spec, const char *allocation)
{
	for (size_t i = 0; i < spec->withdrawn.count; i++)
		if (str_equal(spec->withdrawn.items[i].allocation, allocation))
			return true;
	return false;
}

bool releases_say_again(struct releases *releases, const struct spec *before,
			const struct spec *next)
{
	bool any = false;

	vec_each (&releases->entries, struct release_entry * entry) {
		if (!entry->reported || !waits_for(next, entry->allocation) ||
		    waits_for(before, entry->allocation))
			continue;
		entry->reported = false;
		any = true;
	}
	return any;
}

bool releases_adopt(struct releases *releases, struct releases_room *room, const char *allocation,
		    const struct release_device *device, struct wall wall, struct mono now,
		    const char *boot_id)
{
	struct release_entry *entry = releases_find(releases, allocation);
	struct hold alone = {0};
	bool fits;

	if (entry && entry->reported)
		return false;
	*vec_push(&alone.devices) = (struct hold_device){.atom = device->atom};
	fits = releases_room_take(room, &alone, entry != NULL);
	vec_deinit(&alone.devices);
	if (!fits)
		return false;
	if (!entry)
		entry = add_entry(releases, allocation, wall, now, boot_id);
	*vec_push(&entry->devices) = *device;
	return true;
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

/* --- who had a device --- */

static bool has_pod(const struct release_pods *pods, const char *uid)
{
	vec_each (pods, const struct release_pod *pod)
		if (str_equal(pod->uid, uid))
			return true;
	return false;
}

bool release_pods_add(struct release_pods *pods, const char *uid)
{
	if (has_pod(pods, uid))
		return false;
	if (pods->count == RELEASE_MAX_PODS)
		vec_remove(pods, 0);
	str_copy(vec_push(pods)->uid, GIVEN_UID_SIZE, uid);
	return true;
}

static bool has_pods(const struct release_entry *entry, const struct release_pods *pods)
{
	vec_each (pods, const struct release_pod *pod)
		if (!has_pod(&entry->pods, pod->uid))
			return false;
	return true;
}

bool releases_lack_pods(const struct releases *releases, const char *allocation,
			const struct release_pods *pods)
{
	const struct release_entry *entry = releases_find(releases, allocation);

	return entry && !entry->reported && !has_pods(entry, pods);
}

bool releases_add_pods(struct releases *releases, struct releases_room *room,
		       const char *allocation, const struct release_pods *pods)
{
	struct release_entry *entry = releases_find(releases, allocation);
	size_t bytes = (pods->count + 1) * RELEASE_POD_BYTES; /* their list, too */
	bool added = false;

	if (!releases_lack_pods(releases, allocation, pods))
		return false;
	/* Half of the record is for more releases, whatever is known of these. */
	if (room->bytes < RELEASES_MAX_FILE / 2 + bytes)
		return false;
	room->bytes -= bytes;
	vec_each (pods, const struct release_pod *pod)
		added |= release_pods_add(&entry->pods, pod->uid);
	return added;
}

/* Are the record's those, of that boot? The times of another boot's rows are no times of this one. */
static bool same_users(const struct releases *releases, const struct release_users *users,
		       size_t count, const char *boot_id)
{
	const struct release_users *before = &releases->users;

	if (before->count != count || (count > 0 && !str_equal(releases->users_boot_id, boot_id)))
		return false;
	for (size_t i = 0; i < count; i++)
		if (!str_equal(before->items[i].allocation, users->items[i].allocation) ||
		    !unlisted_same_row(&before->items[i].pod, &users->items[i].pod))
			return false;
	return true;
}

/* Rows that the record has room for beside the pending releases; half of it stays theirs. */
static size_t room_for_users(const struct releases *releases)
{
	struct releases others = *releases;
	size_t room;

	others.users = (struct release_users){0};
	room = releases_room(&others).bytes;
	return room > RELEASES_MAX_FILE / 2 ? (room - RELEASES_MAX_FILE / 2) / RELEASES_USER_BYTES
					    : 0;
}

bool releases_set_users(struct releases *releases, const struct release_users *users,
			const char *boot_id)
{
	size_t count = users->count, room;

	if (same_users(releases, users, count, boot_id))
		return false;
	room = room_for_users(releases);
	if (count > RELEASES_MAX_USERS)
		count = RELEASES_MAX_USERS;
	if (count > room)
		count = room;
	if (same_users(releases, users, count, boot_id))
		return false;
	vec_deinit(&releases->users);
	for (size_t i = 0; i < count; i++)
		*vec_push(&releases->users) = users->items[i];
	str_copy(releases->users_boot_id, sizeof releases->users_boot_id, boot_id);
	return true;
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
	admission_set(object, &entry->share);
	if (entry->pods.count > 0) {
		json_object_set_new(object, "pods", json_array());
		vec_each (&entry->pods, const struct release_pod *pod)
			json_array_append_new(json_object_get(object, "pods"),
					      json_string(pod->uid));
	}
	if (entry->outlived)
		json_object_set_new(object, "outlived", json_true());
	if (entry->extra)
		json_object_update_missing(object, entry->extra);
	return object;
}

static void format_users(const struct releases *releases, json_t *tree)
{
	json_t *users = json_array();

	vec_each (&releases->users, const struct release_user *user) {
		json_t *row = json_pack("{s:s}", "allocation", user->allocation);

		unlisted_set(row, &user->pod);
		json_array_append_new(users, row);
	}
	json_object_set_new(tree, "users", users);
	json_object_set_new(tree, "usersBootId", json_string(releases->users_boot_id));
}

void releases_format(const struct releases *releases, struct buf *out)
{
	CLEANUP(tree)
	json_t *tree = json_pack("{s:i, s:[]}", "version", RELEASES_VERSION, "releases");

	for (size_t i = 0; i < releases->entries.count; i++)
		json_array_append_new(json_object_get(tree, "releases"),
				      format_entry(&releases->entries.items[i]));
	if (releases->users.count > 0)
		format_users(releases, tree);
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

static bool parse_pods(json_t *object, const char *where, struct release_entry *entry,
		       struct error *error)
{
	json_t *pods = NULL;

	if (!field_array(object, where, "pods", false, RELEASE_MAX_PODS, &pods, error))
		return false;
	for (size_t i = 0; i < json_array_size(pods); i++) {
		const char *uid;

		if (!tree_item_string(pods, i, "pods", where, GIVEN_UID_SIZE - 1, &uid, error))
			return false;
		release_pods_add(&entry->pods, uid);
	}
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
	    !field_bool(object, where, "reported", true, &entry->reported, error) ||
	    !field_bool(object, where, "outlived", false, &entry->outlived, error) ||
	    !parse_pods(object, where, entry, error) ||
	    !admission_parse(object, where, false, &entry->share, error))
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
	entry->extra = field_others(object, entry_keys);
	return true;
}

static bool parse_users(json_t *tree, struct releases *releases, struct error *error)
{
	json_t *users = NULL;

	if (!field_array(tree, "", "users", false, RELEASES_MAX_USERS, &users, error) ||
	    !field_text(tree, "", "usersBootId", users, releases->users_boot_id,
			sizeof releases->users_boot_id, error))
		return false;
	for (size_t i = 0; i < json_array_size(users); i++) {
		json_t *row = json_array_get(users, i);
		struct release_user *user = vec_push(&releases->users);
		char where[FIELD_WHERE_SIZE];

		tree_path_item(where, "", "users", i);
		if (!field_object(row, where, error) ||
		    !field_text(row, where, "allocation", true, user->allocation,
				sizeof user->allocation, error) ||
		    !unlisted_parse(row, where, &user->pod, error))
			return false;
	}
	return true;
}

static bool parse_tree(json_t *tree, struct releases *releases, struct error *error)
{
	json_t *array;

	if (!field_object(tree, "", error) || !field_version(tree, RELEASES_VERSION, error))
		return false;
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
	releases->extra = field_others(tree, top_keys);
	return parse_users(tree, releases, error);
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

struct mono release_evidence_from(struct mono from, struct mono given, struct mono kubelet)
{
	return mono_later(from, mono_later(mono_after(given, RELEASE_SETTLE_MS),
					   mono_after(kubelet, RELEASE_KUBELET_SETTLE_MS)));
}

bool release_counts(struct mono evidence_from, struct mono answered)
{
	return mono_until(evidence_from, answered) >= 0;
}

static struct mono evidence_from(const struct release_view *view)
{
	return release_evidence_from(view->withdrawn, view->given, view->kubelet_since);
}

static struct release_plan ask(const struct release_view *view, struct mono now, const char *why)
{
	bool young = mono_until(view->asked, now) < RELEASE_YOUNG_MS;
	struct mono again = evidence_from(view);

	if (view->answer != RELEASE_ANSWER_NONE && release_counts(again, view->answered))
		again = mono_later(again, mono_after(view->answered,
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
	    !release_counts(evidence_from(view), view->answered))
		return ask(view, now, "waits for the kubelet to settle");
	switch (view->answer) {
	case RELEASE_ANSWER_NONE:
		return ask(view, now, "the kubelet is to be asked");
	case RELEASE_ANSWER_FAILED:
		return ask(view, now, "the kubelet doesn't answer");
	case RELEASE_ANSWER_UNREAD:
		return ask(view, now, RELEASE_RECORD_TROUBLE);
	case RELEASE_ANSWER_HELD:
		return ask(view, now, "pods hold devices");
	case RELEASE_ANSWER_UNSEEN:
		return ask(view, now, "the pods' processes can't be looked at");
	case RELEASE_ANSWER_OPEN:
		return ask(view, now, "a pod's process has a device open");
	case RELEASE_ANSWER_ALIVE:
		return ask(view, now, "a pod that had a device still has processes");
	case RELEASE_ANSWER_UNSURE:
		return ask(view, now, "a pod that had a device may run yet");
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
