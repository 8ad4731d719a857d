#include "node/core/holds.h"

#include "gpu/core/field.h"

#include <stdio.h>

#define CDI_VERSION "0.6.0" /* the first with annotations; hostPath came with 0.5.0 */
#define FORM        "1"     /* of our annotations */

#define KEY_FORM        "bcd.dev/form"
#define KEY_ALLOCATION  "bcd.dev/allocation"
#define KEY_RESERVATION "bcd.dev/reservation"
#define KEY_BINDING     "bcd.dev/binding"
#define KEY_VCPUS       "bcd.dev/vcpus"
#define KEY_MEMORY      "bcd.dev/memory-bytes"
#define KEY_HUGEPAGES   "bcd.dev/hugepages-" /* and the size: bytes of such pages */
#define KEY_ATOM        "bcd.dev/atom"
#define KEY_CLASS       "bcd.dev/class"
#define KEY_VISIBLE     "bcd.dev/visible-device"
#define KEY_RANGE       "bcd.dev/range"

/* What a node's type, major and minor add to the text, with room. */
#define NUMBERS_LENGTH 128

void hold_deinit(struct hold *hold)
{
	if (!hold)
		return;
	for (size_t i = 0; i < hold->devices.count; i++)
		vec_deinit(&hold->devices.items[i].nodes);
	vec_deinit(&hold->devices);
	vec_deinit(&hold->common);
}

void holds_deinit(struct holds *holds)
{
	if (!holds)
		return;
	for (size_t i = 0; i < holds->count; i++)
		hold_deinit(&holds->items[i]);
	vec_deinit(holds);
}

const struct hold *holds_find(const struct holds *holds, const char *allocation)
{
	for (size_t i = 0; i < holds->count; i++)
		if (str_equal(holds->items[i].allocation, allocation))
			return &holds->items[i];
	return NULL;
}

/* The atom of a kubelet id's device name, which is its text with '/' as '_'. */
static bool id_atom(const char *id, const char *allocation, struct atom *ret_atom)
{
	size_t length = (size_t)(allocation - 1 - id);
	char text[ATOM_TEXT_SIZE];
	struct error ignored;

	if (length >= sizeof text || memchr(id, '/', length))
		return false;
	for (size_t i = 0; i < length; i++)
		text[i] = id[i] == '_' ? '/' : id[i];
	text[length] = '\0';
	return atom_parse(text, ret_atom, &ignored);
}

bool holds_find_id(const struct holds *holds, const char *id, const struct hold **ret_hold,
		   const struct hold_device **ret_device)
{
	const char *allocation = holds_id_allocation(id);
	const struct hold *hold = allocation ? holds_find(holds, allocation) : NULL;
	struct atom atom;

	if (!hold || !id_atom(id, allocation, &atom))
		return false;
	for (size_t i = 0; i < hold->devices.count; i++) {
		if (!atom_equal(&hold->devices.items[i].atom, &atom))
			continue;
		*ret_hold = hold;
		*ret_device = &hold->devices.items[i];
		return true;
	}
	return false;
}

void holds_file_name(char out[HOLDS_NAME_SIZE], const char *allocation)
{
	snprintf(out, HOLDS_NAME_SIZE, "%s%s%s", HOLDS_PREFIX, allocation, HOLDS_SUFFIX);
}

bool holds_is_file_name(const char *name)
{
	return str_starts(name, HOLDS_PREFIX) && str_ends(name, HOLDS_SUFFIX);
}

void holds_device_id(char out[HOLDS_ID_SIZE], const struct hold_device *device,
		     const char *allocation)
{
	char name[ATOM_TEXT_SIZE];

	atom_device_name(name, &device->atom);
	snprintf(out, HOLDS_ID_SIZE, "%s@%s", name, allocation);
}

const char *holds_id_allocation(const char *id)
{
	const char *at = strchr(id, '@');

	return at && at != id && at[1] ? at + 1 : NULL;
}

/* The claimed device that an id names, with "@<allocation>" or alone. */
static bool id_claimed(const char *id, struct atom *ret_atom, char ret_tag[DRA_TAG_SIZE])
{
	size_t length = strcspn(id, "@");
	char name[DRA_NAME_SIZE];

	if (length >= sizeof name)
		return false;
	memcpy(name, id, length);
	name[length] = '\0';
	return dra_name_parse(name, ret_atom, ret_tag);
}

bool holds_id_is_of(const char *id, const char *allocation)
{
	const char *of = holds_id_allocation(id);
	char tag[DRA_TAG_SIZE], wanted[DRA_TAG_SIZE];
	struct atom atom;

	if (of)
		return str_equal(of, allocation);
	if (!id_claimed(id, &atom, tag))
		return false;
	dra_tag(wanted, allocation);
	return str_equal(tag, wanted);
}

