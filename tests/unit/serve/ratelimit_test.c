#include "serve/ratelimit.h"

#include "lib/seed.h"
#include "lib/test.h"

static const struct ratelimit_rate rate = {.per_second = 10, .burst = 20};

/* proves: ADM-5 */
static void test_burst_then_rate(void **state)
{
	struct ratelimit *limits = ratelimit_create();
	struct mono now = {1000};
	int64_t wait_ms = 0;

	(void)state;
	assert_false(ratelimit_knows(limits, 7));
	for (int i = 0; i < 20; i++)
		assert_true(ratelimit_take(limits, 7, rate, now, &wait_ms));
	assert_true(ratelimit_knows(limits, 7));
	assert_false(ratelimit_take(limits, 7, rate, now, &wait_ms));
	assert_int_equal(wait_ms, 100);
	assert_false(ratelimit_may(limits, 7, rate, now, &wait_ms));
	assert_true(ratelimit_may(limits, 7, rate, mono_after(now, 100), &wait_ms));
	assert_true(ratelimit_may(limits, 7, rate, mono_after(now, 100), &wait_ms));
	now = mono_after(now, 100);
	assert_true(ratelimit_take(limits, 7, rate, now, &wait_ms));
	assert_false(ratelimit_take(limits, 7, rate, now, &wait_ms));
	/* Others have their own; who only asks is not remembered. */
	assert_true(ratelimit_may(limits, 9, rate, now, &wait_ms));
	assert_false(ratelimit_knows(limits, 9));
	assert_true(ratelimit_take(limits, 8, rate, now, &wait_ms));
	now = mono_after(now, 99);
	assert_false(ratelimit_take(limits, 7, rate, now, &wait_ms));
	assert_int_equal(wait_ms, 1);
	now = mono_after(now, 1);
	assert_true(ratelimit_take(limits, 7, rate, now, &wait_ms));
	assert_false(ratelimit_take(limits, 7, rate, now, &wait_ms));
	/* It fills, and doesn't overflow. */
	now = mono_after(now, (int64_t)400 * 24 * 3600 * 1000);
	for (int i = 0; i < 20; i++)
		assert_true(ratelimit_take(limits, 7, rate, now, &wait_ms));
	assert_false(ratelimit_take(limits, 7, rate, now, &wait_ms));
	ratelimit_destroy(limits);
}

static void test_no_limit(void **state)
{
	struct ratelimit *limits = ratelimit_create();
	int64_t wait_ms;

	(void)state;
	for (int i = 0; i < 100000; i++)
		assert_true(ratelimit_take(limits, 7, (struct ratelimit_rate){0}, (struct mono){5},
					   &wait_ms));
	ratelimit_destroy(limits);
}

/* Whatever the times: in any stretch of time no more than the burst and what filled in it. */
static void test_never_more_than_the_rate(void **state)
{
	struct seed seed;
	struct ratelimit *limits = ratelimit_create();
	struct mono now = {0};
	int64_t taken = 0, wait_ms;

	(void)state;
	seed_init(&seed);
	for (int i = 0; i < 100000; i++) {
		now = mono_after(now, (int64_t)(seed_next(&seed) % 40));
		taken += ratelimit_take(limits, 1, rate, now, &wait_ms);
		assert_true(taken <= 20 + mono_until((struct mono){0}, now) * 10 / 1000);
	}
	assert_true(taken >= mono_until((struct mono){0}, now) * 10 / 1000);
	ratelimit_destroy(limits);
}

static void test_a_flood_of_strangers_is_bounded(void **state)
{
	struct ratelimit *limits = ratelimit_create();
	struct mono now = {1};
	int64_t wait_ms;
	size_t known = 0;

	(void)state;
	for (uint64_t who = 0; who < 100000; who++) {
		now = mono_after(now, 1);
		assert_true(ratelimit_take(limits, who, rate, now, &wait_ms));
	}
	for (uint64_t who = 0; who < 100000; who++)
		known += ratelimit_knows(limits, who);
	assert_int_equal(known, RATELIMIT_ENTRIES);
	assert_true(ratelimit_knows(limits, 99999)); /* the quiet ones were forgotten */
	assert_false(ratelimit_knows(limits, 0));
	ratelimit_destroy(limits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_burst_then_rate),
		cmocka_unit_test(test_no_limit),
		cmocka_unit_test(test_never_more_than_the_rate),
		cmocka_unit_test(test_a_flood_of_strangers_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
