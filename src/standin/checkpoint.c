#include "standin/checkpoint.h"

#include "text/base64.h"
#include "text/tree.h"

#include <inttypes.h>
#include <stdio.h>

/* The kubelet's key for devices without a NUMA node. */
#define WITHOUT_NUMA "-1"

/* --- to text --- */

static json_t *list_ensure(json_t *object, const char *key)
{
	json_t *list = json_object_get(object, key);
	if (list)
		return list;
	json_object_set_new(object, key, json_array());
	return json_object_get(object, key);
}

static json_t *devices_to_json(const struct manager_devices *devices)
{
	json_t *by_numa = json_object();
	vec_each (devices, const struct manager_device *device) {
		if (device->numa.count == 0)
			json_array_append_new(list_ensure(by_numa, WITHOUT_NUMA),
					      json_string(device->id));
		for (size_t i = 0; i < device->numa.count; i++) {
			char key[24];
			snprintf(key, sizeof key, "%" PRId64, device->numa.items[i]);
			json_array_append_new(list_ensure(by_numa, key), json_string(device->id));
		}
	}
	return by_numa;
}

void checkpoint_format(const struct manager *manager, struct buf *out)
{
	json_t *entries = json_array(), *registered = json_object();
	vec_each (&manager->holds, const struct manager_hold *hold) {
		CLEANUP(buf) struct buf response = {0};
		base64_encode(hold->response.data, hold->response.length, &response);
		json_array_append_new(entries,
				      json_pack("{s:s, s:s, s:s, s:o, s:s}", "PodUID", hold->pod,
						"ContainerName", hold->container, "ResourceName",
						hold->resource, "DeviceIDs",
						devices_to_json(&hold->devices), "AllocResp",
						buf_text(&response)));
	}
	vec_each (&manager->resources, const struct manager_resource *resource) {
		if (resource->expired)
			continue;
		json_t *healthy = json_array();
		vec_each (&resource->devices, const struct manager_device *device)
			if (device->healthy)
				json_array_append_new(healthy, json_string(device->id));
		json_object_set_new(registered, resource->name, healthy);
	}
	CLEANUP(tree)
	json_t *root = json_pack("{s:{s:o, s:o}, s:i}", "Data", "PodDeviceEntries", entries,
				 "RegisteredDevices", registered, "Checksum", 0);
	tree_dump_canonical(out, root);
}

/* --- from text --- */

static struct manager_device *held_ensure(struct manager_devices *devices, const char *id)
{
	vec_each (devices, struct manager_device * device)
		if (str_equal(device->id, id))
			return device;
	struct manager_device *device = vec_push(devices);
	device->id = mem_strdup(id);
	return device;
}

static bool devices_parse(json_t *by_numa, struct manager_devices *devices, struct error *error)
{
	const char *key;
	json_t *list;
	json_object_foreach(by_numa, key, list)
	{
		char *end;
		int64_t node = strtoll(key, &end, 10);
		if (end == key || *end != '\0' || !json_is_array(list))
			return error_field(error, "DeviceIDs",
					   "'%s' is not a NUMA node with a list", key);
		for (size_t i = 0; i < json_array_size(list); i++) {
			const char *id;
			if (!tree_item_string(list, i, key, "DeviceIDs", CHECKPOINT_MAX_SIZE, &id,
					      error))
				return false;
			struct manager_device *device = held_ensure(devices, id);
			if (!str_equal(key, WITHOUT_NUMA))
				*vec_push(&device->numa) = node;
		}
	}
	return true;
}

static bool entry_parse(json_t *entry, struct manager *manager, struct error *error)
{
	const char *pod, *container, *resource, *response;
	json_t *by_numa;
	static const char path[] = "PodDeviceEntries";
	if (!tree_get_string(entry, "PodUID", path, CHECKPOINT_MAX_SIZE, &pod, error) ||
	    !tree_get_string(entry, "ContainerName", path, CHECKPOINT_MAX_SIZE, &container,
			     error) ||
	    !tree_get_string(entry, "ResourceName", path, CHECKPOINT_MAX_SIZE, &resource, error) ||
	    !tree_get_text(entry, "AllocResp", path, CHECKPOINT_MAX_SIZE, &response, error) ||
	    !tree_get_object(entry, "DeviceIDs", path, &by_numa, error))
		return false;
	CLEANUP(buf) struct buf answer = {0};
	if (!base64_decode(response, &answer))
		return error_field(error, "AllocResp", "not base64");
	manager_hold_add(manager, pod, container, resource, &(struct manager_ids){0}, answer.data,
			 answer.length);
	return devices_parse(by_numa, &manager->holds.items[manager->holds.count - 1].devices,
			     error);
}

static bool root_parse(json_t *root, struct mono now, struct manager *manager, struct error *error)
{
	json_t *data, *entries = NULL, *registered, *item;
	if (!tree_get_object(root, "Data", "", &data, error) ||
	    !tree_get_object(data, "RegisteredDevices", "Data", &registered, error))
		return false;
	/* Go writes a list that was never filled as null. */
	if (!json_is_null(json_object_get(data, "PodDeviceEntries")) &&
	    !tree_get_array(data, "PodDeviceEntries", "Data", CHECKPOINT_MAX_ENTRIES, &entries,
			    error))
		return false;
	for (size_t i = 0; i < json_array_size(entries); i++)
		if (!tree_item_object(entries, i, "PodDeviceEntries", "Data", &item, error) ||
		    !entry_parse(item, manager, error))
			return false;
	const char *resource;
	json_object_foreach(registered, resource, item)
		manager_restore_resource(manager, resource, now);
	return true;
}

bool checkpoint_parse(const void *data, size_t length, struct mono now, struct manager *manager,
		      struct error *error)
{
	assert(manager->resources.count == 0 && manager->holds.count == 0);
	CLEANUP(tree) json_t *root = NULL;
	if (tree_parse(data, length, CHECKPOINT_MAX_SIZE, CHECKPOINT_NAME, &root, error) &&
	    root_parse(root, now, manager, error))
		return true;
	manager_deinit(manager);
	*manager = (struct manager){0};
	return false;
}
