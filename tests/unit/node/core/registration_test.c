#include "lib/test.h"
#include "node/core/registration.h"

/* Every view. proves: DP-2 DP-16 DP-31 DP-32 DP-46 DP-47 */
static void test_every_view(void **state)
{
	static const int64_t ages[] = {0, 50, 100, 4999, 5000, 60000};

	(void)state;
	for (unsigned flags = 0; flags < 512; flags++)
		for (uint32_t failures = 0; failures < 9; failures++)
			for (size_t a = 0; a < ARRAY_SIZE(ages); a++) {
				struct registration_view view = {
					.wanted = flags & 1,
					.kubelet_present = flags & 2,
					.kubelet_new = flags & 4,
					.up = flags & 8,
					.own_lost = flags & 16,
					.calling = flags & 32,
					.streaming = flags & 64,
					.accepted = flags & 128,
					.ever_tried = flags & 256,
					.failures = failures,
					.tried = {100000 - ages[a]},
				};
				struct mono now = {100000};
				struct registration_plan plan = registration_decide(&view, now);

				if (!view.up && (view.own_lost || view.streaming || view.calling))
					continue; /* no server has none of these */
				assert_non_null(plan.why);
				if (plan.step == REGISTRATION_REGISTER) {
					assert_true(view.wanted && view.kubelet_present);
					assert_false(view.calling);
					/* never beside a living stream, but when our socket is gone
					 */
					assert_true(!view.streaming || view.own_lost);
				}
				if (plan.step == REGISTRATION_STOP)
					assert_true(view.up);
				/* waits end, and no wait is long */
				if (view.wanted && view.kubelet_present && !view.calling &&
				    !view.streaming && plan.step == REGISTRATION_NOTHING) {
					assert_true(plan.timed);
					assert_true(plan.again.ms > now.ms);
					assert_true(plan.again.ms - now.ms <= 5000);
				}
				if (view.wanted && view.kubelet_present && !view.calling &&
				    !view.streaming && view.kubelet_new)
					assert_int_equal(plan.step, REGISTRATION_REGISTER);
				if (!view.wanted)
					assert_int_equal(plan.step, view.up ? REGISTRATION_STOP
									    : REGISTRATION_NOTHING);
			}
}

/* proves: DP-47 */
static void test_backoff(void **state)
{
	(void)state;
	for (uint32_t failures = 0; failures < 40; failures++)
		for (uint32_t jitter = 0; jitter < 2000; jitter += 7) {
			int64_t wait = registration_backoff(failures, jitter);

			assert_true(wait >= 75);
			assert_true(wait <= 5000);
			if (failures <= 1)
				assert_true(wait <= 100);
			if (failures >= 10)
				assert_true(wait >= 3750);
		}
}

/* proves: DP-6 DP-46 */
static void test_names(void **state)
{
	char name[REGISTRATION_NAME_SIZE];

	(void)state;
	registration_name(name, "gpu.slot", 0xdeadbeef);
	assert_string_equal(name, "bcd-gpu.slot-deadbeef.sock");
	assert_true(registration_is_name(name));
	assert_false(registration_is_name("kubelet.sock"));
	assert_false(registration_is_name("bcd-gpu"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_view),
		cmocka_unit_test(test_backoff),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
