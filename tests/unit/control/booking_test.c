/* What a booking goes through: bound, released, held, carried, started, ended, lost. */
#include "unit/control/world.h"

#include "control/core/reservation.h"
#include "control/core/stuck.h"

#define HOUR_MS ((int64_t)60 * 60 * 1000)

/* --- bound and released --- */

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
	assert_int_equal(world_int(reservation, "resources.memoryMiB"), 256 * 1024);
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
	assert_int_equal(world_count_events(world, "reservation.state.changed", id), 5);
}

/* What is asked back is named in each Spec until the node has said that it is released, also when the
 * node never said that it was bound: it may have been.
 * proves: RES-17 RES-18 */
static void test_spec_names_what_is_withdrawn(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_spec spec;
	json_t *first, *second;
	const char *allocation;

	world_ready(world, &node, 8);
	first = world_reserve(world, 2);
	second = world_reserve(world, 1);
	allocation = world_text(first, "allocations.0.id");
	world_take_spec(world, &node, &spec);
	assert_int_equal(spec.assignments_count, 2);
	assert_int_equal(spec.withdrawn_count, 0);
	control_spec_deinit(&spec);
	world_call(world, control_reservation_release, world_text(first, "id"), NULL);
	for (int hello = 0; hello < 2; hello++) {
		world_take_spec(world, &node, &spec);
		assert_int_equal(spec.assignments_count, 1);
		assert_string_equal(spec.assignments[0].allocation,
				    world_text(second, "allocations.0.id"));
		assert_int_equal(spec.withdrawn_count, 1);
		assert_string_equal(spec.withdrawn[0], allocation);
		control_spec_deinit(&spec);
		world_hello(world, &node, NULL); /* restarted: it is named again */
	}
	world_released(world, &node, allocation);
	world_take_spec(world, &node, &spec);
	assert_int_equal(spec.assignments_count, 1);
	assert_int_equal(spec.withdrawn_count, 0);
	control_spec_deinit(&spec);
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
	world_store_spec(world, &node);
	world_released(world, &node, allocation);
	world_tick(world);
	assert_string_equal(world_text(world_reservation(world, world_text(second, "id")), "state"),
			    "placed");
	assert_string_equal(world_text(world_reservation(world, world_text(later, "id")), "state"),
			    "placed");
}

/* The share of the host is held with the devices, and free with them. proves: RES-17 RES-19 RES-45 */
static void test_held_share_of_the_host_is_nobody_elses(void **state)
{
	static const char body[] = "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":"
				   "\"gpu\",\"count\":1}],\"duration\":\"1h\",\"binding\":"
				   "\"kubernetes\",\"resources\":{\"vcpu\":100,\"memoryGiB\":1}}";
	struct world *world = *state;
	struct world_node node;
	json_t *first, *second;
	const char *allocation, *id;

	world_ready(world, &node, 2);
	first = world_call(world, control_reservation_create, NULL, body, world->tenant,
			   world->pool);
	allocation = world_text(first, "allocations.0.id");
	world_bind(world, &node, allocation);
	world_call(world, control_reservation_release, world_text(first, "id"), NULL);
	second = world_call(world, control_reservation_create, NULL, body, world->tenant,
			    world->pool);
	id = world_text(second, "id");
	assert_string_equal(world_text(second, "state"), "pending");
	assert_string_equal(world_text(second, "reasons.0.reason"), "HostVcpuShort");
	assert_false(world_has(second, "reasons.0.message")); /* it comes back */
	world_store_spec(world, &node);
	world_bound(world, &node, allocation); /* said again: still pending */
	world_tick(world);
	assert_string_equal(world_text(world_reservation(world, id), "state"), "pending");
	world_released(world, &node, allocation);
	world_tick(world);
	assert_string_equal(world_text(world_reservation(world, id), "state"), "placed");
}

/* What no node has is no matter of time, and how much there is is said. */
static void test_more_of_the_host_than_there_is(void **state)
{
	static const char *const cases[][2] = {
		{"\"memoryGiB\":4096",
		 "1 node: none has 4096 GiB of memory at any time, the largest has 1024"},
		{"\"vcpu\":4000", "1 node: none has 4000 vCPUs at any time, the largest has "},
		{"\"hugepages1GiGiB\":9",
		 "1 node: none has 9 GiB of huge pages at any time, the largest has 0"},
	};
	struct world *world = *state;
	struct world_node node;

	world_ready(world, &node, 2);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *denied = world_call(
			world, control_reservation_create, NULL,
			"{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\","
			"\"count\":1}],\"duration\":\"1h\",\"binding\":\"kubernetes\","
			"\"resources\":{%s}}",
			world->tenant, world->pool, cases[i][0]);

		assert_string_equal(world_text(denied, "state"), "denied");
		assert_non_null(strstr(world_text(denied, "reasons.0.message"), cases[i][1]));
	}
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
	json_t *reservation;
	const char *id;

	world_ready(world, &node, 2);
	reservation = world_reserve(world, 2);
	id = world_text(reservation, "id");
	world_store_spec(world, &node);
	world_call(world, control_reservation_release, id, NULL);
	world_store_spec(world, &node);
	for (int i = 0; i < 20; i++) {
		assert_string_equal(world_text(world_reservation(world, id), "conditions.0.type"),
				    "DevicesHeld");
		database_advance(STUCK_DEFERRED_MS / 20);
		world_heartbeat(world, &node);
		world_tick(world);
	}
	assert_false(world_has(world_reservation(world, id), "conditions.0"));
}

