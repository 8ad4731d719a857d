/* What Prometheus reads of a node, and the text as a whole. */
#include "exporter_world.h"

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
	static const struct CMUnitTest tests[] = {
		WITH_WORLD(test_releases),
		WITH_WORLD(test_node),
		WITH_WORLD(test_families_stand_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
