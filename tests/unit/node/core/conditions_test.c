#include "lib/test.h"
#include "node/core/conditions.h"

static void decide(const struct conditions_view *view, struct conditions *conditions, int64_t now)
{
	struct conditions before = *conditions;

	memset(conditions, 0, sizeof *conditions);
	conditions_decide(view, &before, (struct wall){now}, conditions);
	vec_deinit(&before);
}

/* proves: GW-9 GW-13 REL-19 REL-20 */
static void test_stuck_names_allocation_and_devices(void **state)
{
	struct release_entry entry = {.allocation = "alc_x"};
	const struct release_entry *stuck[] = {&entry};
	struct conditions_view view = {.stuck = {stuck, NULL, NULL, 1}, .host_units = true};
	struct conditions conditions = {0};
	const struct condition *found;

	(void)state;
	vec_push(&entry.devices)->atom.slot = 0;
	decide(&view, &conditions, 1000);
	decide(&view, &conditions, 2000);
	assert_int_equal(conditions.count, 1);
	found = conditions_find(&conditions, CONDITION_RELEASE_STUCK);
	assert_string_equal(found->reason, "PodsHoldDevices");
	assert_non_null(strstr(found->message, "alc_x (gpu/00000000"));
	assert_int_equal(found->since.ms, 1000);
	view.stuck.count = 0;
	decide(&view, &conditions, 3000);
	assert_int_equal(conditions.count, 0);
	vec_deinit(&entry.devices);
	vec_deinit(&conditions);
}

/* The cause comes before the devices. proves: REL-19 */
static void test_stuck_names_why_and_what_comes_next(void **state)
{
	struct release_entry entry = {.allocation = "alc_x"}, other = {.allocation = "alc_y"};
	const struct release_entry *stuck[] = {&entry, &other};
	const char *why[] = {"held by default/web (main): deleted by force, still there",
			     "the kubelet doesn't answer"};
	struct conditions_view view = {.stuck = {stuck, why, NULL, 2}, .host_units = true};
	struct conditions conditions = {0};
	char endless[2 * CONDITIONS_MESSAGE_SIZE];

	(void)state;
	vec_push(&entry.devices)->atom.slot = 0;
	decide(&view, &conditions, 1000);
	assert_non_null(strstr(conditions.items[0].message,
			       "alc_x: held by default/web (main): deleted by force, still there "
			       "(gpu/00000000"));
	assert_non_null(strstr(conditions.items[0].message, "; alc_y: the kubelet doesn't answer"));
	assert_null(strstr(conditions.items[0].message, "alc_y: held"));
	memset(endless, 'x', sizeof endless - 1);
	endless[sizeof endless - 1] = '\0';
	why[0] = endless; /* what doesn't fit is left out, not cut */
	decide(&view, &conditions, 1000);
	assert_null(strstr(conditions.items[0].message, "xxx"));
	vec_deinit(&entry.devices);
	vec_deinit(&conditions);
}

/* Who is in the way is told long before it takes too long. */
static void test_pending_names_who(void **state)
{
	struct release_entry entry = {.allocation = "alc_x"};
	const struct release_entry *entries[] = {&entry};
	const char *why[] = {"held by default/web (main): asked to go"};
	bool named[] = {false};
	struct conditions_view view = {.pending = {entries, why, named, 1}, .host_units = true};
	struct conditions conditions = {0};

	(void)state;
	decide(&view, &conditions, 1000);
	assert_int_equal(conditions.count, 1);
	assert_string_equal(conditions.items[0].type, CONDITION_RELEASE_PENDING);
	assert_string_equal(conditions.items[0].message,
			    "alc_x: held by default/web (main): asked to go");
	vec_push(&entry.devices)->atom.slot = 0;
	decide(&view, &conditions, 1000);
	assert_non_null(strstr(conditions.items[0].message, "asked to go (gpu/00000000"));
	named[0] = true; /* those that are held: the others aren't told beside them */
	decide(&view, &conditions, 1000);
	assert_string_equal(conditions.items[0].message,
			    "alc_x: held by default/web (main): asked to go");
	vec_deinit(&entry.devices);
	vec_deinit(&conditions);
}

