#include "serve/passes.h"

#include "sys/loop.h"
#include "world.h"

static int set_up(void **state)
{
	int status = world_set_up(state);
	struct world *world = *state;

	world->passes = passes_create(world->loop, world->workers, world->gateway, 40);
	return status;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	/* its jobs come back while it is still there */
	workers_destroy(world->workers);
	world->workers = NULL;
	passes_destroy(world->passes);
	return world_tear_down(state);
}

static void test_first_pass_comes_soon(void **state)
{
	struct world *world = *state;

	world_idle(world); /* 100 ms */
	assert_int_equal(fake.ticks, 1);
	assert_int_equal(fake.polls, 1); /* a pass may have put something into the outbox */
	assert_int_equal(fake.last_after, 40);
}

/* However often it is asked for, one look answers all; what comes during a look gets another. */
static void test_asked_for(void **state)
{
	struct world *world = *state;

	world_idle(world);
	for (int i = 0; i < 10; i++)
		passes_look(world->passes);
	world_idle(world);
	assert_int_equal(fake.polls, 2);
	for (int i = 0; i < 10; i++)
		passes_tick(world->passes);
	world_idle(world);
	assert_int_equal(fake.ticks, 2);
	assert_int_equal(fake.polls, 3);
}

struct asker {
	struct passes *passes;
	struct loop_timer *timer;
};

static void on_ask(void *arg)
{
	struct asker *asker = arg;

	passes_look(asker->passes);
	passes_tick(asker->passes);
	loop_timer_start(asker->timer, 1);
}

/* Asked for without end, it comes all the same. */
static void test_asked_for_all_the_time(void **state)
{
	struct world *world = *state;
	struct asker asker = {.passes = world->passes};

	world_idle(world);
	asker.timer = loop_timer_create(world->loop, on_ask, &asker);
	loop_timer_start(asker.timer, 0);
	world_idle(world);
	loop_timer_destroy(asker.timer);
	assert_true(fake.polls > 2);
	assert_true(fake.ticks > 2);
}

static void test_goes_on_from_what_it_saw(void **state)
{
	struct world *world = *state;

	fake.outbox_last = 43;
	world_idle(world);
	passes_look(world->passes);
	world_idle(world);
	assert_int_equal(fake.last_after, 43);
	/* a failed look forgets nothing */
	fake.poll_code = ERROR_UNAVAILABLE;
	fake.outbox_last = 99;
	passes_look(world->passes);
	world_idle(world);
	fake.poll_code = ERROR_NONE;
	passes_look(world->passes);
	world_idle(world);
	assert_int_equal(fake.last_after, 43);
}

static bool has_passed(void)
{
	return fake.ticks > 0;
}

/* proves: ADM-7 */
static void test_leads_when_the_other_is_gone(void **state)
{
	struct world *world = *state;

	fake.other_leads = true;
	world_idle(world);
	passes_tick(world->passes);
	world_idle(world);
	assert_int_equal(fake.leads, 1);
	assert_int_equal(fake.ticks, 0);
	fake.other_leads = false;
	world_until(world, has_passed);
	assert_int_equal(fake.leads, 2);
	assert_int_equal(fake.ticks, 1);
}

static void on_drained(void *arg)
{
	bool *drained = arg;

	assert_true(fake.resigned_after > 0);
	*drained = true;
}

/* What is asked for meanwhile isn't done any more: that would take the lead back. */
static void test_draining_gives_the_lead_up(void **state)
{
	struct world *world = *state;
	bool drained = false;

	world_idle(world);
	passes_tick(world->passes);
	passes_drain(world->passes, on_drained, &drained);
	passes_tick(world->passes);
	world_run(world, CONTROL_LEAD_MS + 200);
	assert_true(drained);
	assert_int_equal(fake.leads, 1);
	assert_int_equal(fake.ticks, 1);
	assert_int_equal(fake.resigned_after, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_first_pass_comes_soon, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_asked_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_asked_for_all_the_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_goes_on_from_what_it_saw, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_leads_when_the_other_is_gone, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_draining_gives_the_lead_up, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
