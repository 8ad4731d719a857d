#include "control/core/reservation.h"

#include "lib/test.h"

/* The whole table: '.' is impossible, else the first letters of the next state.
 * proves: RES-46 */
static void test_every_event_in_every_state(void **state)
{
	static const struct {
		enum reservation_state from;
		/* placed bound unplaced withdrawn released cancelled expired denied lost
		 * preempted */
		const char *next[RESERVATION_EVENTS];
	} rows[] = {
		{RESERVATION_PENDING,
		 {"placed", NULL, NULL, NULL, "released", "cancelled", "expired", "denied", NULL}},
		{RESERVATION_PLACED,
		 {NULL, "active", "pending", "releasing", "released", NULL, NULL, NULL, NULL}},
		{RESERVATION_ACTIVE,
		 {NULL, "active", NULL, "releasing", NULL, NULL, NULL, NULL, "failed",
		  "preempted"}},
		{RESERVATION_RELEASING,
		 {NULL, "releasing", NULL, NULL, "released", NULL, NULL, NULL, "released"}},
		{RESERVATION_RELEASED, {NULL}},
		{RESERVATION_DENIED, {NULL}},
		{RESERVATION_FAILED, {NULL}},
		{RESERVATION_CANCELLED, {NULL}},
		{RESERVATION_EXPIRED, {NULL}},
		{RESERVATION_PREEMPTED, {NULL}},
	};

	(void)state;
	assert_int_equal(ARRAY_SIZE(rows), RESERVATION_STATES);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		bool any = false;

		for (size_t j = 0; j < RESERVATION_EVENTS; j++) {
			enum reservation_state next = RESERVATION_DENIED;
			bool can = reservation_next(rows[i].from, (enum reservation_event)j, &next);

			assert_int_equal(can, rows[i].next[j] != NULL);
			if (can)
				assert_string_equal(reservation_state_name(next), rows[i].next[j]);
			else
				assert_int_equal(next, RESERVATION_DENIED);
			any = any || can;
		}
		assert_int_equal(reservation_is_terminal(rows[i].from), !any);
	}
}

/* proves: RES-18 */
static void test_names_go_both_ways_and_releasing_is_shown_as_released(void **state)
{
	enum reservation_state parsed;
	enum allocation_state allocation;

	(void)state;
	for (size_t i = 0; i < RESERVATION_STATES; i++) {
		assert_true(reservation_state_parse(
			reservation_state_name((enum reservation_state)i), &parsed));
		assert_int_equal(parsed, i);
		if (i != RESERVATION_RELEASING)
			assert_string_equal(reservation_state_shown((enum reservation_state)i),
					    reservation_state_name((enum reservation_state)i));
	}
	assert_string_equal(reservation_state_shown(RESERVATION_RELEASING), "released");
	for (size_t i = 0; i < ALLOCATION_STATES; i++) {
		assert_true(allocation_state_parse(allocation_state_name((enum allocation_state)i),
						   &allocation));
		assert_int_equal(allocation, i);
	}
	for (size_t i = 0; i < RESERVATION_EVENTS; i++)
		assert_non_null(reservation_event_name((enum reservation_event)i));
	assert_false(reservation_state_parse("Released", &parsed));
	assert_false(allocation_state_parse("", &allocation));
}

/* What parts come to: pending and what is over is moved by nothing that its old parts do.
 * proves: GANG-1 */
