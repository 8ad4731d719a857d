/* What the node tells, under which Spec: the shell on a real disk, with an uplink that is the test's. */
#include "report_world.h"

#include "lib/folder.h"
#include "lib/nodecert.h"
#include "sys/durable.h"

#include <signal.h>

static void expect_place(struct world *world, const char *site, const char *pool)
{
	CLEANUP(identity) struct identity identity = {0};
	struct error error;

	expect_ok(identity_load(at(world, "var/lib/bcd"), &identity, &error), &error);
	assert_string_equal(identity.site, site);
	assert_string_equal(identity.pool, pool);
}

static void expect_refused(struct world *world, const char *kind, const char *why)
{
	uplink->operation = kind;
	tell(world);
	assert_null(uplink->operation);
	assert_non_null(last_sent(RESULT));
	assert_true(str_starts(last_sent(RESULT)->told, "op_1 refused: "));
	if (!strstr(last_sent(RESULT)->told, why))
		fail_msg("%s: '%s', not '%s'", kind, last_sent(RESULT)->told, why);
}

/* Each is answered, like any report, by a refusal that says why.  proves: GW-21 GW-22 HOSTED-27 HOSTED-28 */
static void test_no_update_and_no_reboot(void **state)
{
	struct world *world = *state;

	world->config.host_units = false;
	write_spec(world, "lineage-1", 4, false);
	start_node(world, "lineage-1");
	expect_refused(world, "daemon.upgrade", "self-update-refused: bcd doesn't update itself");
	expect_refused(world, "node.reboot", "reboot-refused: bcd never reboots a node");
	expect_refused(world, "node.labels", "unsupported: ");
	world->config.host_units = true;
	expect_refused(world, "daemon.upgrade", "no [update] release_pins; install a new version");
}

/* Of a host that others own only what there is is told.  proves: HOST-7 HOST-8 */
static void test_a_host_of_others(void **state)
{
	struct world *world = *state;

	world->config.host_units = false;
	world->config.kubeconfig = "";
	write_spec(world, "lineage-1", 4, false);
	start_node(world, "lineage-1");
	assert_non_null(last_sent(CONDITIONS));
	assert_non_null(
		strstr(last_sent(CONDITIONS)->told, "HostUnsupported (HostManagedExternally): "));
	assert_non_null(strstr(last_sent(CONDITIONS)->told, "host section UNSUPPORTED"));
	assert_non_null(last_sent(INVENTORY));
	assert_true(str_starts(last_sent(INVENTORY)->told, "8 GPUs, "));
	assert_null(strstr(last_sent(INVENTORY)->told, " 0 vCPUs"));
	expect_refused(world, "host.container-toolkit", "managed by others");
}

/* And of one of ours that section is no exception.  proves: HOST-7 */
static void test_a_host_of_ours(void **state)
{
	struct world *world = *state;

	write_spec(world, "lineage-1", 4, false);
	start_node(world, "lineage-1");
	assert_non_null(last_sent(CONDITIONS));
	assert_null(strstr(last_sent(CONDITIONS)->told, "HostUnsupported"));
}

/* Where the node is comes with the stream and is kept with its identity: its Node's labels must not go
 * when bcd starts without the control plane. proves: HOSTED-20 OBS-19 */
static void test_where_it_is_is_kept(void **state)
{
	struct world *world = *state;
	CLEANUP(identity) struct identity identity = {0};
	struct error error;

	nodecert_identity(&identity, "node_01kb00000000000000000000aa", 0);
	expect_ok(identity_store(at(world, "var/lib/bcd"), &identity, &error), &error);
	expect_place(world, "", "");
	expect_ok(node_create(world->loop, &world->config, &identity, &world->node, &error),
		  &error);
	uplink->pool = "h100";
	uplink->welcome = "lineage-1";
	tell(world);
	expect_place(world, "site_x", "h100");
	uplink->pool = NULL; /* an older control plane */
	uplink->welcome = "lineage-1";
	tell(world);
	expect_place(world, "site_x", "h100");
	uplink->pool = "h200";
	uplink->welcome = "lineage-1";
	pass(world, 1500);
	expect_place(world, "site_x", "h200");
	assert_string_equal(identity.pool, "h200");
	uplink->pool = "h\xff"; /* no text: it would be kept as another one */
	uplink->welcome = "lineage-1";
	pass(world, 1500);
	expect_place(world, "site_x", "h200");
	signal(SIGXFSZ, SIG_IGN);
	limit_files(1);
	uplink->pool = "h300";
	uplink->welcome = "lineage-1";
	tell(world);
	expect_place(world, "site_x", "h200");
	limit_files(RLIM_INFINITY); /* a disk with room again: without another Welcome */
	pass(world, NODE_WRITE_AGAIN_MS + 1000);
	expect_place(world, "site_x", "h300");
	node_destroy(TAKE(world->node)); /* before its identity */
}

/* A database that was put back knows none of what it was told: all of it is told again, with new
 * numbers, under the Spec that came from it; nothing goes to it before.
 * proves: GW-26 GW-17 */
static void test_another_lineage_is_told_all_under_its_own_spec(void **state)
{
	struct world *world = *state;
	int64_t before;

	write_spec(world, "lineage-1", 70, true);
	start_node(world, "lineage-1");
	assert_int_equal(last_sent(BOUND)->generation, 70);
	before = uplink->acknowledged = uplink->sent[uplink->sent_count - 1].sequence;
	tell(world);
	uplink->sent_count = 0;
	uplink->acknowledged = 0;
	uplink->welcome = "lineage-2";
	tell(world);
	assert_int_equal(uplink->sent_count, 0);
	uplink->spec = make_spec(world, "lineage-2", 5, true);
	tell(world);
	assert_int_equal(last_sent(BOUND)->generation, 5);
	assert_int_equal(last_sent(INVENTORY)->generation, 5);
	for (size_t i = 0; i < uplink->sent_count; i++)
		assert_true(uplink->sent[i].sequence > before);
}

/* What was released and reported there waits for this database's word too. But what its Spec gives
 * anew isn't told as released: it would be taken for the new one's release.
 * proves: GW-26 REL-6 REL-47 */
static void test_another_lineage_hears_of_releases_it_does_not_want(void **state)
{
	struct world *world = *state;

	for (int wanted = 0; wanted < 2; wanted++) {
		write_spec(world, "lineage-1", 70, false);
		write_releases(world, true, 0);
		start_node(world, "lineage-2");
		assert_int_equal(uplink->sent_count, 0);
		uplink->spec = make_spec(world, "lineage-2", 5, wanted);
		tell(world);
		if (wanted) {
			assert_null(last_sent(RELEASED));
			assert_int_equal(last_sent(BOUND)->generation, 5);
		} else {
			assert_int_equal(last_sent(RELEASED)->generation, 5);
		}
		stop_node(world);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WITH_WORLD(test_no_update_and_no_reboot),
		WITH_WORLD(test_a_host_of_others),
		WITH_WORLD(test_a_host_of_ours),
		WITH_WORLD(test_where_it_is_is_kept),
		WITH_WORLD(test_another_lineage_is_told_all_under_its_own_spec),
		WITH_WORLD(test_another_lineage_hears_of_releases_it_does_not_want),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
