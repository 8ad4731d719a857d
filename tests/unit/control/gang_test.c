/* Gangs on real rows: whole or not at all, in the order they came. */
#include "unit/control/gangs.h"

#include "control/core/reservation.h"

#include "base/vec.h"
#include "control/core/timestamp.h"
#include "lib/seed.h"

#include <stdio.h>

#define MINUTE_MS ((int64_t)60 * 1000)
#define HOUR_MS   (60 * MINUTE_MS)

/* The part that counts, by index: what failed or went back stands before or is over. */
static const json_t *part_of(const json_t *reservation, size_t index)
{
	const json_t *parts = json_object_get(reservation, "allocations");

	for (size_t i = 0; i < json_array_size(parts); i++) {
		const json_t *part = json_array_get(parts, i);
		const char *state = world_text(part, "state");

		if (!str_equal(state, "placed") && !str_equal(state, "bound"))
			continue;
		if (index-- == 0)
			return part;
	}
	return NULL;
}

static const json_t *part_on(const json_t *reservation, const char *node)
{
	for (size_t i = 0; part_of(reservation, i); i++) {
		if (str_equal(world_text(part_of(reservation, i), "nodeId"), node))
			return part_of(reservation, i);
	}
	fail_msg("no part on %s", node);
	return NULL;
}

static size_t count_parts(const json_t *reservation)
{
	size_t count = 0;

	while (part_of(reservation, count))
		count++;
	return count;
}

/* Binds part by part; what the gang shows in between. */
static void bind_all(struct world *world, struct world_node *nodes, size_t count,
		     const json_t *reservation)
{
	size_t parts = count_parts(reservation);

	for (size_t i = 0; i < parts; i++) {
		const json_t *part = part_of(reservation, i);

		assert_string_equal(state_of(world, reservation), "placed");
		world_bind(world, node_of(nodes, count, world_text(part, "nodeId")),
			   world_text(part, "id"));
	}
	assert_string_equal(state_of(world, reservation), "active");
}

static void release_all(struct world *world, struct world_node *nodes, size_t count,
			const json_t *reservation)
{
	size_t parts = count_parts(reservation);

	world_call(world, control_reservation_release, world_text(reservation, "id"), NULL);
	for (size_t i = 0; i < parts; i++) {
		const json_t *part = part_of(reservation, i);
		struct world_node *node = node_of(nodes, count, world_text(part, "nodeId"));

		world_store_spec(world, node);
		world_released(world, node, world_text(part, "id"));
	}
}

/* Whose devices a gang waits for keeps its end, and isn't told to extend to it. */
static void check_not_extended(struct world *world, const json_t *reservation)
{
	json_t *body = json_pack("{s:s}", "duration", "9h");
	struct control_call call = {
		.principal = &world->operator, .id = world_text(reservation, "id"), .body = body};
	json_t *answer = NULL;
	struct error error;

	expect_error(world_ask(world, control_reservation_patch, &call, &answer, &error), &error,
		     ERROR_CONFLICT, "waits for that moment");
	assert_string_equal(error.hint, "That is its end: it can't be extended at all.");
	json_decref(body);
}

/* Nobody has booked the nodes from then on: it is the gang that waits for them that is in the way. */
static void check_kept_for_the_gang(struct world *world, const json_t *before)
{
	json_t *preview =
		world_call(world, control_capacity_preview, NULL,
			   "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\","
			   "\"count\":8}],"
			   "\"duration\":\"30m\",\"binding\":\"kubernetes\",\"startAt\":\"%s\","
			   "\"gang\":{\"nodes\":2}}",
			   world->tenant, world->pool, world_text(before, "endAt"));

	assert_string_equal(world_text(preview, "reasons.0.reason"), "WaitingGang");
	assert_int_equal(world_int(preview, "reasons.0.nodes"), 3);
	assert_string_equal(world_text(preview, "reasons.1.reason"), "TooFewNodes");
}

/* --- two gangs on four nodes --- */