bool holds_id_is(const char *id, const struct atom *atom, const char *allocation)
{
	struct atom found;

	return holds_id_atom(id, &found) && atom_equal(&found, atom) &&
	       holds_id_is_of(id, allocation);
}

bool holds_id_atom(const char *id, struct atom *ret_atom)
{
	const char *of = holds_id_allocation(id);
	char tag[DRA_TAG_SIZE];

	return (of && id_atom(id, of, ret_atom)) || id_claimed(id, ret_atom, tag);
}

/* --- device nodes --- */

static void copy_nodes(const struct hold_nodes *from, struct hold_nodes *to)
{
	vec_each (from, const struct hold_node *node)
		*vec_push(to) = *node;
}

void hold_copy(const struct hold *from, struct hold *ret_copy)
{
	struct hold copy = *from;

	copy.common = (struct hold_nodes){0};
	memset(&copy.devices, 0, sizeof copy.devices);
	copy_nodes(&from->common, &copy.common);
	vec_each (&from->devices, const struct hold_device *device) {
		struct hold_device *own = vec_push(&copy.devices);

		*own = *device;
		own->nodes = (struct hold_nodes){0};
		copy_nodes(&device->nodes, &own->nodes);
	}
	*ret_copy = copy;
}

void holds_nodes_now(const struct inventory *inventory, const struct hold_device *device,
		     struct hold_nodes *nodes)
{
	const struct inventory_atom *now = inventory_find_atom(inventory, &device->atom);
	struct inventory_node from[INVENTORY_MAX_NODES];
	size_t count = 0;

	if (now && str_equal(now->visible, device->visible))
		count = inventory_atom_nodes(inventory, &device->atom, from);
	for (size_t i = 0; i < count; i++) {
		struct hold_node *node = vec_push(nodes);

		str_copy(node->path, sizeof node->path, from[i].path);
		str_copy(node->host_path, sizeof node->host_path, from[i].host_path);
	}
}

bool holds_moved(const struct inventory *inventory, const struct hold_device *device)
{
	struct hold_nodes now = {0};
	bool moved;

	holds_nodes_now(inventory, device, &now);
	moved = now.count != device->nodes.count;
	for (size_t i = 0; i < now.count && !moved; i++)
		moved = !str_equal(now.items[i].path, device->nodes.items[i].path) ||
			!str_equal(now.items[i].host_path, device->nodes.items[i].host_path);
	vec_deinit(&now);
	return moved;
}

/* --- writing --- */

static json_t *format_nodes(const struct hold_nodes *nodes)
{
	json_t *array = json_array();

	for (size_t i = 0; i < nodes->count; i++) {
		const struct hold_node *node = &nodes->items[i];
		json_t *object = json_pack("{s:s, s:s, s:s}", "path", node->path, "hostPath",
					   node->host_path, "permissions", "rw");

		if (node->type) {
			json_object_set_new(object, "type", json_stringn(&node->type, 1));
			json_object_set_new(object, "major", json_integer(node->major));
			json_object_set_new(object, "minor", json_integer(node->minor));
		}
		json_array_append_new(array, object);
	}
	return array;
}

/* An environment variable of its own for each device, so several devices in one container keep
 * all of them, and a device without nodes still has an edit. */
static void format_env(char *out, size_t size, const char *device_name, const char *allocation)
{
	char upper[ATOM_TEXT_SIZE];
	size_t i;

	for (i = 0; device_name[i]; i++) {
		char c = device_name[i];

		upper[i] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c == '-' ? '_' : c;
	}
	upper[i] = '\0';
	snprintf(out, size, "BCD_DEVICE_%s=%s", upper, allocation);
}

static json_t *format_device(const struct hold_device *device, const char *allocation)
{
	char atom[ATOM_TEXT_SIZE], name[ATOM_TEXT_SIZE], range[32], env[192];
	json_t *edits, *nodes = format_nodes(&device->nodes);

	atom_format(atom, &device->atom);
	atom_device_name(name, &device->atom);
	snprintf(range, sizeof range, "%d-%d", (int)device->range.lo, (int)device->range.hi);
	format_env(env, sizeof env, name, allocation);
	edits = json_pack("{s:[s]}", "env", env);
	if (json_array_size(nodes) > 0)
		json_object_set(edits, "deviceNodes", nodes);
	json_decref(nodes);
	return json_pack("{s:s, s:{s:s, s:s, s:s, s:s}, s:o}", "name", name, "annotations",
			 KEY_ATOM, atom, KEY_CLASS, atom_class_name(device->atom.class),
			 KEY_VISIBLE, device->visible, KEY_RANGE, range, "containerEdits", edits);
}

#define KEY_HUGEPAGES_SIZE 32

static void hugepages_key(char out[KEY_HUGEPAGES_SIZE], int size)
{
	snprintf(out, KEY_HUGEPAGES_SIZE, KEY_HUGEPAGES "%s",
		 hugepages_name((enum hugepages_size)size));
}

