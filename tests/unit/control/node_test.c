/* What nodes say, what they are told, and what a booking goes through. */
#include "unit/control/world.h"

#include "control/core/stuck.h"

#define HOUR_MS ((int64_t)60 * 60 * 1000)

/* --- from joining to ready --- */

/* proves: GW-2 GW-18 GW-19 GW-20 GW-24 */
static void test_node_goes_from_joining_to_ready(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *seen;

	world_join(world, &node);
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_string_equal(world_text(seen, "state"), "joining");
	assert_string_equal(world_text(seen, "trust"), "tenant-owned");
	assert_false(world_int(seen, "connected"));

	world_hello(world, &node, NULL);
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_string_equal(world_text(seen, "state"), "adopting");
	assert_true(world_int(seen, "connected"));
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(seen, "labels"),
						  "bc.dev/capability.kubernetes-binding")),
		"true");

	world_inventory(world, &node);
	assert_string_equal(world_text(world_call(world, control_node_get, node.id, NULL), "state"),
			    "adopting");
	world_conditions(world, &node, NULL, 0);
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_string_equal(world_text(seen, "state"), "ready");
	assert_string_equal(world_text(seen, "kubernetesNodeName"), "gpu-node");
	assert_int_equal(json_array_size(json_object_get(seen, "gpus")), WORLD_GPUS);
	assert_int_equal(world_int(seen, "gpus.4.numa"), 1);
	assert_string_equal(world_text(seen, "devices.0.class"), "gpu");
	assert_true(world_int(seen, "devices.0.healthy"));

	/* A downgrade takes the labels away. */
	world_hello(world, &node, (const char *const[]){"assignment-limits", NULL});
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_int_equal(json_object_size(json_object_get(seen, "labels")), 1);
}

/* proves: GW-27 */
static void test_newer_hello_makes_the_older_stream_void(void **state)
{
	struct world *world = *state;
	struct world_node node, old;
	struct control other;
	struct control_report report = {.kind = CONTROL_REPORT_CONDITIONS};
	struct control_report_result result;
	struct control_spec spec = {0};
	struct error error;

	world_ready(world, &node, 1);
	old = node;
	world_connect(world, "replica-2", &other);
	struct control mine = world->control;

	world->control = other;
	world_hello(world, &node, NULL);
	world->control = mine;
	assert_true(node.epoch > old.epoch);
	expect_error(control_node_heartbeat(&world->control, node.id, old.epoch, 0, &error), &error,
		     ERROR_CONFLICT, "newer stream");
	report.node = node.id;
	report.epoch = old.epoch;
	report.sequence = node.sequence + 1;
	expect_error(control_node_report(&world->control, &report, &result, &error), &error,
		     ERROR_CONFLICT, "newer stream");
	expect_error(control_spec_load(&world->control, node.id, old.epoch, &spec, &error), &error,
		     ERROR_CONFLICT, "newer stream");
	/* The old one's end says nothing about the new one. */
	expect_ok(control_node_gone(&world->control, node.id, old.epoch, &error), &error);
	assert_true(world_int(world_call(world, control_node_get, node.id, NULL), "connected"));
	expect_ok(control_node_gone(&world->control, node.id, node.epoch, &error), &error);
	assert_false(world_int(world_call(world, control_node_get, node.id, NULL), "connected"));
	world_disconnect(&other);
}

/* proves: GW-27 GW-28 RES-48 */
static void test_silent_node_is_unreachable_and_its_conditions_stale(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_condition condition = {
		"PodResourcesUnavailable", "SocketMissing", "gone", {DATABASE_EPOCH_MS}};
	json_t *seen;

	world_ready(world, &node, 2);
	world_conditions(world, &node, &condition, 1);
	database_advance(29999);
	assert_true(world_int(world_call(world, control_node_get, node.id, NULL), "connected"));
	database_advance(1);
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_false(world_int(seen, "connected"));
	assert_false(world_has(seen, "conditions.0.stale"));
	database_advance(30000);
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_true(world_int(seen, "conditions.0.stale"));
	assert_string_equal(world_text(seen, "state"), "ready");
	world_heartbeat(world, &node);
	assert_true(world_int(world_call(world, control_node_get, node.id, NULL), "connected"));
}

/* --- reports --- */

static int64_t count_events(struct world *world, const char *type, const char *subject)
{
	struct control_call call = {.principal = &world->operator, .limit = "1000" };
	json_t *answer;
	int64_t count = 0;
	struct error error;

	expect_ok(world_ask(world, control_event_list, &call, &answer, &error), &error);
	for (size_t i = 0; i < json_array_size(json_object_get(answer, "items")); i++) {
		const json_t *item = json_array_get(json_object_get(answer, "items"), i);

		count += str_equal(world_text(item, "type"), type) &&
			 str_equal(world_text(item, "subject"), subject);
	}
	json_decref(answer);
	return count;
}

/* proves: GW-4 GW-5 GW-6 GW-13 GW-30 */
static void test_conditions_are_recorded_and_published_once_a_change(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_condition conditions[] = {
		{"ForeignGpuExposure", "OtherGpuPath", "close /etc/x", {DATABASE_EPOCH_MS - 5}},
		{"FlubberDetected", "Newer", "of a newer bcd", {DATABASE_EPOCH_MS}},
	};
	json_t *seen;

	world_ready(world, &node, 1);
	world_conditions(world, &node, conditions, 2);
	assert_int_equal(count_events(world, "node.condition.changed", node.id), 2);
	world_conditions(world, &node, conditions, 2);
	assert_int_equal(count_events(world, "node.condition.changed", node.id), 2);
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_string_equal(world_text(seen, "conditions.0.type"), "FlubberDetected");
	assert_false(world_int(seen, "conditions.0.noSchedule"));
	assert_string_equal(world_text(seen, "conditions.1.reason"), "OtherGpuPath");
	assert_string_equal(world_text(seen, "conditions.1.message"), "close /etc/x");
	assert_true(world_int(seen, "conditions.1.noSchedule"));
	assert_string_equal(world_text(seen, "conditions.1.since"), "2027-01-15T07:59:59.995Z");

	conditions[0].message = "close /etc/y";
	world_conditions(world, &node, conditions, 2);
	assert_int_equal(count_events(world, "node.condition.changed", node.id), 3);
	world_conditions(world, &node, NULL, 0);
	assert_int_equal(count_events(world, "node.condition.changed", node.id), 5);
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_int_equal(json_array_size(json_object_get(seen, "conditions")), 0);
}

