#include "control/core/stuck.h"

#include "lib/enumerate.h"

#define END ((int64_t)1000000000000)

static struct stuck_view usual(void)
{
	return (struct stuck_view){.asked_ms = END - 3600000,
				   .own_end_ms = END,
				   .booked_to_ms = END,
				   .held = true,
				   .reachable = true,
				   .was_bound = true};
}

static struct stuck_plan at(const struct stuck_view *view, int64_t ms)
{
	return stuck_decide(view, (struct wall){ms});
}

/* proves: RES-24 RES-25 */
static void test_carry_comes_within_half_a_step_of_the_end(void **state)
{
	struct stuck_view view = usual();

	(void)state;
	assert_int_equal(at(&view, END - STUCK_NEAR_MS - 1).step, STUCK_WAIT);
	assert_int_equal(at(&view, END - STUCK_NEAR_MS).step, STUCK_CARRY);
	assert_true(at(&view, END - STUCK_NEAR_MS).to_ms == END + STUCK_STEP_MS);
	/* After a while without passes it goes on from now. */
	assert_true(at(&view, END + 5).to_ms == END + 5 + STUCK_STEP_MS);
	view.reachable = false;
	assert_int_equal(at(&view, END).step, STUCK_WAIT);
}

/* proves: RES-28 */
static void test_carry_ends_a_day_after_the_allocations_own_end(void **state)
{
	struct stuck_view view = usual();

	(void)state;
	view.booked_to_ms = END + STUCK_MAX_CARRY_MS;
	assert_int_equal(at(&view, END + STUCK_MAX_CARRY_MS - 1).step, STUCK_CARRY);
	assert_int_equal(at(&view, END + STUCK_MAX_CARRY_MS).step, STUCK_FINISH);
	view.reachable = false;
	assert_int_equal(at(&view, END + 2 * STUCK_MAX_CARRY_MS).step, STUCK_WAIT);
}

/* proves: RES-28 RES-29 RES-30 */
static void test_what_is_booked_next_is_not_pushed_away(void **state)
{
	struct stuck_view view = usual();
	int64_t next_ms = END + 8 * 3600000;

	(void)state;
	view.booked_next = true;
	view.handover_ms = next_ms + STUCK_HANDOVER_MS;
	view.held = false;
	assert_int_equal(at(&view, END).step, STUCK_WAIT);
	/* Its own end ends nothing: until then nobody needs the devices. */
	assert_int_equal(at(&view, END + STUCK_HANDOVER_MS).step, STUCK_WAIT);
	assert_int_equal(at(&view, next_ms + STUCK_HANDOVER_MS - 1).step, STUCK_WAIT);
	assert_int_equal(at(&view, next_ms + STUCK_HANDOVER_MS).step, STUCK_FINISH);
	assert_string_equal(at(&view, next_ms + STUCK_HANDOVER_MS).why, "BookedNext");
	/* What is booked for days later puts nothing off. */
	view.handover_ms = END + 2 * STUCK_MAX_CARRY_MS;
	assert_int_equal(at(&view, END + STUCK_MAX_CARRY_MS - 1).step, STUCK_WAIT);
	assert_string_equal(at(&view, END + STUCK_MAX_CARRY_MS).why, "CarriedTooLong");
	/* When it goes away, nobody else gets in between. */
	view.booked_next = false;
	assert_int_equal(at(&view, END).step, STUCK_HOLD);
}

/* proves: RES-55 */
static void test_release_before_the_binding_waits_for_it(void **state)
{
	struct stuck_view view = usual();
	int64_t due = view.asked_ms + STUCK_DEFERRED_MS;

	(void)state;
	view.was_bound = false;
	assert_int_equal(at(&view, due).step, STUCK_WAIT);
	view.unknown_to_node = true;
	assert_int_equal(at(&view, due - 1).step, STUCK_WAIT);
	assert_int_equal(at(&view, due).step, STUCK_FINISH);
	view.was_bound = true;
	assert_int_equal(at(&view, due).step, STUCK_WAIT);
}

/* Of every view: a release ends without the node's word in four cases only.
 * proves: RES-17 RES-29 */
static void test_nothing_else_ends_a_release(void **state)
{
	static const int64_t times[] = {END - 3600000, END - 1, END, END + STUCK_HANDOVER_MS,
					END + STUCK_MAX_CARRY_MS};
	struct enumerate all = {0};

	(void)state;
	while (enumerate_next(&all)) {
		struct stuck_view view = usual();
		int64_t now = times[enumerate_pick(&all, ARRAY_SIZE(times))];
		bool may;

		view.held = enumerate_pick(&all, 2);
		view.booked_next = enumerate_pick(&all, 2);
		view.node_lost = enumerate_pick(&all, 2);
		view.reachable = enumerate_pick(&all, 2);
		view.was_bound = enumerate_pick(&all, 2);
		view.unknown_to_node = enumerate_pick(&all, 2);
		view.handover_ms = END + 60000 + STUCK_HANDOVER_MS;
		may = view.node_lost || (view.booked_next && now >= view.handover_ms) ||
		      (!view.was_bound && view.unknown_to_node &&
		       now >= view.asked_ms + STUCK_DEFERRED_MS) ||
		      (view.reachable && view.held && now >= END + STUCK_MAX_CARRY_MS);
		if (at(&view, now).step == STUCK_FINISH)
			assert_true(may);
		if (view.booked_next)
			assert_true(at(&view, now).step == STUCK_WAIT ||
				    at(&view, now).step == STUCK_FINISH);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_carry_comes_within_half_a_step_of_the_end),
		cmocka_unit_test(test_carry_ends_a_day_after_the_allocations_own_end),
		cmocka_unit_test(test_what_is_booked_next_is_not_pushed_away),
		cmocka_unit_test(test_release_before_the_binding_waits_for_it),
		cmocka_unit_test(test_nothing_else_ends_a_release),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
