/* What Prometheus reads of GPUs and devices. */
#include "node/core/gpumetrics.h"

#include "exporter_world.h"

/* A GPU's figures in Prometheus's units, each with the labels that say which GPU. proves: OBS-14 */
static void test_gauges(void **state)
{
	static const struct {
		const char *assignment, *begin, *value;
	} rows[] = {
		{"gpu_util_percent=97", "bcd_gpu_utilization_ratio{", "0.97"},
		{"memory_util_percent=3", "bcd_gpu_memory_utilization_ratio{", "0.03"},
		{"memory_used_bytes=85520809984", "bcd_gpu_memory_used_bytes{", "85520809984"},
		{"memory_free_bytes=0", "bcd_gpu_memory_free_bytes{", "0"},
		{"temperature_c=-3", "bcd_gpu_temperature_celsius{", "-3"},
		{"memory_temperature_c=81", "bcd_gpu_memory_temperature_celsius{", "81"},
		{"power_mw=699123", "bcd_gpu_power_watts{", "699.123"},
		{"energy_mj=1500", "bcd_gpu_energy_joules_total{", "1.500"},
		{"sm_clock_mhz=1980", "bcd_gpu_sm_clock_hertz{", "1980000000"},
		{"memory_clock_mhz=2619", "bcd_gpu_memory_clock_hertz{", "2619000000"},
		{"ecc_corrected_volatile=1", "bcd_gpu_ecc_errors_total{", "1"},
		{"ecc_uncorrected_volatile=2", "bcd_gpu_ecc_errors_total{", "2"},
		{"ecc_corrected_aggregate=3", "bcd_gpu_ecc_errors_total{", "3"},
		{"ecc_uncorrected_aggregate=4", "bcd_gpu_ecc_errors_total{", "4"},
		{"remapped_correctable_rows=5", "bcd_gpu_remapped_rows_total{", "5"},
		{"remapped_uncorrectable_rows=6", "bcd_gpu_remapped_rows_total{", "6"},
		{"pcie_replays=7", "bcd_gpu_pcie_replays_total{", "7"},
	};
	struct world *world = *state;
	const char *text;

	static_assert(ARRAY_SIZE(rows) == GAUGES, "every gauge is told");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		/* not measured: no sample, and no family of none either */
		assert_null(find(format(world), rows[i].begin, ""));
		change(world, 0, rows[i].assignment);
		expect_sample(format(world), rows[i].begin, "gpu=\"0\",uuid=\"" UUID_0 "\"",
			      rows[i].value);
		assert_null(find(format(world), rows[i].begin, "gpu=\"1\""));
		change(world, 0, "gpu_util_percent=none");
		memcpy(world->scenario.gpus.items[0].gauges, world->scenario.gpus.items[1].gauges,
		       sizeof world->scenario.gpus.items[0].gauges);
		look(world);
	}
	change(world, 0, "ecc_corrected_volatile=1");
	change(world, 0, "ecc_uncorrected_aggregate=4");
	text = format(world);
	expect_sample(text, "bcd_gpu_ecc_errors_total{", "kind=\"corrected\",count=\"volatile\"",
		      "1");
	expect_sample(text, "bcd_gpu_ecc_errors_total{", "kind=\"uncorrected\",count=\"aggregate\"",
		      "4");
	expect_sample(text, "bcd_gpu_memory_size_bytes{", "gpu=\"0\"", "85520809984");
	expect_sample(text, "bcd_gpu_healthy{",
		      "pci=\"0000:1a:00.0\",minor=\"0\",model=\"NVIDIA H100 80GB HBM3\","
		      "allocation=\"\",namespace=\"\",pod=\"\",container=\"\"",
		      "1");
}

/* A driver that tells nothing, and GPUs that nothing is known of: no number is made up.
 * proves: OBS-14 */
