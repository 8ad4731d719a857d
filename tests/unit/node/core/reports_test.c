#include "fixture.h"
#include "node/core/reports.h"

static void fill(struct reports *reports)
{
	struct atom atom = {.class = ATOM_SLOT, .slot = 3};

	*vec_push(&reports_add(reports, REPORT_BOUND, ALC_A, 1)->atoms) = atom;
	reports_add(reports, REPORT_INVENTORY, "", 1);
	str_copy(reports_add(reports, REPORT_FAILED, ALC_B, 1)->reason, REPORTS_REASON_SIZE,
		 "overlap");
	reports_add(reports, REPORT_RELEASED, ALC_A, 2);
}

/* proves: GW-17 GW-25 */
static void test_record_comes_back(void **state)
{
	struct reports reports = {0}, back = {0};
	struct buf text = {0}, again = {0};
	struct error error;

	(void)state;
	fill(&reports);
	reports_format(&reports, &text);
	expect_ok(reports_parse(buf_text(&text), text.length, &back, &error), &error);
	reports_format(&back, &again);
	assert_string_equal(buf_text(&text), buf_text(&again));
	assert_int_equal(back.sequence, 4);
	for (size_t length = 0; length + 1 < text.length; length++) {
		struct reports cut = {0};

		if (reports_parse(buf_text(&text), length, &cut, &error))
			fail_msg("the first %zu bytes were taken", length);
	}
	reports_deinit(&reports);
	reports_deinit(&back);
	buf_deinit(&text);
	buf_deinit(&again);
}

/* proves: GW-25 */
static void test_numbers_grow_and_are_never_used_twice(void **state)
{
	struct reports reports = {0};

	(void)state;
	fill(&reports);
	reports_acknowledge(&reports, 2);
	assert_int_equal(reports.queue.count, 2);
	assert_int_equal(reports.queue.items[0].sequence, 3);
	reports_acknowledge(&reports, 4);
	assert_int_equal(reports.queue.count, 0);
	assert_int_equal(reports_add(&reports, REPORT_INVENTORY, "", 1)->sequence, 5);
	reports_acknowledge(&reports, 2); /* an older answer changes nothing */
	assert_int_equal(reports.queue.count, 1);
	reports_deinit(&reports);
}

/* A faulty control plane takes no report for heard of, and no number from us. */
static void test_what_was_never_given_is_not_acknowledged(void **state)
{
	struct reports reports = {0};

	(void)state;
	fill(&reports);
	reports_acknowledge(&reports, 5);
	reports_acknowledge(&reports, INT64_MAX);
	reports_acknowledge(&reports, -1);
	assert_int_equal(reports.queue.count, 4);
	assert_int_equal(reports_add(&reports, REPORT_INVENTORY, "", 1)->sequence, 5);
	reports_deinit(&reports);
}

/* A record from which nothing could be counted on is none. */
static void test_the_highest_number(void **state)
{
	struct reports reports = {0};
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	(void)state;
	reports.sequence = REPORTS_MAX_SEQUENCE;
	reports_format(&reports, &text);
	expect_ok(reports_parse(buf_text(&text), text.length, &reports, &error), &error);
	reports.sequence++;
	buf_clear(&text);
	reports_format(&reports, &text);
	expect_error(reports_parse(buf_text(&text), text.length, &reports, &error), &error,
		     ERROR_INVALID_INPUT, "sequence");
}

static void test_newer_state_replaces_older(void **state)
{
	struct reports reports = {0};

	(void)state;
	for (int i = 0; i < 10; i++)
		reports_add(&reports, REPORT_CONDITIONS, "", i);
	assert_int_equal(reports.queue.count, 1);
	assert_int_equal(reports.queue.items[0].sequence, 10);
	assert_true(reports_has(&reports, REPORT_CONDITIONS, ""));
	assert_false(reports_has(&reports, REPORT_INVENTORY, ""));
	reports_deinit(&reports);
}

