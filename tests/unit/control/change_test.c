/* Reservations that are to end later or earlier, or to begin at another time. */
#include "unit/control/world.h"

#include <stdio.h>

#define MINUTE_MS ((int64_t)60 * 1000)
#define HOUR_MS   (60 * MINUTE_MS)

static json_t *reserve(struct world *world, int count, const char *more)
{
	database_advance(1);
	return world_call(world, control_reservation_create, NULL,
			  "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\","
			  "\"count\":%d}],\"binding\":\"kubernetes\",%s}",
			  world->tenant, world->pool, count, more);
}

static json_t *patch(struct world *world, const json_t *reservation, const char *change)
{
	return world_call(world, control_reservation_patch, world_text(reservation, "id"), "{%s}",
			  change);
}

static void refused(struct world *world, const json_t *reservation, enum error_code code,
		    const char *text, const char *change)
{
	world_refused(world, control_reservation_patch, world_text(reservation, "id"), code, text,
		      "{%s}", change);
}

static int64_t end_in_spec(struct world *world, struct world_node *node)
{
	struct control_spec spec;
	int64_t end_ms;

	world_take_spec(world, node, &spec);
	assert_int_equal(spec.assignments_count, 1);
	end_ms = spec.assignments[0].end_ms;
	control_spec_deinit(&spec);
	return end_ms;
}

/* What is booked follows, the node is told, and the end comes when it is said to. */
static void test_a_running_reservation_is_extended_and_shortened(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *reservation, *now;
	int64_t begun_ms;

	world_ready(world, &node, 2);
	reservation = reserve(world, 2, "\"duration\":\"1h\"");
	begun_ms = database_time();
	world_bind(world, &node, world_text(reservation, "allocations.0.id"));
	assert_int_equal(end_in_spec(world, &node), begun_ms + HOUR_MS);
	now = patch(world, reservation, "\"duration\":\"3h\"");
	assert_string_equal(world_text(now, "duration"), "3h");
	assert_string_equal(world_text(now, "endAt"), "2027-01-15T11:00:00.001Z");
	assert_true(world_int(world_call(world, control_node_get, node.id, NULL),
			      "specGeneration") > node.generation);
	assert_int_equal(end_in_spec(world, &node), begun_ms + 3 * HOUR_MS);
	/* Nobody else gets the time in between. */
	assert_string_equal(world_text(reserve(world, 1,
					       "\"duration\":\"1h\",\"startAt\":\"2027-01-15T10:"
					       "00:00Z\""),
				       "state"),
			    "pending");
	database_advance(HOUR_MS);
	world_heartbeat(world, &node);
	world_tick(world);
	now = patch(world, reservation, "\"endAt\":\"2027-01-15T09:30:00Z\"");
	assert_string_equal(world_text(now, "state"), "active");
	assert_string_equal(world_text(now, "endAt"), "2027-01-15T09:30:00.000Z");
	assert_string_equal(world_text(now, "duration"), "1h29m59s");
	database_advance(30 * MINUTE_MS);
	world_heartbeat(world, &node);
	world_tick(world);
	assert_string_equal(
		world_text(world_reservation(world, world_text(reservation, "id")), "state"),
		"released");
	refused(world, reservation, ERROR_INVALID_STATE, "it is over", "\"duration\":\"9h\"");
}

static void test_changes_that_can_not_be_are_refused_and_change_nothing(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_principal viewer = world_principal(world, world->tenant, "viewer");
	struct control_call call = {.principal = &viewer};
	json_t *running, *next, *answer = NULL, *before;
	struct error error;

	world_ready(world, &node, 2);
	running = reserve(world, 1, "\"duration\":\"1h\"");
	world_bind(world, &node, world_text(running, "allocations.0.id"));
	next = reserve(world, 2, "\"duration\":\"1h\",\"startAt\":\"2027-01-15T10:00:00Z\"");
	assert_string_equal(world_text(next, "state"), "placed");
	before = world_reservation(world, world_text(running, "id"));
	/* The one behind it is named, and the moment. */
	refused(world, running, ERROR_CONFLICT, world_text(next, "id"),
		"\"endAt\":\"2027-01-15T10:00:00.001Z\"");
	refused(world, running, ERROR_CONFLICT, "beyond 2027-01-15T10:00:00.000Z",
		"\"duration\":\"366d\"");
	refused(world, running, ERROR_INVALID_STATE, "only a pending one",
		"\"startAt\":\"2027-01-15T09:00:00Z\"");
	refused(world, running, ERROR_INVALID_INPUT, "less than a minute",
		"\"endAt\":\"2027-01-15T08:00:30Z\"");
	refused(world, running, ERROR_INVALID_INPUT, "together",
		"\"endAt\":\"2027-01-15T09:00:00Z\",\"duration\":\"1h\"");
	database_advance(30 * MINUTE_MS);
	world_heartbeat(world, &node);
	refused(world, running, ERROR_INVALID_INPUT, "past", "\"duration\":\"10m\"");
	assert_true(json_equal(before, world_reservation(world, world_text(running, "id"))));
	call.id = world_text(running, "id");
	expect_error(world_ask(world, control_reservation_patch, &call, &answer, &error), &error,
		     ERROR_FORBIDDEN, "compute:reservations:patch");
	/* Right up to it is fine. */
	answer = patch(world, running, "\"endAt\":\"2027-01-15T10:00:00Z\"");
	assert_string_equal(world_text(answer, "endAt"), "2027-01-15T10:00:00.000Z");
	/* Over, and not yet ended by the pass: it is too late. */
	database_advance(2 * HOUR_MS);
	refused(world, running, ERROR_INVALID_STATE, "has ended", "\"duration\":\"9h\"");
}

