#include "control/core/placement.h"

#include "unit/control/core/built_node.h"

/* proves: RES-50 */
static void test_each_node_counts_once_and_the_largest_is_named(void **state)
{
	struct placement_need need = {PLACEMENT_CLASS_GPU, NULL, 3};
	struct placement_request request = request_for(&need, 1);
	struct placement_answer answer = {0};
	struct built built[5];
	struct placement_node nodes[5];

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		build(&built[i], "n");
		for (int gpu = 0; gpu < 3; gpu++)
			add_gpu(&built[i], "g", 0, 0);
	}
	for (size_t gpu = 0; gpu < 3; gpu++)
		take(&built[0], gpu, 0, 1024, 0, INT64_MAX);
	take(&built[1], 0, 0, 1, 10 * HOUR, 10 * HOUR + 1);
	take(&built[2], 0, 0, 1024, 0, INT64_MAX);
	take(&built[2], 2, 0, 1024, 0, INT64_MAX);
	built[3].node.no_schedule = "KubernetesReleaseStuck";
	built[4].node.ready = false;
	for (size_t i = 0; i < 5; i++)
		nodes[i] = built[i].node;
	placement_decide(&request, nodes, 5, &answer);
	assert_int_equal(answer.members_count, 0);
	assert_int_equal(answer.reasons_count, 3);
	assert_string_equal(answer.reasons[0].reason, "DevicesBusy");
	assert_int_equal(answer.reasons[0].nodes, 3);
	assert_int_equal(answer.reasons[0].largest, 2);
	assert_string_equal(answer.reasons[1].reason, "KubernetesReleaseStuck");
	assert_int_equal(answer.reasons[1].largest, -1);
	placement_answer_deinit(&answer);
	placement_decide(&request, nodes, 0, &answer);
	assert_string_equal(answer.reasons[0].reason, "PoolEmpty");
	assert_int_equal(answer.reasons[0].nodes, 0);
	placement_answer_deinit(&answer);
}

static void test_classes_have_names(void **state)
{
	enum placement_class class;

	(void)state;
	for (size_t i = 0; i < PLACEMENT_CLASSES; i++) {
		assert_true(placement_class_parse(placement_class_name((enum placement_class)i),
						  &class));
		assert_int_equal(class, i);
	}
	assert_false(placement_class_parse("gpu.whole", &class));
}

/* --- the choice --- */

/* proves: RES-52 */
static void test_bin_pack_and_spread(void **state)
{
	struct placement_need need = {PLACEMENT_CLASS_GPU, NULL, 1};
	struct placement_request request = request_for(&need, 1);
	struct placement_answer answer = {0};
	struct built built[3];
	struct placement_node nodes[3];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		build(&built[i], (const char *[]){"n1", "n2", "n3"}[i]);
		for (int gpu = 0; gpu < 4; gpu++)
			add_gpu(&built[i], "g", 0, 0);
	}
	take(&built[1], 0, 0, 1024, 0, INT64_MAX);
	take(&built[1], 1, 0, 1024, 0, INT64_MAX);
	take(&built[2], 0, 0, 1024, 0, INT64_MAX);
	for (size_t i = 0; i < 3; i++)
		nodes[i] = built[2 - i].node;
	placement_decide(&request, nodes, 3, &answer);
	assert_string_equal(answer.members[0].node->id, "n2"); /* fewest free that fit */
	request.spread = true;
	placement_decide(&request, nodes, 3, &answer);
	assert_string_equal(answer.members[0].node->id, "n1"); /* most free */
	need.count = 3;
	request.spread = false;
	placement_decide(&request, nodes, 3, &answer);
	assert_string_equal(answer.members[0].node->id, "n3"); /* n2 hasn't got three */
	/* Ties go by id, whatever the order of the nodes. */
	nodes[0].busy_count = nodes[1].busy_count = nodes[2].busy_count = 0;
	placement_decide(&request, nodes, 3, &answer);
	assert_string_equal(answer.members[0].node->id, "n1");
	placement_answer_deinit(&answer);
}

/* --- time --- */

static void test_first_fit_is_the_first_end_that_leaves_room(void **state)
{
	struct placement_need need = {PLACEMENT_CLASS_GPU, NULL, 2};
	struct placement_request request = request_for(&need, 1);
	struct built built;
	int64_t at = 0;

	(void)state;
	build(&built, "n");
	add_gpu(&built, "a", 0, 0);
	add_gpu(&built, "b", 0, 0);
	assert_true(placement_first_fit(&request, &built.node, 1, &at));
	assert_int_equal(at, request.from_ms);
	take(&built, 0, 0, 1024, 0, 12 * HOUR);
	take(&built, 1, 0, 1024, 12 * HOUR + HOUR / 2, 15 * HOUR); /* a gap that is too short */
	take(&built, 0, 0, 1, 16 * HOUR, 17 * HOUR);               /* one that just does */
	assert_true(placement_first_fit(&request, &built.node, 1, &at));
	assert_int_equal(at, 15 * HOUR);
	built.busy[2].from_ms--;
	assert_true(placement_first_fit(&request, &built.node, 1, &at));
	assert_int_equal(at, 17 * HOUR);
	/* Held without an end: never, as far as anybody knows. */
	built.busy[2].to_ms = INT64_MAX;
	assert_false(placement_first_fit(&request, &built.node, 1, &at));
	need.count = 3;
	built.node.busy_count = 0;
	assert_false(placement_first_fit(&request, &built.node, 1, &at));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_node_counts_once_and_the_largest_is_named),
		cmocka_unit_test(test_classes_have_names),
		cmocka_unit_test(test_bin_pack_and_spread),
		cmocka_unit_test(test_first_fit_is_the_first_end_that_leaves_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
