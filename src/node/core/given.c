#include "node/core/given.h"

#include "text/tree.h"

#include <ctype.h>

#define RESOURCE_PREFIX "bcd.dev/"
#define MAX_RESOURCE    512

struct entry {
	const char *where, *pod, *container;
};

static bool is_uid(const char *text)
{
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && *text != '-')
			return false;
	return true;
}

static bool add_ids(const struct entry *entry, const json_t *devices, const char *node,
		    struct given_list *list, struct error *error)
{
	json_t *ids;
	size_t i;

	if (!tree_get_array(devices, node, entry->where, GIVEN_MAX_ENTRIES, &ids, error))
		return false;
	for (i = 0; i < json_array_size(ids); i++) {
		struct given *given;
		const char *id;

		if (!tree_item_string(ids, i, node, entry->where, HOLDS_ID_SIZE - 1, &id, error))
			return false;
		if (list->items.count == GIVEN_MAX_ENTRIES)
			return error_field(error, entry->where, "is one device too many");
		given = vec_push(&list->items);
		str_copy(given->pod, sizeof given->pod, entry->pod);
		str_copy(given->container, sizeof given->container, entry->container);
		str_copy(given->id, sizeof given->id, id);
	}
	return true;
}

static bool read_entry(const json_t *object, struct entry *entry, struct given_list *list,
		       struct error *error)
{
	char field[ERROR_FIELD_SIZE];
	const char *resource, *node;
	json_t *devices, *ids;

	if (!tree_get_string(object, "ResourceName", entry->where, MAX_RESOURCE, &resource, error))
		return false;
	if (!str_starts(resource, RESOURCE_PREFIX))
		return true;
	if (!tree_get_string(object, "PodUID", entry->where, GIVEN_UID_SIZE - 1, &entry->pod,
			     error) ||
	    !tree_get_string(object, "ContainerName", entry->where, GIVEN_NAME_SIZE - 1,
			     &entry->container, error) ||
	    !tree_get_object(object, "DeviceIDs", entry->where, &devices, error))
		return false;
	if (!is_uid(entry->pod)) {
		tree_path(field, entry->where, "PodUID");
		return error_field(error, field, "is no UID");
	}
	json_object_foreach(devices, node,
			    ids) if (!add_ids(entry, devices, node, list, error)) return false;
	return true;
}

static bool read_entries(const json_t *tree, struct given_list *list, struct error *error)
{
	char where[ERROR_FIELD_SIZE];
	json_t *data, *entries, *object;

	if (!tree_get_object(tree, "Data", "", &data, error))
		return false;
	if (json_is_null(
		    json_object_get(data, "PodDeviceEntries"))) /* how Go writes an empty list */
		return true;
	if (!tree_get_array(data, "PodDeviceEntries", "Data", GIVEN_MAX_ENTRIES, &entries, error))
		return false;
	for (size_t i = 0; i < json_array_size(entries); i++) {
		struct entry entry = {.where = where};

		tree_path_item(where, "Data", "PodDeviceEntries", i);
		if (!tree_item_object(entries, i, "PodDeviceEntries", "Data", &object, error) ||
		    !read_entry(object, &entry, list, error))
			return false;
	}
	return true;
}

bool given_parse(const char *text, size_t length, struct given_list *ret_list, struct error *error)
{
	CLEANUP(tree) json_t *tree = NULL;
	CLEANUP(given_list) struct given_list list = {0};

	if (!tree_parse(text, length, GIVEN_MAX_FILE, GIVEN_FILE, &tree, error))
		return false;
	if (!read_entries(tree, &list, error))
		return error_wrap(error, "%s", GIVEN_FILE);
	*ret_list = list;
	list = (struct given_list){0};
	return true;
}
