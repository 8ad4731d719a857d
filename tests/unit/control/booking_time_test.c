/* When a booking begins, what comes after it, how long a stuck release is carried, and what a lost
 * node ends. */
#include "unit/control/world.h"

#include "control/core/stuck.h"
#include "control/metrics.h"

#define HOUR_MS ((int64_t)60 * 60 * 1000)

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

/* The release that ended without the node's word reads like that. */
static void check_given_up(struct world *world, const struct world_node *node, const char *id,
			   const char *why)
{
	json_t *reservation = world_reservation(world, id);

	assert_string_equal(world_text(reservation, "state"), "released");
	assert_string_equal(world_text(reservation, "stateReason"), why);
	assert_string_equal(world_text(reservation, "conditions.0.type"), "ReleaseUnconfirmed");
	assert_string_equal(world_text(reservation, "conditions.0.reason"), why);
	assert_non_null(strstr(world_text(reservation, "conditions.0.message"), node->id));
	assert_false(world_has(reservation, "conditions.1"));
}

/* Each device is listed once, as of who has it, and so is that one's share of the host. */
static void check_counted_once(struct world *world, const struct world_node *node,
			       const json_t *holder, size_t devices)
{
	const json_t *shown = world_call(world, control_node_get, node->id, NULL), *device;
	size_t index;

	assert_int_equal(json_array_size(json_object_get(shown, "devices")), devices);
	json_array_foreach(json_object_get(shown, "devices"), index, device)
		assert_string_equal(world_text(device, "reservationId"), world_text(holder, "id"));
	assert_int_equal(world_int(shown, "hostBooked.vcpu"), world_int(holder, "resources.vcpu"));
}

/* Both GPUs, from a time of that day on. */
static json_t *reserve_later(struct world *world, const char *duration, const char *at)
{
	return world_call(world, control_reservation_create, NULL,
			  "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\","
			  "\"count\":2}],\"duration\":\"%s\",\"binding\":\"kubernetes\","
			  "\"startAt\":\"2027-01-15T%s:00Z\"}",
			  world->tenant, world->pool, duration, at);
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
	second = reserve_later(world, "2h", "09:00");
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
	/* Whoever waits for it reads what is in the way, and the node's numbers have room for it. */
	second = world_reservation(world, second_id);
	assert_string_equal(world_text(second, "state"), "placed");
	assert_string_equal(world_text(second, "conditions.0.type"), "Waiting");
	assert_string_equal(world_text(second, "conditions.0.reason"), "DevicesHeld");
	check_counted_once(world, &node, first, 2);
	/* It had five minutes: the second is handed out and may fail, which shows. */
	database_advance(60000);
	world_heartbeat(world, &node);
	world_tick(world);
	check_given_up(world, &node, world_text(first, "id"), "BookedNext");
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
	/* The word comes after all. */
	world_released(world, &node, first_allocation);
	assert_false(world_has(world_reservation(world, world_text(first, "id")), "conditions.0"));
}

/* What begins hours later needs nothing yet: until then the node may still say the word, and nobody else
 * gets the devices.
 * proves: RES-19 RES-21 RES-29 */
static void test_gap_before_the_next_booking_is_given_to_the_node(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_metrics metrics;
	struct error error;
	json_t *first;
	const char *id;

	world_ready(world, &node, 2);
	first = world_reserve(world, 2);
	id = world_text(first, "id");
	world_bind(world, &node, world_text(first, "allocations.0.id"));
	reserve_later(world, "1h", "12:00");
	world_call(world, control_reservation_release, id, NULL);
	world_store_spec(world, &node);
	first = world_reservation(world, id);
	assert_non_null(strstr(world_text(first, "conditions.0.message"),
			       "handed on at 2027-01-15 12:05 UTC whatever"));
	database_advance(2 * HOUR_MS);
	world_heartbeat(world, &node);
	world_tick(world);
	expect_ok(control_metrics(&world->control, &metrics, &error), &error);
	assert_int_equal(metrics.gpus_taken, 2);
	database_advance(2 * HOUR_MS + 4 * 60000);
	world_heartbeat(world, &node);
	world_tick(world);
	first = world_reservation(world, id);
	assert_string_equal(world_text(first, "conditions.0.type"), "DevicesHeld");
	assert_string_equal(world_text(world_reserve(world, 1), "state"), "pending");
	database_advance(60000);
	world_heartbeat(world, &node);
	world_tick(world);
	check_given_up(world, &node, id, "BookedNext");
}

/* What is booked next for less than ten minutes gets its devices in the middle of its time, not never.
 * proves: RES-19 RES-29 */
static void test_a_short_booking_gets_its_devices_in_time(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *first, *second;
	struct control_spec spec;

	world_ready(world, &node, 2);
	first = world_reserve(world, 2);
	world_bind(world, &node, world_text(first, "allocations.0.id"));
	second = reserve_later(world, "4m", "12:00");
	world_call(world, control_reservation_release, world_text(first, "id"), NULL);
	world_store_spec(world, &node);
	assert_non_null(strstr(world_text(world_reservation(world, world_text(first, "id")),
					  "conditions.0.message"),
			       "handed on at 2027-01-15 12:02 UTC whatever"));
	database_advance(4 * HOUR_MS + 119000);
	world_heartbeat(world, &node);
	world_tick(world);
	assert_string_equal(
		world_text(world_reservation(world, world_text(first, "id")), "conditions.0.type"),
		"DevicesHeld");
	database_advance(1000);
	world_heartbeat(world, &node);
	world_tick(world);
	check_given_up(world, &node, world_text(first, "id"), "BookedNext");
	world_tick(world);
	world_take_spec(world, &node, &spec);
	assert_true(world_spec_has(&spec, world_text(second, "allocations.0.id")));
	control_spec_deinit(&spec);
}

