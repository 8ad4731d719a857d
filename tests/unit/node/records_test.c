/* Records that could not be written or read: only what is on disk is told, and nothing is taken as empty. */
#include "report_world.h"

#include "lib/folder.h"
#include "node/records.h"
#include "sys/durable.h"

#include <signal.h>

static void read_reports(struct world *world, struct reports *reports)
{
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	expect_ok(durable_read(at(world, "var/lib/bcd/reports.json"), REPORTS_MAX_FILE, &text,
			       &error),
		  &error);
	expect_ok(reports_parse(buf_text(&text), text.length, reports, &error), &error);
}

/* The report was written, the list's last step was not: what is on disk counts, so it is sent,
 * though its entry doesn't say so yet; and that follows once the disk takes it.
 * proves: GW-17 REL-43 */
static void test_a_list_that_failed_is_read_again(void **state)
{
	struct world *world = *state;
	struct reports reports = {0};
	struct releases releases = {0};
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	signal(SIGXFSZ, SIG_IGN);
	write_spec(world, "lineage-1", 70, false);
	write_releases(world, false, 20000);
	limit_files(10000);
	start_node(world, "lineage-1");
	pass(world, NODE_WRITE_AGAIN_MS + 500);
	read_reports(world, &reports);
	assert_true(reports_has(&reports, REPORT_RELEASED, ALC_A));
	assert_non_null(last_sent(RELEASED));
	assert_true(last_sent(RELEASED)->sequence <= reports.sequence);
	limit_files(RLIM_INFINITY);
	uplink->acknowledged = reports.sequence;
	tell(world);
	pass(world, 1500);
	expect_ok(durable_read(at(world, "var/lib/bcd/releasing.json"), RELEASES_MAX_FILE, &text,
			       &error),
		  &error);
	expect_ok(releases_parse(buf_text(&text), text.length, &releases, &error), &error);
	assert_int_equal(releases.entries.count, 0); /* acknowledged */
	releases_deinit(&releases);
	reports_deinit(&reports);
}

static const struct condition *unwritable(const struct world *world)
{
	return conditions_find(&world->node->conditions, CONDITION_RECORDS_UNWRITABLE);
}

/* One file can't be written, and others can in between: people hear of that one until it hasn't failed for a while.
 * proves: GW-28 GW-13 */
static void test_one_file_that_fails_is_named_whatever_succeeds(void **state)
{
	struct world *world = *state;

	signal(SIGXFSZ, SIG_IGN);
	write_spec(world, "lineage-1", 70, false);
	write_releases(world, false, 20000);
	limit_files(10000);
	start_node(world, "lineage-1");
	for (int i = 0; i < 10; i++) {
		pass(world, 1000);
		uplink->acknowledged = last_sent(CONDITIONS)->sequence;
		world->node->inventory_due = true; /* something else to be recorded */
		tell(world);
		if (i > 5)
			assert_non_null(unwritable(world));
	}
	assert_non_null(strstr(unwritable(world)->message, "releasing.json': File too large"));
	limit_files(RLIM_INFINITY);
	pass(world, RECORDS_CALM_MS + 3000);
	assert_null(unwritable(world));
}

/* Nothing is sent that isn't on disk: a number that was sent and then lost would be used again.
 * proves: GW-17 */
static void test_what_cannot_be_written_is_not_sent(void **state)
{
	struct world *world = *state;

	signal(SIGXFSZ, SIG_IGN);
	write_spec(world, "lineage-1", 70, true);
	limit_files(1);
	start_node(world, "lineage-1");
	for (size_t i = 0; i < uplink->sent_count; i++)
		assert_int_equal(uplink->sent[i].sequence, 0);
	limit_files(RLIM_INFINITY);
	pass(world, 1500);
	assert_int_equal(last_sent(BOUND)->generation, 70);
}

/* A Spec that can't be stored isn't lost; meanwhile the control plane hears what is wrong, without a number.
 * proves: GW-28 */
static void test_a_spec_waits_for_a_disk_with_room(void **state)
{
	struct world *world = *state;
	const struct sent *told;

	signal(SIGXFSZ, SIG_IGN);
	write_spec(world, "lineage-1", 70, false);
	start_node(world, "lineage-1");
	uplink->sent_count = 0;
	limit_files(1);
	uplink->spec = make_spec(world, "lineage-1", 71, true);
	uplink->options.wake(uplink->options.arg);
	pass(world, CONDITIONS_WRITE_MS + 1500);
	told = last_sent(CONDITIONS);
	assert_non_null(told);
	assert_int_equal(told->sequence, 0);
	limit_files(RLIM_INFINITY);
	pass(world, 2500);
	assert_int_equal(last_sent(BOUND)->generation, 71);
	assert_true(last_sent(CONDITIONS)->sequence > 0);
}

static bool has_kept(struct world *world, const char *prefix)
{
	struct durable_names names = {0};
	struct error error;
	bool found = false;

	expect_ok(durable_list(at(world, "var/lib/bcd"), 100, &names, &error), &error);
	for (size_t i = 0; i < names.count; i++)
		found |= str_starts(names.names[i], prefix);
	durable_names_deinit(&names);
	return found;
}

/* Never taken as empty, and kept: what was bound is told anew, under numbers that were never given.
 * proves: REL-30 */
static void test_damaged_reports_are_kept_and_told_anew(void **state)
{
	static const char *const texts[] = {"", "{\"version\": 1, \"seq", "[]", "\x01"};
	struct world *world = *state;

	write_spec(world, "lineage-1", 70, true);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		const struct buf text = {(uint8_t *)texts[i], strlen(texts[i]), 0};
		int64_t before;

		start_node(world, "lineage-1");
		assert_non_null(last_sent(BOUND));
		before = uplink->sent[uplink->sent_count - 1].sequence;
		stop_node(world);
		write_text(world, "var/lib/bcd/reports.json", &text);
		start_node(world, "lineage-1");
		uplink->acknowledged = before;
		tell(world);
		assert_true(has_kept(world, "reports.json.unreadable-"));
		assert_true(last_sent(BOUND)->sequence > before);
		assert_true(last_sent(INVENTORY)->sequence > before);
		stop_node(world);
	}
}

/* proves: REL-30 */
static void test_a_damaged_spec_is_kept(void **state)
{
	const struct buf text = {(uint8_t *)"{\"version\": 1, ", 15, 0};
	struct world *world = *state;

	write_spec(world, "lineage-1", 70, true);
	start_node(world, "lineage-1");
	stop_node(world);
	write_text(world, "var/lib/bcd/spec.json", &text);
	start_node(world, "lineage-1");
	assert_true(has_kept(world, "spec.json.unreadable-"));
	assert_null(last_sent(RELEASED)); /* bound stays bound */
	uplink->spec = make_spec(world, "lineage-1", 71, true);
	tell(world);
	assert_int_equal(last_sent(BOUND)->generation, 71);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WITH_WORLD(test_a_list_that_failed_is_read_again),
		WITH_WORLD(test_one_file_that_fails_is_named_whatever_succeeds),
		WITH_WORLD(test_what_cannot_be_written_is_not_sent),
		WITH_WORLD(test_a_spec_waits_for_a_disk_with_room),
		WITH_WORLD(test_damaged_reports_are_kept_and_told_anew),
		WITH_WORLD(test_a_damaged_spec_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
