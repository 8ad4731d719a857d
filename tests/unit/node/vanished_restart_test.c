/* Who has vanished, and a bcd or a machine that is started meanwhile. */
#include "node/unlisted.h"

#include "node/core/reap.h"
#include "node/core/release.h"
#include "node/state.h"
#include "sys/clock.h"
#include "sys/durable.h"
#include "vanished_world.h"

static int64_t waits_since(void)
{
	CLEANUP(releases) struct releases releases = {0};
	CLEANUP(buf) struct buf text = {0};
	char boot_id[CLOCK_BOOT_ID_SIZE];
	struct error error;

	clock_boot_id(boot_id);
	CHECK(durable_read(folder_path(cluster.folder, "var/lib/bcd/releasing.json"),
			   RELEASES_MAX_FILE, &text, &error));
	CHECK(releases_parse(buf_text(&text), text.length, &releases, &error));
	return str_equal(releases.entries.items[0].boot_id, boot_id)
		       ? releases.entries.items[0].since_boot_ms
		       : -1;
}

/* It waits from its first sight in this boot, as any, also over a restart. */
static void waits_since_a_reboot(void)
{
	struct mono from = clock_mono();
	int64_t since;

	for (int i = 0; i < 300 && waits_since() < 0; i++)
		kubelet_pass(cluster.loop, 100);
	since = waits_since();
	CHECK(since >= from.ms - 5000);
	node_destroy(TAKE(cluster.node));
	kubelet_pass(cluster.loop, 5000);
	start_node();
	pass_until_told("only the kubelet's checkpoint names it, and the API server has it");
	CHECK(waits_since() == since);
}

/* It was over long before the release, and the kubelet hasn't written its checkpoint since. */
static void over_before_a_restart(void)
{
	for (int i = 0; i < 300 && !has_record("\"over\": true"); i++)
		kubelet_pass(cluster.loop, 100);
	kubelet_pass(cluster.loop, 2 * NODE_HOLDERS_MS);
	CHECK(has_record("\"over\": true"));
	node_destroy(TAKE(cluster.node));
	write_spec(2, false);
	start_node();
	CHECK(pass_until_reported() < RELEASE_KUBELET_SETTLE_MS + 5000);
}

/* Who had what is bound was in the record, and nobody else names him: it may run while the marker is there. */
static void lost_with_the_record(void)
{
	for (int i = 0; i < 300 && !has_record(UID); i++)
		kubelet_pass(cluster.loop, 100);
	CHECK(has_record(UID));
	forget();
	kubelet_pass(cluster.loop, 2 * NODE_HOLDERS_MS);
	node_destroy(TAKE(cluster.node));
	cluster_write(&cluster, "var/lib/bcd/releasing.json", "{\"version\": 1, \"rel");
	write_spec(2, false);
	start_node();
	pass_until_told("pods that nobody lists any more may run, for up to an hour");
	/* also by the next one, which finds the marker */
	node_destroy(TAKE(cluster.node));
	start_node();
	pass_until_told("pods that nobody lists any more may run, for up to an hour");
	kubelet_pass(cluster.loop, 2 * (GRACE_MS + UNLISTED_MARGIN_MS));
	CHECK(has_record(ALC_A));
	CHECK(!is_reported());
}

/* Whoever was given it since the machine was booted may have it. proves: REL-2 REL-14 HOSTED-24 */
static void test_given_after_a_reboot(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200, .body = LIST(OTHER "," POD(RUNS))},
		{.status = 200, .body = LIST(OTHER)}};

	tell(state, ANSWERS, ARRAY_SIZE(ANSWERS), REBOOTED, counted_from_its_end);
}

/* proves: REL-49 */
static void test_waits_since_a_reboot(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200, .body = LIST(OTHER "," POD(RUNS))}};

	tell(state, ANSWERS, ARRAY_SIZE(ANSWERS), REBOOTED, waits_since_a_reboot);
}

/* Also to the next bcd. proves: HOSTED-24 REL-46 */
static void test_over_before_a_restart(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200, .body = LIST(OTHER "," POD(RUNS))},
		{.status = 200, .body = LIST(OTHER "," FAILED("terminated"))},
		{.status = 200, .body = LIST(OTHER)},
	};

	tell(state, ANSWERS, ARRAY_SIZE(ANSWERS), WANTED, over_before_a_restart);
}

/* proves: REL-2 REL-36 HOSTED-24 */
static void test_lost_with_the_record(void **state)
{
	static const struct fake_api_answer ANSWERS[] = {
		{.status = 200, .body = LIST(OTHER "," POD(RUNS))},
		{.status = 200, .body = LIST(OTHER)},
	};

	tell(state, ANSWERS, ARRAY_SIZE(ANSWERS), WANTED, lost_with_the_record);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_FOLDER(test_given_after_a_reboot),
		IN_FOLDER(test_waits_since_a_reboot),
		IN_FOLDER(test_over_before_a_restart),
		IN_FOLDER(test_lost_with_the_record),
	};

	return cmocka_run_group_tests(tests, cluster_set_up, cluster_tear_down);
}
