#include "control/core/host_share.h"

#include "unit/control/core/built_node.h"

/* proves: RES-3 */
static void test_share_is_in_proportion_to_the_devices(void **state)
{
	struct placement_need needs[] = {{PLACEMENT_CLASS_GPU, NULL, 1},
					 {PLACEMENT_CLASS_SLOT, NULL, 1}};
	struct placement_request request = request_for(needs, 2);
	struct placement_answer answer = {0};
	struct built built;

	(void)state;
	build(&built, "n");
	for (int gpu = 0; gpu < 4; gpu++)
		add_gpu(&built, "g", 4, 0);
	placement_decide(&request, &built.node, 1, &answer);
	assert_int_equal(answer.members[0].vcpus, 64 / 4 + 64 / 16);
	assert_int_equal(answer.members[0].memory_bytes, 512 / 4 + 512 / 16);
	/* A quarter of a petabyte times a leaf is no overflow. */
	built.node.memory_bytes = INT64_MAX / 2;
	placement_decide(&request, &built.node, 1, &answer);
	assert_true(answer.members[0].memory_bytes > 0 &&
		    answer.members[0].memory_bytes < INT64_MAX / 4);
	/* One share given, the other the node's. */
	built.node.memory_bytes = 512;
	request.vcpus = 3;
	placement_decide(&request, &built.node, 1, &answer);
	assert_int_equal(answer.members[0].vcpus, 3);
	assert_int_equal(answer.members[0].memory_bytes, 512 / 4 + 512 / 16);
	placement_answer_deinit(&answer);
}

static void test_host_is_short_at_its_peak_and_not_in_sum(void **state)
{
	struct placement_need need = {PLACEMENT_CLASS_GPU, NULL, 1};
	struct placement_request request = request_for(&need, 1);
	struct placement_answer answer = {0};
	struct built built;

	(void)state;
	build(&built, "n");
	add_gpu(&built, "g", 0, 0);
	/* 40 in the first half, 40 in the second; 24 more fit, 25 don't. */
	built.uses[0] =
		(struct placement_use){.vcpus = 40, .from_ms = 0, .to_ms = 10 * HOUR + HOUR / 2};
	built.uses[1] = (struct placement_use){
		.vcpus = 40, .from_ms = 10 * HOUR + HOUR / 2, .to_ms = 20 * HOUR};
	built.node.uses_count = 2;
	request.vcpus = 24;
	placement_decide(&request, &built.node, 1, &answer);
	assert_int_equal(answer.members_count, 1);
	request.vcpus = 25;
	placement_decide(&request, &built.node, 1, &answer);
	assert_int_equal(answer.members_count, 0);
	/* One that begins within the time and overlaps another makes the peak. */
	built.uses[1].from_ms--;
	request.vcpus = 1;
	placement_decide(&request, &built.node, 1, &answer);
	assert_int_equal(answer.members_count, 0);
	placement_answer_deinit(&answer);
}

/* Each size by itself; nobody's share, and never short when it isn't asked for.
 * proves: RES-51 HOST-3 */
static void test_huge_pages(void **state)
{
	struct placement_need need = {PLACEMENT_CLASS_GPU, NULL, 1};
	struct placement_request request = request_for(&need, 1);
	struct placement_answer answer = {0};
	struct built built;

	(void)state;
	build(&built, "n");
	add_gpu(&built, "g", 0, 0);
	built.node.hugepages = (struct hugepages){{8, 4}};
	built.uses[0] =
		(struct placement_use){.hugepages = {{6, 0}}, .from_ms = 0, .to_ms = 20 * HOUR};
	built.node.uses_count = 1;
	request.hugepages = (struct hugepages){{2, 4}};
	placement_decide(&request, &built.node, 1, &answer);
	assert_int_equal(answer.members_count, 1);
	assert_int_equal(answer.members[0].hugepages.bytes[HUGEPAGES_2MI], 2);
	request.hugepages = (struct hugepages){{3, 0}};
	placement_decide(&request, &built.node, 1, &answer);
	assert_int_equal(answer.members_count, 0);
	assert_string_equal(answer.reasons[0].reason, "HostHugepagesShort");
	assert_false(answer.never);
	request.hugepages = (struct hugepages){{0, 5}};
	placement_decide(&request, &built.node, 1, &answer);
	assert_true(answer.never);
	built.node.hugepages = (struct hugepages){{1, 0}};
	request.hugepages = (struct hugepages){{0, 0}};
	placement_decide(&request, &built.node, 1, &answer);
	assert_int_equal(answer.members_count, 1);
	assert_int_equal(answer.members[0].hugepages.bytes[HUGEPAGES_2MI], 0);
	placement_answer_deinit(&answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_share_is_in_proportion_to_the_devices),
		cmocka_unit_test(test_host_is_short_at_its_peak_and_not_in_sum),
		cmocka_unit_test(test_huge_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