/* "Could not bind it" of an early Spec says nothing about a later one that still had it: the node may
 * have bound it then. Of the last one that had it, it is the end. */
static void test_old_failure_does_not_end_a_release(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *reservation;
	const char *id, *allocation;
	int64_t first, last;

	world_ready(world, &node, 2);
	reservation = world_reserve(world, 1);
	id = world_text(reservation, "id");
	allocation = world_text(reservation, "allocations.0.id");
	world_store_spec(world, &node);
	first = node.generation;
	world_reserve(world, 1);
	world_store_spec(world, &node);
	last = node.generation;
	world_call(world, control_reservation_release, id, NULL);
	node.generation = first;
	world_failed(world, &node, allocation, "overlap");
	assert_string_equal(world_text(world_reservation(world, id), "conditions.0.type"),
			    "DevicesHeld");
	node.generation = last;
	world_failed(world, &node, allocation, "overlap");
	assert_false(world_has(world_reservation(world, id), "conditions.0"));
}

/* proves: RES-16 GW-16 HOST-4 */
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
	world_store_spec(world, &first);
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
	world_store_spec(world, &second);
	world_failed(world, &second, world_text(reservation, "allocations.1.id"), "overlap");
	assert_string_equal(world_text(world_reservation(world, id), "state"), "pending");
	database_advance(5 * 60 * 1000);
	world_heartbeat(world, &first);
	world_tick(world);
	reservation = world_reservation(world, id);
	assert_string_equal(world_text(reservation, "allocations.2.nodeId"), first.id);
}

/* A node that couldn't bind is asked again as soon as it has said of something that may have been in the way,
 * also of a release that was ended here without its word; not when it says something else.
 * proves: RES-30 RES-16 */
