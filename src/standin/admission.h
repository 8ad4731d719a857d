/*
 * admission: from a pod that was asked for to a container that runs.
 *
 * Order     one pod at a time, as the kubelet: a plugin that hangs in GetPreferredAllocation or
 *           Allocate stops all of them.
 * Steps     the scheduler's (enough allocatable that no pod requests?), the device manager's
 *           (choose, Allocate, record), the runtime's (resolve CDI names).
 * Lifetimes pods are found again by uid after each answer: they may be gone.
 */
#pragma once

#include "standin/manager.h"
#include "standin/pods.h"
#include "standin/registration.h"

struct admission;

struct admission_handlers {
	/* A pod's phase or reason was decided. From inside admission_turn() or a callback. */
	void (*on_decided)(void *arg, struct pod *pod);
	/* A hold came or went: to be on disk before the container is made. */
	void (*on_held)(void *arg);
};

/* Borrows all of them; `cdi` are folders. */
struct admission *admission_create(struct registration *registration, struct manager *manager,
				   struct pods *pods, const struct manager_ids *cdi,
				   const struct admission_handlers *handlers, void *arg);
void admission_close(struct admission *admission);   /* answers that still come change nothing */
void admission_destroy(struct admission *admission); /* takes NULL; after the plugins are gone */

/* Goes on with what can go on. True: a container could not be made, try again after a while. */
bool admission_turn(struct admission *admission);

/* What pods had that are gone. As the kubelet: only before it gives something, and when a plugin tells it
 * anything; until then its checkpoint keeps it. One that hasn't heard of its pods keeps all. */
void admission_forget(struct manager *manager, const struct pods *pods);

/* How many of a resource the pods request that were let onto the node. */
size_t admission_requested(const struct pods *pods, const char *resource);
