/* Reservations that wait, and nodes that refuse them. */
#include "unit/control/world.h"

#include "control/room.h"

#define MINUTE_MS ((int64_t)60 * 1000)

static const char *state_of(struct world *world, const char *id)
{
	return world_text(world_reservation(world, id), "state");
}

static int count_placed(struct world *world, const char *const *ids, size_t count)
{
	int placed = 0;

	for (size_t i = 0; i < count; i++)
		placed += str_equal(state_of(world, ids[i]), "placed");
	return placed;
}

static void look(struct world *world, struct world_node *node)
{
	world_heartbeat(world, node);
	world_tick(world);
}

/* Asked again after 5 minutes, then 10, 20, 40, and then each hour: a reservation that waits for
 * weeks leaves no thousands of failed allocations behind.
 * proves: RES-16 */
static void test_a_node_that_refuses_is_asked_ever_less_often(void **state)
{
	static const int waits[] = {5, 10, 20, 40, 60, 60, 60};
	struct world *world = *state;
	struct world_node node;
	const char *id;

	world_ready(world, &node, 2);
	id = world_text(world_reserve(world, 2), "id");
	for (size_t i = 0; i < ARRAY_SIZE(waits); i++) {
		char path[48];

		snprintf(path, sizeof path, "allocations.%zu.id", i);
		world_store_spec(world, &node);
		world_failed(world, &node, world_text(world_reservation(world, id), path),
			     "resources-exhausted");
		database_advance(waits[i] * MINUTE_MS - 1);
		look(world, &node);
		assert_string_equal(state_of(world, id), "pending");
		database_advance(1);
		look(world, &node);
		assert_string_equal(state_of(world, id), "placed");
	}
}

/* What was in the way of one reservation is in the way of the next: the devices rest for a minute,
 * then one is tried. Other devices of the node go on.
 * proves: RES-16 GW-16 */
static void test_devices_that_failed_rest(void **state)
{
	struct world *world = *state;
	struct world_node node;
	const char *ids[5], *other;
	json_t *first;

	world_ready(world, &node, 3);
	first = world_reserve(world, 2);
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		ids[i] = world_text(world_reserve(world, 2), "id");
	world_store_spec(world, &node);
	world_failed(world, &node, world_text(first, "allocations.0.id"), "overlap");
	look(world, &node);
	assert_int_equal(count_placed(world, ids, ARRAY_SIZE(ids)), 0);
	other = world_text(world_reserve(world, 1), "id");
	assert_string_equal(state_of(world, other), "placed");
	database_advance(MINUTE_MS - 1);
	look(world, &node);
	assert_int_equal(count_placed(world, ids, ARRAY_SIZE(ids)), 0);
	database_advance(1);
	look(world, &node);
	assert_int_equal(count_placed(world, ids, ARRAY_SIZE(ids)), 1);
}

/* A share of the host that isn't there is no fault of the devices. */
static void test_a_share_that_was_refused_rests_no_device(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *first;

	world_ready(world, &node, 2);
	first = world_reserve(world, 2);
	world_store_spec(world, &node);
	world_failed(world, &node, world_text(first, "allocations.0.id"), "resources-exhausted");
	assert_string_equal(world_text(world_reserve(world, 2), "state"), "placed");
}

/* A search looks at 64 nodes; who waits is placed also when the one that is free comes behind more
 * of those that take no work.
 * proves: RES-10 RES-52 */
static void test_who_waits_is_placed_behind_many_that_take_no_work(void **state)
{
	const struct control_condition exposed = {"ForeignGpuExposure", "Exposed", "", {0}};
	struct world *world = *state;
	struct world_node node;
	const char *first, *waiting;

	for (int i = 0; i < ROOM_MAX_LOOKS + 2; i++) {
		world_ready(world, &node, 1);
		world_conditions(world, &node, &exposed, 1);
	}
	database_advance(1);
	world_ready(world, &node, 1);
	first = world_text(world_reserve(world, 1), "id");
	assert_string_equal(state_of(world, first), "placed");
	waiting = world_text(world_reserve(world, 1), "id");
	assert_string_equal(state_of(world, waiting), "pending");
	world_call(world, control_reservation_release, first, NULL);
	world_tick(world);
	assert_string_equal(state_of(world, waiting), "placed");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_a_node_that_refuses_is_asked_ever_less_often),
		WORLD_TEST(test_devices_that_failed_rest),
		WORLD_TEST(test_a_share_that_was_refused_rests_no_device),
		WORLD_TEST(test_who_waits_is_placed_behind_many_that_take_no_work),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
