#include "control/core/node_filter.h"

#include "unit/control/core/built_node.h"

/* NULL: it fits. */
static const char *only_reason(const struct placement_request *request, const struct built *built)
{
	struct node_verdict verdict = node_filter_judge(request, &built->node, NULL);

	assert_int_equal(node_filter_fits(request, &built->node), !verdict.reason);
	return verdict.reason;
}

/* Everything is wrong with the node; what is mended is no longer the reason, in RES-51's order.
 * proves: RES-8 RES-9 RES-14 RES-15 RES-51 */
static void test_first_filter_that_fails_is_the_reason(void **state)
{
	struct placement_need need = {PLACEMENT_CLASS_GPU, NULL, 2};
	struct placement_request request = request_for(&need, 1);
	struct built built;

	(void)state;
	request.limited = request.dra = true;
	request.vcpus = 65;
	request.memory_bytes = 513;
	build(&built, "n");
	add_gpu(&built, "a", 0, 0);
	add_gpu(&built, "b", 0, 0);
	built.gpus[0].model = "A100";
	built.gpus[1].healthy = false;
	take(&built, 0, 0, 1024, 0, 20 * HOUR);
	built.node.tenant_controlled = true;
	built.node.ready = built.node.connected = false;
	built.node.no_schedule = "ForeignGpuExposure";
	built.node.knows_kubernetes = built.node.knows_limits = false;
	built.node.refused = true;

	assert_string_equal(only_reason(&request, &built), "TenantControlled");
	built.node.tenant_controlled = false;
	assert_string_equal(only_reason(&request, &built), "NodeNotReady");
	built.node.ready = true;
	assert_string_equal(only_reason(&request, &built), "NodeUnreachable");
	built.node.connected = true;
	assert_string_equal(only_reason(&request, &built), "ForeignGpuExposure");
	built.node.no_schedule = NULL;
	assert_string_equal(only_reason(&request, &built), "KubernetesBindingUnsupported");
	built.node.knows_kubernetes = true;
	assert_string_equal(only_reason(&request, &built), "DraUnsupported");
	built.node.knows_dra = true;
	assert_string_equal(only_reason(&request, &built), "GpuApiDiffers");
	request.dra = false;
	built.node.dra = true;
	assert_string_equal(only_reason(&request, &built), "GpuApiDiffers");
	request.dra = true;
	assert_string_equal(only_reason(&request, &built), "AssignmentLimitsUnsupported");
	built.node.knows_limits = true;
	assert_string_equal(only_reason(&request, &built), "NodeRefused");
	built.node.refused = false;
	assert_string_equal(only_reason(&request, &built), "DeviceClassMissing");
	built.gpus[0].model = "NVIDIA H100 PCIe";
	assert_string_equal(only_reason(&request, &built), "DevicesUnhealthy");
	built.gpus[1].healthy = true;
	assert_string_equal(only_reason(&request, &built), "DevicesBusy");
	built.busy[0].to_ms = 10 * HOUR;
	assert_string_equal(only_reason(&request, &built), "HostVcpuShort");
	request.vcpus = 64;
	assert_string_equal(only_reason(&request, &built), "HostMemoryShort");
	request.memory_bytes = 512;

	struct placement_member member;

	assert_null(node_filter_judge(&request, &built.node, &member).reason);
	assert_ptr_equal(member.node, &built.node);
	assert_int_equal(member.atoms_count, 2);
	free(member.atoms);
	/* Limits that nobody asked for need no capability. */
	built.node.knows_limits = false;
	request.limited = false;
	assert_null(only_reason(&request, &built));
	/* A gang that waits from within the time asked for, not from its end. */
	request.waits = (const int64_t[]){11 * HOUR};
	request.waits_count = 1;
	assert_null(only_reason(&request, &built));
	request.waits = (const int64_t[]){11 * HOUR - 1};
	assert_string_equal(only_reason(&request, &built), "WaitingGang");
}

/* What no time helps is told with what there is; what somebody else has is not. */
static void test_more_host_than_a_node_has_is_told_apart(void **state)
{
	struct placement_need need = {PLACEMENT_CLASS_GPU, NULL, 1};
	struct placement_request request = request_for(&need, 1);
	struct placement_node nodes[2];
	struct placement_answer answer = {0};
	struct built built, large;

	(void)state;
	build(&built, "n");
	add_gpu(&built, "a", 0, 0);
	build(&large, "o");
	add_gpu(&large, "b", 0, 0);
	large.node.memory_bytes = 1024;
	nodes[0] = built.node;
	nodes[1] = large.node;
	request.memory_bytes = 2048;
	request.vcpus = 1;
	placement_decide(&request, nodes, 2, &answer);
	assert_int_equal(answer.reasons_count, 1);
	assert_string_equal(answer.reasons[0].reason, "HostMemoryShort");
	assert_int_equal(answer.reasons[0].lack.asked, 2048);
	assert_int_equal(answer.reasons[0].lack.has, 1024);
	/* One has so much, and others have it just then. */
	large.node.memory_bytes = nodes[1].memory_bytes = 4096;
	large.uses[0] = (struct placement_use){.memory_bytes = 4096, .to_ms = 20 * HOUR};
	nodes[1].uses_count = large.node.uses_count = 1;
	placement_decide(&request, nodes, 2, &answer);
	assert_int_equal(answer.reasons_count, 1);
	assert_int_equal(answer.reasons[0].lack.asked, 0);
	placement_answer_deinit(&answer);
	/* It goes before what is only booked. */
	built.uses[0] = (struct placement_use){.vcpus = 64, .to_ms = 20 * HOUR};
	built.node.uses_count = 1;
	assert_string_equal(only_reason(&request, &built), "HostMemoryShort");
	request.memory_bytes = 1;
	assert_string_equal(only_reason(&request, &built), "HostVcpuShort");
}

