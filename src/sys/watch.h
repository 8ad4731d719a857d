/*
 * watch: tells that something in a folder changed (inotify).
 *
 * A hint, never a proof: events may be lost or doubled, so whoever watches also looks at an
 * interval. `fn` gets the entry's name, "" when events were lost (look at everything), or NULL
 * when the folder itself went away (the watch is dead then: destroy it and make another).
 * Simulated by tests/sim.
 */
#pragma once

#include "sys/loop.h"

struct watch;
typedef void watch_fn(void *arg, const char *name);

/* Watches creations, deletions, renames and completed writes in `folder`. */
MUST_CHECK bool watch_create(struct loop *loop, const char *folder, watch_fn *fn, void *arg,
			     struct watch **ret_watch, struct error *error);
void watch_destroy(struct watch *watch);
