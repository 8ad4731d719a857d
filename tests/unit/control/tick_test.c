/* What the leader's pass forgets. */
#include "unit/control/world.h"

#include <stdio.h>

#define DAY_MS ((int64_t)24 * 60 * 60 * 1000)

struct counting {
	const char *sql;
	int64_t count;
};

static bool count_body(struct store_connection *db, void *argument, struct error *error)
{
	struct counting *counting = argument;
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db, counting->sql, STORE_NO_PARAMS, &rows, error))
		return false;
	counting->count = store_get_int(&rows, 0, 0);
	return true;
}

static int64_t count(struct world *world, const char *sql)
{
	struct counting counting = {.sql = sql};
	struct error error;

	expect_ok(store_run(world->control.connection, STORE_READ, count_body, &counting, &error),
		  &error);
	return counting.count;
}

/* The audit trail of ADM-4 is kept as long as that asks, and no longer. */
static void test_audit_is_kept_for_400_days(void **state)
{
	struct world *world = *state;
	int64_t before;

	world_call(world, control_tenant_create, NULL, "{\"name\":\"before\"}");
	before = count(world, "SELECT count(*) FROM audit");
	assert_true(before > 0);
	database_advance(400 * DAY_MS);
	world_tick(world);
	assert_int_equal(count(world, "SELECT count(*) FROM audit"), before);
	world_call(world, control_tenant_create, NULL, "{\"name\":\"after\"}");
	database_advance(1);
	world_tick(world);
	assert_int_equal(count(world, "SELECT count(*) FROM audit"), 1);
}

/* What was never bound goes after 30 days; what was stays. */
static void test_failed_allocations_are_forgotten(void **state)
{
	struct world *world = *state;
	struct world_node node;
	const char *allocation;
	json_t *reservation;

	world_ready(world, &node, 4);
	reservation = world_reserve(world, 2);
	allocation = world_text(reservation, "allocations.0.id");
	world_bind(world, &node, allocation);
	world_call(world, control_reservation_release, world_text(reservation, "id"), NULL);
	world_store_spec(world, &node);
	world_released(world, &node, allocation);
	reservation = world_reserve(world, 4);
	world_store_spec(world, &node);
	world_failed(world, &node, world_text(reservation, "allocations.0.id"), "overlap");
	world_call(world, control_reservation_cancel, world_text(reservation, "id"), NULL);
	database_advance(30 * DAY_MS);
	world_tick(world);
	assert_int_equal(count(world, "SELECT count(*) FROM allocations"), 2);
	database_advance(1);
	world_tick(world);
	assert_int_equal(count(world, "SELECT count(*) FROM allocations"), 1);
	assert_int_equal(count(world, "SELECT count(*) FROM allocation_devices"), 2);
	assert_false(world_has(world_reservation(world, world_text(reservation, "id")),
			       "allocations.0"));
}

struct crowd {
	const char *like;
	int count;
};

/* Reservations as that one, which came right after it. */
static bool crowd_body(struct store_connection *db, void *argument, struct error *error)
{
	const struct crowd *crowd = argument;

	for (int i = 0; i < crowd->count; i++) {
		char id[ID_SIZE];

		snprintf(id, sizeof id, "rsv_%026d", i);
		if (!store_exec(db,
				"INSERT INTO reservations (id, tenant, pool, state, state_reason, "
				"binding, devices, duration_ms, reasons, created_ms) SELECT $2, "
				"tenant, pool, state, state_reason, binding, devices, duration_ms, "
				"reasons, created_ms FROM reservations WHERE id = $1",
				STORE_PARAMS(store_text(crowd->like), store_text(id)), error))
			return false;
	}
	return true;
}

static bool is_placed(struct world *world, const char *id)
{
	return str_equal(world_text(world_reservation(world, id), "state"), "placed");
}

/* A pass takes 1,000 of those that wait. Whoever stands behind as many that can't be placed gets a
 * turn all the same.
 * proves: RES-16 */
static void test_whoever_waits_behind_a_crowd_gets_a_turn(void **state)
{
	struct world *world = *state;
	struct crowd crowd = {.count = 1200};
	struct world_node node;
	const char *running, *last;
	struct error error;

	world_ready(world, &node, 8);
	world_reserve(world, 1);
	running = world_text(world_reserve(world, 7), "id");
	crowd.like = world_text(world_reserve(world, 8), "id");
	expect_ok(store_run(world->control.connection, STORE_WRITE, crowd_body, &crowd, &error),
		  &error);
	database_advance(1);
	last = world_text(world_reserve(world, 1), "id");
	world_call(world, control_reservation_release, running, NULL);
	/* Each pass has it among those that it takes more often than not. */
	for (int i = 0; i < 50 && !is_placed(world, last); i++)
		world_tick(world);
	assert_true(is_placed(world, last));
}

/* What nobody asks any more takes no room in the search. */
static void test_a_node_that_is_gone_has_no_room(void **state)
{
	struct world *world = *state;
	struct world_node lost, retired;

	world_ready(world, &lost, 2);
	world_ready(world, &retired, 2);
	assert_int_equal(count(world, "SELECT count(*) FROM node_room"), 2);
	world_call(world, control_node_retire, lost.id, "{\"lost\":true}");
	world_call(world, control_node_retire, retired.id, NULL);
	assert_int_equal(count(world, "SELECT count(*) FROM node_room"), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_audit_is_kept_for_400_days),
		WORLD_TEST(test_failed_allocations_are_forgotten),
		WORLD_TEST(test_whoever_waits_behind_a_crowd_gets_a_turn),
		WORLD_TEST(test_a_node_that_is_gone_has_no_room),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
