/* What Prometheus reads of a node. */
#include "node/core/exporter.h"

#include "fixture.h"

#define UUID_0 "GPU-042f84dd-1dba-4a94-a43e-84b505cf9d5e"

/* A machine, what is bound on it, and the view of both. */
struct world {
	struct scenario scenario;
	struct inventory inventory;
	struct reading reading;
	struct holds holds;
	struct offers offers;
	struct releases releases;
	struct conditions conditions;
	struct exporter_figures figures;
	struct exporter_view view;
	struct buf text;
};

/* Reads the scenario again, as changed. */
static void look(struct world *world)
{
	inventory_deinit(&world->inventory);
	world->inventory = (struct inventory){0};
	scenario_inventory(&world->scenario, 0, "test", &world->inventory);
	reading_deinit(&world->reading);
	world->reading = (struct reading){0};
	scenario_reading(&world->scenario, &world->reading);
}

static void change(struct world *world, size_t gpu, const char *assignment)
{
	struct error error;

	expect_ok(scenario_set(&world->scenario.gpus.items[gpu], assignment, 7, &error), &error);
	look(world);
}

static const char *format(struct world *world)
{
	buf_clear(&world->text);
	exporter_format(&world->view, &world->text);
	return buf_text(&world->text);
}

static int setup(void **state)
{
	struct world *world = mem_alloc(sizeof *world);

	fixture_scenario(&world->scenario);
	look(world);
	world->view = (struct exporter_view){
		.node = "node_1",
		.hostname = "host-1",
		.kubernetes_node = "n1",
		.api = "device-plugin",
		.started = {1795999412529},
		.inventory = &world->inventory,
		.gpus_readable = true,
		.source = "simulated",
		.reading = &world->reading,
		.reading_age_ms = EXPORTER_UNKNOWN,
		.holds = &world->holds,
		.offers = &world->offers,
		.releases = &world->releases,
		.conditions = &world->conditions,
		.pods_age_ms = EXPORTER_UNKNOWN,
		.figures = &world->figures,
	};
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	scenario_deinit(&world->scenario);
	inventory_deinit(&world->inventory);
	reading_deinit(&world->reading);
	holds_deinit(&world->holds);
	offers_deinit(&world->offers);
	releases_deinit(&world->releases);
	vec_deinit(&world->conditions);
	buf_deinit(&world->text);
	free(world);
	return 0;
}

/* The sample whose line begins with `begin` and has `part` in it. */
static const char *find(const char *text, const char *begin, const char *part)
{
	static char line[1024];

	for (const char *at = text; *at;) {
		size_t length = strcspn(at, "\n");

		snprintf(line, sizeof line, "%.*s", (int)length, at);
		if (str_starts(line, begin) && strstr(line, part))
			return line;
		at += length + (at[length] == '\n');
	}
	return NULL;
}

static void expect_sample(const char *text, const char *begin, const char *part, const char *value)
{
	const char *line = find(text, begin, part);

	if (!line || !str_equal(strrchr(line, ' ') + 1, value))
		fail_msg("%s with %s: '%s', not %s", begin, part, line ? line : "none", value);
}

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

/* A device that is being taken back says so, and who clings to it. */
static void test_releases(void **state)
{
	struct world *world = *state;
	const struct atom whole = fixture_gpu(&world->inventory, 0);
	char id[HOLDS_ID_SIZE];
	const struct exporter_holder holder = {id, "team-a", "stubborn", "main"};
	const char *text;

	fixture_bind(&world->holds, &world->inventory, ALC_A, &whole, 1);
	releases_add(&world->releases, &world->holds.items[0], (struct wall){0}, (struct mono){0},
		     "boot");
	fixture_id(id, whole, ALC_A);
	world->view.holders = &holder;
	world->view.holder_count = 1;
	world->view.oldest_release_ms = 301500;
	world->view.releases_stuck = 1;
	holds_deinit(&world->holds);
	world->holds = (struct holds){0};
	text = format(world);
	assert_non_null(find(text, "bcd_device_info{",
			     "state=\"releasing\",allocation=\"" ALC_A "\",reservation=\"\","
			     "namespace=\"team-a\",pod=\"stubborn\""));
	expect_sample(text, "bcd_releases_pending", "", "1");
	expect_sample(text, "bcd_releases_stuck", "", "1");
	expect_sample(text, "bcd_release_oldest_seconds", "", "301.500");
	world->releases.entries.items[0].reported = true;
	text = format(world);
	assert_non_null(find(text, "bcd_device_info{", "state=\"free\",allocation=\"\""));
	expect_sample(text, "bcd_releases_pending", "", "0");
}