/* proves: GW-17 GW-25 */
static void test_report_sent_again_has_its_effect_once(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_report report = {.kind = CONTROL_REPORT_CONDITIONS};
	struct control_condition condition = {"ForeignGpuExposure", "OtherGpuPath", "x", {1}};
	struct control_report_result result;
	struct error error;

	world_ready(world, &node, 1);
	report.node = node.id;
	report.epoch = node.epoch;
	report.sequence = node.sequence; /* acknowledged long ago */
	report.conditions.items = &condition;
	report.conditions.count = 1;
	expect_ok(control_node_report(&world->control, &report, &result, &error), &error);
	assert_int_equal(result.acknowledged, node.sequence);
	assert_false(result.look_again);
	assert_int_equal(count_events(world, "node.condition.changed", node.id), 0);
}

/* A node that lost its records counts from where it says it is, not from where we are. */
static void test_node_without_its_records_begins_again(void **state)
{
	struct world *world = *state;
	struct world_node node;

	world_ready(world, &node, 2);
	node.sequence = 0;
	node.generation = 0;
	world_hello(world, &node, NULL);
	node.gpus = 1;
	world_inventory(world, &node);
	assert_int_equal(json_array_size(json_object_get(
				 world_call(world, control_node_get, node.id, NULL), "gpus")),
			 1);
}

static void test_wrong_inventory_is_refused_whole_and_shown(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_gpu gpu = {.uuid = "ffff", .model = "H100", .pci = "", .health = {true, ""}};
	struct control_atom good = {.atom = "gpu/ffff",
				    .class = "gpu",
				    .gpu = "ffff",
				    .profile = "",
				    .visible_device = "GPU-ffff",
				    .leaf_hi = 1024,
				    .health = {true, ""}};
	struct control_report report = {.kind = CONTROL_REPORT_INVENTORY};
	json_t *seen;

	world_ready(world, &node, 2);
	for (int i = 0; i < 7; i++) {
		struct control_atom atom = good;

		report.inventory = (struct control_inventory){
			.gpus = &gpu, .gpus_count = 1, .atoms = &atom, .atoms_count = 1};
		gpu.uuid = "ffff";
		if (i == 0)
			atom.leaf_hi = 1025;
		else if (i == 1)
			atom.leaf_lo = 1024;
		else if (i == 2)
			atom.class = "gpu.whole";
		else if (i == 3)
			atom.gpu = "eeee", atom.atom = "gpu/eeee";
		else if (i == 4)
			atom.atom = "ffff";
		else if (i == 5)
			gpu.uuid = "FFFF\n";
		else
			report.inventory.vcpus = -1;
		world_report(world, &node, report);
		seen = world_call(world, control_node_get, node.id, NULL);
		assert_string_equal(world_text(seen, "conditions.0.type"), "InventoryRefused");
		assert_int_equal(json_array_size(json_object_get(seen, "gpus")), 2);
		assert_int_equal(json_array_size(json_object_get(seen, "devices")), 2);
	}
	/* The next set of conditions leaves it, the next good inventory clears it. */
	world_conditions(world, &node, NULL, 0);
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_int_equal(json_array_size(json_object_get(seen, "conditions")), 1);
	world_inventory(world, &node);
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_int_equal(json_array_size(json_object_get(seen, "conditions")), 0);
}

static void test_bytes_that_are_no_text_are_cleaned_and_cut(void **state)
{
	struct world *world = *state;
	struct world_node node;
	char message[3000];
	struct control_condition condition = {"Odd\xff", "Reason", message, {1}};
	json_t *seen;

	memset(message, 'x', sizeof message - 1);
	message[sizeof message - 1] = '\0';
	memcpy(message + 1022, "\xe2\x80\xa6", 3); /* across the bound */
	world_ready(world, &node, 1);
	world_conditions(world, &node, &condition, 1);
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_string_equal(world_text(seen, "conditions.0.type"), "Odd\xef\xbf\xbd");
	assert_in_range(strlen(world_text(seen, "conditions.0.message")), 1020, 1030);
}

/* --- the path of a booking --- */