/* proves: GANG-1 GANG-2 GANG-3 GANG-8 GANG-10 */
static void test_of_two_gangs_one_runs_and_one_waits_holding_nothing(void **state)
{
	struct world *world = *state;
	struct world_node nodes[4];
	json_t *first, *second, *preview, *longer, *brief;

	for (size_t i = 0; i < 4; i++)
		world_ready(world, &nodes[i], 8);
	first = reserve_gang(world, 3, 8, "2h", "");
	assert_string_equal(world_text(first, "state"), "placed");
	assert_int_equal(world_int(first, "gang.nodes"), 3);
	assert_int_equal(count_parts(first), 3);
	bind_all(world, nodes, 4, first);
	second = reserve_gang(world, 3, 8, "1h", "");
	assert_string_equal(world_text(second, "state"), "pending");
	assert_int_equal(json_array_size(json_object_get(second, "allocations")), 0);
	assert_int_equal(count_bookings(world), 24);
	/* The fourth node is for who is gone when the first gang ends, and for nobody else. */
	preview =
		world_call(world, control_capacity_preview, NULL,
			   "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":"
			   "\"gpu\",\"count\":8}],\"duration\":\"3h\",\"binding\":\"kubernetes\"}",
			   world->tenant, world->pool);
	assert_false(world_int(preview, "fits"));
	assert_string_equal(world_text(preview, "state"), "pending");
	check_kept_for_the_gang(world, first);
	/* When the second gang has what it waits for, a node is left over. */
	assert_string_equal(world_text(preview, "firstFitAt"), world_text(first, "endAt"));
	longer = reserve_for(world, 8, "3h");
	assert_string_equal(world_text(longer, "state"), "pending");
	for (size_t i = 0; i < 2; i++)
		if (str_equal(world_text(json_array_get(json_object_get(longer, "reasons"), i),
					 "reason"),
			      "WaitingGang"))
			break;
		else
			assert_true(i == 0);
	check_not_extended(world, first);
	brief = reserve_for(world, 8, "1h");
	assert_string_equal(world_text(brief, "state"), "placed");
	/* The first one is given back: the second runs, whole, and the one behind it waits on. */
	release_all(world, nodes, 4, first);
	world_tick(world);
	second = world_reservation(world, world_text(second, "id"));
	assert_string_equal(world_text(second, "state"), "placed");
	assert_int_equal(count_parts(second), 3);
	assert_string_equal(state_of(world, longer), "pending");
	bind_all(world, nodes, 4, second);
	release_all(world, nodes, 4, second);
	assert_string_equal(state_of(world, second), "released");
	world_tick(world);
	assert_string_equal(state_of(world, longer), "placed");
}

/* proves: GANG-9 */
static void test_a_gang_ends_as_one(void **state)
{
	struct world *world = *state;
	struct world_node nodes[3];
	json_t *gang, *now;

	for (size_t i = 0; i < 3; i++)
		world_ready(world, &nodes[i], 8);
	gang = reserve_gang(world, 3, 4, "1h", "");
	bind_all(world, nodes, 3, gang);
	database_advance(HOUR_MS);
	for (size_t i = 0; i < 3; i++)
		world_heartbeat(world, &nodes[i]);
	world_tick(world);
	now = world_reservation(world, world_text(gang, "id"));
	assert_string_equal(world_text(now, "state"), "released");
	assert_string_equal(world_text(now, "conditions.0.type"), "DevicesHeld");
	for (size_t i = 0; i < 3; i++) {
		world_store_spec(world, &nodes[i]);
		now = world_reservation(world, world_text(gang, "id"));
		assert_string_equal(world_text(now, "conditions.0.type"), "DevicesHeld");
		world_released(world, &nodes[i], world_text(part_on(gang, nodes[i].id), "id"));
	}
	now = world_reservation(world, world_text(gang, "id"));
	assert_int_equal(json_array_size(json_object_get(now, "conditions")), 0);
	assert_int_equal(count_bookings(world), 0);
}

/* --- parts that fail --- */

