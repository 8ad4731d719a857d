#include "standin/manager.h"

/* --- lists --- */

void manager_devices_deinit(struct manager_devices *devices)
{
	vec_each (devices, struct manager_device * device) {
		free(device->id);
		vec_deinit(&device->numa);
	}
	vec_deinit(devices);
}

void manager_ids_deinit(struct manager_ids *ids)
{
	vec_each (ids, char **id)
		free(*id);
	vec_deinit(ids);
}

void manager_ids_add(struct manager_ids *ids, const char *id)
{
	*vec_push(ids) = mem_strdup(id);
}

bool manager_ids_has(const struct manager_ids *ids, const char *id)
{
	for (size_t i = 0; i < ids->count; i++)
		if (str_equal(ids->items[i], id))
			return true;
	return false;
}

static struct manager_device *device_find(struct manager_devices *devices, const char *id)
{
	vec_each (devices, struct manager_device * device)
		if (str_equal(device->id, id))
			return device;
	return NULL;
}

/* --- life --- */

static void hold_deinit(struct manager_hold *hold)
{
	free(hold->pod);
	free(hold->container);
	free(hold->resource);
	manager_devices_deinit(&hold->devices);
	buf_deinit(&hold->response);
}

void manager_deinit(struct manager *manager)
{
	vec_each (&manager->resources, struct manager_resource * resource) {
		free(resource->name);
		manager_devices_deinit(&resource->devices);
		vec_each (&resource->endpoints, struct manager_endpoint * endpoint)
			free(endpoint->path);
		vec_deinit(&resource->endpoints);
	}
	vec_deinit(&manager->resources);
	vec_each (&manager->holds, struct manager_hold * hold)
		hold_deinit(hold);
	vec_deinit(&manager->holds);
}

struct manager_resource *manager_find(struct manager *manager, const char *name)
{
	vec_each (&manager->resources, struct manager_resource * resource)
		if (str_equal(resource->name, name))
			return resource;
	return NULL;
}

static int resource_compare(const void *a, const void *b)
{
	const struct manager_resource *left = a, *right = b;
	return strcmp(left->name, right->name);
}

static struct manager_resource *resource_ensure(struct manager *manager, const char *name)
{
	if (!manager_find(manager, name)) {
		vec_push(&manager->resources)->name = mem_strdup(name);
		vec_sort(&manager->resources, resource_compare);
	}
	return manager_find(manager, name);
}

/* --- plugins --- */

void manager_restore_resource(struct manager *manager, const char *name, struct mono now)
{
	struct manager_resource *resource = resource_ensure(manager, name);
	resource->stopped = true;
	resource->stopped_at = now;
}

bool manager_connected(struct manager *manager, const char *name, uint64_t plugin, const char *path,
		       struct error *error)
{
	struct manager_resource *resource = resource_ensure(manager, name);
	vec_each (&resource->endpoints, struct manager_endpoint * endpoint)
		if (str_equal(endpoint->path, path))
			return error_set(error, ERROR_CONFLICT,
					 "device plugin already connected: %s", path);
	*vec_push(&resource->endpoints) = (struct manager_endpoint){plugin, mem_strdup(path)};
	resource->primary = plugin;
	resource->stopped = false;
	resource->expired = false;
	return true;
}

void manager_disconnected(struct manager *manager, const char *name, const char *path,
			  struct mono now)
{
	struct manager_resource *resource = manager_find(manager, name);
	if (!resource)
		return;
	for (size_t i = 0; i < resource->endpoints.count; i++) {
		if (!str_equal(resource->endpoints.items[i].path, path))
			continue;
		free(resource->endpoints.items[i].path);
		vec_remove(&resource->endpoints, i);
		if (resource->endpoints.count > 0) {
			resource->primary = resource->endpoints.items[0].plugin;
			return;
		}
		resource->stopped = true;
		resource->stopped_at = now;
		vec_each (&resource->devices, struct manager_device * device)
			device->healthy = false;
		return;
	}
}

static int device_compare(const void *a, const void *b)
{
	const struct manager_device *left = a, *right = b;
	return strcmp(left->id, right->id);
}

void manager_update(struct manager *manager, const char *name, struct manager_devices *devices)
{
	struct manager_resource *resource = resource_ensure(manager, name);
	manager_devices_deinit(&resource->devices);
	vec_each (devices, struct manager_device * device) {
		struct manager_device *same = device_find(&resource->devices, device->id);
		if (same) {
			free(same->id);
			vec_deinit(&same->numa);
			*same = *device;
		} else {
			*vec_push(&resource->devices) = *device;
		}
	}
	vec_deinit(devices);
	vec_sort(&resource->devices, device_compare);
}

struct manager_counts manager_counts(struct manager *manager UNUSED,
				     struct manager_resource *resource, struct mono now)
{
	struct manager_counts counts = {0};
	if (resource->stopped && mono_until(resource->stopped_at, now) > MANAGER_STOP_GRACE_MS) {
		resource->expired = true;
		manager_devices_deinit(&resource->devices);
	}
	vec_each (&resource->devices, struct manager_device * device) {
		counts.capacity++;
		counts.allocatable += device->healthy;
	}
	return counts;
}