/* Each names what fails, and what comes of it. */
static void test_records_and_processes_that_fail(void **state)
{
	struct error full = {.what = "write '/var/lib/bcd/spec.json': No space left on device",
			     .hint = "Make room."};
	struct conditions_view view = {.write_error = &full,
				       .reports_error =
					       "kept as '/var/lib/bcd/reports.json.unreadable-1'",
				       .process_error = "open '/proc': Input/output error",
				       .process_failing_ms = CONDITIONS_POD_MS - 1,
				       .host_units = true};
	struct conditions conditions = {0};

	(void)state;
	decide(&view, &conditions, 1000);
	assert_int_equal(conditions.count, 2);
	assert_non_null(strstr(conditions_find(&conditions, CONDITION_RECORDS_UNWRITABLE)->message,
			       "spec.json': No space left on device. Make room."));
	assert_non_null(strstr(conditions_find(&conditions, CONDITION_REPORTS_UNREADABLE)->message,
			       "reports.json.unreadable-1"));
	view.process_failing_ms = CONDITIONS_POD_MS;
	decide(&view, &conditions, 2000);
	assert_non_null(
		strstr(conditions_find(&conditions, CONDITION_PROCESSES)->message, "open '/proc'"));
	vec_deinit(&conditions);
}

static void test_an_api_server_that_is_needed(void **state)
{
	struct conditions_view view = {.host_units = true, .api_error = "no route"};
	struct conditions conditions = {0};
	const struct condition *found;

	(void)state;
	decide(&view, &conditions, 1000);
	found = conditions_find(&conditions, CONDITION_API);
	assert_string_equal(found->reason, "ApiServerFailing");
	assert_non_null(strstr(found->message, "no route. See to the API server"));
	vec_clear(&conditions);
	view.api_hint = "Name its file.";
	decide(&view, &conditions, 2000);
	found = conditions_find(&conditions, CONDITION_API);
	assert_non_null(strstr(found->message, "no route. Name its file."));
	vec_clear(&conditions);
	view.api_partial = view.api_needed = true;
	decide(&view, &conditions, 2500);
	found = conditions_find(&conditions, CONDITION_API);
	assert_non_null(strstr(found->message, "can't be told which pods are gone"));
	assert_null(strstr(found->message, "can't be deleted"));
	view.api_partial = view.api_needed = false;
	vec_deinit(&conditions);
}

/* proves: GW-29 */
static void test_long_messages_end_in_more(void **state)
{
	struct release_entry entry = {.allocation = "alc_x"};
	const struct release_entry *stuck[300];
	struct conditions_view view = {.stuck = {stuck, NULL, NULL, 0}, .host_units = true};

	(void)state;
	for (int i = 0; i < 300; i++)
		vec_push(&entry.devices);
	for (size_t count = 1; count <= ARRAY_SIZE(stuck); count++) {
		struct conditions conditions = {0};

		stuck[count - 1] = &entry;
		view.stuck.count = count;
		decide(&view, &conditions, 0);
		assert_true(strlen(conditions.items[0].message) <= 1024);
		assert_non_null(strstr(conditions.items[0].message, "more"));
		vec_deinit(&conditions);
	}
	vec_deinit(&entry.devices);
}

/* proves: GW-11 REL-29 REL-53 */
static void test_pod_resources_is_given_a_little_time(void **state)
{
	(void)state;
	for (int holds = 0; holds < 2; holds++)
		for (uint32_t failures = 0; failures < 5; failures++)
			for (int64_t ms = 0; ms <= 20000; ms += 5000) {
				struct conditions_view view = {.holds_devices = holds,
							       .pod_failures = failures,
							       .pod_failing_ms = ms,
							       .pod_error = "no socket",
							       .host_units = true};
				struct conditions conditions = {0};
				bool raised = holds && failures && (failures >= 3 || ms >= 15000);

				decide(&view, &conditions, 0);
				assert_int_equal(conditions.count, raised);
				vec_deinit(&conditions);
			}
}

/* proves: DP-47 GW-28 */
static void test_a_kubelet_that_is_not_told(void **state UNUSED)
{
	for (int64_t ms = 0; ms <= 20000; ms += 5000) {
		struct conditions_view view = {
			.plugin_error = "bcd.dev/gpu: register with '/x/kubelet.sock': refused",
			.plugin_failing_ms = ms,
			.host_units = true};
		struct conditions conditions = {0};

		decide(&view, &conditions, 0);
		assert_int_equal(conditions.count, ms >= 15000);
		if (conditions.count > 0)
			assert_non_null(
				strstr(conditions_find(&conditions, CONDITION_PLUGINS)->message,
				       "bcd.dev/gpu: register with '/x/kubelet.sock': refused. "
				       "See to the kubelet"));
		vec_deinit(&conditions);
	}
}