static void test_a_node_is_asked_again_when_what_was_in_the_way_is_over(void **state)
{
	enum {
		RELEASED,
		ENDED,
		HAS,
		HEARTBEAT,
		BEGUN,
		SAYINGS
	};
	static const bool over[SAYINGS] = {[RELEASED] = true, [ENDED] = true, [HAS] = true};
	struct control_condition condition = {"HostUnsupported", "HostManagedExternally", "x", {1}};
	struct world *world = *state;
	struct world_node node;
	const char *id, *old;

	world_ready(world, &node, 2);
	id = world_text(world_reserve(world, 2), "id");
	old = world_text(world_reservation(world, id), "allocations.0.id");
	world_bind(world, &node, old);
	world_call(world, control_reservation_release, id, NULL);
	world_store_spec(world, &node);
	world_released(world, &node, old);
	for (int says = 0; says < SAYINGS; says++) {
		json_t *reservation;

		world_conditions(world, &node, &condition, says == ENDED);
		id = world_text(world_reserve(world, 2), "id");
		reservation = world_reservation(world, id);
		world_store_spec(world, &node);
		world_failed(world, &node, world_text(reservation, "allocations.0.id"), "overlap");
		world_tick(world);
		assert_string_equal(world_text(world_reservation(world, id), "state"), "pending");
		if (says == RELEASED)
			world_released(world, &node, old);
		else if (says == HAS)
			world_inventory(world, &node);
		else if (says == HEARTBEAT)
			world_heartbeat(world, &node);
		else
			world_conditions(world, &node, &condition, says == BEGUN);
		world_tick(world);
		reservation = world_reservation(world, id);
		assert_string_equal(world_text(reservation, "state"),
				    over[says] ? "placed" : "pending");
		if (!over[says]) {
			world_call(world, control_reservation_cancel, id, NULL);
			database_advance(ALLOCATION_REST_MS);
			world_heartbeat(world, &node);
			continue;
		}
		/* It refuses again: what was over was something else. */
		world_store_spec(world, &node);
		world_failed(world, &node, world_text(reservation, "allocations.1.id"), "overlap");
		world_inventory(world, &node);
		world_tick(world);
		assert_string_equal(world_text(world_reservation(world, id), "state"), "pending");
		database_advance(ALLOCATION_EXCUSED_MS);
		world_tick(world);
		assert_string_equal(world_text(world_reservation(world, id), "state"), "placed");
		world_call(world, control_reservation_release, id, NULL);
		world_store_spec(world, &node);
		world_released(world, &node,
			       world_text(world_reservation(world, id), "allocations.2.id"));
	}
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

/* Who follows the reservation hears of each change of it once, and of nothing else.
 * proves: RES-34 GW-15 */
static void test_a_running_reservation_is_woken(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_condition exposed = {"ForeignGpuExposure", "OtherGpuPath", "x", {1}};
	struct control_condition other = {"HostUnsupported", "HostManagedExternally", "x", {1}};
	struct control_condition silent = {
		"PodResourcesUnavailable", "PodResourcesFailing", "x", {1}};
	static const char type[] = "reservation.condition.changed";
	const char *id, *allocation, *waiting;
	const json_t *reservation;

	world_ready(world, &node, 3);
	reservation = world_reserve(world, 2);
	id = world_text(reservation, "id");
	allocation = world_text(reservation, "allocations.0.id");
	waiting = world_text(world_reserve(world, 1), "id"); /* placed there, not bound */
	world_bind(world, &node, allocation);
	assert_int_equal(world_count_events(world, type, id), 0);
	node.unhealthy = 3U;
	world_inventory(world, &node); /* both of its GPUs at once */
	assert_int_equal(world_count_events(world, type, id), 1);
	world_inventory(world, &node); /* the same again */
	world_conditions(world, &node, &other, 1);
	assert_int_equal(world_count_events(world, type, id), 1);
	world_conditions(world, &node, &exposed, 1);
	assert_int_equal(world_count_events(world, type, id), 2);
	world_failed(world, &node, allocation, "unknown-device");
	assert_int_equal(world_count_events(world, type, id), 3);
	world_bound(world, &node, allocation);
	assert_int_equal(world_count_events(world, type, id), 4);
	world_conditions(world, &node, NULL, 0);
	node.unhealthy = 0;
	world_inventory(world, &node);
	assert_int_equal(world_count_events(world, type, id), 6);
	/* No kubelet says that pods have it. */
	world_conditions(world, &node, &silent, 1);
	reservation = world_reservation(world, id);
	assert_string_equal(world_text(reservation, "state"), "active");
	assert_string_equal(world_text(reservation, "conditions.0.type"), "Unconfirmed");
	assert_int_equal(world_count_events(world, type, id), 7);
	world_conditions(world, &node, NULL, 0);
	assert_false(world_has(world_reservation(world, id), "conditions.0"));
	assert_int_equal(world_count_events(world, type, id), 8);
	assert_int_equal(world_count_events(world, type, waiting), 0);
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

/* A node whose configuration was changed under a booking: who pays for it is told. */
static void test_gpus_that_no_pod_can_ask_for_are_degraded(void **state)
{
	struct control_condition other = {"GpuApiUnsupported", "NotOffered", "x", {1}};
	struct world *world = *state;
	struct world_node node;
	json_t *reservation;
	const char *id;
	int64_t told;

	world_ready(world, &node, 2);
	reservation = world_reserve(world, 2);
	id = world_text(reservation, "id");
	world_bind(world, &node, world_text(reservation, "allocations.0.id"));
	told = world_count_events(world, "reservation.condition.changed", id);
	world_conditions(world, &node, &other, 1);
	reservation = world_reservation(world, id);
	assert_string_equal(world_text(reservation, "conditions.0.type"), "Degraded");
	assert_string_equal(world_text(reservation, "conditions.0.reason"), "GpuApiUnsupported");
	assert_int_equal(world_count_events(world, "reservation.condition.changed", id), told + 1);
	node.unhealthy = 1; /* what is broken comes first */
	world_inventory(world, &node);
	reservation = world_reservation(world, id);
	assert_string_equal(world_text(reservation, "conditions.0.reason"), "AtomUnhealthy");
	assert_string_equal(world_text(reservation, "conditions.0.causes.1.reason"),
			    "GpuApiUnsupported");
	node.unhealthy = 0;
	world_inventory(world, &node);
	world_conditions(world, &node, NULL, 0);
	assert_false(world_has(world_reservation(world, id), "conditions.0"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_booking_is_bound_released_and_freed),
		WORLD_TEST(test_spec_names_what_is_withdrawn),
		WORLD_TEST(test_gpus_that_no_pod_can_ask_for_are_degraded),
		WORLD_TEST(test_held_devices_are_nobody_elses_however_long),
		WORLD_TEST(test_held_share_of_the_host_is_nobody_elses),
		WORLD_TEST(test_more_of_the_host_than_there_is),
		WORLD_TEST(test_bound_said_again_does_not_undo_a_release),
		WORLD_TEST(test_reports_about_what_is_not_the_nodes_have_no_effect),
		WORLD_TEST(test_release_before_the_spec_was_sent_is_immediate),
		WORLD_TEST(test_release_before_the_binding_waits_ten_minutes),
		WORLD_TEST(test_old_failure_does_not_end_a_release),
		WORLD_TEST(test_failed_hold_is_placed_elsewhere_or_waits),
		WORLD_TEST(test_a_node_is_asked_again_when_what_was_in_the_way_is_over),
		WORLD_TEST(test_bound_hold_that_fails_is_degraded_and_keeps_its_devices),
		WORLD_TEST(test_a_running_reservation_is_woken),
		WORLD_TEST(test_degraded_names_its_causes_in_order),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
