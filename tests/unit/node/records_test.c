/* Records that could not be written or read: only what is on disk is told, and nothing is taken as empty. */
#include "report_world.h"

#include "lib/folder.h"
#include "lib/hang.h"
#include "node/records.h"
#include "node/status.h"
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

static bool is_hanging(void *arg UNUSED)
{
	return hanging > 0;
}

static bool says_unwritable(const struct node *node)
{
	CLEANUP(tree) json_t *status = status_describe(node);
	CLEANUP(free) char *text = json_dumps(status, 0);

	return strstr(text, CONDITION_RECORDS_UNWRITABLE);
}

/* Nobody can end such a call, and nothing else is decided: which file it is, people and the control plane are told,
 * for as long as it lasts. proves: GW-28 GW-13 */
static void test_a_write_that_hangs_is_named(void **state)
{
	struct world *world = *state;

	write_spec(world, "lineage-1", 70, false);
	start_node(world, "lineage-1");
	uplink->sent_count = 0;
	hang_at = "/var/lib/bcd/.tmp-";
	uplink->spec = make_spec(world, "lineage-1", 71, true);
	uplink->options.wake(uplink->options.arg);
	kubelet_until(world->loop, is_hanging, NULL, 1000, "it is written");
	kubelet_pass(world->loop, DURABLE_HANG_MS - 3000);
	assert_null(unwritable(world));
	kubelet_pass(world->loop, 5000);
	assert_non_null(unwritable(world));
	assert_non_null(strstr(unwritable(world)->message, "nothing is bound"));
	assert_non_null(strstr(unwritable(world)->message, "/var/lib/bcd/spec.json': it hangs"));
	assert_non_null(strstr(unwritable(world)->message, "Look at the disk"));
	assert_true(says_unwritable(world->node));
	assert_non_null(strstr(last_sent(CONDITIONS)->told, CONDITION_RECORDS_UNWRITABLE));
	assert_int_equal(last_sent(CONDITIONS)->sequence, 0);
	assert_int_equal(uplink->sent_count, 1); /* said once */
	hang_at = NULL;
	settle(world);
	assert_null(unwritable(world));
	assert_false(says_unwritable(world->node));
	assert_int_equal(last_sent(BOUND)->generation, 71);
	assert_true(last_sent(CONDITIONS)->sequence > 0);
	assert_null(strstr(last_sent(CONDITIONS)->told, CONDITION_RECORDS_UNWRITABLE));
}

/* Then it is another trouble, and no moment's. */
static void test_a_write_that_hangs_and_fails(void **state)
{
	struct world *world = *state;

	write_spec(world, "lineage-1", 70, false);
	start_node(world, "lineage-1");
	hang_at = "/var/lib/bcd/.tmp-";
	uplink->spec = make_spec(world, "lineage-1", 71, true);
	uplink->options.wake(uplink->options.arg);
	kubelet_pass(world->loop, DURABLE_HANG_MS + 2000);
	assert_non_null(unwritable(world));
	hang_ends = EIO;
	hang_at = NULL;
	settle(world);
	hang_ends = 0;
	assert_non_null(unwritable(world));
	assert_non_null(strstr(unwritable(world)->message, "spec.json': Input/output error"));
	pass(world, RECORDS_CALM_MS + 3000);
	assert_null(unwritable(world));
	assert_int_equal(last_sent(BOUND)->generation, 71);
}

/* Before the first sync nothing may be told of records; but that it hangs, may. */
static void test_a_start_that_hangs_is_told(void **state)
{
	struct world *world = *state;
	struct error error;

	write_spec(world, "lineage-1", 70, true);
	hang_at = "/var/lib/bcd";
	expect_ok(node_create(world->loop, &world->config, NULL, &world->node, &error), &error);
	uplink->welcome = "lineage-1";
	kubelet_pass(world->loop, DURABLE_HANG_MS - 3000);
	assert_true(uplink->unready);
	kubelet_pass(world->loop, 5000);
	assert_false(uplink->unready);
	assert_non_null(strstr(unwritable(world)->message, "/var/lib/bcd': it hangs"));
	assert_int_equal(last_sent(CONDITIONS)->sequence, 0);
	assert_null(last_sent(BOUND));
	hang_at = NULL;
	settle(world);
	assert_null(unwritable(world));
	assert_int_equal(last_sent(BOUND)->generation, 70);
}