/* proves: RES-2 RES-17 RES-18 RES-21 RES-22 GW-26 */
static void test_booking_is_bound_released_and_freed(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_spec spec;
	json_t *reservation, *capacity;
	const char *id, *allocation;

	world_ready(world, &node, 8);
	reservation = world_reserve(world, 2);
	id = world_text(reservation, "id");
	assert_string_equal(world_text(reservation, "state"), "placed");
	assert_string_equal(world_text(reservation, "allocations.0.nodeId"), node.id);
	assert_int_equal(world_int(reservation, "resources.vcpu"), 32);
	assert_int_equal(world_int(reservation, "resources.memoryGiB"), 256);
	allocation = world_text(reservation, "allocations.0.id");

	world_take_spec(world, &node, &spec);
	assert_int_equal(spec.assignments_count, 1);
	assert_string_equal(spec.assignments[0].allocation, allocation);
	assert_string_equal(spec.assignments[0].reservation, id);
	assert_int_equal(spec.assignments[0].devices_count, 2);
	assert_false(spec.assignments[0].limited);
	assert_string_equal(spec.assignments[0].devices[0].atom,
			    world_text(reservation, "allocations.0.devices.0.atom"));
	assert_string_equal(spec.assignments[0].devices[1].visible_device,
			    world_text(reservation, "allocations.0.devices.1.visibleDevice"));
	assert_string_equal(spec.gpu_api, "device-plugin");
	control_spec_deinit(&spec);
	world_bound(world, &node, allocation);
	reservation = world_reservation(world, id);
	assert_string_equal(world_text(reservation, "state"), "active");
	assert_string_equal(world_text(reservation, "allocations.0.state"), "bound");

	reservation = world_call(world, control_reservation_release, id, NULL);
	assert_string_equal(world_text(reservation, "state"), "released");
	assert_string_equal(world_text(reservation, "conditions.0.type"), "DevicesHeld");
	assert_string_equal(world_text(reservation, "conditions.0.reason"), "PodsHoldDevices");
	assert_non_null(strstr(world_text(reservation, "conditions.0.message"), node.id));
	world_take_spec(world, &node, &spec);
	assert_int_equal(spec.assignments_count, 0);
	control_spec_deinit(&spec);
	capacity = world_call(world, control_capacity_get, NULL, NULL);
	assert_int_equal(world_int(capacity, "items.0.booked"), 2);

	world_released(world, &node, allocation);
	reservation = world_reservation(world, id);
	assert_string_equal(world_text(reservation, "state"), "released");
	assert_int_equal(json_array_size(json_object_get(reservation, "conditions")), 0);
	assert_true(world_has(reservation, "allocations.0.releasedAt"));
	capacity = world_call(world, control_capacity_get, NULL, NULL);
	assert_int_equal(world_int(capacity, "items.0.booked"), 0);
	assert_int_equal(world_int(capacity, "items.0.free"), 8);
	/* placed, active, released with devices held, released */
	assert_int_equal(count_events(world, "reservation.state.changed", id), 5);
}

/* proves: RES-17 RES-19 */
static void test_held_devices_are_nobody_elses_however_long(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *first, *second;
	const char *allocation;

	world_ready(world, &node, 2);
	first = world_reserve(world, 2);
	allocation = world_text(first, "allocations.0.id");
	world_bind(world, &node, allocation);
	world_call(world, control_reservation_release, world_text(first, "id"), NULL);
	second = world_reserve(world, 1);
	assert_string_equal(world_text(second, "state"), "pending");
	assert_string_equal(world_text(second, "reasons.0.reason"), "DevicesBusy");
	/* Nor for a time after the first one's own end, nor once that is past. */
	world_refused(world, control_reservation_create, NULL, ERROR_INVALID_INPUT, "startAt",
		      "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\","
		      "\"count\":1}],\"duration\":\"1h\",\"binding\":\"kubernetes\","
		      "\"startAt\":\"tomorrow\"}",
		      world->tenant, world->pool);
	json_t *later = world_call(world, control_reservation_create, NULL,
				   "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":"
				   "\"gpu\",\"count\":1}],\"duration\":\"1h\",\"binding\":"
				   "\"kubernetes\",\"startAt\":\"2027-01-16T08:00:00Z\"}",
				   world->tenant, world->pool);
	assert_string_equal(world_text(later, "state"), "pending");
	database_advance(2 * HOUR_MS);
	world_heartbeat(world, &node);
	world_tick(world);
	assert_string_equal(world_text(world_reservation(world, world_text(second, "id")), "state"),
			    "pending");
	world_take_spec(world, &node, &(struct control_spec){0});
	world_released(world, &node, allocation);
	world_tick(world);
	assert_string_equal(world_text(world_reservation(world, world_text(second, "id")), "state"),
			    "placed");
	assert_string_equal(world_text(world_reservation(world, world_text(later, "id")), "state"),
			    "placed");
}

/* proves: RES-31 RES-32 RES-45 */
static void test_bound_said_again_does_not_undo_a_release(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_spec spec;
	json_t *reservation;
	const char *id, *allocation;
	int64_t bound_generation;

	world_ready(world, &node, 2);
	reservation = world_reserve(world, 2);
	id = world_text(reservation, "id");
	allocation = world_text(reservation, "allocations.0.id");
	world_bind(world, &node, allocation);
	bound_generation = node.generation;
	world_call(world, control_reservation_release, id, NULL);
	/* Restarted, it has not seen the new Spec yet. */
	world_hello(world, &node, NULL);
	world_bound(world, &node, allocation);
	reservation = world_reservation(world, id);
	assert_string_equal(world_text(reservation, "state"), "released");
	assert_string_equal(world_text(reservation, "conditions.0.type"), "DevicesHeld");
	/* "Released" about a Spec that still had it speaks of something else. */
	world_released(world, &node, allocation);
	assert_string_equal(world_text(world_reservation(world, id), "conditions.0.type"),
			    "DevicesHeld");
	world_take_spec(world, &node, &spec);
	assert_true(spec.generation > bound_generation);
	control_spec_deinit(&spec);
	world_bound(world, &node, allocation);
	world_released(world, &node, allocation);
	assert_false(world_has(world_reservation(world, id), "conditions.0"));
	assert_int_equal(
		world_int(world_call(world, control_capacity_get, NULL, NULL), "items.0.free"), 2);
	/* And what comes after the end changes nothing. */
	world_bound(world, &node, allocation);
	world_released(world, &node, allocation);
	assert_string_equal(world_text(world_reservation(world, id), "allocations.0.state"),
			    "released");
}

