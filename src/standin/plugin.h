/*
 * plugin: the kubelet's side of one device plugin: its connection and the calls to it.
 *
 * Connects on create, as the kubelet does inside Register. A hung plugin hangs whoever asked it:
 * the kubelet gives these calls no deadline, except 10 seconds for connecting. Lifetimes  callbacks
 * come from the loop; all of them may destroy any plugin but the one that calls (its owner defers
 * that). plugin_destroy() answers what is still open first.
 */
#pragma once

#include "proto/deviceplugin.pb-c.h"
#include "rpc/rpc.h"

#include "standin/manager.h"

#define PLUGIN_CONNECT_MS 10000

struct plugin;

struct plugin_handlers {
	/* Connected, and its options are known. Or neither: then `status` says why. Once. */
	void (*on_connected)(void *arg, struct plugin *plugin, const struct rpc_status *status);
	/* A device list; may be taken over. */
	void (*on_devices)(void *arg, struct plugin *plugin, struct manager_devices *devices);
	/* The list's stream ended, or never began. Once, if plugin_watch() was called. */
	void (*on_ended)(void *arg, struct plugin *plugin, const struct rpc_status *status);
};

/* `id` is the owner's name for it. */
struct plugin *plugin_create(struct loop *loop, uint64_t id, const char *resource, const char *path,
			     const struct plugin_handlers *handlers, void *arg);
void plugin_destroy(struct plugin *plugin); /* takes NULL */

uint64_t plugin_id(const struct plugin *plugin);
const char *plugin_resource(const struct plugin *plugin);
const char *plugin_path(const struct plugin *plugin);
bool plugin_prefers(const struct plugin *plugin); /* it has GetPreferredAllocation */

void plugin_watch(struct plugin *plugin); /* starts ListAndWatch */

/* `ids` is empty unless the status is OK. */
typedef void plugin_preferred_fn(void *arg, const struct rpc_status *status,
				 const struct manager_ids *ids);
void plugin_preferred(struct plugin *plugin, const struct manager_ids *available, size_t count,
		      plugin_preferred_fn *fn, void *arg);

/* The first container's answer, as it came; NULL unless the status is OK. */
typedef void plugin_allocate_fn(void *arg, const struct rpc_status *status,
				const V1beta1__ContainerAllocateResponse *response);
void plugin_allocate(struct plugin *plugin, const struct manager_ids *ids, plugin_allocate_fn *fn,
		     void *arg);