/* proves: GANG-4 GANG-9 GANG-11 RES-16 */
static void test_a_part_that_fails_is_placed_again_with_the_rest(void **state)
{
	struct world *world = *state;
	struct world_node nodes[6];
	json_t *gang, *now;
	struct world_node *failing;
	const char *lost;

	/* Racks of three; the last node says nothing of its rack. */
	for (size_t i = 0; i < 6; i++) {
		world_ready(world, &nodes[i], 8);
		if (i < 5)
			set_rack(world, &nodes[i], i < 3 ? "r1" : "r2");
	}
	world_refused(world, control_reservation_create, NULL, ERROR_INVALID_INPUT, "same",
		      "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\","
		      "\"count\":1}],\"duration\":\"1h\",\"binding\":\"kubernetes\",\"gang\":{"
		      "\"nodes\":2,\"topology\":{\"same\":\"row\"}}}",
		      world->tenant, world->pool);
	/* The smaller rack has two, so it is taken; a third part makes it the larger one. */
	gang = reserve_gang(world, 2, 8, "1h", ",\"topology\":{\"same\":\"rack\"}");
	assert_string_equal(world_text(gang, "gang.topology.same"), "rack");
	for (size_t i = 0; i < 2; i++)
		assert_true(node_of(nodes, 6, world_text(part_of(gang, i), "nodeId")) >= &nodes[3]);
	world_call(world, control_reservation_release, world_text(gang, "id"), NULL);
	database_advance(1);
	world_call(
		world, control_reservation_create, NULL,
		"{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\",\"count\""
		":8}],\"duration\":\"1h\",\"binding\":\"kubernetes\",\"gang\":{\"nodes\":2,"
		"\"topology\":{\"same\":\"rack\"}}}",
		world->tenant, world->pool);
	gang = reserve_gang(world, 2, 8, "1h", ",\"topology\":{\"same\":\"rack\"}");
	assert_string_equal(world_text(gang, "state"), "placed");
	/* The third node of the rack takes over from one that fails. */
	failing = node_of(nodes, 6, world_text(part_of(gang, 0), "nodeId"));
	assert_true(failing < &nodes[3]);
	lost = world_text(part_of(gang, 0), "id");
	world_store_spec(world, failing);
	world_failed(world, failing, lost, "resources-exhausted");
	now = world_reservation(world, world_text(gang, "id"));
	assert_string_equal(world_text(now, "state"), "placed");
	assert_int_equal(count_parts(now), 2);
	for (size_t i = 0; i < 2; i++) {
		const struct world_node *node =
			node_of(nodes, 6, world_text(part_of(now, i), "nodeId"));

		assert_true(node < &nodes[3] && node != failing);
	}
	/* The next failure leaves too few of the rack: all of it waits, and holds nothing. */
	failing = node_of(nodes, 6, world_text(part_of(now, 0), "nodeId"));
	world_store_spec(world, failing);
	world_failed(world, failing, world_text(part_of(now, 0), "id"), "resources-exhausted");
	gang = world_reservation(world, world_text(gang, "id"));
	assert_string_equal(world_text(gang, "state"), "pending");
	assert_int_equal(count_parts(gang), 0);
	assert_false(world_has(gang, "endAt"));
	for (size_t i = 0; i < 3; i++) {
		struct control_spec spec;

		world_take_spec(world, &nodes[i], &spec);
		assert_int_equal(spec.assignments_count, 0);
		control_spec_deinit(&spec);
	}
}

/* proves: GANG-5 GANG-9 */
static void test_a_running_gang_that_loses_a_node_is_degraded_as_a_whole(void **state)
{
	struct world *world = *state;
	struct world_node nodes[4];
	json_t *gang, *now;
	struct world_node *gone;
	int64_t events;

	for (size_t i = 0; i < 4; i++)
		world_ready(world, &nodes[i], 8);
	gang = reserve_gang(world, 3, 8, "1h", "");
	bind_all(world, nodes, 4, gang);
	/* A binding that a node can't keep: nothing is taken, nothing is put in its place. */
	gone = node_of(nodes, 4, world_text(part_of(gang, 0), "nodeId"));
	world_failed(world, gone, world_text(part_of(gang, 0), "id"), "atom-lost");
	now = world_reservation(world, world_text(gang, "id"));
	assert_string_equal(world_text(now, "state"), "active");
	assert_string_equal(world_text(now, "conditions.0.reason"), "BindingLost");
	assert_int_equal(count_parts(now), 3);
	events = world_count_events(world, "reservation.state.changed", world_text(gang, "id"));
	world_call(world, control_node_retire, gone->id, "{\"lost\":true}");
	now = world_reservation(world, world_text(gang, "id"));
	assert_string_equal(world_text(now, "state"), "active");
	assert_string_equal(world_text(now, "conditions.0.reason"), "BindingLost");
	assert_string_equal(world_text(now, "conditions.0.causes.0.node"), gone->id);
	assert_int_equal(count_parts(now), 2);
	assert_int_equal(
		world_count_events(world, "reservation.state.changed", world_text(gang, "id")),
		events + 1);
	/* The last one gone, it has failed. */
	for (size_t i = 1; i < 3; i++)
		world_call(world, control_node_retire, world_text(part_of(gang, i), "nodeId"),
			   "{\"lost\":true}");
	assert_string_equal(state_of(world, gang), "failed");
	assert_int_equal(count_bookings(world), 0);
}