/* What to alert on. */
static void test_node(void **state)
{
	struct world *world = *state;
	struct offer *offer = &world->offers.classes[ATOM_GPU];
	struct condition *condition = vec_push(&world->conditions);
	const char *text;

	offer->served = true;
	vec_push(&offer->devices)->health = health_good();
	vec_push(&offer->devices)->health = health_bad("XID 79");
	str_copy(condition->type, sizeof condition->type, CONDITION_GPUS_UNREADABLE);
	str_copy(condition->reason, sizeof condition->reason, "Unreadable");
	world->view.gpus_readable = false;
	world->view.registered[ATOM_GPU] = true;
	world->view.reading_age_ms = 61000;
	world->view.source_failures = 3;
	world->view.log_gaps = 2;
	world->view.pods_age_ms = 4999;
	world->view.pods_failures = 2;
	world->view.gateway_configured = true;
	world->view.gateway_since = (struct wall){1795999412001};
	world->view.reports_queued = 5;
	world->figures.writes = 12;
	world->figures.write_failures = 1;
	histogram_add(&world->figures.turns, 400);
	text = format(world);
	expect_sample(text, "bcd_build_info{", BC_VERSION, "1");
	expect_sample(text, "bcd_node_info{",
		      "node=\"node_1\",hostname=\"host-1\",kubernetes_node=\"n1\","
		      "gpu_api=\"device-plugin\",source=\"simulated\",driver=\"580.95.05\"",
		      "1");
	expect_sample(text, "bcd_start_timestamp_seconds", "", "1795999412.529");
	expect_sample(text, "bcd_devices_present{", "\"gpu\"", "7");
	expect_sample(text, "bcd_devices_present{", "\"gpu.slot\"", "4");
	expect_sample(text, "bcd_devices_offered{", "\"gpu\"", "2");
	expect_sample(text, "bcd_devices_offered_healthy{", "\"gpu\"", "1");
	expect_sample(text, "bcd_device_plugin_registered{", "\"gpu\"", "1");
	assert_null(find(text, "bcd_device_plugin_registered{", "gpu.mig"));
	expect_sample(text, "bcd_condition{", "type=\"GpusUnreadable\",reason=\"Unreadable\"", "1");
	expect_sample(text, "bcd_gpus_readable", "", "0");
	expect_sample(text, "bcd_gpu_reading_age_seconds", "", "61.000");
	expect_sample(text, "bcd_gpu_reading_failures_total", "", "3");
	expect_sample(text, "bcd_kernel_log_gaps_total", "", "2");
	expect_sample(text, "bcd_pod_list_age_seconds", "", "4.999");
	expect_sample(text, "bcd_pod_list_failures", "", "2");
	expect_sample(text, "bcd_gateway_configured", "", "1");
	expect_sample(text, "bcd_gateway_connected", "", "0");
	expect_sample(text, "bcd_gateway_change_timestamp_seconds", "", "1795999412.001");
	expect_sample(text, "bcd_reports_queued", "", "5");
	expect_sample(text, "bcd_record_writes_total", "", "12");
	expect_sample(text, "bcd_record_write_failures_total", "", "1");
	expect_sample(text, "bcd_pass_duration_seconds_bucket{", "le=\"+Inf\"", "1");
	expect_sample(text, "bcd_pass_duration_seconds_sum", "", "0.000400");
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

/* Each family is announced once and its samples stand together, whatever there is to say. */
static void test_families_stand_together(void **state)
{
	struct world *world = *state;
	char seen[128][64];
	size_t count = 0;
	const char *text;

	change(world, 0, "remapped_correctable_rows=5");
	change(world, 1, "remapped_uncorrectable_rows=6");
	change(world, 1, "ecc_corrected_volatile=6");
	change(world, 2, "ecc_uncorrected_volatile=6");
	world->view.dcgm_names = true;
	text = format(world);
	for (const char *at = text; (at = strstr(at, "# TYPE ")); at++) {
		size_t length;

		at += strlen("# TYPE ");
		length = strcspn(at, " ");
		assert_true(count < ARRAY_SIZE(seen) && length < sizeof seen[0]);
		snprintf(seen[count], sizeof seen[0], "%.*s", (int)length, at);
		for (size_t i = 0; i < count; i++)
			assert_string_not_equal(seen[i], seen[count]);
		at = strchr(at, '\n');
		while (at[1] && at[1] != '#') {
			assert_true(str_starts(at + 1, seen[count]));
			at = strchr(at + 1, '\n');
		}
		count++;
	}
	assert_true(count > 30);
}

int main(void)
{
#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_WORLD(test_gauges),     WITH_WORLD(test_unknown_is_not_zero),
		WITH_WORLD(test_health),     WITH_WORLD(test_who_has_what),
		WITH_WORLD(test_releases),   WITH_WORLD(test_node),
		WITH_WORLD(test_dcgm_names), WITH_WORLD(test_families_stand_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
