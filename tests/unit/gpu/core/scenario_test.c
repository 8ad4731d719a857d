#include "gpu/core/scenario.h"
#include "lib/test.h"
#include "text/toml.h"

#define GPU_A                                                                                      \
	"\"uuid\":\"GPU-6f1c0c2e-0d1a-4b5c-8e9f-001122334455\",\"model\":\"NVIDIA H100\","         \
	"\"memory_mib\":81559"
#define GPU_B                                                                                      \
	"\"uuid\":\"GPU-7f1c0c2e-0d1a-4b5c-8e9f-001122334455\",\"model\":\"NVIDIA H100\","         \
	"\"memory_mib\":81559"
#define MIG_1 "\"uuid\":\"MIG-11111111-0d1a-4b5c-8e9f-001122334455\""
#define MIG_2 "\"uuid\":\"MIG-22222222-0d1a-4b5c-8e9f-001122334455\""

static bool read_text(const char *gpus, struct scenario *scenario, struct error *error)
{
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(tree) json_t *tree = NULL;

	buf_printf(&text, "{\"version\":1,\"driver\":\"580.95.05\",\"gpus\":[%s]}", gpus);
	expect_ok(tree_parse(buf_text(&text), text.length, text.length, "test", &tree, error),
		  error);
	return scenario_read(tree, scenario, error);
}

static void test_names_the_wrong_field(void **state)
{
	static const struct {
		const char *gpus, *field;
	} rows[] = {
		{"{}", "gpus[0].uuid"},
		{"3", "gpus[0]"},
		{"{" GPU_A ",\"numa\":-2}", "gpus[0].numa"},
		{"{" GPU_A ",\"numa\":\"0\"}", "gpus[0].numa"},
		{"{" GPU_A ",\"colour\":1}", "gpus[0].colour"},
		{"{" GPU_A "},{" GPU_A "}", "gpus[1].uuid"},
		{"{" GPU_A "},{" GPU_B ",\"minor\":0}", "gpus[1].minor"},
		{"{" GPU_A ",\"xids\":[0]}", "gpus[0].xids"},
		{"{" GPU_A ",\"xids\":[\"79\"]}", "gpus[0].xids"},
		{"{" GPU_A ",\"row_remap\":\"maybe\"}", "gpus[0].row_remap"},
		{"{" GPU_A ",\"recovery\":\"pray\"}", "gpus[0].recovery"},
		{"{" GPU_A ",\"slots\":65}", "gpus[0].slots"},
		{"{" GPU_A ",\"lost\":1}", "gpus[0].lost"},
		{"{" GPU_A ",\"gauges\":[]}", "gpus[0].gauges"},
		{"{" GPU_A ",\"gauges\":{\"warmth\":1}}", "gpus[0].gauges.warmth"},
		{"{" GPU_A ",\"gauges\":{\"temperature_c\":1.5}}", "gpus[0].gauges.temperature_c"},
		{"{" GPU_A ",\"gauges\":{\"power_mw\":-1001}}", "gpus[0].gauges.power_mw"},
		{"{" GPU_A ",\"pci\":\"a\\\"b\"}", "gpus[0].pci"},
		{"{" GPU_A ",\"mig\":[{\"profile\":\"1g.10gb\",\"start\":0,\"gi\":1}]}",
		 "gpus[0].mig[0].uuid"},
		{"{" GPU_A ",\"mig\":[{\"profile\":\"1g\",\"start\":0,\"gi\":1," MIG_1 "}]}",
		 "gpus[0].mig[0].profile"},
		{"{" GPU_A ",\"mig\":[{\"profile\":\"3g.40gb\",\"start\":5,\"gi\":1," MIG_1 "}]}",
		 "gpus[0].mig[0].start"},
		{"{" GPU_A ",\"mig\":[{\"profile\":\"3g.40gb\",\"start\":0,\"gi\":1," MIG_1
		 "},{\"profile\":\"1g.10gb\",\"start\":3,\"gi\":2," MIG_2 "}]}",
		 "gpus[0].mig[1].start"},
		{"{" GPU_A
		 ",\"slots\":2,\"mig\":[{\"profile\":\"1g.10gb\",\"start\":0,\"gi\":1," MIG_1 "}]}",
		 "gpus[0].slots"},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(scenario) struct scenario scenario = {0};
		struct error error = {0};

		if (read_text(rows[i].gpus, &scenario, &error))
			fail_msg("%s was taken", rows[i].gpus);
		assert_string_equal(error.field, rows[i].field);
	}
}

static void test_refuses_other_versions(void **state)
{
	CLEANUP(tree) json_t *tree = json_pack("{s:i, s:s}", "version", 2, "driver", "1");
	CLEANUP(scenario) struct scenario scenario = {0};
	struct error error;

	(void)state;
	expect_error(scenario_read(tree, &scenario, &error), &error, ERROR_INVALID_INPUT,
		     "reads version 1");
}