/* Before it ran, a lost node is one that failed: the gang goes elsewhere, whole. */
static void test_a_gang_that_is_half_bound_when_a_node_is_lost_is_placed_again(void **state)
{
	struct world *world = *state;
	struct world_node nodes[3];
	json_t *gang, *now;
	const char *bound;
	struct world_node *lost, *other;

	for (size_t i = 0; i < 3; i++)
		world_ready(world, &nodes[i], 8);
	gang = reserve_gang(world, 3, 8, "1h", "");
	lost = node_of(nodes, 3, world_text(part_of(gang, 0), "nodeId"));
	other = node_of(nodes, 3, world_text(part_of(gang, 1), "nodeId"));
	world_bind(world, lost, world_text(part_of(gang, 0), "id"));
	bound = world_text(part_of(gang, 1), "id");
	world_bind(world, other, bound);
	world_call(world, control_node_retire, lost->id, "{\"lost\":true}");
	now = world_reservation(world, world_text(gang, "id"));
	assert_string_equal(world_text(now, "state"), "pending");
	assert_int_equal(count_parts(now), 0);
	/* What was bound goes back when its node says so, and that moves the gang no further. */
	world_store_spec(world, other);
	world_released(world, other, bound);
	assert_string_equal(state_of(world, gang), "pending");
	assert_int_equal(count_bookings(world), 0);
	world_ready(world, lost, 8);
	database_advance(10 * MINUTE_MS);
	for (size_t i = 0; i < 3; i++)
		world_heartbeat(world, &nodes[i]);
	world_tick(world);
	now = world_reservation(world, world_text(gang, "id"));
	assert_string_equal(world_text(now, "state"), "placed");
	bind_all(world, nodes, 3, now);
}

/* --- what is over --- */

static bool break_body(struct store_connection *db, void *argument, struct error *error)
{
	return store_exec(db, "UPDATE reservations SET state = 'failed' WHERE id = $1",
			  STORE_PARAMS(store_text(argument)), error);
}

/* However it came to be: parts of a reservation that is over are given back.
 * proves: RES-33 */
static void test_nothing_goes_on_for_a_reservation_that_is_over(void **state)
{
	struct world *world = *state;
	struct world_node nodes[2];
	struct error error;
	json_t *gang;

	for (size_t i = 0; i < 2; i++)
		world_ready(world, &nodes[i], 8);
	gang = reserve_gang(world, 2, 8, "1h", "");
	bind_all(world, nodes, 2, gang);
	expect_ok(store_run(world->control.connection, STORE_WRITE, break_body,
			    (void *)world_text(gang, "id"), &error),
		  &error);
	world_tick(world);
	assert_int_equal(count_bookings(world), 16);
	for (size_t i = 0; i < 2; i++) {
		world_store_spec(world, &nodes[i]);
		world_released(world, &nodes[i], world_text(part_on(gang, nodes[i].id), "id"));
	}
	assert_int_equal(count_bookings(world), 0);
	assert_string_equal(state_of(world, gang), "failed");
}

/* A node that failed one that came later is none the worse for the gang that waits for it.
 * proves: GANG-10 */
static void test_what_a_later_one_was_refused_still_waits_for_the_gang(void **state)
{
	struct world *world = *state;
	struct world_node nodes[2];
	struct world_node *first;
	json_t *running[2], *gang, *later;

	for (size_t i = 0; i < 2; i++)
		world_ready(world, &nodes[i], 1);
	for (size_t i = 0; i < 2; i++)
		running[i] = reserve_for(world, 1, "10h");
	first = node_of(nodes, 2, world_text(running[0], "allocations.0.nodeId"));
	gang = reserve_gang(world, 2, 1, "1h", "");
	database_advance(1);
	world_call(world, control_reservation_release, world_text(running[0], "id"), NULL);
	later = reserve_for(world, 1, "30m");
	assert_string_equal(world_text(later, "allocations.0.nodeId"), first->id);
	world_store_spec(world, first);
	world_failed(world, first, world_text(later, "allocations.0.id"), "overlap");
	/* The gang could have both nodes as soon as the device has rested. */
	world_call(world, control_reservation_release, world_text(running[1], "id"), NULL);
	world_tick(world);
	assert_string_equal(state_of(world, later), "pending");
	database_advance(ALLOCATION_REST_MS);
	for (size_t i = 0; i < 2; i++)
		world_heartbeat(world, &nodes[i]);
	world_tick(world);
	assert_string_equal(state_of(world, gang), "placed");
}

/* --- what a gang may not have --- */

