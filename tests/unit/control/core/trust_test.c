#include "control/core/trust.h"

#include "lib/enumerate.h"

/* proves: POOL-18 POOL-19 */
static void test_platform_operated_counts_for_the_platform_alone(void **state)
{
	struct enumerate all = {0};
	int counted = 0;

	(void)state;
	while (enumerate_next(&all)) {
		struct trust_pool pool = {.pool_tenant = "a"};
		unsigned root;

		pool.platform_operated = enumerate_pick(&all, 2);
		pool.site_is_custom = enumerate_pick(&all, 2);
		pool.site_tenant = enumerate_pick(&all, 2) ? "a" : "b";
		root = enumerate_pick(&all, 3);
		pool.root_tenant = root == 0 ? NULL : root == 1 ? "a" : "b";
		counted += trust_platform_counts(&pool);
		assert_int_equal(trust_platform_counts(&pool),
				 pool.platform_operated && !pool.site_is_custom &&
					 str_equal(pool.site_tenant, "a") && root != 2);
	}
	assert_int_equal(counted, 2);
}

/* A hosted token never gives more trust than a plain one.
 * proves: JOIN-21 JOIN-24 JOIN-26 */
static void test_hosted_token_only_lowers(void **state)
{
	struct trust_pool tenants = {
		.pool_tenant = "a", .site_tenant = "a", .site_is_custom = true};
	struct trust_pool rented = {
		.pool_tenant = "a", .site_tenant = "p", .platform_operated = true};
	struct trust_pool own = {.pool_tenant = "p", .site_tenant = "p", .platform_operated = true};

	(void)state;
	assert_int_equal(trust_of_join(&tenants, false), CONTROL_TRUST_TENANT_OWNED);
	assert_int_equal(trust_of_join(&tenants, true), CONTROL_TRUST_TENANT_OWNED);
	assert_int_equal(trust_of_join(&rented, false), CONTROL_TRUST_PLATFORM);
	assert_int_equal(trust_of_join(&rented, true), CONTROL_TRUST_TENANT_CONTROLLED);
	assert_int_equal(trust_of_join(&own, true), CONTROL_TRUST_PLATFORM);
	own.platform_operated = false;
	assert_int_equal(trust_of_join(&own, true), CONTROL_TRUST_TENANT_CONTROLLED);
}

static void test_trust_has_names(void **state)
{
	static const char *const names[] = {"platform", "tenant-owned", "tenant-controlled"};
	enum control_trust trust;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_string_equal(control_trust_name((enum control_trust)i), names[i]);
		assert_true(control_trust_parse(names[i], &trust));
		assert_int_equal(trust, i);
	}
	assert_false(control_trust_parse("Platform", &trust));
}

/* proves: JOIN-4 JOIN-5 */
static void test_token_states_and_who_they_admit(void **state)
{
	static const struct {
		struct trust_token token;
		int64_t now;
		enum trust_token_state state;
		bool new_machine, known_machine;
		const char *name, *text;
	} rows[] = {
		{{false, {100}, 0, 1}, 99, TRUST_TOKEN_LIVE, true, true, "live", ""},
		{{false, {100}, 0, 1},
		 100,
		 TRUST_TOKEN_EXPIRED,
		 false,
		 false,
		 "expired",
		 "expired"},
		{{false, {100}, 1, 1},
		 99,
		 TRUST_TOKEN_USED_UP,
		 false,
		 true,
		 "used-up",
		 "used up (1 of 1)"},
		{{false, {100}, 1, 1},
		 100,
		 TRUST_TOKEN_EXPIRED,
		 false,
		 false,
		 "expired",
		 "expired"},
		{{true, {100}, 1, 1}, 100, TRUST_TOKEN_REVOKED, false, false, "revoked", "revoked"},
		{{true, {100}, 0, 9}, 0, TRUST_TOKEN_REVOKED, false, false, "revoked", "revoked"},
	};
	struct error error;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct wall now = {rows[i].now};

		assert_int_equal(trust_token_state(&rows[i].token, now), rows[i].state);
		assert_string_equal(trust_token_state_name(rows[i].state), rows[i].name);
		assert_int_equal(trust_token_admits(&rows[i].token, true, now, &error),
				 rows[i].known_machine);
		if (rows[i].new_machine)
			expect_ok(trust_token_admits(&rows[i].token, false, now, &error), &error);
		else
			expect_error(trust_token_admits(&rows[i].token, false, now, &error), &error,
				     ERROR_UNAUTHENTICATED, rows[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_platform_operated_counts_for_the_platform_alone),
		cmocka_unit_test(test_hosted_token_only_lowers),
		cmocka_unit_test(test_trust_has_names),
		cmocka_unit_test(test_token_states_and_who_they_admit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