static void test_unknown_is_not_zero(void **state)
{
	struct world *world = *state;

	world->view.reading = NULL;
	assert_null(find(format(world), "bcd_gpu_row_remap", ""));
	assert_null(find(format(world), "bcd_gpu_recovery", ""));
	assert_null(find(format(world), "bcd_gpu_temperature", ""));
	assert_null(find(format(world), "bcd_gpu_xid", ""));
	assert_null(find(format(world), "bcd_gpu_reading_age", ""));
	assert_null(find(format(world), "bcd_pod_list_age", ""));
	world->view.holds = NULL;
	assert_null(find(format(world), "bcd_devices_bound", ""));
	expect_sample(format(world), "bcd_holds_readable", "", "0");
	/* of another GPU, or of one that only its place is known of */
	world->view.reading = &world->reading;
	world->reading.gpus.items[0].has_uuid = false;
	world->reading.gpus.items[1].uuid.bytes[0] ^= 1;
	expect_sample(format(world), "bcd_gpu_row_remap_failed{", "gpu=\"0\"", "0");
	assert_null(find(format(world), "bcd_gpu_row_remap_failed{", "gpu=\"1\""));
}

/* proves: OBS-14 */
static void test_health(void **state)
{
	struct exporter_xids xids[8] = {[1] = {.active = {79, 13}, .count = 2, .last = 13}};
	struct world *world = *state;
	const char *text;

	change(world, 1, "xid=79");
	change(world, 2, "ecc=17");
	change(world, 3, "row_remap=pending");
	change(world, 4, "row_remap=failed");
	change(world, 4, "recovery=reset");
	world->view.xids = xids;
	text = format(world);
	expect_sample(text, "bcd_gpu_healthy{", "gpu=\"0\"", "1");
	expect_sample(text, "bcd_gpu_healthy{", "gpu=\"1\"", "0");
	assert_null(find(text, "bcd_gpu_unhealthy_info{", "gpu=\"0\""));
	assert_non_null(strstr(find(text, "bcd_gpu_unhealthy_info{", "gpu=\"1\""), "XID 79"));
	expect_sample(text, "bcd_gpu_xid_active{", "gpu=\"1\"", "1");
	expect_sample(text, "bcd_gpu_xid_active{", "xid=\"13\"", "1");
	/* the same label, however many there are */
	assert_non_null(strstr(find(text, "bcd_gpu_unhealthy_info{", "gpu=\"2\""),
			       "cause=\"uncorrectable ECC errors"));
	expect_sample(text, "bcd_gpu_row_remap_pending{", "gpu=\"3\"", "1");
	expect_sample(text, "bcd_gpu_row_remap_failed{", "gpu=\"3\"", "0");
	expect_sample(text, "bcd_gpu_row_remap_failed{", "gpu=\"4\"", "1");
	expect_sample(text, "bcd_gpu_recovery_action{", "gpu=\"4\"", "1");
	assert_non_null(find(text, "bcd_gpu_recovery_action{", "action=\"reset\""));
}