/* --- allocation --- */

struct manager_hold *manager_hold_find(struct manager *manager, const char *pod,
				       const char *container, const char *resource)
{
	vec_each (&manager->holds, struct manager_hold * hold)
		if (str_equal(hold->pod, pod) && str_equal(hold->container, container) &&
		    str_equal(hold->resource, resource))
			return hold;
	return NULL;
}

static bool is_held(struct manager *manager, const char *resource, const char *id)
{
	vec_each (&manager->holds, struct manager_hold * hold)
		if (str_equal(hold->resource, resource) && device_find(&hold->devices, id))
			return true;
	return false;
}

bool manager_available(struct manager *manager, const char *name, size_t count,
		       struct manager_ids *ret_available, struct error *error)
{
	struct manager_resource *resource = manager_find(manager, name);
	if (!resource || resource->expired)
		return error_set(error, ERROR_INVALID_STATE, "no device plugin registered '%s'",
				 name);
	size_t healthy = 0;
	CLEANUP(manager_ids) struct manager_ids available = {0};
	vec_each (&resource->devices, struct manager_device * device) {
		healthy += device->healthy;
		if (device->healthy && !is_held(manager, name, device->id))
			manager_ids_add(&available, device->id);
	}
	if (healthy == 0)
		return error_set(error, ERROR_INVALID_STATE, "no device of '%s' is healthy", name);
	if (available.count < count)
		return error_set(error, ERROR_INVALID_STATE, "%zu of '%s' requested, %zu available",
				 count, name, available.count);
	manager_ids_deinit(ret_available);
	*ret_available = available;
	available = (struct manager_ids){0};
	return true;
}

static void choose_from(const struct manager_ids *from, const struct manager_ids *available,
			size_t count, struct manager_ids *chosen)
{
	for (size_t i = 0; i < from->count && chosen->count < count; i++)
		if (manager_ids_has(available, from->items[i]) &&
		    !manager_ids_has(chosen, from->items[i]))
			manager_ids_add(chosen, from->items[i]);
}

void manager_choose(const struct manager_ids *available, const struct manager_ids *preferred,
		    size_t count, struct manager_ids *ret_chosen)
{
	choose_from(preferred, available, count, ret_chosen);
	choose_from(available, available, count, ret_chosen);
	assert(ret_chosen->count == count);
}

void manager_hold_add(struct manager *manager, const char *pod, const char *container,
		      const char *name, const struct manager_ids *ids, const void *response,
		      size_t response_length)
{
	struct manager_resource *resource = manager_find(manager, name);
	struct manager_hold *hold = vec_push(&manager->holds);
	hold->pod = mem_strdup(pod);
	hold->container = mem_strdup(container);
	hold->resource = mem_strdup(name);
	buf_add(&hold->response, response, response_length);
	for (size_t i = 0; i < ids->count; i++) {
		struct manager_device *held = vec_push(&hold->devices);
		held->id = mem_strdup(ids->items[i]);
		struct manager_device *device =
			resource ? device_find(&resource->devices, ids->items[i]) : NULL;
		for (size_t n = 0; device && n < device->numa.count; n++)
			*vec_push(&held->numa) = device->numa.items[n];
	}
}

bool manager_hold_is_healthy(struct manager *manager, const struct manager_hold *hold)
{
	struct manager_resource *resource = manager_find(manager, hold->resource);
	vec_each (&hold->devices, const struct manager_device *held) {
		struct manager_device *device =
			resource ? device_find(&resource->devices, held->id) : NULL;
		if (!device || !device->healthy)
			return false;
	}
	return true;
}

void manager_pod_remove(struct manager *manager, const char *pod)
{
	for (size_t i = manager->holds.count; i-- > 0;) {
		if (!str_equal(manager->holds.items[i].pod, pod))
			continue;
		hold_deinit(&manager->holds.items[i]);
		vec_remove(&manager->holds, i);
	}
}

/* --- names --- */

static bool is_alphanumeric(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool name_part_valid(const char *text, size_t length, size_t max, bool domain)
{
	if (length == 0 || length > max || !is_alphanumeric(text[0]) ||
	    !is_alphanumeric(text[length - 1]))
		return false;
	for (size_t i = 0; i < length; i++) {
		bool upper = text[i] >= 'A' && text[i] <= 'Z';
		if (is_alphanumeric(text[i]) ? domain && upper
					     : !strchr(domain ? "-." : "-._", text[i]))
			return false;
	}
	return true;
}

bool manager_resource_name_valid(const char *name)
{
	const char *slash = strchr(name, '/');
	if (!slash || strstr(name, "kubernetes.io/") || str_starts(name, "requests."))
		return false;
	/* Quotas name it "requests.<name>", which must be a valid name too. */
	size_t quota_prefix = strlen("requests.");
	return name_part_valid(name, (size_t)(slash - name), 253 - quota_prefix, true) &&
	       name_part_valid(slash + 1, strlen(slash + 1), 63, false);
}