static void format_amount(json_t *object, const char *key, int64_t amount)
{
	char number[32];

	if (amount == 0)
		return;
	snprintf(number, sizeof number, "%lld", (long long)amount);
	json_object_set_new(object, key, json_string(number));
}

static json_t *format_annotations(const struct hold *hold)
{
	json_t *object = json_pack("{s:s, s:s, s:s}", KEY_FORM, FORM, KEY_ALLOCATION,
				   hold->allocation, KEY_BINDING, hold->binding);
	char key[KEY_HUGEPAGES_SIZE];

	if (*hold->reservation)
		json_object_set_new(object, KEY_RESERVATION, json_string(hold->reservation));
	format_amount(object, KEY_VCPUS, hold->share.vcpus);
	format_amount(object, KEY_MEMORY, hold->share.memory_bytes);
	for (int size = 0; size < HUGEPAGES_SIZES; size++) {
		hugepages_key(key, size);
		format_amount(object, key, hold->share.hugepages.bytes[size]);
	}
	return object;
}

void holds_format(const struct hold *hold, struct buf *out)
{
	CLEANUP(tree)
	json_t *spec = json_pack("{s:s, s:s, s:o, s:[]}", "cdiVersion", CDI_VERSION, "kind",
				 HOLDS_KIND, "annotations", format_annotations(hold), "devices");

	assert(hold->devices.count > 0);
	for (size_t i = 0; i < hold->devices.count; i++)
		json_array_append_new(json_object_get(spec, "devices"),
				      format_device(&hold->devices.items[i], hold->allocation));
	if (hold->common.count > 0)
		json_object_set_new(spec, "containerEdits",
				    json_pack("{s:o}", "deviceNodes", format_nodes(&hold->common)));
	tree_dump_pretty(out, spec);
}

bool holds_fit_file(const struct hold *hold)
{
	CLEANUP(buf) struct buf text = {0};
	size_t nodes = hold->common.count;

	holds_format(hold, &text);
	for (size_t i = 0; i < hold->devices.count; i++)
		nodes += hold->devices.items[i].nodes.count;
	return text.length + nodes * NUMBERS_LENGTH <= HOLDS_MAX_FILE;
}

/* --- reading --- */

static bool parse_nodes(json_t *edits, const char *where, struct hold_nodes *nodes,
			struct error *error)
{
	json_t *array;

	if (!field_array(edits, where, "deviceNodes", false, INVENTORY_MAX_NODES, &array, error))
		return false;
	for (size_t i = 0; array && i < json_array_size(array); i++) {
		json_t *object = json_array_get(array, i);
		struct hold_node node = {0};
		char item[FIELD_WHERE_SIZE], type[2] = "";
		int64_t major = 0, minor = 0;

		tree_path_item(item, where, "deviceNodes", i);
		if (!field_object(object, item, error) ||
		    !field_text(object, item, "path", true, node.path, sizeof node.path, error) ||
		    !field_text(object, item, "hostPath", true, node.host_path,
				sizeof node.host_path, error) ||
		    !field_text(object, item, "type", false, type, sizeof type, error) ||
		    !field_number(object, item, "major", *type, 0, UINT32_MAX, &major, error) ||
		    !field_number(object, item, "minor", *type, 0, UINT32_MAX, &minor, error))
			return false;
		node.type = *type;
		node.major = (uint32_t)major;
		node.minor = (uint32_t)minor;
		*vec_push(nodes) = node;
	}
	return true;
}

static bool parse_range(const char *text, struct atom_range *ret_range)
{
	int lo, hi, used = 0;

	if (sscanf(text, "%4d-%4d%n", &lo, &hi, &used) != 2 || text[used] || lo < 0 || lo >= hi ||
	    hi > ATOM_LEAVES)
		return false;
	*ret_range = (struct atom_range){lo, hi};
	return true;
}

static bool parse_device(json_t *object, const char *where, struct hold_device *device,
			 struct error *error)
{
	char atom[ATOM_TEXT_SIZE] = "", name[ATOM_TEXT_SIZE], own[ATOM_TEXT_SIZE] = "",
	     class[16] = "", range[32] = "";
	json_t *annotations, *edits;

