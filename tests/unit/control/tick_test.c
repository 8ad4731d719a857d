/* What the leader's pass forgets. */
#include "unit/control/world.h"

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

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_audit_is_kept_for_400_days),
		WORLD_TEST(test_failed_allocations_are_forgotten),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
