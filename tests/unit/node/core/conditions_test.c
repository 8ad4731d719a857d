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
	struct conditions_view view = {.stuck = stuck, .stuck_count = 1, .host_units = true};
	struct conditions conditions = {0};
	const struct condition *found;

	(void)state;
	vec_push(&entry.devices)->atom.slot = 0;
	decide(&view, &conditions, 1000);
	decide(&view, &conditions, 2000);
	assert_int_equal(conditions.count, 1);
	found = conditions_find(&conditions, CONDITION_RELEASE_STUCK);
	assert_string_equal(found->reason, "PodsHoldDevices");
	assert_non_null(strstr(found->message, "alc_x: gpu/00000000"));
	assert_int_equal(found->since.ms, 1000);
	view.stuck_count = 0;
	decide(&view, &conditions, 3000);
	assert_int_equal(conditions.count, 0);
	vec_deinit(&entry.devices);
	vec_deinit(&conditions);
}

static void test_stuck_names_who_and_what_comes_next(void **state)
{
	struct release_entry entry = {.allocation = "alc_x"};
	const struct release_entry *stuck[] = {&entry};
	const char *by[] = {"default/web (main): deleted by force, still there"};
	struct conditions_view view = {
		.stuck = stuck, .stuck_by = by, .stuck_count = 1, .host_units = true};
	struct conditions conditions = {0};
	char endless[2 * CONDITIONS_MESSAGE_SIZE];

	(void)state;
	decide(&view, &conditions, 1000);
	assert_non_null(strstr(conditions.items[0].message,
			       "alc_x [default/web (main): deleted by force, still there]"));
	memset(endless, 'x', sizeof endless - 1);
	endless[sizeof endless - 1] = '\0';
	by[0] = endless; /* what doesn't fit is left out, not cut */
	decide(&view, &conditions, 1000);
	assert_null(strchr(conditions.items[0].message, '['));
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
	assert_non_null(strstr(found->message, "no route"));
	vec_deinit(&conditions);
}

/* proves: GW-29 */
static void test_long_messages_end_in_more(void **state)
{
	struct release_entry entry = {.allocation = "alc_x"};
	const struct release_entry *stuck[300];
	struct conditions_view view = {.stuck = stuck, .host_units = true};

	(void)state;
	for (int i = 0; i < 300; i++)
		vec_push(&entry.devices);
	for (size_t count = 1; count <= ARRAY_SIZE(stuck); count++) {
		struct conditions conditions = {0};

		stuck[count - 1] = &entry;
		view.stuck_count = count;
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

/* proves: GW-10 REL-35 */
static void test_the_rest(void **state)
{
	struct conditions_view view = {.releases_marker = "/var/lib/bcd/releasing.unreadable",
				       .holds_error = "bcd.dev-x.json",
				       .spec_error = "spec.json",
				       .gpus_error = "no driver",
				       .gpus_next = "Install it.",
				       .gpu_strangers = "0000:c1:00.0: lost",
				       .health_marker = "/var/lib/bcd/health.unreadable",
				       .kernel_log_error = "open '/dev/kmsg': no"};
	struct conditions conditions = {0}, same = {0};

	(void)state;
	decide(&view, &conditions, 0);
	decide(&view, &same, 9);
	assert_true(conditions_equal(&conditions, &same));
	assert_int_equal(conditions.count, 8);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stuck_names_allocation_and_devices),
		cmocka_unit_test(test_stuck_names_who_and_what_comes_next),
		cmocka_unit_test(test_an_api_server_that_is_needed),
		cmocka_unit_test(test_long_messages_end_in_more),
		cmocka_unit_test(test_pod_resources_is_given_a_little_time),
		cmocka_unit_test(test_the_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
