/*
 * scene: one bind, one release or one reap, in a world in which nothing goes wrong by itself.
 *
 * Prepared  up to where it begins: a node that is at rest, for a release or a reap with a pod on it.
 * Same      what is there in the end is the same each time, but for times and what is counted.
 */
#pragma once

#include "sim/sim.h"

enum scene {
	SCENE_BIND,
	SCENE_RELEASE,
	SCENE_REAP,
	SCENES,
};
bool scene_find(const char *name, enum scene *ret_scene);

/* Opens the world; it is broken when the scene can't begin. */
void scene_prepare(enum scene which, uint64_t seed, bool in_pod);
void scene_act(void);    /* what people do */
void scene_second(void); /* a second of the world passes, unless it breaks */
void scene_step(void);   /* what people do after each */

/* Is what was wanted there? `why` says what isn't. */
bool scene_is_done(char *why, size_t size);
/* Files, reservation, pods: all that should be the same, however it came about. */
void scene_end(struct buf *out);