/* Nobody else's allocation, an unknown one, nonsense: acknowledged, without effect. */
static void test_reports_about_what_is_not_the_nodes_have_no_effect(void **state)
{
	struct world *world = *state;
	struct world_node node, other;
	json_t *reservation;
	const char *allocation;

	world_ready(world, &node, 2);
	reservation = world_reserve(world, 2);
	allocation = world_text(reservation, "allocations.0.id");
	world_ready(world, &other, 2);
	other.generation = 1000;
	world_bound(world, &other, allocation);
	world_failed(world, &other, allocation, "overlap");
	world_released(world, &other, allocation);
	world_released(world, &other, "alc_01jd4z5x9f0123456789abcdef");
	world_released(world, &other, "'; DROP TABLE nodes; --");
	world_report(world, &other, (struct control_report){.kind = CONTROL_REPORT_UNKNOWN});
	world_report(world, &other,
		     (struct control_report){.kind = CONTROL_REPORT_KUBERNETES_RELEASED});
	/* Before it was in the node's Spec, or asked for: not believed either. */
	world_bound(world, &node, allocation);
	node.generation = 1000;
	world_released(world, &node, allocation);
	assert_string_equal(world_text(world_reservation(world, world_text(reservation, "id")),
				       "allocations.0.state"),
			    "placed");
}

/* A release before the node could have heard of it waits for nothing. */
static void test_release_before_the_spec_was_sent_is_immediate(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *reservation;

	world_ready(world, &node, 2);
	reservation = world_reserve(world, 2);
	reservation =
		world_call(world, control_reservation_release, world_text(reservation, "id"), NULL);
	assert_string_equal(world_text(reservation, "state"), "released");
	assert_string_equal(world_text(reservation, "allocations.0.state"), "released");
	assert_false(world_has(reservation, "conditions.0"));
}

/* proves: RES-55 */
static void test_release_before_the_binding_waits_ten_minutes(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_spec spec;
	json_t *reservation;
	const char *id;

	world_ready(world, &node, 2);
	reservation = world_reserve(world, 2);
	id = world_text(reservation, "id");
	world_take_spec(world, &node, &spec);
	control_spec_deinit(&spec);
	world_call(world, control_reservation_release, id, NULL);
	world_take_spec(world, &node, &spec);
	control_spec_deinit(&spec);
	for (int i = 0; i < 20; i++) {
		assert_string_equal(world_text(world_reservation(world, id), "conditions.0.type"),
				    "DevicesHeld");
		database_advance(STUCK_DEFERRED_MS / 20);
		world_heartbeat(world, &node);
		world_tick(world);
	}
	assert_false(world_has(world_reservation(world, id), "conditions.0"));
}

/* proves: RES-16 GW-16 */
static void test_failed_hold_is_placed_elsewhere_or_waits(void **state)
{
	struct world *world = *state;
	struct world_node first, second;
	struct control_spec spec;
	json_t *reservation;
	const char *id, *allocation;

	world_ready(world, &first, 2);
	reservation = world_reserve(world, 2);
	id = world_text(reservation, "id");
	allocation = world_text(reservation, "allocations.0.id");
	world_take_spec(world, &first, &spec);
	control_spec_deinit(&spec);
	world_failed(world, &first, allocation, "resources-exhausted");
	reservation = world_reservation(world, id);
	assert_string_equal(world_text(reservation, "state"), "pending");
	assert_string_equal(world_text(reservation, "reasons.0.reason"), "NodeRefused");
	assert_string_equal(world_text(reservation, "allocations.0.state"), "failed");
	world_take_spec(world, &first, &spec);
	assert_int_equal(spec.assignments_count, 0);
	control_spec_deinit(&spec);

	world_ready(world, &second, 2);
	world_tick(world);
	reservation = world_reservation(world, id);
	assert_string_equal(world_text(reservation, "state"), "placed");
	assert_string_equal(world_text(reservation, "allocations.1.nodeId"), second.id);
	/* The second refuses too: after a while the first is asked again. */
	world_take_spec(world, &second, &spec);
	control_spec_deinit(&spec);
	world_failed(world, &second, world_text(reservation, "allocations.1.id"), "overlap");
	assert_string_equal(world_text(world_reservation(world, id), "state"), "pending");
	database_advance(5 * 60 * 1000);
	world_heartbeat(world, &first);
	world_tick(world);
	reservation = world_reservation(world, id);
	assert_string_equal(world_text(reservation, "allocations.2.nodeId"), first.id);
}

/* proves: RES-39 RES-38 */
static void test_bound_hold_that_fails_is_degraded_and_keeps_its_devices(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *reservation;
	const char *id, *allocation;

	world_ready(world, &node, 2);
	reservation = world_reserve(world, 2);
	id = world_text(reservation, "id");
	allocation = world_text(reservation, "allocations.0.id");
	world_bind(world, &node, allocation);
	world_failed(world, &node, allocation, "unknown-device");
	reservation = world_reservation(world, id);
	assert_string_equal(world_text(reservation, "state"), "active");
	assert_string_equal(world_text(reservation, "conditions.0.reason"), "BindingLost");
	assert_string_equal(world_text(world_reserve(world, 1), "state"), "pending");
	world_bound(world, &node, allocation);
	assert_false(world_has(world_reservation(world, id), "conditions.0"));
}

