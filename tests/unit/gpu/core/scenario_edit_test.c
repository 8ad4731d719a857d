#include "gpu/core/scenario.h"
#include "lib/test.h"
#include "text/toml.h"

#include <stdio.h>

static void test_presets(void **state)
{
	static const char *const bad[] = {"",        "8",      "xH100",  "0xH100",
					  "17xH100", "8xh100", "8xH100 "};
	CLEANUP(scenario) struct scenario scenario = {0};
	CLEANUP(inventory) struct inventory inventory = {0};
	struct inventory_node nodes[INVENTORY_MAX_NODES];
	struct error error;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		expect_error(scenario_preset(bad[i], 0, &scenario, &error), &error,
			     ERROR_INVALID_INPUT, "is not a preset");
	expect_ok(scenario_preset("8xH100", 0, &scenario, &error), &error);
	scenario_inventory(&scenario, 0, "test", &inventory);
	assert_int_equal(inventory.gpus.count, 8);
	assert_int_equal(inventory.atoms.count, 8);
	assert_int_equal(inventory.gpus.items[3].numa, 0);
	assert_int_equal(inventory.gpus.items[4].numa, 1);
	for (size_t i = 0; i < 8; i++) {
		const struct inventory_gpu *gpu = &inventory.gpus.items[i];
		struct atom atom = {.class = ATOM_GPU, .gpu = gpu->uuid};
		char wanted[INVENTORY_PATH_SIZE];

		assert_int_equal(inventory_atom_nodes(&inventory, &atom, nodes), 1);
		snprintf(wanted, sizeof wanted, "/dev/nvidia%zu", i);
		assert_string_equal(nodes[0].path, wanted);
		snprintf(wanted, sizeof wanted, "/dev/tty%zu", 20 + i);
		assert_string_equal(nodes[0].host_path, wanted);
	}
}

static void test_gauges(struct scenario_gpu *gpu)
{
	struct error error;

	assert_true(gpu->gauges[GAUGE_MEMORY_USED_BYTES] == READING_UNKNOWN);
	expect_ok(scenario_set(gpu, "memory_used_bytes=85520809984", 1, &error), &error);
	assert_true(gpu->gauges[GAUGE_MEMORY_USED_BYTES] == 85520809984);
	expect_error(scenario_set(gpu, "memory_used_bytes=1x", 1, &error), &error,
		     ERROR_INVALID_INPUT, "a gauge takes a whole number; none");
	expect_error(scenario_set(gpu, "temperature_c=-1001", 1, &error), &error,
		     ERROR_INVALID_INPUT, "a gauge takes");
	expect_error(scenario_set(gpu, "temperature=70", 1, &error), &error, ERROR_INVALID_INPUT,
		     "gauges such as temperature_c");
	expect_ok(scenario_set(gpu, "memory_used_bytes=none", 1, &error), &error);
	assert_true(gpu->gauges[GAUGE_MEMORY_USED_BYTES] == READING_UNKNOWN);
}

static void test_flags_and_undoing(struct scenario_gpu *gpu)
{
	static const char *const yes[] = {"true", "1", "yes"};
	static const char *const no[] = {"false", "0", "no", "none"};
	static const char *const undo[] = {"xid=0",    "ecc=none",     "ecc=0",
					   "mig=0",    "row_remap=0",  "recovery=0",
					   "mig=none", "recovery=none"};
	struct error error;
	char text[32];

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		snprintf(text, sizeof text, "lost=%s", yes[i]);
		expect_ok(scenario_set(gpu, text, 1, &error), &error);
		assert_true(gpu->facts.lost);
	}
	for (size_t i = 0; i < ARRAY_SIZE(no); i++) {
		gpu->facts.hang = true;
		snprintf(text, sizeof text, "hang=%s", no[i]);
		expect_ok(scenario_set(gpu, text, 1, &error), &error);
		assert_false(gpu->facts.hang);
	}
	expect_ok(scenario_set(gpu, "lost=0", 1, &error), &error);
	for (size_t i = 0; i < ARRAY_SIZE(undo); i++)
		expect_ok(scenario_set(gpu, undo[i], 1, &error), &error);
	assert_true(health_decide(&gpu->facts).healthy);
	expect_error(scenario_set(gpu, "row_remap=x", 1, &error), &error, ERROR_INVALID_INPUT,
		     "pending, failed");
	expect_ok(scenario_set(gpu, "row_remap=none", 1, &error), &error);
}

static void test_set(void **state)
{
	static const char *const bad[] = {
		"",        "xid",      "=1",      "xid=",          "xid=-1",
		"xid=7,",  "ecc=many", "lost=2",  "mig=1g",        "mig=1g.10gb@",
		"numa=1x", "fan=3",    "hang=on", "recovery=pray", "slots=65"};
	CLEANUP(scenario) struct scenario scenario = {0};
	struct scenario_gpu *gpu;
	struct error error;
	char first[ATOM_VISIBLE_SIZE];
	size_t index;

	(void)state;
	expect_ok(scenario_preset("2xH100", 0, &scenario, &error), &error);
	expect_ok(scenario_find(&scenario, "1", &index, &error), &error);
	gpu = &scenario.gpus.items[index];
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (scenario_set(gpu, bad[i], 1, &error))
			fail_msg("'%s' was taken", bad[i]);
	expect_ok(scenario_set(gpu, "xid=79,13", 1, &error), &error);
	assert_string_equal(health_decide(&gpu->facts).cause, "XID 79: fell off the bus");
	expect_ok(scenario_set(gpu, "xid=none", 1, &error), &error);
	assert_true(health_decide(&gpu->facts).healthy);
	test_gauges(gpu);
	test_flags_and_undoing(gpu);
	expect_ok(scenario_set(gpu, "mig=3g.40gb@0,1g.10gb@4", 1, &error), &error);
	assert_int_equal(gpu->mig.count, 2);
	str_copy(first, sizeof first, gpu->mig.items[0].uuid);
	expect_ok(scenario_set(gpu, "mig=3g.40gb@0", 2, &error), &error);
	assert_string_not_equal(first, gpu->mig.items[0].uuid);
	expect_error(scenario_find(&scenario, "2", &index, &error), &error, ERROR_NOT_FOUND,
		     "no GPU");
	expect_error(scenario_find(&scenario, "zz", &index, &error), &error, ERROR_NOT_FOUND, "zz");
}

/* What is set comes back from the file. */
static void test_set_survives_the_file(void **state)
{
	CLEANUP(scenario) struct scenario scenario = {0}, back = {0};
	CLEANUP(buf) struct buf text = {0}, again = {0};
	CLEANUP(tree) json_t *tree = NULL;
	struct error error;

	(void)state;
	expect_ok(scenario_preset("8xH200", 0, &scenario, &error), &error);
	expect_ok(scenario_set(&scenario.gpus.items[1], "mig=3g.71gb@0,1g.18gb@4", 3, &error),
		  &error);
	expect_ok(scenario_set(&scenario.gpus.items[2], "slots=4", 3, &error), &error);
	expect_ok(scenario_set(&scenario.gpus.items[3], "row_remap=failed", 3, &error), &error);
	scenario_format(&scenario, &text);
	expect_ok(toml_parse(buf_text(&text), text.length, SCENARIO_MAX_FILE, "gpus.toml", &tree,
			     &error),
		  &error);
	expect_ok(scenario_read(tree, &back, &error), &error);
	scenario_format(&back, &again);
	assert_string_equal(buf_text(&text), buf_text(&again));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_presets),
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_set_survives_the_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
