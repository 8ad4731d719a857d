/* One pod that holds what is being released, and what reap decides of it (header only). */
#pragma once

#include "node/core/reap.h"

#include "lib/test.h"

DEFINE_CLEANUP(reap, struct reap *, reap_destroy)

#define WALL_START 1796090400000

static inline struct mono at(int64_t ms)
{
	return (struct mono){ms};
}

/* A view of one pod "u-1" that holds a device of al_1, which is being released since 0. */
struct scene {
	struct reap_holder holder;
	struct reap_release release;
	struct reap_pod pod;
	struct reap_view view;
};

static inline struct scene *scene_of(struct scene *scene)
{
	*scene = (struct scene){
		.holder = {"u-1", "ns", "web", "al_1", "gpu_1@al_1", NULL, false},
		.release = {"al_1", at(0), {WALL_START}},
		.pod = {"u-1", "", "ns", "web", false, {0}, 0},
	};
	scene->view = (struct reap_view){
		.listed = true,
		.holders = &scene->holder,
		.holders_count = 1,
		.releases = &scene->release,
		.releases_count = 1,
		.bound_known = true,
		.pods_known = true,
		.pods = &scene->pod,
		.pods_count = 1,
	};
	return scene;
}

/* Decides at a time at which the wall clock has kept step; how many deletions, the first in *ret. */
static inline size_t decide(struct reap *reap, struct scene *scene, int64_t ms,
			    struct reap_deletion *ret)
{
	CLEANUP(reap_plan) struct reap_plan plan = {0};
	size_t count;

	scene->view.wall = (struct wall){WALL_START + ms};
	reap_decide(reap, &scene->view, at(ms), &plan);
	count = plan.deletions.count;
	if (count > 0 && ret)
		*ret = plan.deletions.items[0];
	return count;
}
