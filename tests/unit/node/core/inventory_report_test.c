#include "fixture.h"
#include "node/core/inventory_report.h"

/* proves: GW-18 GW-19 RES-13 */
static void test_says_what_there_is(void **state)
{
	CLEANUP(scenario) struct scenario scenario = {0};
	CLEANUP(inventory) struct inventory inventory = {0};
	CLEANUP(arena) struct arena arena = {0};
	Bettercompute__V1__Inventory *message;
	struct inventory_report report = {
		.inventory = &inventory,
		.node_name = "gpu-node-07",
		.hostname = "host",
		.kernel = "6.1",
		.host = {.vcpus = 64, .hugepages = {{0, (int64_t)4 << 30}}},
		.gpu_api = "device-plugin"};
	struct error error;

	(void)state;
	fixture_scenario(&scenario);
	expect_ok(scenario_set(&scenario.gpus.items[4], "xid=79", 1, &error), &error);
	scenario_inventory(&scenario, 0, "because", &inventory);
	message = inventory_report_message(&report, &arena);
	assert_string_equal(message->os_kubernetes_node_name, "gpu-node-07");
	assert_true(message->simulated);
	assert_string_equal(message->simulated_reason, "because");
	assert_int_equal(message->n_huge_pages, 1);
	assert_int_equal(message->huge_pages[0]->page_bytes, 1 << 30);
	assert_true(message->huge_pages[0]->bytes == (int64_t)4 << 30);
	assert_int_equal(message->n_gpus, 8);
	assert_int_equal(message->gpus[4]->numa, 1);
	assert_false(message->gpus[4]->health->healthy);
	assert_string_equal(message->gpus[4]->health->cause, "XID 79: fell off the bus");
	assert_int_equal(message->n_atoms, 6 + 2 + 1 + 4);
	for (size_t i = 0; i < message->n_atoms; i++) {
		const Bettercompute__V1__Atom *atom = message->atoms[i];

		assert_true(str_starts(atom->atom + strlen("gpu/"), atom->gpu));
		assert_true(atom->leaf_lo < atom->leaf_hi);
		if (str_equal(atom->class_, "gpu.mig"))
			assert_true(str_starts(atom->visible_device, "MIG-") && *atom->profile);
	}
	report.node_name = "";
	assert_string_equal(inventory_report_message(&report, &arena)->os_kubernetes_node_name,
			    "host");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_says_what_there_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