static size_t count_entries(struct world *world)
{
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(releases) struct releases releases = {0};
	struct error error;

	expect_ok(durable_read(at(world, "var/lib/bcd/releasing.json"), RELEASES_MAX_FILE, &text,
			       &error),
		  &error);
	expect_ok(releases_parse(buf_text(&text), text.length, &releases, &error), &error);
	return releases.entries.count;
}

/* Its entry goes by the acknowledgement of its number alone: a report that isn't there may have found no room.
 * proves: REL-47 */
static void test_a_release_without_its_report_is_told_again(void **state)
{
	struct world *world = *state;
	int64_t before;

	write_spec(world, "lineage-1", 70, false);
	write_releases(world, true, 0);
	start_node(world, "lineage-1");
	before = last_sent(RELEASED)->sequence;
	assert_true(reports_drop(&world->node->reports, REPORT_RELEASED, ALC_A));
	tell(world);
	assert_true(last_sent(RELEASED)->sequence > before);
	assert_int_equal(count_entries(world), 1);
	uplink->acknowledged = before;
	tell(world);
	assert_int_equal(count_entries(world), 1);
	uplink->acknowledged = last_sent(RELEASED)->sequence;
	tell(world);
	assert_int_equal(count_entries(world), 0);
}

/* While there is no room for its report it isn't over. */
static void test_a_release_waits_for_room(void **state)
{
	struct world *world = *state;
	struct reports *reports;

	write_spec(world, "lineage-1", 70, false);
	write_releases(world, true, 0);
	start_node(world, "lineage-1");
	reports = &world->node->reports;
	assert_true(reports_drop(reports, REPORT_RELEASED, ALC_A));
	for (int i = 0; i < REPORTS_MAX_RELEASED; i++) {
		char subject[ID_SIZE];

		snprintf(subject, sizeof subject, "alc_%d", i);
		reports_add(reports, REPORT_RELEASED, subject, 70);
	}
	world->node->sent = reports->sequence; /* as if */
	tell(world);
	assert_int_equal(count_entries(world), 1);
	assert_false(reports_has(&world->node->reports, REPORT_RELEASED, ALC_A));
	uplink->acknowledged = world->node->reports.sequence;
	tell(world);
	assert_true(reports_has(&world->node->reports, REPORT_RELEASED, ALC_A));
	assert_int_equal(count_entries(world), 1);
}

/* proves: GW-25 */
static void test_numbers_are_this_nodes_own(void **state)
{
	static const char first[] = "{\"version\": 1, \"sequence\": 1, \"reports\": []}";
	struct world *world = *state;
	int64_t before;

	write_spec(world, "lineage-1", 70, true);
	start_node(world, "lineage-1");
	before = world->node->reports.sequence;
	uplink->acknowledged = INT64_MAX; /* never given: it acknowledges nothing */
	tell(world);
	assert_int_equal(world->node->reports.sequence, before);
	assert_true(reports_has(&world->node->reports, REPORT_BOUND, ALC_A));
	/* The file is another one, or gone, and it is read anew: no number comes again. */
	uplink->acknowledged = before;
	tell(world);
	for (int gone = 0; gone < 2; gone++) {
		before = world->node->reports.sequence;
		write_text(world, "var/lib/bcd/reports.json",
			   &(struct buf){(uint8_t *)(uintptr_t)first, strlen(first), 0});
		if (gone)
			assert_int_equal(unlink(at(world, "var/lib/bcd/reports.json")), 0);
		world->node->unread = true;
		tell(world);
		assert_true(last_sent(BOUND)->sequence > before);
	}
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

/* Also of a test that has failed. */
static int let_go(void **state)
{
	hang_at = NULL;
	hang_ends = 0;
	return teardown(state);
}

#define WITH_DISK(test) cmocka_unit_test_setup_teardown(test, setup, let_go)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WITH_WORLD(test_a_list_that_failed_is_read_again),
		WITH_WORLD(test_one_file_that_fails_is_named_whatever_succeeds),
		WITH_DISK(test_a_write_that_hangs_is_named),
		WITH_DISK(test_a_write_that_hangs_and_fails),
		WITH_DISK(test_a_start_that_hangs_is_told),
		WITH_WORLD(test_a_release_without_its_report_is_told_again),
		WITH_WORLD(test_a_release_waits_for_room),
		WITH_WORLD(test_numbers_are_this_nodes_own),
		WITH_WORLD(test_what_cannot_be_written_is_not_sent),
		WITH_WORLD(test_a_spec_waits_for_a_disk_with_room),
		WITH_WORLD(test_damaged_reports_are_kept_and_told_anew),
		WITH_WORLD(test_a_damaged_spec_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