/* proves: RES-35 RES-36 RES-37 RES-38 RES-39 RES-47 GW-15 */
static void test_degraded_names_its_causes_in_order(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_condition exposed = {"ForeignGpuExposure", "OtherGpuPath", "x", {1}};
	json_t *reservation;
	const char *id, *allocation;

	world_ready(world, &node, 2);
	reservation = world_reserve(world, 2);
	id = world_text(reservation, "id");
	allocation = world_text(reservation, "allocations.0.id");
	world_bind(world, &node, allocation);
	node.unhealthy = 1U << 1;
	world_inventory(world, &node);
	reservation = world_reservation(world, id);
	assert_string_equal(world_text(reservation, "state"), "active");
	assert_string_equal(world_text(reservation, "conditions.0.type"), "Degraded");
	assert_string_equal(world_text(reservation, "conditions.0.reason"), "AtomUnhealthy");
	assert_non_null(strstr(world_text(reservation, "conditions.0.message"), node.uuids[1]));
	assert_non_null(strstr(world_text(reservation, "conditions.0.message"), "XID 79"));
	assert_string_equal(world_text(reservation, "allocations.0.state"), "bound");

	world_conditions(world, &node, &exposed, 1);
	reservation = world_reservation(world, id);
	assert_string_equal(world_text(reservation, "conditions.0.reason"), "ForeignGpuExposure");
	assert_non_null(strstr(world_text(reservation, "conditions.0.message"),
			       "GPUs exposed outside bcd on node_"));
	assert_string_equal(world_text(reservation, "conditions.0.causes.1.reason"),
			    "AtomUnhealthy");
	world_failed(world, &node, allocation, "unknown-device");
	reservation = world_reservation(world, id);
	assert_string_equal(world_text(reservation, "conditions.0.reason"), "BindingLost");
	assert_int_equal(
		json_array_size(json_object_get(
			json_array_get(json_object_get(reservation, "conditions"), 0), "causes")),
		3);
	/* Each clears with its cause. */
	node.unhealthy = 0;
	world_inventory(world, &node);
	world_conditions(world, &node, NULL, 0);
	world_bound(world, &node, allocation);
	assert_false(world_has(world_reservation(world, id), "conditions.0"));
	database_advance(30000);
	assert_string_equal(world_text(world_reservation(world, id), "conditions.0.reason"),
			    "NodeUnreachable");
}

/* --- time --- */

/* proves: RES-1 RES-49 */
static void test_future_booking_starts_and_ends_in_its_time(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_spec spec;
	json_t *reservation;
	const char *id, *allocation;

	world_ready(world, &node, 2);
	reservation = world_call(world, control_reservation_create, NULL,
				 "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":"
				 "\"gpu\",\"count\":2}],\"duration\":\"1h\",\"binding\":"
				 "\"kubernetes\",\"startAt\":\"2027-01-15T10:00:00Z\"}",
				 world->tenant, world->pool);
	id = world_text(reservation, "id");
	allocation = world_text(reservation, "allocations.0.id");
	assert_string_equal(world_text(reservation, "state"), "placed");
	assert_string_equal(world_text(reservation, "startAt"), "2027-01-15T10:00:00.000Z");
	assert_string_equal(world_text(reservation, "endAt"), "2027-01-15T11:00:00.000Z");
	world_tick(world);
	world_take_spec(world, &node, &spec);
	assert_int_equal(spec.assignments_count, 0);
	control_spec_deinit(&spec);
	/* Until then there is room for what ends in time, and for nothing longer. */
	assert_string_equal(world_text(world_reserve(world, 2), "state"), "placed");

	database_advance(2 * HOUR_MS);
	world_heartbeat(world, &node);
	world_tick(world);
	world_bind(world, &node, allocation);
	assert_string_equal(world_text(world_reservation(world, id), "state"), "active");
	database_advance(HOUR_MS - 1);
	world_heartbeat(world, &node);
	world_tick(world);
	assert_string_equal(world_text(world_reservation(world, id), "state"), "active");
	database_advance(1);
	world_tick(world);
	reservation = world_reservation(world, id);
	assert_string_equal(world_text(reservation, "state"), "released");
	assert_string_equal(world_text(reservation, "conditions.0.type"), "DevicesHeld");
	assert_false(world_has(reservation, "releaseRequestedAt"));
	world_take_spec(world, &node, &spec);
	assert_int_equal(spec.assignments_count, 0);
	control_spec_deinit(&spec);
	world_released(world, &node, allocation);
	assert_false(world_has(world_reservation(world, id), "conditions.0"));
}

/* What is booked next is handed out only when the one before has let go, or was given its time.
 * proves: RES-29 RES-30 */
static void test_next_booking_waits_for_the_one_before(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_spec spec;
	json_t *first, *second;
	const char *first_allocation, *second_id, *second_allocation;

	world_ready(world, &node, 2);
	first = world_reserve(world, 2);
	first_allocation = world_text(first, "allocations.0.id");
	world_bind(world, &node, first_allocation);
	second =
		world_call(world, control_reservation_create, NULL,
			   "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\","
			   "\"count\":2}],\"duration\":\"2h\",\"binding\":\"kubernetes\","
			   "\"startAt\":\"2027-01-15T09:00:00Z\"}",
			   world->tenant, world->pool);
	second_id = world_text(second, "id");
	assert_string_equal(world_text(second, "state"), "placed");
	second_allocation = world_text(second, "allocations.0.id");

	database_advance(HOUR_MS);
	world_heartbeat(world, &node);
	for (int i = 0; i < 4; i++) {
		world_tick(world);
		world_take_spec(world, &node, &spec);
		assert_int_equal(spec.assignments_count, 0);
		control_spec_deinit(&spec);
		database_advance(60000);
		world_heartbeat(world, &node);
	}
	/* It had five minutes: the second is handed out and may fail, which shows. */
	database_advance(60000);
	world_heartbeat(world, &node);
	world_tick(world);
	world_take_spec(world, &node, &spec);
	assert_true(world_spec_has(&spec, second_allocation));
	control_spec_deinit(&spec);
	world_failed(world, &node, second_allocation, "overlap");
	assert_string_equal(world_text(world_reservation(world, second_id), "state"), "pending");
	database_advance(5 * 60000);
	world_heartbeat(world, &node);
	world_tick(world);
	second = world_reservation(world, second_id);
	assert_string_equal(world_text(second, "state"), "placed");
	/* Its end is where it was asked to be. */
	assert_string_equal(world_text(second, "endAt"), "2027-01-15T11:00:00.000Z");
}