static void test_parts_settle_the_whole(void **state)
{
	static const struct {
		enum reservation_state from;
		struct reservation_parts parts; /* wanted, placed, bound, releasing */
		const char *event;              /* NULL: none */
	} rows[] = {
		{RESERVATION_PLACED, {1, 1, 0, 0}, NULL},
		{RESERVATION_PLACED, {1, 0, 1, 0}, "bound"},
		{RESERVATION_PLACED, {3, 1, 2, 0}, NULL},
		{RESERVATION_PLACED, {3, 0, 3, 0}, "bound"},
		{RESERVATION_PLACED, {3, 0, 3, 1}, "bound"}, /* of a try before */
		{RESERVATION_PLACED, {3, 1, 0, 2}, NULL},
		{RESERVATION_PLACED, {3, 0, 0, 1}, "withdrawn"},
		{RESERVATION_PLACED, {3, 0, 0, 0}, "released"},
		{RESERVATION_ACTIVE, {3, 0, 3, 0}, NULL},
		{RESERVATION_ACTIVE, {3, 0, 1, 2}, NULL},
		{RESERVATION_ACTIVE, {3, 0, 0, 1}, "withdrawn"},
		{RESERVATION_ACTIVE, {3, 0, 0, 0}, "withdrawn"},
		{RESERVATION_RELEASING, {3, 0, 0, 1}, NULL},
		{RESERVATION_RELEASING, {3, 0, 0, 0}, "released"},
		{RESERVATION_PENDING, {3, 0, 0, 2}, NULL},
		{RESERVATION_PENDING, {1, 0, 0, 0}, NULL},
		{RESERVATION_RELEASED, {1, 0, 0, 0}, NULL},
		{RESERVATION_DENIED, {1, 0, 0, 0}, NULL},
		{RESERVATION_FAILED, {1, 0, 0, 0}, NULL},
		{RESERVATION_CANCELLED, {1, 0, 0, 0}, NULL},
		{RESERVATION_EXPIRED, {1, 0, 0, 0}, NULL},
		{RESERVATION_PREEMPTED, {1, 0, 0, 0}, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		enum reservation_event event;
		enum reservation_state next;
		bool any = reservation_settle(rows[i].from, &rows[i].parts, &event);

		if (any != (rows[i].event != NULL))
			fail_msg("row %zu", i);
		if (!any)
			continue;
		assert_string_equal(reservation_event_name(event), rows[i].event);
		assert_true(reservation_next(rows[i].from, event, &next));
	}
}

static void test_a_node_that_fails_again_is_left_alone_for_longer(void **state)
{
	(void)state;
	assert_int_equal(allocation_retry_ms(1, false), ALLOCATION_RETRY_MS);
	assert_int_equal(allocation_retry_ms(2, false), 2 * ALLOCATION_RETRY_MS);
	assert_int_equal(allocation_retry_ms(4, false), 8 * ALLOCATION_RETRY_MS);
	assert_int_equal(allocation_retry_ms(10, false), ALLOCATION_RETRY_MAX_MS);
	assert_int_equal(allocation_retry_ms(INT64_MAX, false), ALLOCATION_RETRY_MAX_MS);
	/* what was in the way may be gone */
	assert_int_equal(allocation_retry_ms(1, true), 0);
	assert_int_equal(allocation_retry_ms(2, true), ALLOCATION_EXCUSED_MS);
	assert_int_equal(allocation_retry_ms(4, true), 4 * ALLOCATION_EXCUSED_MS);
	assert_int_equal(allocation_retry_ms(10, true), ALLOCATION_RETRY_MS);
	assert_int_equal(allocation_retry_ms(INT64_MAX, true), ALLOCATION_RETRY_MS);
}

/* proves: RES-32 */
static void test_released_counts_from_the_spec_that_withdrew(void **state)
{
	(void)state;
	assert_false(allocation_release_counts(ALLOCATION_RELEASING, 7, 6));
	assert_true(allocation_release_counts(ALLOCATION_RELEASING, 7, 7));
	assert_true(allocation_release_counts(ALLOCATION_RELEASING, 7, 8));
	assert_false(allocation_release_counts(ALLOCATION_RELEASING, 0, 8));
	assert_false(allocation_release_counts(ALLOCATION_BOUND, 7, 8));
	assert_false(allocation_release_counts(ALLOCATION_PLACED, 7, 8));
	assert_false(allocation_release_counts(ALLOCATION_RELEASED, 7, 8));
	assert_false(allocation_release_counts(ALLOCATION_FAILED, 7, 8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_event_in_every_state),
		cmocka_unit_test(test_names_go_both_ways_and_releasing_is_shown_as_released),
		cmocka_unit_test(test_parts_settle_the_whole),
		cmocka_unit_test(test_a_node_that_fails_again_is_left_alone_for_longer),
		cmocka_unit_test(test_released_counts_from_the_spec_that_withdrew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
