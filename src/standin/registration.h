/*
 * registration: kubelet.sock, where plugins register, and the plugins that did.
 *
 * Owns      the folder device-plugins: on start every socket in it is removed, as the kubelet does.
 * Keeps     the manager up to date; tells its owner about each change of it.
 * Source    Kubernetes 1.37.2: connects inside Register, then watches; a path still on record is
 *           refused, and a client by that path is forgotten with the refusal.
 */
#pragma once

#include "standin/manager.h"
#include "standin/plugin.h"

struct registration;

/* Both come from inside the loop's callbacks. */
struct registration_handlers {
	void (*on_change)(void *arg);                         /* of the manager */
	void (*on_register)(void *arg, const char *resource); /* a Register call, good or bad */
};

/* `folder` is ROOT/device-plugins, and exists. */
MUST_CHECK bool registration_create(struct loop *loop, const char *folder, struct manager *manager,
				    const struct registration_handlers *handlers, void *arg,
				    struct registration **ret_registration, struct error *error);
void registration_destroy(struct registration *registration); /* takes NULL */

/* The plugin that the kubelet would call for this resource; NULL when there is none or it stopped.
 */
struct plugin *registration_plugin(struct registration *registration, const char *resource);