	if (!field_object(object, where, error) ||
	    !field_text(object, where, "name", true, own, sizeof own, error) ||
	    !field_child(object, where, "annotations", true, &annotations, error) ||
	    !field_child(object, where, "containerEdits", true, &edits, error) ||
	    !field_text(annotations, where, KEY_ATOM, true, atom, sizeof atom, error) ||
	    !field_text(annotations, where, KEY_CLASS, true, class, sizeof class, error) ||
	    !field_text(annotations, where, KEY_RANGE, true, range, sizeof range, error) ||
	    !field_text(annotations, where, KEY_VISIBLE, true, device->visible,
			sizeof device->visible, error) ||
	    !parse_nodes(edits, where, &device->nodes, error))
		return false;
	if (!atom_parse(atom, &device->atom, error))
		return error_wrap(error, "%s", where);
	if (!parse_range(range, &device->range))
		return error_field(error, where, "range '%s' is none", range);
	atom_device_name(name, &device->atom);
	if (!str_equal(own, name) || !str_equal(class, atom_class_name(device->atom.class)))
		return error_field(error, where, "name, class and atom disagree");
	return true;
}

static bool parse_devices(json_t *spec, struct hold *hold, struct error *error)
{
	json_t *array;

	if (!field_array(spec, "", "devices", true, HOLDS_MAX_DEVICES, &array, error))
		return false;
	if (json_array_size(array) == 0)
		return error_field(error, "devices", "is empty");
	for (size_t i = 0; i < json_array_size(array); i++) {
		struct hold_device *device = vec_push(&hold->devices);
		char where[FIELD_WHERE_SIZE];

		tree_path_item(where, "", "devices", i);
		if (!parse_device(json_array_get(array, i), where, device, error))
			return false;
		if (i > 0 && atom_compare(&device[-1].atom, &device->atom) >= 0)
			return error_field(error, where, "is not in order");
	}
	return true;
}

static bool parse_amount(json_t *object, const char *key, int64_t max, int64_t *ret_amount,
			 struct error *error)
{
	char text[24] = "0";
	long long amount;
	int used = 0;

	if (!field_text(object, "annotations", key, false, text, sizeof text, error))
		return false;
	if (sscanf(text, "%18lld%n", &amount, &used) != 1 || text[used] || amount < 0 ||
	    amount > max)
		return error_field(error, key, "'%s' is not an amount", text);
	*ret_amount = amount;
	return true;
}

static bool parse_annotations(json_t *spec, struct hold *hold, struct error *error)
{
	static const char where[] = "annotations";
	char form[16] = "", key[KEY_HUGEPAGES_SIZE];
	json_t *object;

	if (!field_child(spec, "", where, true, &object, error) ||
	    !field_text(object, where, KEY_FORM, true, form, sizeof form, error))
		return false;
	if (!str_equal(form, FORM))
		return error_field(error, KEY_FORM, "is '%s', of another bcd; this bcd reads %s",
				   form, FORM);
	if (!field_text(object, where, KEY_ALLOCATION, true, hold->allocation,
			sizeof hold->allocation, error) ||
	    !field_text(object, where, KEY_RESERVATION, false, hold->reservation,
			sizeof hold->reservation, error) ||
	    !field_text(object, where, KEY_BINDING, true, hold->binding, sizeof hold->binding,
			error) ||
	    !parse_amount(object, KEY_VCPUS, INT32_MAX, &hold->share.vcpus, error) ||
	    !parse_amount(object, KEY_MEMORY, INT64_MAX, &hold->share.memory_bytes, error))
		return false;
	for (int size = 0; size < HUGEPAGES_SIZES; size++) {
		hugepages_key(key, size);
		if (!parse_amount(object, key, INT64_MAX, &hold->share.hugepages.bytes[size],
				  error))
			return false;
	}
	return true;
}

static bool parse_spec(json_t *spec, const char *file_name, struct hold *hold, struct error *error)
{
	char kind[64] = "", wanted[HOLDS_NAME_SIZE];
	json_t *edits;

	if (!field_object(spec, "", error) ||
	    !field_text(spec, "", "kind", true, kind, sizeof kind, error))
		return false;
	if (!str_equal(kind, HOLDS_KIND))
		return error_field(error, "kind", "is '%s', not %s", kind, HOLDS_KIND);
	if (!parse_annotations(spec, hold, error) || !parse_devices(spec, hold, error) ||
	    !field_child(spec, "", "containerEdits", false, &edits, error))
		return false;
	if (edits && !parse_nodes(edits, "containerEdits", &hold->common, error))
		return false;
	holds_file_name(wanted, hold->allocation);
	if (!str_equal(wanted, file_name))
		return error_field(error, KEY_ALLOCATION, "is '%s', whose file would be %s",
				   hold->allocation, wanted);
	return true;
}

bool holds_parse(const char *text, size_t length, const char *file_name, struct hold *ret_hold,
		 struct error *error)
{
	CLEANUP(hold) struct hold hold = {0};
	CLEANUP(tree) json_t *spec = NULL;

	if (!tree_parse(text, length, HOLDS_MAX_FILE, file_name, &spec, error))
		return false;
	if (!parse_spec(spec, file_name, &hold, error))
		return error_wrap(error, "%s", file_name);
	*ret_hold = hold;
	hold = (struct hold){0};
	return true;
}
