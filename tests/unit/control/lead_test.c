/* Which replica leads. */
#include "control/lead.h"

#include "unit/control/world.h"

static bool leads(struct control *control)
{
	struct error error;
	bool leads = false;

	expect_ok(control_lead(control, &leads, &error), &error);
	return leads;
}

/* With a look each second another one leads at most 4.5 s after the last word of the leader.
 * proves: ADM-7 */
static void test_one_replica_leads_until_its_lease_ends(void **state)
{
	struct world *world = *state;
	struct control other;
	struct error error;

	static_assert(CONTROL_LEASE_MS + CONTROL_LEAD_MS < 5000, "ADM-7");
	world_connect(world, "replica-2", &other);
	assert_true(leads(&world->control));
	for (int i = 0; i < 10; i++) {
		database_advance(CONTROL_LEAD_MS);
		assert_false(leads(&other));
		assert_true(leads(&world->control));
	}
	database_advance(CONTROL_LEASE_MS);
	assert_true(leads(&other));
	assert_false(leads(&world->control));
	expect_ok(control_resign(&world->control, &error), &error); /* not its to give up */
	assert_false(leads(&world->control));
	expect_ok(control_resign(&other, &error), &error);
	assert_true(leads(&world->control));
	world_disconnect(&other);
}

static bool write_body(struct store_connection *db, void *argument, struct error *error)
{
	int *runs = argument;

	(*runs)++;
	return store_exec(db, "INSERT INTO counters (name, value) VALUES ('written', 1)",
			  STORE_NO_PARAMS, error) &&
	       store_exec(db, "DELETE FROM counters WHERE name = 'written'", STORE_NO_PARAMS,
			  error);
}

static bool holds(struct control *control, int64_t fence)
{
	struct error error;
	bool leads;
	int runs = 0;

	expect_ok(lead_run(control, fence, write_body, &runs, &leads, &error), &error);
	assert_int_equal(runs, leads);
	return leads;
}

static bool refuse_body(struct store_connection *db, void *argument, struct error *error)
{
	(void)db;
	(void)argument;
	return error_set(error, ERROR_INVALID_STATE, "no");
}

/* A body that fails says nothing about the lease. */
static void test_a_failed_step_ends_no_lead(void **state)
{
	struct world *world = *state;
	struct error error;
	int64_t fence;
	bool leads = false;

	expect_ok(lead_take(&world->control, &fence, &error), &error);
	expect_error(lead_run(&world->control, fence, refuse_body, NULL, &leads, &error), &error,
		     ERROR_INVALID_STATE, "no");
	assert_true(leads);
}

/* A leader that slept finds in each transaction that it leads no more.
 * proves: ADM-7 */
static void test_an_old_fence_does_nothing(void **state)
{
	struct world *world = *state;
	struct control other;
	int64_t mine, theirs;
	struct error error;

	world_connect(world, "replica-2", &other);
	expect_ok(lead_take(&world->control, &mine, &error), &error);
	assert_true(holds(&world->control, mine));
	database_advance(CONTROL_LEASE_MS);
	expect_ok(lead_take(&other, &theirs, &error), &error);
	assert_int_equal(theirs, mine + 1);
	assert_false(holds(&world->control, mine));
	assert_true(holds(&other, theirs));
	world_disconnect(&other);
}

/* The clock of the database went back by a day, and the leader is gone: its lease is of a time to come.
 * proves: ADM-7 */
static void test_a_lease_of_a_time_to_come_is_free(void **state)
{
	const int64_t day_ms = (int64_t)24 * 60 * 60 * 1000;
	struct world *world = *state;
	struct control other;
	int64_t mine;
	struct error error;

	world_connect(world, "replica-2", &other);
	assert_true(leads(&world->control));
	expect_ok(lead_take(&world->control, &mine, &error), &error);
	database_advance(-day_ms);
	/* Who holds it keeps it, under the same fence. */
	assert_true(leads(&world->control));
	assert_true(holds(&world->control, mine));
	assert_false(leads(&other));
	database_advance(-day_ms);
	assert_true(leads(&other));
	assert_false(holds(&world->control, mine));
	world_disconnect(&other);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_one_replica_leads_until_its_lease_ends),
		WORLD_TEST(test_an_old_fence_does_nothing),
		WORLD_TEST(test_a_failed_step_ends_no_lead),
		WORLD_TEST(test_a_lease_of_a_time_to_come_is_free),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