/* proves: HOST-3 HOST-12 */
static void test_the_host_share_goes_on_with_the_devices(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *running;

	world_ready(world, &node, 4);
	reserve(world, 1, "\"duration\":\"1h\",\"resources\":{\"vcpu\":1}");
	running = reserve(world, 1, "\"duration\":\"1h\",\"resources\":{\"vcpu\":99}");
	assert_string_equal(world_text(running, "state"), "placed");
	/* 128 vCPUs: beside it 28 fit, and after it more. */
	assert_string_equal(
		world_text(reserve(world, 1, "\"duration\":\"1h\",\"resources\":{\"vcpu\":29}"),
			   "state"),
		"pending");
	assert_string_equal(world_text(reserve(world, 1,
					       "\"duration\":\"1h\",\"resources\":{\"vcpu\":30},"
					       "\"startAt\":\"2027-01-15T10:00:00Z\""),
				       "state"),
			    "placed");
	refused(world, running, ERROR_CONFLICT, "vCPUs, memory or huge pages",
		"\"duration\":\"4h\"");
	patch(world, running, "\"duration\":\"90m\"");
}

/* proves: GANG-10 */
static void test_who_let_a_gang_wait_may_not_stay_longer(void **state)
{
	struct world *world = *state;
	struct world_node nodes[2];
	json_t *running, *gang;

	for (size_t i = 0; i < 2; i++)
		world_ready(world, &nodes[i], 2);
	running = reserve(world, 2, "\"duration\":\"1h\"");
	gang = reserve(world, 2, "\"duration\":\"1h\",\"gang\":{\"nodes\":2}");
	assert_string_equal(world_text(gang, "state"), "pending");
	refused(world, running, ERROR_CONFLICT, world_text(gang, "id"), "\"duration\":\"61m\"");
	/* Sooner is always right, and the gang is there at once. */
	patch(world, running, "\"duration\":\"30m\"");
	database_advance(30 * MINUTE_MS);
	for (size_t i = 0; i < 2; i++)
		world_heartbeat(world, &nodes[i]);
	world_tick(world);
	gang = world_reservation(world, world_text(gang, "id"));
	assert_string_equal(world_text(gang, "state"), "placed");
	/* A gang ends as one: all its parts go on. */
	gang = patch(world, gang, "\"duration\":\"2h\"");
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(end_in_spec(world, &nodes[i]), database_time() + 2 * HOUR_MS);
}

static void test_one_that_waits_takes_other_times(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *waiting, *now;

	world_ready(world, &node, 2);
	reserve(world, 2, "\"duration\":\"2h\"");
	waiting = reserve(world, 1, "\"duration\":\"3h\"");
	assert_string_equal(world_text(waiting, "state"), "pending");
	refused(world, waiting, ERROR_INVALID_INPUT, "begins when there is room",
		"\"endAt\":\"2027-01-15T12:00:00Z\"");
	now = patch(world, waiting, "\"duration\":\"1h\"");
	assert_string_equal(world_text(now, "state"), "pending");
	assert_string_equal(world_text(now, "duration"), "1h");
	now = patch(world, waiting,
		    "\"startAt\":\"2027-01-15T11:00:00Z\",\"endAt\":\"2027-01-15T13:30:00Z\"");
	assert_string_equal(world_text(now, "state"), "placed");
	assert_string_equal(world_text(now, "startAt"), "2027-01-15T11:00:00.000Z");
	assert_string_equal(world_text(now, "duration"), "2h30m");
	/* Before it begins it may move its end still. */
	now = patch(world, waiting, "\"duration\":\"1h\"");
	assert_string_equal(world_text(now, "endAt"), "2027-01-15T12:00:00.000Z");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_a_running_reservation_is_extended_and_shortened),
		WORLD_TEST(test_changes_that_can_not_be_are_refused_and_change_nothing),
		WORLD_TEST(test_the_host_share_goes_on_with_the_devices),
		WORLD_TEST(test_who_let_a_gang_wait_may_not_stay_longer),
		WORLD_TEST(test_one_that_waits_takes_other_times),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