static void test_a_report_is_taken_back(void **state)
{
	struct reports reports = {0};

	(void)state;
	reports_add(&reports, REPORT_RELEASED, ALC_A, 1);
	reports_add(&reports, REPORT_BOUND, ALC_A, 2);
	reports_add(&reports, REPORT_RELEASED, ALC_B, 2);
	assert_true(reports_drop(&reports, REPORT_RELEASED, ALC_A));
	assert_false(reports_drop(&reports, REPORT_RELEASED, ALC_A));
	assert_int_equal(reports.queue.count, 2);
	assert_true(reports_has(&reports, REPORT_BOUND, ALC_A));
	assert_true(reports_has(&reports, REPORT_RELEASED, ALC_B));
	assert_int_equal(reports.sequence, 3); /* its number isn't used again */
	reports_deinit(&reports);
}

static void add_many(struct reports *reports, enum report_kind kind, int count)
{
	for (int i = 0; i < count; i++) {
		char subject[ID_SIZE];

		snprintf(subject, sizeof subject, "alc_%lld", (long long)reports->sequence);
		reports_add(reports, kind, subject, 1);
	}
}

static void test_the_queue_has_a_bound(void **state)
{
	struct reports reports = {0};

	(void)state;
	add_many(&reports, REPORT_FAILED, REPORTS_MAX + 10);
	assert_int_equal(reports.queue.count, REPORTS_MAX);
	assert_int_equal(reports.queue.items[0].sequence, 11);
	reports_deinit(&reports);
}

/* Whatever else there is goes first, and leaves them room. */
static void test_releases_stay_when_room_is_short(void **state)
{
	struct reports reports = {0};

	(void)state;
	reports_add(&reports, REPORT_INVENTORY, "", 1);
	while (reports_may_release(&reports))
		add_many(&reports, REPORT_RELEASED, 1);
	assert_int_equal(reports.queue.count, 1 + REPORTS_MAX_RELEASED);
	add_many(&reports, REPORT_BOUND, REPORTS_MAX);
	assert_int_equal(reports.queue.count, REPORTS_MAX);
	for (size_t i = 0; i < REPORTS_MAX; i++)
		assert_true((reports.queue.items[i].kind == REPORT_RELEASED) ==
			    (i < REPORTS_MAX_RELEASED));
	reports_deinit(&reports);
	reports = (struct reports){0};
	add_many(&reports, REPORT_RELEASED, REPORTS_MAX + 1); /* by whoever didn't ask */
	assert_int_equal(reports.queue.count, REPORTS_MAX);
	reports_deinit(&reports);
}

/* The oldest goes when the file couldn't be read again otherwise, but no release.
 * proves: GW-17 */
static void test_the_record_stays_readable(void **state)
{
	struct reports reports = {0}, back = {0};
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	(void)state;
	reports_add(&reports, REPORT_RELEASED, ALC_A, 1);
	for (int i = 0; i < 200; i++) {
		char subject[ID_SIZE];
		struct report *report;

		snprintf(subject, sizeof subject, "alc_%d", i);
		report = reports_add(&reports, REPORT_BOUND, subject, 1);
		for (int device = 0; device < HOLDS_MAX_DEVICES; device++)
			*vec_push(&report->atoms) =
				(struct atom){.class = ATOM_SLOT, .slot = (uint16_t)(device % 512)};
	}
	reports_format(&reports, &text);
	assert_in_range(text.length, REPORTS_MAX_FILE / 2, REPORTS_MAX_FILE);
	assert_in_range(reports.queue.count, 20, 199);
	assert_string_equal(reports.queue.items[reports.queue.count - 1].subject, "alc_199");
	expect_ok(reports_parse(buf_text(&text), text.length, &back, &error), &error);
	assert_int_equal(back.queue.count, reports.queue.count);
	assert_int_equal(back.sequence, 201);
	assert_true(reports_has(&back, REPORT_RELEASED, ALC_A));
	reports_deinit(&reports);
	reports_deinit(&back);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_record_comes_back),
		cmocka_unit_test(test_numbers_grow_and_are_never_used_twice),
		cmocka_unit_test(test_what_was_never_given_is_not_acknowledged),
		cmocka_unit_test(test_the_highest_number),
		cmocka_unit_test(test_newer_state_replaces_older),
		cmocka_unit_test(test_a_report_is_taken_back),
		cmocka_unit_test(test_the_queue_has_a_bound),
		cmocka_unit_test(test_releases_stay_when_room_is_short),
		cmocka_unit_test(test_the_record_stays_readable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
