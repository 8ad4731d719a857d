#include "gpu/core/xid.h"
#include "lib/test.h"

static const int32_t faults[] = {48,  62,  63,  64,  74,  79,  92,  95,  109, 119, 120, 121,
				 123, 136, 137, 140, 143, 144, 145, 146, 147, 148, 149, 150};
static const int32_t applications[] = {13, 31, 43, 45, 68, 94};

static bool among(const int32_t *numbers, size_t count, int32_t number)
{
	for (size_t i = 0; i < count; i++)
		if (numbers[i] == number)
			return true;
	return false;
}

/* proves: DP-52 */
static void test_which_xids_are_faults(void **state)
{
	(void)state;
	for (int32_t xid = 0; xid <= XID_MAX; xid++) {
		bool fault = among(faults, ARRAY_SIZE(faults), xid);
		bool two_forms = xid >= 144 && xid <= 150;

		assert_int_equal(xid_is_fault(NULL, xid, false), fault);
		assert_int_equal(xid_is_fault(NULL, xid, true), fault && !two_forms);
		assert_int_equal(xid_has_nonfatal(xid), two_forms);
	}
}

/* proves: DP-52 */
static void test_each_row_has_its_source(void **state)
{
	(void)state;
	for (int32_t xid = 0; xid <= XID_MAX; xid++) {
		bool row = among(faults, ARRAY_SIZE(faults), xid) ||
			   among(applications, ARRAY_SIZE(applications), xid);

		assert_int_equal(*xid_what(xid) != '\0', row);
		assert_int_equal(*xid_action(xid) != '\0', row);
	}
	assert_string_equal(xid_what(79), "fell off the bus");
	assert_string_equal(xid_action(79), "RESTART_BM");
}

/* proves: DP-52 */
static void test_the_owner_knows_better(void **state)
{
	const struct xid_policy policy = {
		.fault = {13, 46, 145}, .fault_count = 3, .ignore = {63}, .ignore_count = 1};

	(void)state;
	assert_true(xid_is_fault(&policy, 13, false));
	assert_true(xid_is_fault(&policy, 46, false));
	assert_true(xid_is_fault(&policy, 145, true));
	assert_false(xid_is_fault(&policy, 63, false));
	assert_true(xid_is_fault(&policy, 79, false));
	assert_false(xid_is_fault(&policy, 31, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_which_xids_are_faults),
		cmocka_unit_test(test_each_row_has_its_source),
		cmocka_unit_test(test_the_owner_knows_better),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
