#include "belief_world.h"

/* N03. proves: DP-10 DP-52 */
static void test_an_xid_is_of_one_gpu(void **state)
{
	CLEANUP(belief) struct belief belief = {0};
	struct klog_event event;

	(void)state;
	take_four(&belief);
	assert_true(hear(&belief, 2, 48));
	assert_false(hear(&belief, 2, 48));
	assert_false(hear(&belief, 1, 13));
	assert_false(hear(&belief, 9, 79));
	event = xid_at(3, 145);
	event.nonfatal = true;
	assert_false(belief_event(&belief, &event));
	for (int n = 0; n < 4; n++)
		expect_cause(&belief, n, n == 2 ? "XID 48: double bit ECC error" : "");
	assert_int_equal(belief_find(&belief, uuid_of(1))->last_xid, 13);
	/* no time and no number of good readings ends it */
	for (int i = 0; i < 100; i++)
		take_four(&belief);
	expect_cause(&belief, 2, "XID 48: double bit ECC error");
	reset(&belief, 1);
	expect_cause(&belief, 2, "XID 48: double bit ECC error");
	reset(&belief, 2);
	expect_cause(&belief, 2, "");
}

/* N03. XID 79 of a GPU that nvidia-smi no longer lists. proves: DP-52 */
static void test_an_xid_of_a_gpu_that_is_not_listed(void **state)
{
	CLEANUP(belief) struct belief belief = {0};
	CLEANUP(reading) struct reading three = {0};

	(void)state;
	take_four(&belief);
	for (int n = 1; n < 4; n++)
		add(&three, n);
	take(&belief, &three);
	assert_true(hear(&belief, 0, 79));
	expect_cause(&belief, 0, "lost: no longer on the PCI bus");
	/* it comes back: the XID still stands */
	take_four(&belief);
	expect_cause(&belief, 0, "XID 79: fell off the bus");
	reset(&belief, 0);
	expect_cause(&belief, 0, "");
}

/* XIDs from before bcd was started: in the log, not in any reading. proves: DP-52 */
static void test_xids_heard_before_the_first_reading(void **state)
{
	CLEANUP(belief) struct belief belief = {0};
	CLEANUP(reading) struct reading late = {0};

	(void)state;
	hear(&belief, 0, 79);
	hear(&belief, 1, 48);
	hear(&belief, 2, 31);
	hear(&belief, 9, 79);
	reset(&belief, 1);
	take_four(&belief);
	expect_cause(&belief, 0, "XID 79: fell off the bus");
	expect_cause(&belief, 1, "");
	expect_cause(&belief, 2, "");
	/* a GPU that appears later suffered what was heard of its place */
	assert_int_equal(belief.strays.count, 1);
	expect_cause(&belief, 9, "not known");
	add(&late, 9);
	take(&belief, &late);
	expect_cause(&belief, 9, "XID 79: fell off the bus");
	assert_int_equal(belief.strays.count, 0);
}

/* proves: DP-52 */
static void test_places_that_nobody_has(void **state)
{
	CLEANUP(belief) struct belief belief = {0};
	CLEANUP(reading) struct reading late = {0};
	struct klog_event event;

	(void)state;
	for (int n = 0; n < 2 * BELIEF_MAX_STRAYS; n++) {
		event = xid_at(9, 79);
		snprintf(event.pci, sizeof event.pci, "%04x:10:00.0", (unsigned)n);
		assert_false(belief_event(&belief, &event));
		assert_false(belief_event(&belief, &event));
	}
	assert_int_equal(belief.strays.count, BELIEF_MAX_STRAYS);
	for (int n = 0; n < BELIEF_MAX_STRAYS; n++) {
		event = xid_at(9, 0);
		event.kind = KLOG_RESET;
		snprintf(event.pci, sizeof event.pci, "%04x:10:00.0", (unsigned)n);
		belief_event(&belief, &event);
	}
	assert_int_equal(belief.strays.count, 0);
	hear(&belief, 9, 48);
	event.kind = KLOG_LOADED;
	belief_event(&belief, &event);
	add(&late, 9);
	take(&belief, &late);
	expect_cause(&belief, 9, "");
}

/* proves: DP-52 */
static void test_what_ends_an_xid(void **state)
{
	struct klog_event loaded = {.kind = KLOG_LOADED};
	struct klog_event advice = xid_at(0, XID_RECOVERY_CHANGED);
	CLEANUP(belief) struct belief belief = {0};

	(void)state;
	belief_driver(&belief, 7);
	take_four(&belief);
	hear(&belief, 0, 79);
	assert_true(belief_event(&belief, &loaded));
	expect_cause(&belief, 0, "");
	hear(&belief, 0, 79);
	assert_false(belief_driver(&belief, 0)); /* not known is not another one */
	assert_false(belief_driver(&belief, 7));
	expect_cause(&belief, 0, "XID 79: fell off the bus");
	assert_true(belief_driver(&belief, 8));
	expect_cause(&belief, 0, "");
	hear(&belief, 0, 95);
	advice.recovered = true;
	belief_event(&belief, &advice); /* of what came before the XID */
	advice.recovered = false;
	advice.advised = true;
	belief_event(&belief, &advice);
	expect_cause(&belief, 0, "XID 95: uncontained memory error");
	advice.advised = false;
	belief_event(&belief, &advice); /* as NVML tells it: nobody knows to what it changed */
	expect_cause(&belief, 0, "XID 95: uncontained memory error");
	advice.recovered = true;
	belief_event(&belief, &advice);
	expect_cause(&belief, 0, "");
}