static void test_handover_is_at_once_when_the_node_says_so(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_spec spec;
	json_t *first, *second;

	world_ready(world, &node, 2);
	first = world_reserve(world, 2);
	world_bind(world, &node, world_text(first, "allocations.0.id"));
	second =
		world_call(world, control_reservation_create, NULL,
			   "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\","
			   "\"count\":2}],\"duration\":\"1h\",\"binding\":\"kubernetes\","
			   "\"startAt\":\"2027-01-15T09:00:00Z\"}",
			   world->tenant, world->pool);
	database_advance(HOUR_MS);
	world_heartbeat(world, &node);
	world_tick(world);
	world_take_spec(world, &node, &spec);
	control_spec_deinit(&spec);
	world_released(world, &node, world_text(first, "allocations.0.id"));
	world_tick(world);
	world_bind(world, &node, world_text(second, "allocations.0.id"));
}

/* A booking that is over but not ended yet, between two passes, is nobody's. */
static void test_devices_are_not_given_out_between_the_end_and_the_pass(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *first;

	world_ready(world, &node, 2);
	first = world_reserve(world, 2);
	world_bind(world, &node, world_text(first, "allocations.0.id"));
	database_advance(HOUR_MS + 1);
	world_heartbeat(world, &node);
	assert_string_equal(world_text(world_reserve(world, 1), "state"), "pending");
}

static void test_pending_whose_time_passes_expires(void **state)
{
	struct world *world = *state;
	json_t *reservation =
		world_call(world, control_reservation_create, NULL,
			   "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\","
			   "\"count\":1}],\"duration\":\"1h\",\"binding\":\"kubernetes\","
			   "\"startAt\":\"2027-01-15T09:00:00Z\"}",
			   world->tenant, world->pool);

	assert_string_equal(world_text(reservation, "reasons.0.reason"), "PoolEmpty");
	database_advance(2 * HOUR_MS - 1);
	world_tick(world);
	assert_string_equal(
		world_text(world_reservation(world, world_text(reservation, "id")), "state"),
		"pending");
	database_advance(1);
	world_tick(world);
	assert_string_equal(
		world_text(world_reservation(world, world_text(reservation, "id")), "state"),
		"expired");
}

/* --- carry --- */

struct booking_work {
	const char *allocation;
	int64_t to_ms, held, rows;
};

static bool booking_body(struct store_connection *db, void *argument, struct error *error)
{
	struct booking_work *work = argument;
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db, "SELECT to_ms, held FROM bookings WHERE allocation = $1",
			 STORE_PARAMS(store_text(work->allocation)), &rows, error))
		return false;
	work->rows = (int64_t)rows.count;
	work->to_ms = rows.count ? store_get_int(&rows, 0, 0) : 0;
	work->held = rows.count ? store_get_int(&rows, 0, 1) : 0;
	return true;
}

static struct booking_work look_at_booking(struct world *world, const char *allocation)
{
	struct booking_work work = {.allocation = allocation};
	struct error error;

	expect_ok(store_run(world->control.connection, STORE_READ, booking_body, &work, &error),
		  &error);
	return work;
}

/* proves: RES-24 RES-25 RES-27 RES-28 */
static void test_stuck_release_is_carried_for_a_day_and_ends(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_spec spec;
	json_t *reservation;
	const char *id, *allocation;
	int64_t end_ms = DATABASE_EPOCH_MS + HOUR_MS, steps = 0, last_ms;

	world_ready(world, &node, 1);
	reservation = world_reserve(world, 1);
	id = world_text(reservation, "id");
	allocation = world_text(reservation, "allocations.0.id");
	world_bind(world, &node, allocation);
	world_call(world, control_reservation_release, id, NULL);
	world_take_spec(world, &node, &spec);
	control_spec_deinit(&spec);
	assert_int_equal(look_at_booking(world, allocation).held, 1);
	last_ms = look_at_booking(world, allocation).to_ms;
	assert_int_equal(last_ms, end_ms);
	while (look_at_booking(world, allocation).rows == 1) {
		int64_t to_ms;

		database_advance(60000);
		world_heartbeat(world, &node);
		world_tick(world);
		to_ms = look_at_booking(world, allocation).to_ms;
		if (to_ms > last_ms) {
			assert_int_equal(to_ms - last_ms, STUCK_STEP_MS);
			assert_true(last_ms - database_time() <= STUCK_NEAR_MS);
			steps++;
			last_ms = to_ms;
		}
		/* The allocation's own end stays where it was. */
		assert_string_equal(world_text(world_reservation(world, id), "endAt"),
				    "2027-01-15T09:00:00.000Z");
		assert_true(steps < 400);
	}
	assert_int_equal(database_time(), end_ms + STUCK_MAX_CARRY_MS);
	assert_in_range(steps, 280, 290);
	assert_false(world_has(world_reservation(world, id), "conditions.0"));
}

