#include "gpu/core/health.h"
#include "lib/test.h"

/* proves: DP-10 */
static void test_health_causes(void **state)
{
	static const struct {
		struct health_facts facts;
		const char *cause;
	} rows[] = {
		{{.row_remap = HEALTH_REMAP_NONE}, ""},
		{{.row_remap = HEALTH_REMAP_PENDING}, "row remap pending"},
		{{.row_remap = HEALTH_REMAP_FAILED}, "row remap failed"},
		{{.ecc_uncorrectable = 3}, "3 uncorrectable ECC errors since driver load"},
		{{.xids = {79}, .xid_count = 1}, "XID 79"},
		{{.xids = {13, 31, 43, 45, 68, 94}, .xid_count = 6}, ""},
		{{.xids = {13, 48}, .xid_count = 2}, "XID 48"},
		{{.lost = true}, "lost: no longer on the PCI bus"},
		{{.hang = true}, "unknown: the driver does not answer"},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct health health = health_decide(&rows[i].facts);

		assert_string_equal(health.cause, rows[i].cause);
		assert_int_equal(health.healthy, *rows[i].cause == '\0');
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