/* proves: DP-9 DP-53 */
static void test_parts_have_the_gpus_numa_and_health(void **state)
{
	CLEANUP(scenario) struct scenario scenario = {0};
	CLEANUP(inventory) struct inventory inventory = {0};
	struct error error;

	(void)state;
	expect_ok(read_text("{" GPU_A ",\"numa\":1,\"xids\":[79],\"mig\":["
			    "{\"profile\":\"3g.40gb\",\"start\":4,\"gi\":2," MIG_1 "},"
			    "{\"profile\":\"1g.10gb\",\"start\":0,\"gi\":1," MIG_2 "}]},"
			    "{" GPU_B ",\"numa\":0,\"slots\":4}",
			    &scenario, &error),
		  &error);
	scenario_inventory(&scenario, 0, "test", &inventory);
	assert_int_equal(inventory.atoms.count, 2 + 1 + 4);
	for (size_t i = 0; i < inventory.atoms.count; i++) {
		const struct inventory_atom *atom = &inventory.atoms.items[i];
		bool mig = atom->atom.class == ATOM_MIG;

		assert_int_equal(atom->numa, mig ? 1 : 0);
		assert_int_equal(atom->health.healthy, !mig);
		assert_string_equal(atom->health.cause, mig ? "XID 79: fell off the bus" : "");
		assert_ptr_equal(inventory_find_atom(&inventory, &atom->atom), atom);
	}
	assert_int_equal(inventory.atoms.items[0].range.lo, 0);
	assert_int_equal(inventory.atoms.items[0].range.hi, 128);
	assert_int_equal(inventory.atoms.items[1].range.lo, 512);
	assert_int_equal(inventory.atoms.items[1].range.hi, 1024);
}

/* What a driver would say of it; what isn't given is unknown, never zero. */
static void test_says_what_a_driver_would(void **state UNUSED)
{
	CLEANUP(scenario) struct scenario scenario = {0}, again = {0};
	CLEANUP(reading) struct reading reading = {0};
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(tree) json_t *tree = NULL;
	struct reading_gpu *gpu;
	struct error error;

	expect_ok(read_text("{" GPU_A ",\"pci\":\"0000:1a:00.0\",\"recovery\":\"drain\","
			    "\"row_remap\":\"pending\",\"ecc_uncorrectable\":2,\"gauges\":"
			    "{\"temperature_c\":-3,\"energy_mj\":9223372036854775807}},"
			    "{" GPU_B "}",
			    &scenario, &error),
		  &error);
	scenario_format(&scenario, &text);
	expect_ok(toml_parse(buf_text(&text), text.length, SCENARIO_MAX_FILE, "gpus.toml", &tree,
			     &error),
		  &error);
	expect_ok(scenario_read(tree, &again, &error), &error);
	scenario_reading(&again, &reading);
	assert_string_equal(reading.source, "simulated");
	assert_string_equal(reading.driver, "580.95.05");
	assert_int_equal(reading.gpus.count, 2);
	gpu = &reading.gpus.items[0];
	assert_true(gpu->has_uuid);
	assert_string_equal(gpu->pci, "0000:1a:00.0");
	assert_int_equal(gpu->memory_bytes, 81559LL << 20);
	assert_int_equal(gpu->row_remap, HEALTH_REMAP_PENDING);
	assert_int_equal(gpu->recovery, HEALTH_RECOVERY_DRAIN_RESET);
	assert_int_equal(gpu->ecc_uncorrectable, 2);
	assert_true(gpu->gauges[GAUGE_ENERGY_MJ] == INT64_MAX);
	assert_int_equal(gpu->gauges[GAUGE_TEMPERATURE_C], -3);
	assert_true(gpu->gauges[GAUGE_POWER_MW] == READING_UNKNOWN);
	assert_true(reading.gpus.items[1].gauges[GAUGE_TEMPERATURE_C] == READING_UNKNOWN);
}

/* proves: DP-52 */
static void test_the_drivers_advice_counts(void **state)
{
	static const char *const causes[] = {"the driver asks to drain it and reset it", ""};
	CLEANUP(scenario) struct scenario scenario = {0};
	CLEANUP(inventory) struct inventory inventory = {0};
	struct error error;

	(void)state;
	expect_ok(read_text("{" GPU_A ",\"recovery\":\"drain\"},{" GPU_B ",\"recovery\":\"none\"}",
			    &scenario, &error),
		  &error);
	scenario_inventory(&scenario, 0, "test", &inventory);
	for (size_t i = 0; i < ARRAY_SIZE(causes); i++)
		assert_string_equal(inventory.gpus.items[i].health.cause, causes[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_the_wrong_field),
		cmocka_unit_test(test_refuses_other_versions),
		cmocka_unit_test(test_parts_have_the_gpus_numa_and_health),
		cmocka_unit_test(test_says_what_a_driver_would),
		cmocka_unit_test(test_the_drivers_advice_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