/* proves: RES-29 RES-48 */
static void test_unreachable_node_keeps_its_devices_until_it_is_lost(void **state)
{
	struct world *world = *state;
	struct world_node node, spare;
	json_t *reservation, *active;
	const char *allocation;

	world_ready(world, &node, 2);
	reservation = world_reserve(world, 1);
	allocation = world_text(reservation, "allocations.0.id");
	world_bind(world, &node, allocation);
	active = world_reserve(world, 1);
	world_bind(world, &node, world_text(active, "allocations.0.id"));
	world_call(world, control_reservation_release, world_text(reservation, "id"), NULL);
	for (int i = 0; i < 60; i++) {
		database_advance(HOUR_MS);
		world_tick(world);
	}
	assert_int_equal(look_at_booking(world, allocation).rows, 1);
	assert_int_equal(look_at_booking(world, allocation).held, 1);
	world_ready(world, &spare, 1);
	world_refused(world, control_node_retire, node.id, ERROR_INVALID_STATE, "allocations",
		      NULL);
	world_call(world, control_node_retire, node.id, "{\"lost\":true}");
	assert_int_equal(look_at_booking(world, allocation).rows, 0);
	assert_false(
		world_has(world_reservation(world, world_text(reservation, "id")), "conditions.0"));
	assert_string_equal(world_text(world_call(world, control_node_get, node.id, NULL), "state"),
			    "lost");
}

/* proves: RES-10 RES-17 */
static void test_lost_node_fails_what_was_bound_and_places_the_rest_again(void **state)
{
	struct world *world = *state;
	struct world_node node, spare;
	json_t *bound, *placed;

	world_ready(world, &node, 2);
	bound = world_reserve(world, 1);
	world_bind(world, &node, world_text(bound, "allocations.0.id"));
	placed = world_reserve(world, 1);
	world_ready(world, &spare, 2);
	world_call(world, control_node_retire, node.id, "{\"lost\":true}");
	bound = world_reservation(world, world_text(bound, "id"));
	assert_string_equal(world_text(bound, "state"), "failed");
	assert_string_equal(world_text(bound, "stateReason"), "NodeLost");
	placed = world_reservation(world, world_text(placed, "id"));
	assert_string_equal(world_text(placed, "state"), "placed");
	assert_string_equal(world_text(placed, "allocations.1.nodeId"), spare.id);
	/* Should it come back, it is told to have nothing, and gets nothing. */
	struct control_spec spec;

	world_hello(world, &node, NULL);
	world_take_spec(world, &node, &spec);
	assert_int_equal(spec.assignments_count, 0);
	control_spec_deinit(&spec);
	world_call(world, control_node_retire, node.id, NULL);
	struct control_hello hello = {
		.node = node.id, .boot_id = "", .version = "", .hostname = "", .lineage = ""};
	struct control_welcome welcome;
	struct error error;

	expect_error(control_node_hello(&world->control, &hello, &welcome, &error), &error,
		     ERROR_FORBIDDEN, "retired");
}

/* --- what nodes are told --- */

/* proves: RES-8 RES-9 RES-10 RES-11 RES-12 RES-44 GW-1 GW-3 */
static void test_old_bcd_never_gets_what_it_does_not_know(void **state)
{
	static const char *const none[] = {NULL};
	static const char *const binding_only[] = {"kubernetes-binding", NULL};
	struct world *world = *state;
	struct world_node old, new;
	struct control_spec spec;
	json_t *reservation, *limited;

	world_ready(world, &old, 2);
	world_hello(world, &old, none);
	reservation = world_reserve(world, 2);
	assert_string_equal(world_text(reservation, "state"), "pending");
	assert_string_equal(world_text(reservation, "reasons.0.reason"),
			    "KubernetesBindingUnsupported");
	world_ready(world, &new, 2);
	world_hello(world, &new, binding_only);
	world_tick(world);
	reservation = world_reservation(world, world_text(reservation, "id"));
	assert_string_equal(world_text(reservation, "allocations.0.nodeId"), new.id);
	world_call(world, control_reservation_release, world_text(reservation, "id"), NULL);

	limited = world_call(world, control_reservation_create, NULL,
			     "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":"
			     "\"gpu\",\"count\":1}],\"duration\":\"1h\",\"binding\":\"kubernetes\","
			     "\"resources\":{\"vcpu\":10,\"memoryGiB\":20}}",
			     world->tenant, world->pool);
	assert_string_equal(world_text(limited, "state"), "pending");
	assert_true(world_has(limited, "reasons.1"));
	world_hello(world, &new, NULL);
	world_tick(world);
	limited = world_reservation(world, world_text(limited, "id"));
	assert_string_equal(world_text(limited, "state"), "placed");
	assert_int_equal(world_int(limited, "resources.vcpu"), 10);
	world_take_spec(world, &new, &spec);
	assert_int_equal(spec.assignments_count, 1);
	assert_true(spec.assignments[0].limited);
	assert_int_equal(spec.assignments[0].vcpus, 10);
	assert_true(spec.assignments[0].memory_bytes == (int64_t)20 << 30);
	control_spec_deinit(&spec);
	/* Downgraded, it is sent neither. */
	world_hello(world, &new, binding_only);
	world_take_spec(world, &new, &spec);
	assert_int_equal(spec.assignments_count, 0);
	control_spec_deinit(&spec);
}

/* proves: RES-14 RES-15 GW-7 GW-12 JOIN-21 */
static void test_conditions_and_trust_keep_work_away(void **state)
{
	static const char *const types[] = {"ForeignGpuExposure", "KubernetesReleaseStuck",
					    "PodResourcesUnavailable",
					    "KubernetesReleasesUnreadable"};
	struct world *world = *state;
	struct world_node node;

	world_ready(world, &node, 2);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct control_condition condition = {types[i], "Reason", "", {1}};
		json_t *reservation;

		world_conditions(world, &node, &condition, 1);
		reservation = world_reserve(world, 1);
		assert_string_equal(world_text(reservation, "state"), "pending");
		assert_string_equal(world_text(reservation, "reasons.0.reason"), types[i]);
		world_call(world, control_reservation_cancel, world_text(reservation, "id"), NULL);
	}
	world_conditions(world, &node, NULL, 0);
	assert_string_equal(world_text(world_reserve(world, 1), "state"), "placed");
}