/* More nodes than could ever take a part; how many stand together may still change. */
static void test_a_gang_that_is_too_large_is_denied(void **state)
{
	struct world *world = *state;
	struct world_node nodes[2];
	json_t *gang;

	for (size_t i = 0; i < 2; i++)
		world_ready(world, &nodes[i], 2);
	reserve_for(world, 2, "1h");
	gang = reserve_gang(world, 3, 1, "1h", "");
	assert_string_equal(world_text(gang, "state"), "denied");
	assert_string_equal(world_text(gang, "stateReason"), "NoNodeCould");
	assert_string_equal(
		world_text(json_array_get(json_object_get(gang, "reasons"), 0), "message"),
		"the gang takes 3 nodes, and only 2 of the pool could ever take a part");
	assert_string_equal(world_text(reserve_gang(world, 2, 2, "1h", ""), "state"), "pending");
	assert_string_equal(
		world_text(reserve_gang(world, 2, 1, "1h", ",\"topology\":{\"same\":\"rack\"}"),
			   "state"),
		"pending");
	assert_string_equal(world_text(reserve_gang(world, 2, 3, "1h", ""), "state"), "denied");
}

/* A quota that came later is in the gang's way; the gang is in nobody's. */
static void test_a_gang_over_its_quota_holds_up_nobody(void **state)
{
	struct world *world = *state;
	struct world_node nodes[2];
	json_t *gang, *longer;

	for (size_t i = 0; i < 2; i++)
		world_ready(world, &nodes[i], 2);
	reserve_for(world, 2, "2h");
	gang = reserve_gang(world, 2, 2, "1h", "");
	longer = reserve_for(world, 1, "9h");
	assert_string_equal(world_text(longer, "state"), "pending");
	world_call(world, control_quota_create, NULL, "{\"tenantId\":\"%s\",\"maxDevices\":3}",
		   world->tenant);
	world_tick(world);
	assert_string_equal(state_of(world, gang), "pending");
	assert_string_equal(state_of(world, longer), "placed");
}

static void fail_first_part(struct world *world, struct world_node *nodes, size_t count,
			    const json_t *gang)
{
	const json_t *part = part_of(gang, 0);
	struct world_node *node = node_of(nodes, count, world_text(part, "nodeId"));

	world_store_spec(world, node);
	world_failed(world, node, world_text(part, "id"), "overlap");
}

static void pass_time(struct world *world, struct world_node *nodes, size_t count, int64_t ms)
{
	database_advance(ms);
	for (size_t i = 0; i < count; i++)
		world_heartbeat(world, &nodes[i]);
}

/* A part that failed doesn't take the node that a gang before it waits for.
 * proves: GANG-9 GANG-10 */
static void test_a_part_is_not_placed_again_before_a_gang_that_came_first(void **state)
{
	struct world *world = *state;
	struct world_node nodes[4];
	json_t *first, *later;

	/* Two that the first gang needs, and two that are too small for it. */
	for (size_t i = 0; i < 4; i++)
		world_ready(world, &nodes[i], i < 2 ? 2 : 1);
	first = reserve_gang(world, 2, 2, "1h", "");
	later = reserve_gang(world, 2, 1, "9h", "");
	fail_first_part(world, nodes, 4, first);
	assert_string_equal(state_of(world, first), "pending");
	assert_string_equal(state_of(world, later), "placed");
	pass_time(world, nodes, 4, ALLOCATION_REST_MS);
	fail_first_part(world, nodes, 4, later);
	assert_string_equal(state_of(world, later), "pending");
	assert_int_equal(count_bookings(world), 0);
	pass_time(world, nodes, 4, 10 * MINUTE_MS);
	world_tick(world);
	assert_string_equal(state_of(world, first), "placed");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_of_two_gangs_one_runs_and_one_waits_holding_nothing),
		WORLD_TEST(test_a_gang_ends_as_one),
		WORLD_TEST(test_a_part_that_fails_is_placed_again_with_the_rest),
		WORLD_TEST(test_a_running_gang_that_loses_a_node_is_degraded_as_a_whole),
		WORLD_TEST(test_a_gang_that_is_half_bound_when_a_node_is_lost_is_placed_again),
		WORLD_TEST(test_nothing_goes_on_for_a_reservation_that_is_over),
		WORLD_TEST(test_a_gang_that_is_too_large_is_denied),
		WORLD_TEST(test_a_gang_over_its_quota_holds_up_nobody),
		WORLD_TEST(test_a_part_is_not_placed_again_before_a_gang_that_came_first),
		WORLD_TEST(test_what_a_later_one_was_refused_still_waits_for_the_gang),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
