#include "node_world.h"

#include "node/state.h"
#include "sys/durable.h"
#include "sys/log.h"
#include "text/toml.h"

#include <stdio.h>
#include <unistd.h>

const char *world_at(struct world *world, const char *name)
{
	snprintf(world->path, sizeof world->path, "%s/%s", (const char *)world->folder, name);
	return world->path;
}

void write_text(struct world *world, const char *name, const char *text)
{
	struct error error;

	expect_ok(durable_replace(world_at(world, name), text, strlen(text), 0600, &error), &error);
}

void write_gpus(struct world *world, const char *change)
{
	CLEANUP(scenario) struct scenario scenario = {0};
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	fixture_scenario(&scenario);
	if (change)
		expect_ok(scenario_set(&scenario.gpus.items[0], change, 1, &error), &error);
	inventory_deinit(&world->inventory);
	memset(&world->inventory, 0, sizeof world->inventory);
	scenario_inventory(&scenario, 0, "test", &world->inventory);
	scenario_format(&scenario, &text);
	write_text(world, "gpus.toml", buf_text(&text));
}

void give_node(struct world *world, size_t k)
{
	CLEANUP(scenario) struct scenario scenario = {0};
	CLEANUP(buf) struct buf text = {0};
	char node[32];

	fixture_scenario(&scenario);
	snprintf(node, sizeof node, "node-%zu", k);
	assert_int_equal(symlink("/dev/full", world_at(world, node)), 0);
	assert_true(str_copy(scenario.nodes.gpu_prefix, sizeof scenario.nodes.gpu_prefix,
			     world_at(world, "node-")));
	scenario.nodes.gpu_base = 0;
	scenario_format(&scenario, &text);
	write_text(world, "gpus.toml", buf_text(&text));
}

void put_process(struct world *world, const char *cgroup)
{
	struct error error;

	expect_ok(durable_make_folder(world_at(world, "proc/77/fd"), 0700, &error), &error);
	write_text(world, "proc/77/cgroup", cgroup);
	write_text(world, "proc/77/comm", "python\n");
	assert_int_equal(symlink("/dev/full", world_at(world, "proc/77/fd/3")), 0);
}

void close_node(struct world *world)
{
	assert_int_equal(unlink(world_at(world, "proc/77/fd/3")), 0);
}

void write_spec(struct world *world, bool with_a)
{
	CLEANUP(buf) struct buf text = {0};
	struct spec spec = {0};
	struct spec_assignment *assignment;

	if (with_a) {
		assignment = fixture_assignment(&spec, ALC_A);
		fixture_assign(assignment, &world->inventory, fixture_gpu(&world->inventory, 0));
		fixture_assign(assignment, &world->inventory, fixture_gpu(&world->inventory, 4));
	}
	assignment = fixture_assignment(&spec, ALC_B);
	fixture_assign(assignment, &world->inventory, fixture_slot(&world->inventory, 0));
	fixture_assign(assignment, &world->inventory, fixture_slot(&world->inventory, 1));
	spec.generation = with_a ? 1 : 2;
	spec_format(&spec, &text);
	write_text(world, "var/lib/bcd/spec.json", buf_text(&text));
	spec_deinit(&spec);
}

void start_node(struct world *world)
{
	struct error error;

	expect_ok(node_create(world->loop, &world->config, NULL, &world->node, &error), &error);
}

void stop_node(struct world *world)
{
	node_destroy(TAKE(world->node));
	kubelet_rest(world->loop);
	kubelet_run(world->loop, 20);
}

int world_setup(void **state)
{
	struct world *world = mem_alloc(sizeof *world);
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(tree) json_t *tree = NULL;
	struct error error;

	log_set_level(LOG_ERROR);
	assert_int_equal(folder_make(&world->folder), 0);
	buf_printf(&text,
		   "[paths]\nroot = '%s'\n[host]\nunits = false\nreserved_memory_mib = 0\n"
		   "[gpu]\nsource = 'sim'\nsim_file = '%s/gpus.toml'\n"
		   "[kubernetes]\nnode_name = 'n1'\n",
		   (const char *)world->folder, (const char *)world->folder);
	expect_ok(toml_parse(buf_text(&text), text.length, CONFIG_MAX_FILE, "config.toml", &tree,
			     &error),
		  &error);
	expect_ok(config_read(tree, NULL, &world->config, &error), &error);
	expect_ok(durable_make_folder(world_at(world, "var/lib/bcd"), 0700, &error), &error);
	/* Nobody but this process, and what a test puts there. */
	expect_ok(durable_make_folder(world_at(world, "proc/self"), 0700, &error), &error);
	write_text(world, "proc/self/cgroup", "0::/bcd\n");
	world->loop = loop_create();
	write_gpus(world, NULL);
	write_spec(world, true);
	*state = world;
	return 0;
}

int world_teardown(void **state)
{
	struct world *world = *state;

	stop_node(world);
	kubelet_stop(&world->kubelet);
	kubelet_run(world->loop, 20);
	loop_destroy(world->loop);
	inventory_deinit(&world->inventory);
	config_deinit(&world->config);
	assert_int_equal(folder_remove(&world->folder), 0);
	free(world);
	return 0;
}

void start_kubelet(struct world *world)
{
	kubelet_start(&world->kubelet, world->loop, world->config.kubelet);
}

/* --- what tests wait for --- */

bool both_registered(void *arg)
{
	struct world *world = arg;
	struct kubelet_plugin *gpu = kubelet_find(&world->kubelet, GPU);
	struct kubelet_plugin *slot = kubelet_find(&world->kubelet, SLOT);

	return gpu && slot && gpu->device_count == 2 && slot->device_count == 2;
}

const struct condition *condition(const struct world *world, const char *type)
{
	return conditions_find(&world->node->conditions, type);
}

void wait_registered(struct world *world)
{
	kubelet_until(world->loop, both_registered, world, 2000, "both classes are registered");
	assert_int_equal(kubelet_alive(&world->kubelet, GPU), 1);
	assert_int_equal(kubelet_alive(&world->kubelet, SLOT), 1);
}

enum rpc_code allocate(struct world *world, const char *id, char *names, char *message)
{
	return kubelet_allocate(&world->kubelet, kubelet_find(&world->kubelet, GPU), &id, 1, names,
				512, message, 512);
}