static void test_handover_is_at_once_when_the_node_says_so(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *first, *second;

	world_ready(world, &node, 2);
	first = world_reserve(world, 2);
	world_bind(world, &node, world_text(first, "allocations.0.id"));
	second = reserve_later(world, "1h", "09:00");
	database_advance(HOUR_MS);
	world_heartbeat(world, &node);
	world_tick(world);
	world_store_spec(world, &node);
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
	json_t *reservation;
	const char *id, *allocation;
	int64_t end_ms = DATABASE_EPOCH_MS + HOUR_MS, steps = 0, last_ms;

	world_ready(world, &node, 1);
	reservation = world_reserve(world, 1);
	id = world_text(reservation, "id");
	allocation = world_text(reservation, "allocations.0.id");
	world_bind(world, &node, allocation);
	world_call(world, control_reservation_release, id, NULL);
	world_store_spec(world, &node);
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
	check_given_up(world, &node, id, "CarriedTooLong");
	world_released(world, &node, allocation);
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

/* Whoever looks at the reservation reads what the node says of its pods, and when it ends at the latest.
 * proves: RES-21 RES-22 */
static void test_held_devices_tell_of_pods_and_ends(void **state)
{
	const struct control_condition told[] = {{.type = "KubernetesReleasePending",
						  .reason = "PodsHoldDevices",
						  .message = "pod ml/train was asked to go"},
						 {.type = "KubernetesReleaseStuck",
						  .reason = "PodsHoldDevices",
						  .message = "pod ml/train holds gpu 0"}};
	struct world *world = *state;
	struct world_node node;
	json_t *reservation;
	const char *id, *message, *next;

	world_ready(world, &node, 1);
	reservation = world_reserve(world, 1);
	id = world_text(reservation, "id");
	world_bind(world, &node, world_text(reservation, "allocations.0.id"));
	world_call(world, control_reservation_release, id, NULL);
	next = world_text(world_reservation(world, id), "conditions.0.next");
	/* Its hour, and a day. */
	assert_non_null(strstr(next, "free at 2027-01-16 09:00 UTC, a day after"));
	world_conditions(world, &node, told, 1);
	message = world_text(world_reservation(world, id), "conditions.0.message");
	assert_non_null(strstr(message, "says: pod ml/train was asked to go"));
	world_conditions(world, &node, told, 2);
	message = world_text(world_reservation(world, id), "conditions.0.message");
	assert_non_null(strstr(message, "says: pod ml/train holds gpu 0; pod ml/train was"));
	database_advance(60000);
	message = world_text(world_reservation(world, id), "conditions.0.message");
	assert_non_null(strstr(message, "has not been heard of since 2027-01-15 08:00 UTC"));
	assert_non_null(strstr(message, "until it is back, or declared lost"));
	world_store_spec(world, &node);
	world_released(world, &node, world_text(reservation, "allocations.0.id"));
	assert_false(world_has(world_reservation(world, id), "conditions.0"));
}

/* What a node was given stays its own though the clock went back to before it began: whoever comes then
 * waits, and isn't placed where it can't begin. proves: RES-19 */
static void test_a_clock_that_went_back_gives_nothing_twice(void **state)
{
	const int64_t hour_ms = (int64_t)60 * 60 * 1000;
	struct world *world = *state;
	struct world_node node;
	json_t *first, *second;
	const char *allocation;

	world_ready(world, &node, 2);
	database_advance(hour_ms);
	world_heartbeat(world, &node);
	first = world_reserve(world, 2);
	allocation = world_text(first, "allocations.0.id");
	world_bind(world, &node, allocation);
	database_advance(-2 * hour_ms);
	world_heartbeat(world, &node);
	second = world_reserve(world, 1);
	assert_string_equal(world_text(second, "state"), "pending");
	world_call(world, control_reservation_release, world_text(first, "id"), NULL);
	world_store_spec(world, &node);
	world_released(world, &node, allocation);
	database_advance(1000);
	world_tick(world);
	second = world_reservation(world, world_text(second, "id"));
	assert_string_equal(world_text(second, "state"), "placed");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_future_booking_starts_and_ends_in_its_time),
		WORLD_TEST(test_next_booking_waits_for_the_one_before),
		WORLD_TEST(test_handover_is_at_once_when_the_node_says_so),
		WORLD_TEST(test_devices_are_not_given_out_between_the_end_and_the_pass),
		WORLD_TEST(test_pending_whose_time_passes_expires),
		WORLD_TEST(test_gap_before_the_next_booking_is_given_to_the_node),
		WORLD_TEST(test_a_short_booking_gets_its_devices_in_time),
		WORLD_TEST(test_stuck_release_is_carried_for_a_day_and_ends),
		WORLD_TEST(test_unreachable_node_keeps_its_devices_until_it_is_lost),
		WORLD_TEST(test_lost_node_fails_what_was_bound_and_places_the_rest_again),
		WORLD_TEST(test_held_devices_tell_of_pods_and_ends),
		WORLD_TEST(test_a_clock_that_went_back_gives_nothing_twice),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
