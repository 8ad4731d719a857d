#include "control/core/node_conditions.h"

#include "lib/enumerate.h"
#include "node/core/conditions.h"

/* proves: GW-6 GW-7 GW-14 */
static void test_which_keep_work_away(void **state)
{
	static const char *const away[] = {"ForeignGpuExposure", "KubernetesReleaseStuck",
					   "PodResourcesUnavailable",
					   "KubernetesReleasesUnreadable"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(away); i++) {
		assert_true(node_condition_is_known(away[i]));
		assert_true(node_condition_no_schedule(away[i], false));
		assert_false(node_condition_no_schedule(away[i], true));
		assert_non_null(strstr(NODE_CONDITIONS_NO_SCHEDULE, away[i]));
	}
	/* its reason is HostManagedExternally */
	assert_true(node_condition_is_known("HostUnsupported"));
	assert_false(node_condition_no_schedule("HostUnsupported", false));
	assert_false(node_condition_is_known("FlubberDetected"));
	assert_false(node_condition_no_schedule("FlubberDetected", false));
	assert_false(node_condition_no_schedule("", false));
}

/* Every pair of sets over two types with two values each.
 * proves: GW-5 GW-13 */
static void test_every_difference_is_one_change(void **state)
{
	static const char *const types[] = {"A", "B"};
	static const char *const reasons[] = {"One", "Two"};
	struct enumerate all = {0};

	(void)state;
	while (enumerate_next(&all)) {
		struct node_condition sets[2][2];
		size_t counts[2] = {0, 0}, expected = 0;
		int values[2][2]; /* 0 absent, else the reason's number */
		struct node_condition_changes changes = {0};

		for (size_t set = 0; set < 2; set++) {
			for (size_t type = 0; type < 2; type++) {
				values[set][type] = (int)enumerate_pick(&all, 3);
				if (values[set][type] > 0)
					sets[set][counts[set]++] = (struct node_condition){
						types[type], reasons[values[set][type] - 1], "m",
						(int64_t)set};
			}
		}
		node_conditions_diff(sets[0], counts[0], sets[1], counts[1], &changes);
		for (size_t type = 0; type < 2; type++) {
			const struct node_condition_change *change = &changes.items[expected];

			if (values[0][type] == values[1][type])
				continue;
			assert_true(expected < changes.count);
			assert_int_equal(change->now != NULL, values[1][type] != 0);
			assert_int_equal(change->before != NULL, values[0][type] != 0);
			assert_string_equal((change->now ? change->now : change->before)->type,
					    types[type]);
			expected++;
		}
		assert_int_equal(changes.count, expected);
		vec_deinit(&changes);
	}
	assert_int_equal(all.rounds, 81);
}

static void test_message_counts_and_a_type_twice_does_not(void **state)
{
	struct node_condition before = {"A", "One", "x", 1};
	struct node_condition now[] = {{"A", "One", "y", 1}, {"A", "Two", "z", 1}};
	struct node_condition_changes changes = {0};

	(void)state;
	node_conditions_diff(&before, 1, now, 2, &changes);
	assert_int_equal(changes.count, 1);
	assert_string_equal(changes.items[0].now->message, "y");
	vec_deinit(&changes);
}

/* Whatever bcd sends, this program knows. */
static void test_all_that_bcd_has_is_known(void **state)
{
	(void)state;
	for (size_t i = 0; conditions_type(i); i++)
		if (!node_condition_is_known(conditions_type(i)))
			fail_msg("%s isn't known", conditions_type(i));
	assert_false(node_condition_is_known("Unheard"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_that_bcd_has_is_known),
		cmocka_unit_test(test_which_keep_work_away),
		cmocka_unit_test(test_every_difference_is_one_change),
		cmocka_unit_test(test_message_counts_and_a_type_twice_does_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
