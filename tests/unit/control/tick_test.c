/* What the leader's pass forgets. */
#include "control/forget.h"
#include "control/lead.h"
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

static bool old_events_body(struct store_connection *db, void *argument, struct error *error)
{
	const int64_t *many = argument;

	return store_exec(db,
			  "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
			  "WHERE i < $1) INSERT INTO events (seq, at_ms, tenant, type, subject, "
			  "data) SELECT i + 1000000, 1, '', 'old', '', '{}' FROM n",
			  STORE_PARAMS(store_int(*many)), error);
}

#define OLD_EVENTS "SELECT count(*) FROM events WHERE type = 'old'"

static uint64_t committed(struct world *world)
{
	struct store_stats stats;

	store_stats_read(world->store, STORE_WRITE, &stats);
	return stats.committed;
}

/* However many there are to forget: they go in transactions of 1,000, and no pass is held up by them.
 */
static void test_much_is_forgotten_in_pieces(void **state)
{
	struct world *world = *state;
	int64_t many = FORGET_BATCH * FORGET_BATCHES + 1500;
	uint64_t before, idle;
	struct error error;

	world_tick(world);
	before = committed(world);
	world_tick(world);
	idle = committed(world) - before;
	expect_ok(store_run(world->control.connection, STORE_WRITE, old_events_body, &many, &error),
		  &error);
	before = committed(world);
	world_tick(world);
	assert_int_equal(count(world, OLD_EVENTS), 1500);
	assert_int_equal(committed(world) - before, idle + FORGET_BATCHES - 1);
	before = committed(world);
	world_tick(world);
	assert_int_equal(count(world, OLD_EVENTS), 0);
	assert_int_equal(committed(world) - before, idle + 1);
}

/* A replica that slept forgets nothing once another leads.
 * proves: ADM-7 */
static void test_only_the_leader_forgets(void **state)
{
	struct world *world = *state;
	int64_t many = 3, fence;
	struct control other;
	bool leads = true;
	struct error error;

	world_connect(world, "replica-2", &other);
	expect_ok(store_run(world->control.connection, STORE_WRITE, old_events_body, &many, &error),
		  &error);
	expect_ok(lead_take(&world->control, &fence, &error), &error);
	expect_ok(control_resign(&world->control, &error), &error);
	expect_ok(lead_take(&other, &(int64_t){0}, &error), &error);
	expect_ok(forget_old(&world->control, fence, &leads, &error), &error);
	assert_false(leads);
	assert_int_equal(count(world, OLD_EVENTS), 3);
	expect_ok(control_tick(&other, &error), &error);
	assert_int_equal(count(world, OLD_EVENTS), 0);
	world_disconnect(&other);
}

/* No reason is noted yet, and the lease goes to another with the first one. */
static bool steal_body(struct store_connection *db, void *argument, struct error *error)
{
	(void)argument;
	if (!store_exec(db, "UPDATE reservations SET reasons = '[]'", STORE_NO_PARAMS, error))
		return false;
	if (!database_is_postgres())
		return store_exec(db,
				  "CREATE TRIGGER steal AFTER UPDATE OF reasons ON reservations "
				  "BEGIN UPDATE leases SET fence = fence + 1; END",
				  STORE_NO_PARAMS, error);
	return store_exec(db,
			  "CREATE FUNCTION steal() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN "
			  "UPDATE leases SET fence = fence + 1; RETURN NEW; END'",
			  STORE_NO_PARAMS, error) &&
	       store_exec(db,
			  "CREATE TRIGGER steal AFTER UPDATE OF reasons ON reservations FOR EACH "
			  "ROW EXECUTE FUNCTION steal()",
			  STORE_NO_PARAMS, error);
}

/* proves: ADM-7 */
static void test_only_the_leader_notes_why_something_waits(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct error error;

	world_ready(world, &node, 1);
	world_reserve(world, 1);
	for (int i = 0; i < 3; i++)
		world_reserve(world, 1);
	expect_ok(store_run(world->control.connection, STORE_WRITE, steal_body, NULL, &error),
		  &error);
	world_tick(world);
	assert_int_equal(count(world, "SELECT count(*) FROM reservations WHERE reasons <> '[]'"),
			 1);
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
		WORLD_TEST(test_much_is_forgotten_in_pieces),
		WORLD_TEST(test_only_the_leader_forgets),
		WORLD_TEST(test_only_the_leader_notes_why_something_waits),
		WORLD_TEST(test_whoever_waits_behind_a_crowd_gets_a_turn),
		WORLD_TEST(test_a_node_that_is_gone_has_no_room),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