/* The outbox tells of each change, in order, to whoever asks, whichever replica made it. */
static void test_outbox_tells_every_replica(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control other;
	struct control_outbox outbox = {0};
	json_t *reservation;
	int64_t generation;
	struct error error;

	world_ready(world, &node, 2);
	world_connect(world, "replica-2", &other);
	expect_ok(control_outbox_poll(&other, -1, &outbox, &error), &error);
	assert_int_equal(outbox.count, 0);
	reservation = world_reserve(world, 1);
	int64_t after = outbox.last;

	expect_ok(control_outbox_poll(&other, after, &outbox, &error), &error);
	assert_int_equal(outbox.count, 1);
	assert_string_equal(outbox.items[0].node, node.id);
	assert_int_equal(outbox.last, outbox.items[0].seq);
	generation = outbox.items[0].generation;
	after = outbox.last;
	world_call(world, control_reservation_release, world_text(reservation, "id"), NULL);
	expect_ok(control_outbox_poll(&other, after, &outbox, &error), &error);
	assert_int_equal(outbox.count, 1);
	assert_true(outbox.items[0].generation > generation);
	expect_ok(control_outbox_poll(&other, outbox.last, &outbox, &error), &error);
	assert_int_equal(outbox.count, 0);
	control_outbox_deinit(&outbox);
	world_disconnect(&other);
}

static void test_one_replica_leads_until_its_lease_ends(void **state)
{
	struct world *world = *state;
	struct control other;
	int64_t mine, theirs;
	struct error error;

	world_connect(world, "replica-2", &other);
	expect_ok(control_lease_take(&world->control, "x", 10000, &mine, &error), &error);
	assert_int_equal(mine, 1);
	expect_ok(control_lease_take(&other, "x", 10000, &theirs, &error), &error);
	assert_int_equal(theirs, 0);
	database_advance(9999);
	expect_ok(control_lease_take(&world->control, "x", 10000, &mine, &error), &error);
	assert_int_equal(mine, 1);
	database_advance(10000);
	expect_ok(control_lease_take(&other, "x", 10000, &theirs, &error), &error);
	assert_int_equal(theirs, 2);
	expect_ok(control_lease_take(&world->control, "x", 10000, &mine, &error), &error);
	assert_int_equal(mine, 0);
	expect_ok(control_lease_drop(&other, "x", &error), &error);
	expect_ok(control_lease_take(&world->control, "x", 10000, &mine, &error), &error);
	assert_int_equal(mine, 3);
	world_disconnect(&other);
}

/* A change of the pool's API is a new Spec for each of its nodes. */
static void test_policy_reaches_the_nodes(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_spec spec;
	int64_t before;

	world_ready(world, &node, 1);
	world_take_spec(world, &node, &spec);
	before = spec.generation;
	control_spec_deinit(&spec);
	world_call(world, control_pool_patch, world->pool,
		   "{\"policy\":{\"kubernetes\":{\"gpuApi\":\"dra\"}}}");
	world_take_spec(world, &node, &spec);
	assert_string_equal(spec.gpu_api, "dra");
	assert_true(spec.generation > before);
	control_spec_deinit(&spec);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_node_goes_from_joining_to_ready),
		WORLD_TEST(test_newer_hello_makes_the_older_stream_void),
		WORLD_TEST(test_silent_node_is_unreachable_and_its_conditions_stale),
		WORLD_TEST(test_conditions_are_recorded_and_published_once_a_change),
		WORLD_TEST(test_report_sent_again_has_its_effect_once),
		WORLD_TEST(test_node_without_its_records_begins_again),
		WORLD_TEST(test_wrong_inventory_is_refused_whole_and_shown),
		WORLD_TEST(test_bytes_that_are_no_text_are_cleaned_and_cut),
		WORLD_TEST(test_booking_is_bound_released_and_freed),
		WORLD_TEST(test_held_devices_are_nobody_elses_however_long),
		WORLD_TEST(test_bound_said_again_does_not_undo_a_release),
		WORLD_TEST(test_reports_about_what_is_not_the_nodes_have_no_effect),
		WORLD_TEST(test_release_before_the_spec_was_sent_is_immediate),
		WORLD_TEST(test_release_before_the_binding_waits_ten_minutes),
		WORLD_TEST(test_failed_hold_is_placed_elsewhere_or_waits),
		WORLD_TEST(test_bound_hold_that_fails_is_degraded_and_keeps_its_devices),
		WORLD_TEST(test_degraded_names_its_causes_in_order),
		WORLD_TEST(test_future_booking_starts_and_ends_in_its_time),
		WORLD_TEST(test_next_booking_waits_for_the_one_before),
		WORLD_TEST(test_handover_is_at_once_when_the_node_says_so),
		WORLD_TEST(test_devices_are_not_given_out_between_the_end_and_the_pass),
		WORLD_TEST(test_pending_whose_time_passes_expires),
		WORLD_TEST(test_stuck_release_is_carried_for_a_day_and_ends),
		WORLD_TEST(test_unreachable_node_keeps_its_devices_until_it_is_lost),
		WORLD_TEST(test_lost_node_fails_what_was_bound_and_places_the_rest_again),
		WORLD_TEST(test_old_bcd_never_gets_what_it_does_not_know),
		WORLD_TEST(test_conditions_and_trust_keep_work_away),
		WORLD_TEST(test_outbox_tells_every_replica),
		WORLD_TEST(test_one_replica_leads_until_its_lease_ends),
		WORLD_TEST(test_policy_reaches_the_nodes),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