/* proves: GW-10 REL-35 */
static void test_the_rest(void **state)
{
	struct conditions_view view = {.releases_marker = "/var/lib/bcd/releasing.unreadable",
				       .claims_error = "read 'prepared.json': no",
				       .holds_error = "bcd.dev-x.json",
				       .spec_error = "spec.json",
				       .gpus_error = "no driver",
				       .gpus_next = "Install it.",
				       .gpu_strangers = "0000:c1:00.0: lost",
				       .health_marker = "/var/lib/bcd/health.unreadable",
				       .kernel_log_error = "open '/dev/kmsg': no",
				       .overbooked = "vCPU short by 1"};
	struct conditions conditions = {0}, same = {0};

	(void)state;
	decide(&view, &conditions, 0);
	decide(&view, &same, 9);
	assert_true(conditions_equal(&conditions, &same));
	assert_int_equal(conditions.count, 10);
	assert_non_null(strstr(conditions_find(&conditions, CONDITION_CLAIMS_UNREADABLE)->message,
			       "read 'prepared.json': no. When"));
	assert_non_null(strstr(conditions_find(&conditions, CONDITION_HOST_SHORT)->message,
			       "what is bound stays, and what would need more is refused: vCPU "
			       "short by 1"));
	assert_non_null(strstr(conditions_find(&conditions, CONDITION_GPU_UNIDENTIFIED)->message,
			       "0000:c1:00.0"));
	assert_string_equal(conditions_find(&conditions, CONDITION_GPUS_UNREADABLE)->message,
			    "no driver. Install it.");
	assert_non_null(strstr(conditions_find(&conditions, CONDITION_HEALTH_UNREADABLE)->message,
			       "/var/lib/bcd/health.unreadable is removed"));
	assert_non_null(
		strstr(conditions_find(&conditions, CONDITION_KERNEL_LOG)->message, "/dev/kmsg"));
	assert_non_null(strstr(conditions_find(&conditions, CONDITION_HOST_UNITS)->message,
			       "nothing is wrong"));
	assert_string_equal(conditions_find(&conditions, CONDITION_RELEASES_UNREADABLE)->reason,
			    "ReleasesFileUnreadable");
	assert_non_null(strstr(conditions_find(&conditions, CONDITION_RELEASES_UNREADABLE)->message,
			       "/var/lib/bcd/releasing.unreadable"));
	for (size_t i = 1; i < conditions.count; i++)
		assert_true(strcmp(conditions.items[i - 1].type, conditions.items[i].type) < 0);
	view.spec_error = NULL;
	decide(&view, &same, 9);
	assert_false(conditions_equal(&conditions, &same));
	vec_deinit(&conditions);
	vec_deinit(&same);
}

/* Each type that is in the list may come, once. */
static void test_the_list_of_types_is_whole(void **state UNUSED)
{
	struct release_entry entry = {.allocation = "alc_x"};
	const struct release_entry *stuck[] = {&entry};
	const struct error error = {.code = ERROR_INTERNAL};
	const struct conditions_view view = {
		.pending = {stuck, NULL, NULL, 1},
		.stuck = {stuck, NULL, NULL, 1},
		.holds_devices = true,
		.pod_failures = CONDITIONS_POD_FAILURES,
		.pod_error = "x",
		.api_error = "x",
		.releases_marker = "x",
		.claims_error = "x",
		.holds_error = "x",
		.spec_error = "x",
		.gpus_error = "x",
		.gpu_strangers = "x",
		.exposure = "x",
		.health_marker = "x",
		.kernel_log_error = "x",
		.process_error = "x",
		.process_failing_ms = CONDITIONS_POD_MS,
		.gpus_open = "x",
		.plugin_error = "x",
		.plugin_failing_ms = CONDITIONS_POD_MS,
		.unknown_node = "x",
		.not_served = "x",
		.write_error = &error,
		.reports_error = "x",
		.overbooked = "x",
		.unoffered = "x",
	};
	struct conditions conditions = {0};
	size_t count = 0;

	decide(&view, &conditions, 0);
	for (; conditions_type(count); count++)
		if (!conditions_find(&conditions, conditions_type(count)))
			fail_msg("%s is never decided", conditions_type(count));
	assert_int_equal(conditions.count, count);
	vec_deinit(&conditions);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stuck_names_allocation_and_devices),
		cmocka_unit_test(test_stuck_names_why_and_what_comes_next),
		cmocka_unit_test(test_pending_names_who),
		cmocka_unit_test(test_records_and_processes_that_fail),
		cmocka_unit_test(test_an_api_server_that_is_needed),
		cmocka_unit_test(test_long_messages_end_in_more),
		cmocka_unit_test(test_pod_resources_is_given_a_little_time),
		cmocka_unit_test(test_a_kubelet_that_is_not_told),
		cmocka_unit_test(test_the_rest),
		cmocka_unit_test(test_the_list_of_types_is_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
