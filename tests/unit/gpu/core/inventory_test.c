#include "gpu/core/scenario.h"
#include "lib/test.h"

/* proves: DP-55 */
static void test_nodes_of_a_mig_instance(void **state)
{
	CLEANUP(scenario) struct scenario scenario = {0};
	CLEANUP(inventory) struct inventory inventory = {0};
	struct inventory_node nodes[INVENTORY_MAX_NODES];
	struct atom atom = {.class = ATOM_MIG, .gi = 1};
	struct error error;

	(void)state;
	expect_ok(scenario_preset("2xH100", 0, &scenario, &error), &error);
	expect_ok(scenario_set(&scenario.gpus.items[1], "mig=3g.40gb@0", 1, &error), &error);
	scenario_inventory(&scenario, 0, "test", &inventory);
	atom.gpu = inventory.gpus.items[1].uuid;
	assert_int_equal(inventory_atom_nodes(&inventory, &atom, nodes), 3);
	assert_string_equal(nodes[0].path, "/dev/nvidia1");
	/* gpu1/gi1: two for the whole, 135 a GPU, 9 an instance */
	assert_string_equal(nodes[1].path, "/dev/nvidia-caps/nvidia-cap147");
	assert_string_equal(nodes[2].path, "/dev/nvidia-caps/nvidia-cap148");
	assert_int_equal(inventory_common_nodes(&inventory, nodes), 3);
	assert_string_equal(nodes[0].path, "/dev/nvidiactl");
	memset(&atom.gpu, 0, sizeof atom.gpu);
	assert_int_equal(inventory_atom_nodes(&inventory, &atom, nodes), 0);
	assert_null(inventory_find_atom(&inventory, &atom));
	assert_null(inventory_find_gpu(&inventory, atom.gpu));
}

/* Real GPUs: the host's paths are the container's. */
static void test_nodes_without_another_host_path(void **state)
{
	CLEANUP(scenario) struct scenario scenario = {0};
	CLEANUP(inventory) struct inventory inventory = {0};
	struct inventory_node nodes[INVENTORY_MAX_NODES];
	struct atom atom = {.class = ATOM_GPU};
	struct error error;

	(void)state;
	expect_ok(scenario_preset("1xA100", 0, &scenario, &error), &error);
	memset(&scenario.nodes, 0, sizeof scenario.nodes);
	scenario_inventory(&scenario, 0, "test", &inventory);
	atom.gpu = inventory.gpus.items[0].uuid;
	assert_int_equal(inventory_atom_nodes(&inventory, &atom, nodes), 1);
	assert_string_equal(nodes[0].host_path, "/dev/nvidia0");
	inventory_common_nodes(&inventory, nodes);
	assert_string_equal(nodes[1].host_path, "/dev/nvidia-uvm");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nodes_of_a_mig_instance),
		cmocka_unit_test(test_nodes_without_another_host_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
