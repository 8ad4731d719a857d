#include "sim/scene.h"

#include "node/core/release.h"
#include "sim/calm.h"
#include "sim/kubelet.h"
#include "sim/people.h"
#include "sim/programs.h"
#include "sim/sim_fs.h"
#include "sim/world.h"
#include "standin/standin.h"
#include "sys/durable.h"
#include "text/tree.h"

#include <stdio.h>

#define LOOK_MS 1000

static const char *const scene_names[SCENES] = {"bind", "release", "reap"};

static struct {
	enum scene scene;
	const char *reservation;
	uint64_t pods;
	bool tick;
} scene;

bool scene_find(const char *name, enum scene *ret_scene)
{
	for (size_t i = 0; i < SCENES; i++) {
		if (!str_equal(name, scene_names[i]))
			continue;
		*ret_scene = (enum scene)i;
		return true;
	}
	return false;
}

/* --- time --- */

static void on_tick(void *arg UNUSED)
{
	scene.tick = true;
}

void scene_second(void)
{
	scene.tick = false;
	sim_schedule(NULL, LOOK_MS, on_tick, NULL);
	while (!scene.tick && !sim.broken[0])
		world_turn();
}

/* --- looking --- */

/* But for bcd's own. */
static void on_list(void *arg, json_t *answer)
{
	const json_t *pods = json_object_get(answer, "pods"), *pod;
	size_t i, *count = arg;
	json_array_foreach(pods, i, pod)
	{
		const char *phase = json_string_value(json_object_get(pod, "phase"));
		const char *name = json_string_value(json_object_get(pod, "name"));
		*count += str_equal(phase, "Running") && !str_equal(name, KUBELET_BCD);
	}
}

static size_t pods_running(void)
{
	CLEANUP(tree) json_t *list = json_pack("{s:s}", "verb", "list");
	size_t count = 0;
	if (programs.standin)
		standin_request(programs.standin, list, on_list, &count);
	return count;
}

bool scene_is_done(char *why, size_t size)
{
	if (!calm_is_settled(why, size))
		return false;
	if (scene.scene == SCENE_BIND) {
		snprintf(why, size, "no pod runs");
		return pods_running() == 1;
	}
	snprintf(why, size, "releasing.json still has releases, or a pod runs");
	return !calm_has_releases() && pods_running() == 0;
}

/* A pod that the kubelet didn't admit is made anew by whoever wants it. */
static void pod_wanted(void)
{
	char why[256];
	if (pods_running() > 0 || !calm_is_settled(why, sizeof why))
		return;
	scene.pods++;
	people_run_pod("gpu", 2, false, scene.scene == SCENE_REAP);
}

void scene_step(void)
{
	if (scene.scene == SCENE_BIND)
		pod_wanted();
}

/* Pods' UIDs and times are each run's own. */
static void add_releases(struct buf *out, const struct buf *content)
{
	CLEANUP(tree) json_t *record = NULL;
	struct error error;
	if (!tree_parse(content->data, content->length, RELEASES_MAX_FILE, RELEASES_FILE, &record,
			&error)) {
		sim_broken("%s", error.what);
		return;
	}
	json_object_del(record, "users");
	json_object_del(record, "usersBootId");
	tree_dump_pretty(out, record);
}

static void add_file(struct buf *out, const char *folder, const char *name)
{
	CLEANUP(buf) struct buf path = {0};
	buf_printf(&path, "%s/%s", folder, name);
	const struct buf *content = sim_fs_content(buf_text(&path));
	buf_printf(out, "%s ", buf_text(&path));
	if (content && str_equal(name, RELEASES_FILE))
		add_releases(out, content);
	else if (content && !str_equal(name, "reports.json")) /* its numbers count what was tried */
		buf_printf(out, "%.*s", (int)content->length, content->data);
	buf_add_char(out, '\n');
}

static void add_folder(struct buf *out, const char *folder)
{
	struct durable_names names = {0};
	struct error error;
	if (!durable_list(folder, 4096, &names, &error))
		sim_broken("%s", error.what);
	for (size_t i = 0; i < names.count; i++)
		add_file(out, folder, names.names[i]);
	durable_names_deinit(&names);
}

void scene_end(struct buf *out)
{
	CLEANUP(tree)
	json_t *reservation = programs_look(control_reservation_get, scene.reservation);
	CLEANUP(tree) json_t *node = programs_look(control_node_get, programs.node_id);
	add_folder(out, NODE_CDI);
	add_folder(out, NODE_DATA);
	buf_printf(out, "reservation %s, pods %zu, node %s\n",
		   json_string_value(json_object_get(reservation, "state")), pods_running(),
		   json_string_value(json_object_get(node, "state")));
}

/* --- playing --- */

static void wait_for(bool (*is_there)(char *why, size_t size))
{
	char why[256] = "";
	for (int i = 0; !is_there(why, sizeof why); i++) {
		if (i == 300)
			sim_broken("the scene can't begin: %s", why);
		if (sim.broken[0])
			return;
		scene_second();
	}
}

static bool is_at_rest(char *why, size_t size)
{
	return calm_is_settled(why, size) && calm_node_is_well(why, size);
}

/* In a pod bcd would wait an hour for one of which it knows no grace. */
static bool is_known(void)
{
	const struct buf *content = sim_fs_content(NODE_DATA "/" RELEASES_FILE);
	CLEANUP(releases) struct releases releases = {0};
	struct error error;
	if (!programs.in_pod)
		return true;
	return content &&
	       releases_parse((const char *)content->data, content->length, &releases, &error) &&
	       releases.users.count > 0 && releases.users.items[0].pod.grace_s > 0;
}

static bool has_pod(char *why, size_t size)
{
	if (is_at_rest(why, size))
		pod_wanted();
	snprintf(why, size, "no pod runs, or nobody knows it");
	return pods_running() == 1 && is_known();
}

void scene_prepare(enum scene which, uint64_t seed, bool in_pod)
{
	const struct world_options world = {.seed = seed, .calm = true, .in_pod = in_pod};
	scene.scene = which;
	world_open(&world);
	wait_for(is_at_rest);
	if (scene.scene == SCENE_BIND)
		return;
	scene.reservation = people_reserve("gpu", 2, 600, 0);
	wait_for(is_at_rest);
	wait_for(has_pod);
}

void scene_act(void)
{
	switch (scene.scene) {
	case SCENE_BIND:
		scene.reservation = people_reserve("gpu", 2, 600, 0);
		break;
	case SCENE_RELEASE:
		people_delete_pod(scene.pods);
		people_release(scene.reservation);
		break;
	case SCENE_REAP:
		people_release(scene.reservation);
		break;
	case SCENES:
		abort();
	}
}