/* One GPU, read with an advice and counters. */
static void take_one(struct belief *belief, enum health_recovery recovery, int64_t count)
{
	CLEANUP(reading) struct reading reading = {0};
	struct reading_gpu *gpu = add(&reading, 0);

	gpu->recovery = recovery;
	for (int i = 0; i < GAUGES; i++)
		gpu->gauges[i] = count;
	take(belief, &reading);
}

/* "None" alone ends nothing: a driver may say so all along, and a reading may be older than the XID.
 * proves: DP-52 */
static void test_advice_that_ends_an_xid(void **state)
{
	CLEANUP(belief) struct belief belief = {0};

	(void)state;
	take_one(&belief, HEALTH_RECOVERY_NONE, 1000);
	hear(&belief, 0, 48);
	take_one(&belief, HEALTH_RECOVERY_NONE, 1000);
	expect_cause(&belief, 0, "XID 48: double bit ECC error");
	take_one(&belief, HEALTH_RECOVERY_RESET, 1100);
	expect_cause(&belief, 0, "XID 48: double bit ECC error");
	take_one(&belief, HEALTH_RECOVERY_UNKNOWN, 1200);
	expect_cause(&belief, 0, "XID 48: double bit ECC error");
	take_one(&belief, HEALTH_RECOVERY_NONE, 1300);
	expect_cause(&belief, 0, "");
}

/* Without persistence mode a driver counts anew when its last client goes: bcd, its child. proves:
 * DP-52 */
static void test_counters_that_begin_anew_end_nothing(void **state)
{
	CLEANUP(belief) struct belief belief = {0};

	(void)state;
	take_one(&belief, HEALTH_RECOVERY_UNKNOWN, 123456789);
	hear(&belief, 0, 79);
	for (int64_t count = 1 << 20; count > 0; count /= 2)
		take_one(&belief, count % 3 ? HEALTH_RECOVERY_UNKNOWN : HEALTH_RECOVERY_NONE,
			 count);
	take_one(&belief, HEALTH_RECOVERY_UNKNOWN, READING_UNKNOWN);
	take_one(&belief, HEALTH_RECOVERY_UNKNOWN, 0);
	take_one(&belief, HEALTH_RECOVERY_UNKNOWN, 1);
	expect_cause(&belief, 0, "XID 79: fell off the bus");
}

/* The driver's advice may lag: "None" heals only what it had asked for since the last XID. proves:
 * DP-52 */
static void test_advice_that_is_older_than_an_xid(void **state)
{
	CLEANUP(belief) struct belief belief = {0};
	CLEANUP(reading) struct reading reading = {0};

	(void)state;
	take_one(&belief, HEALTH_RECOVERY_NONE, 1);
	hear(&belief, 0, 48);
	take_one(&belief, HEALTH_RECOVERY_RESET, 1);
	/* another one, or the same once more, before the advice is over */
	for (int i = 0; i < 2; i++) {
		hear(&belief, 0, i == 0 ? 95 : 48);
		take_one(&belief, HEALTH_RECOVERY_NONE, 1);
		expect_cause(&belief, 0, "XID 48: double bit ECC error");
		take_one(&belief, HEALTH_RECOVERY_RESET, 1);
	}
	/* an answer that was under way knows nothing of it: neither its advice nor its "None" count */
	hear(&belief, 0, 109);
	add(&reading, 0)->recovery = HEALTH_RECOVERY_RESET;
	take_when(&belief, &reading, true);
	take_one(&belief, HEALTH_RECOVERY_NONE, 1);
	expect_cause(&belief, 0, "XID 48: double bit ECC error");
	take_one(&belief, HEALTH_RECOVERY_RESET, 1);
	take_one(&belief, HEALTH_RECOVERY_NONE, 1);
	expect_cause(&belief, 0, "");
}

/* An XID that the owner ignores hides no doubt. proves: DP-10 DP-52 */
static void test_an_ignored_xid_is_no_excuse(void **state)
{
	CLEANUP(belief) struct belief belief = {0};

	(void)state;
	take_four(&belief);
	hear(&belief, 0, 63);
	belief.policy.ignore[belief.policy.ignore_count++] = 63;
	expect_cause(&belief, 0, "");
	belief_failure(&belief, "the driver hangs");
	expect_cause(&belief, 0, "unknown: the driver hangs");
}

/* NVML says whose XID it is, also of a GPU whose place nobody knows. proves: DP-52 */
static void test_an_xid_by_uuid(void **state)
{
	CLEANUP(belief) struct belief belief = {0};
	CLEANUP(reading) struct reading reading = {0};
	struct klog_event event = xid_at(2, 79);

	(void)state;
	add(&reading, 1)->pci[0] = '\0';
	add(&reading, 2);
	take(&belief, &reading);
	assert_true(belief_xid(&belief, uuid_of(1), &event));
	expect_cause(&belief, 1, "XID 79: fell off the bus");
	expect_cause(&belief, 2, "");
	assert_true(belief_xid(&belief, uuid_of(7), &event)); /* unknown: then its place counts */
	expect_cause(&belief, 2, "XID 79: fell off the bus");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_xid_is_of_one_gpu),
		cmocka_unit_test(test_an_xid_of_a_gpu_that_is_not_listed),
		cmocka_unit_test(test_xids_heard_before_the_first_reading),
		cmocka_unit_test(test_places_that_nobody_has),
		cmocka_unit_test(test_what_ends_an_xid),
		cmocka_unit_test(test_advice_that_ends_an_xid),
		cmocka_unit_test(test_counters_that_begin_anew_end_nothing),
		cmocka_unit_test(test_advice_that_is_older_than_an_xid),
		cmocka_unit_test(test_an_ignored_xid_is_no_excuse),
		cmocka_unit_test(test_an_xid_by_uuid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
