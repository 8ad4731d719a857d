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

struct fenced {
	int64_t fence;
	bool leads;
};

static bool fenced_body(struct store_connection *db, void *argument, struct error *error)
{
	struct fenced *fenced = argument;

	return lead_check(db, fenced->fence, &fenced->leads, error);
}

static bool holds(struct control *control, int64_t fence)
{
	struct fenced fenced = {.fence = fence};
	struct error error;

	expect_ok(store_run(control->connection, STORE_WRITE, fenced_body, &fenced, &error),
		  &error);
	return fenced.leads;
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

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_one_replica_leads_until_its_lease_ends),
		WORLD_TEST(test_an_old_fence_does_nothing),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
