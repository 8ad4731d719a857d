#include "gpu/core/health.h"
#include "gpu/core/xid.h"
#include "lib/test.h"

/* Each says what to do next. proves: DP-10 DP-52 */
static void test_health_causes(void **state)
{
	static const struct xid_policy strict = {.fault = {13}, .fault_count = 1};
	static const struct xid_policy lenient = {.ignore = {79}, .ignore_count = 1};
	static const struct {
		struct health_facts facts;
		const char *cause;
	} rows[] = {
		{{.row_remap = HEALTH_REMAP_NONE}, ""},
		{{.row_remap = HEALTH_REMAP_PENDING}, "row remap pending"},
		{{.row_remap = HEALTH_REMAP_FAILED}, "row remap failed"},
		{{.ecc_uncorrectable = 3}, "3 uncorrectable ECC errors since driver load"},
		{{.xids = {79}, .xid_count = 1}, "XID 79: fell off the bus"},
		{{.xids = {13, 31, 43, 45, 68, 94}, .xid_count = 6}, ""},
		{{.xids = {13, 48}, .xid_count = 2}, "XID 48: double bit ECC error"},
		{{.xids = {13}, .xid_count = 1, .policy = &strict}, "XID 13: engine exception"},
		{{.xids = {79}, .xid_count = 1, .policy = &lenient}, ""},
		{{.needs_reset = true}, "requires a reset"},
		{{.recovery = HEALTH_RECOVERY_NONE}, ""},
		{{.recovery = HEALTH_RECOVERY_RESET}, "the driver asks for a reset"},
		{{.recovery = HEALTH_RECOVERY_REBOOT},
		 "the driver asks for a restart of the machine"},
		{{.recovery = HEALTH_RECOVERY_DRAIN_P2P},
		 "the driver asks to drain peer-to-peer traffic"},
		{{.recovery = HEALTH_RECOVERY_DRAIN_RESET},
		 "the driver asks to drain it and reset it"},
		{{.doubt = "no permission"}, "unknown: no permission"},
		{{.lost = true}, "lost: no longer on the PCI bus"},
		{{.hang = true}, "unknown: the driver does not answer"},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct health health = health_decide(&rows[i].facts);

		assert_string_equal(health.cause, rows[i].cause);
		assert_int_equal(health.healthy, *rows[i].cause == '\0');
		assert_int_equal(health.healthy, !health.next);
	}
}

static void test_a_cause_is_printable_ascii(void **state)
{
	struct health health = health_bad("caf\xc3\xa9\n");

	(void)state;
	assert_string_equal(health.cause, "caf???");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_health_causes),
		cmocka_unit_test(test_a_cause_is_printable_ascii),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