/* Who has a GPU is told at the GPU, who has a part of one at the part. proves: OBS-14 OBS-16 */
static void test_who_has_what(void **state)
{
	struct world *world = *state;
	const struct atom whole = fixture_gpu(&world->inventory, 0);
	const struct atom parts[] = {fixture_mig(&world->inventory, 1),
				     fixture_slot(&world->inventory, 2)};
	char ids[3][HOLDS_ID_SIZE];
	const struct exporter_holder holders[] = {
		{ids[0], "team-a", "train-0", "main"},
		{ids[1], "team-b", "infer-7", "serve\"r"},
		{"gpu_none@" ALC_C, "x", "y", "z"},
	};
	const char *text, *line;

	fixture_bind(&world->holds, &world->inventory, ALC_A, &whole, 1);
	fixture_bind(&world->holds, &world->inventory, ALC_B, parts, 2);
	fixture_id(ids[0], whole, ALC_A);
	fixture_id(ids[1], parts[0], ALC_B);
	world->view.holders = holders;
	world->view.holder_count = ARRAY_SIZE(holders);
	change(world, 0, "temperature_c=70");
	text = format(world);
	expect_sample(text, "bcd_gpu_temperature_celsius{",
		      "allocation=\"" ALC_A "\",namespace=\"team-a\",pod=\"train-0\","
		      "container=\"main\"}",
		      "70");
	assert_null(find(text, "bcd_gpu_healthy{", ALC_B)); /* nobody has all of it */
	line = find(text, "bcd_device_info{", "class=\"gpu.mig\",gpu=\"6\"");
	assert_non_null(strstr(line, "gi=\"1\",ci=\"0\",profile=\"3g.40gb\",visible=\"MIG-"));
	assert_non_null(strstr(line, "state=\"bound\",allocation=\"" ALC_B "\",reservation=\"" RSV_A
				     "\",namespace=\"team-b\",pod=\"infer-7\","
				     "container=\"serve\\\"r\"} 1"));
	line = find(text, "bcd_device_info{", "/s2\"");
	assert_non_null(strstr(line, "gi=\"\",ci=\"\",profile=\"\","));
	assert_non_null(strstr(line, "allocation=\"" ALC_B "\""));
	assert_non_null(strstr(line, "pod=\"\""));
	assert_non_null(find(text, "bcd_device_info{", "gpu=\"1\",uuid="));
	expect_sample(text, "bcd_devices_bound{", "\"gpu\"", "1");
	expect_sample(text, "bcd_devices_bound{", "\"gpu.mig\"", "1");
	expect_sample(text, "bcd_devices_bound{", "\"gpu.slot\"", "1");
	expect_sample(text, "bcd_device_memory_bytes{", "/s2\"", "21380202496");
	/* its place is gone: still bound, and not well */
	change(world, 6, "mig=none");
	text = format(world);
	line = find(text, "bcd_device_info{", "class=\"gpu.mig\"");
	assert_non_null(strstr(line, "gpu=\"6\""));
	assert_non_null(strstr(line, "profile=\"\",visible=\"\",state=\"bound\""));
	expect_sample(text, "bcd_device_healthy{", "gpu.mig", "0");
	expect_sample(text, "bcd_devices_bound{", "\"gpu.mig\"", "1");
	expect_sample(text, "bcd_devices_present{", "\"gpu.mig\"", "0");
}

/* The other exporter's names, units and labels, only when asked for. proves: OBS-20 */
static void test_dcgm_names(void **state)
{
	struct exporter_xids xids[8] = {[0] = {.active = {79}, .count = 1, .last = 31}};
	struct world *world = *state;
	const struct atom whole = fixture_gpu(&world->inventory, 0);
	char id[HOLDS_ID_SIZE];
	const struct exporter_holder holder = {id, "team-a", "train-0", "main"};
	const char *text;

	fixture_bind(&world->holds, &world->inventory, ALC_A, &whole, 1);
	fixture_id(id, whole, ALC_A);
	world->view.holders = &holder;
	world->view.holder_count = 1;
	world->view.xids = xids;
	change(world, 0, "temperature_c=70");
	change(world, 0, "power_mw=699123");
	change(world, 0, "memory_used_bytes=1073741824");
	change(world, 0, "energy_mj=1500");
	assert_null(strstr(format(world), "DCGM_"));
	world->view.dcgm_names = true;
	text = format(world);
	assert_non_null(strstr(text,
			       "\nDCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"" UUID_0
			       "\",pci_bus_id=\"00000000:1A:00.0\",device=\"nvidia0\","
			       "modelName=\"NVIDIA H100 80GB HBM3\",Hostname=\"host-1\","
			       "namespace=\"team-a\",pod=\"train-0\",container=\"main\"} 70\n"));
	expect_sample(text, "DCGM_FI_DEV_POWER_USAGE{", "gpu=\"0\"", "699.123");
	expect_sample(text, "DCGM_FI_DEV_FB_USED{", "gpu=\"0\"", "1024");
	expect_sample(text, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{", "gpu=\"0\"", "1500");
	expect_sample(text, "DCGM_FI_DEV_XID_ERRORS{", "gpu=\"0\"", "31");
	expect_sample(text, "DCGM_FI_DEV_XID_ERRORS{", "gpu=\"1\"", "0");
	expect_sample(text, "DCGM_FI_DEV_ROW_REMAP_FAILURE{", "gpu=\"0\"", "0");
	assert_null(find(text, "DCGM_FI_DEV_GPU_TEMP{", "gpu=\"1\""));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WITH_WORLD(test_gauges),     WITH_WORLD(test_unknown_is_not_zero),
		WITH_WORLD(test_health),     WITH_WORLD(test_who_has_what),
		WITH_WORLD(test_dcgm_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
