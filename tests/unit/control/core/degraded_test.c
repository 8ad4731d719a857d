#include "control/core/degraded.h"

#include "lib/test.h"

static const char *text_at(const json_t *conditions, size_t index, const char *field)
{
	return json_string_value(json_object_get(json_array_get(conditions, index), field));
}

static const char *cause_at(const json_t *conditions, size_t index, const char *field)
{
	const json_t *causes = json_object_get(json_array_get(conditions, 0), "causes");

	return json_string_value(json_object_get(json_array_get(causes, index), field));
}

static void test_nothing_wrong_is_no_condition(void **state)
{
	struct degraded_device device = {"gpu/a", true, "", 0};
	struct degraded_allocation allocation = {
		.node = "node_1", .bound = true, .devices = &device, .devices_count = 1};
	json_t *conditions = degraded_conditions(&allocation, 1);

	(void)state;
	assert_int_equal(json_array_size(conditions), 0);
	json_decref(conditions);
	/* Nor is trouble on a node where nothing is bound any more. */
	allocation.bound = false;
	allocation.unreachable = allocation.foreign_exposure = true;
	device.healthy = false;
	conditions = degraded_conditions(&allocation, 1);
	assert_int_equal(json_array_size(conditions), 0);
	json_decref(conditions);
}

/* proves: RES-21 */
static void test_held_devices_name_their_nodes_since_the_release(void **state)
{
	struct degraded_allocation allocations[] = {
		{.node = "node_1", .releasing = true, .releasing_since_ms = 2000},
		{.node = "node_2", .releasing = true, .releasing_since_ms = 1000},
		{.node = "node_3"},
	};
	json_t *conditions = degraded_conditions(allocations, 3);

	(void)state;
	assert_int_equal(json_array_size(conditions), 1);
	assert_string_equal(text_at(conditions, 0, "type"), "DevicesHeld");
	assert_string_equal(text_at(conditions, 0, "reason"), "PodsHoldDevices");
	assert_string_equal(text_at(conditions, 0, "since"), "1970-01-01T00:00:01.000Z");
	assert_non_null(strstr(text_at(conditions, 0, "message"), "node_1, node_2"));
	assert_null(strstr(text_at(conditions, 0, "message"), "node_3"));
	json_decref(conditions);
}

/* It is no trouble that anybody knows of: Degraded is something else. */
static void test_what_no_kubelet_confirms_is_said_so(void **state)
{
	struct degraded_device device = {"gpu/a", false, "XID 48", 40};
	struct degraded_allocation allocations[] = {
		{.node = "node_1",
		 .bound = true,
		 .unconfirmed = true,
		 .unconfirmed_since_ms = 3000},
		{.node = "node_2", .bound = true, .devices = &device, .devices_count = 1},
		{.node = "node_3", .releasing = true, .unconfirmed = true},
	};
	json_t *conditions = degraded_conditions(allocations, 3);

	(void)state;
	assert_int_equal(json_array_size(conditions), 3);
	assert_string_equal(text_at(conditions, 1, "type"), "Degraded");
	assert_string_equal(text_at(conditions, 1, "reason"), "AtomUnhealthy");
	assert_string_equal(text_at(conditions, 2, "type"), "Unconfirmed");
	assert_string_equal(text_at(conditions, 2, "reason"), "PodResourcesUnavailable");
	assert_string_equal(text_at(conditions, 2, "since"), "1970-01-01T00:00:03.000Z");
	assert_non_null(strstr(text_at(conditions, 2, "message"), "bound on node_1"));
	assert_null(strstr(text_at(conditions, 2, "message"), "node_3"));
	json_decref(conditions);
}

/* proves: RES-37 RES-38 RES-47 */
static void test_causes_come_in_their_order(void **state)
{
	struct degraded_device devices[] = {{"gpu/b", false, "XID 48", 40},
					    {"gpu/a", false, "", 50}};
	struct degraded_allocation allocations[] = {
		{.node = "node_2",
		 .bound = true,
		 .unreachable = true,
		 .unreachable_since_ms = 30,
		 .devices = devices,
		 .devices_count = 2},
		{.node = "node_1",
		 .bound = true,
		 .foreign_exposure = true,
		 .foreign_since_ms = 20,
		 .devices = devices,
		 .devices_count = 1},
		{.node = "node_3",
		 .bound = true,
		 .lost_reason = "unknown-device",
		 .lost_since_ms = 10},
	};
	static const struct {
		const char *reason, *node, *device;
	} wanted[] = {
		{"BindingLost", "node_3", NULL},      {"ForeignGpuExposure", "node_1", NULL},
		{"NodeUnreachable", "node_2", NULL},  {"AtomUnhealthy", "node_1", "gpu/b"},
		{"AtomUnhealthy", "node_2", "gpu/a"}, {"AtomUnhealthy", "node_2", "gpu/b"},
	};
	json_t *conditions = degraded_conditions(allocations, 3);

	(void)state;
	assert_int_equal(json_array_size(conditions), 1);
	assert_string_equal(text_at(conditions, 0, "type"), "Degraded");
	assert_string_equal(text_at(conditions, 0, "reason"), "BindingLost");
	assert_string_equal(text_at(conditions, 0, "since"), "1970-01-01T00:00:00.010Z");
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		assert_string_equal(cause_at(conditions, i, "reason"), wanted[i].reason);
		assert_string_equal(cause_at(conditions, i, "node"), wanted[i].node);
		if (wanted[i].device)
			assert_string_equal(cause_at(conditions, i, "device"), wanted[i].device);
		else
			assert_null(cause_at(conditions, i, "device"));
	}
	assert_null(cause_at(conditions, ARRAY_SIZE(wanted), "reason"));
	assert_string_equal(cause_at(conditions, 1, "message"),
			    "GPUs exposed outside bcd on node_1");
	assert_string_equal(cause_at(conditions, 5, "message"), "gpu/b on node_2: XID 48");
	json_decref(conditions);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_wrong_is_no_condition),
		cmocka_unit_test(test_held_devices_name_their_nodes_since_the_release),
		cmocka_unit_test(test_what_no_kubelet_confirms_is_said_so),
		cmocka_unit_test(test_causes_come_in_their_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
