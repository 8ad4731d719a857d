/*
 * manager: what a kubelet knows about devices and who holds them.
 *
 * Owns      per resource: the plugins that registered, the last device list, capacity and
 *           allocatable; per container: the devices it was given.
 * Behaves   as the device manager of Kubernetes 1.37, its mistakes included: a socket path that is
 *           still on record is refused, and a refusal makes it forget that the first plugin of that
 *           path is connected, so the end of that one is never noticed.
 * Effects   none: time is an argument. The files beside this one talk to plugins and to disk.
 * Tests     tests/unit/standin/manager_test.c
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/vec.h"

/* How long a resource without a plugin stays in the node's status, with nothing allocatable. */
#define MANAGER_STOP_GRACE_MS 300000

struct manager_numa VEC_BODY(int64_t);

struct manager_device {
	char *id;
	bool healthy;
	struct manager_numa numa; /* empty: unknown */
};
struct manager_devices VEC_BODY(struct manager_device);
void manager_devices_deinit(struct manager_devices *devices);

struct manager_ids VEC_BODY(char *); /* heap strings */
void manager_ids_deinit(struct manager_ids *ids);
void manager_ids_add(struct manager_ids *ids, const char *id);
bool manager_ids_has(const struct manager_ids *ids, const char *id);

static inline void manager_ids_cleanup(struct manager_ids *ids)
{
	manager_ids_deinit(ids);
}

struct manager_endpoint {
	uint64_t plugin;
	char *path; /* of its socket */
};

struct manager_resource {
	char *name;
	struct manager_devices devices; /* sorted by id, each once */
	VEC(struct manager_endpoint) endpoints;
	uint64_t primary; /* the plugin that is called; 0: none since the start */
	bool stopped;     /* the last plugin went away */
	struct mono stopped_at;
	bool expired; /* MANAGER_STOP_GRACE_MS ago: it counts 0 and can't be allocated */
};

/* What one container was given of one resource. */
struct manager_hold {
	char *pod; /* its uid */
	char *container;
	char *resource;
	struct manager_devices devices; /* NUMA as it was then; `healthy` means nothing here */
	struct buf response;            /* the plugin's ContainerAllocateResponse */
};

/* {0} is a kubelet that knows nothing. */
struct manager {
	VEC(struct manager_resource) resources; /* sorted by name */
	VEC(struct manager_hold) holds;
};
void manager_deinit(struct manager *manager);

struct manager_resource *manager_find(struct manager *manager, const char *resource);

/* A resource that the checkpoint names: no capacity until its plugin is back. */
void manager_restore_resource(struct manager *manager, const char *resource, struct mono now);

/* A plugin answered its options. CONFLICT when its path is on record for the resource. */
MUST_CHECK bool manager_connected(struct manager *manager, const char *resource, uint64_t plugin,
				  const char *path, struct error *error);
/* Its ListAndWatch ended: another plugin takes over, or all devices are unhealthy at once. */
void manager_disconnected(struct manager *manager, const char *resource, const char *path,
			  struct mono now);
/* A new list; takes *devices over. Of two devices with one id the later counts. */
void manager_update(struct manager *manager, const char *resource, struct manager_devices *devices);

struct manager_counts {
	size_t capacity, allocatable;
};
struct manager_counts manager_counts(struct manager *manager, struct manager_resource *resource,
				     struct mono now);

struct manager_hold *manager_hold_find(struct manager *manager, const char *pod,
				       const char *container, const char *resource);

/* Healthy devices that nobody holds; INVALID_STATE says why there can be none, or too few. */
MUST_CHECK bool manager_available(struct manager *manager, const char *resource, size_t count,
				  struct manager_ids *ret_available, struct error *error);
/* `count` of the available ones: the preferred first, in their order, then by id. */
void manager_choose(const struct manager_ids *available, const struct manager_ids *preferred,
		    size_t count, struct manager_ids *ret_chosen);

/* Records that the container has these devices, with their NUMA nodes of now. */
void manager_hold_add(struct manager *manager, const char *pod, const char *container,
		      const char *resource, const struct manager_ids *ids, const void *response,
		      size_t response_length);
/* Are all of its devices offered and healthy? */
bool manager_hold_is_healthy(struct manager *manager, const struct manager_hold *hold);
void manager_pod_remove(struct manager *manager, const char *pod);

/* Is it a name that a plugin may register: "domain/name", not one of Kubernetes's own? */
bool manager_resource_name_valid(const char *name);