/* What is in the way is named: nobody has booked these devices. proves: GANG-10 */
static void test_what_is_kept_for_a_gang_is_not_called_busy(void **state)
{
	struct placement_need need = {PLACEMENT_CLASS_GPU, NULL, 1};
	struct placement_request request = request_for(&need, 1);
	struct built built;

	(void)state;
	build(&built, "n");
	add_gpu(&built, "a", 0, 0);
	take(&built, 0, 0, 1024, 0, 20 * HOUR);
	assert_string_equal(only_reason(&request, &built), "DevicesBusy");
	built.busy[0].planned = true;
	assert_string_equal(only_reason(&request, &built), "WaitingGang");
	take(&built, 0, 0, 1024, 0, 20 * HOUR);
	assert_string_equal(only_reason(&request, &built), "DevicesBusy");
	built.node.busy_count = 0;
	built.uses[0] = (struct placement_use){.vcpus = 64, .to_ms = 20 * HOUR, .planned = true};
	built.node.uses_count = 1;
	request.vcpus = 1;
	assert_string_equal(only_reason(&request, &built), "WaitingGang");
}

static void test_gangs_and_spot_have_nodes_of_their_own(void **state)
{
	struct placement_need need = {PLACEMENT_CLASS_GPU, NULL, 1};
	struct placement_request request = request_for(&need, 1);
	struct built built;

	(void)state;
	build(&built, "n");
	add_gpu(&built, "a", 0, 0);
	built.node.spot = built.node.member = true;
	request.same = PLACEMENT_SAME_RACK;
	request.domain = "r1";
	assert_string_equal(only_reason(&request, &built), "SpotOnly");
	request.spot = true;
	assert_string_equal(only_reason(&request, &built), "TopologyUnknown");
	built.node.labels[PLACEMENT_SAME_RACK] = "r2";
	assert_string_equal(only_reason(&request, &built), "TopologyElsewhere");
	built.node.labels[PLACEMENT_SAME_RACK] = "r1";
	assert_string_equal(only_reason(&request, &built), "GangMember");
	built.node.member = false;
	assert_null(only_reason(&request, &built));
	assert_string_equal(node_filter_domain(&request, &built.node), "r1");
	request.same = PLACEMENT_SAME_NOTHING;
	assert_string_equal(node_filter_domain(&request, &built.node), "");
}

/* A room that can tell is believed; where bookings lie outside the time asked for it can't. */
static void test_rooms_tell_without_devices(void **state)
{
	struct placement_need need = {PLACEMENT_CLASS_GPU, NULL, 2};
	struct placement_request request = request_for(&need, 1);
	struct placement_room room = {.total = 1, .first_end_ms = 11 * HOUR};
	struct built built;
	struct node_verdict verdict;

	(void)state;
	build(&built, "n");
	built.node.room = &room;
	verdict = node_filter_judge(&request, &built.node, NULL);
	assert_string_equal(verdict.reason, "DeviceClassMissing");
	assert_int_equal(verdict.largest, 1);
	room.total = 2;
	assert_string_equal(node_filter_judge(&request, &built.node, NULL).reason,
			    "DevicesUnhealthy");
	room.healthy = 2;
	assert_string_equal(node_filter_judge(&request, &built.node, NULL).reason, "DevicesBusy");
	room.first_end_ms = 10 * HOUR;
	add_gpu(&built, "a", 0, 0);
	add_gpu(&built, "b", 0, 0);
	assert_null(node_filter_judge(&request, &built.node, NULL).reason);
}

static void test_what_could_never_be(void **state)
{
	struct placement_need need = {PLACEMENT_CLASS_GPU, NULL, 1};
	struct placement_request request = request_for(&need, 1);
	struct built built;

	(void)state;
	build(&built, "n");
	need.count = 9;
	assert_true(node_filter_could_ever(&request, &built.node)); /* nobody knows what it has */
	add_gpu(&built, "a", 0, 0);
	assert_false(node_filter_could_ever(&request, &built.node));
	need.count = 1;
	built.node.ready = built.gpus[0].healthy = false;
	take(&built, 0, 0, 1024, 0, INT64_MAX);
	assert_true(node_filter_could_ever(&request, &built.node));
	request.vcpus = 65;
	assert_false(node_filter_could_ever(&request, &built.node));
	request.vcpus = 1;
	built.node.spot = true;
	assert_false(node_filter_could_ever(&request, &built.node));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_filter_that_fails_is_the_reason),
		cmocka_unit_test(test_more_host_than_a_node_has_is_told_apart),
		cmocka_unit_test(test_what_is_kept_for_a_gang_is_not_called_busy),
		cmocka_unit_test(test_gangs_and_spot_have_nodes_of_their_own),
		cmocka_unit_test(test_rooms_tell_without_devices),
		cmocka_unit_test(test_what_could_never_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
