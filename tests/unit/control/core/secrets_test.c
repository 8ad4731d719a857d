#include "control/core/secrets.h"

#include "lib/test.h"

/* Of all that may be so, only one kind of node gets it.
 * proves: RES-23 JOIN-22 */
static void test_every_view(void **state)
{
	int given = 0;

	(void)state;
	for (unsigned bits = 0; bits < 1U << 8; bits++) {
		const struct secret_view view = {
			.tenants_certificate = bits & 1,
			.tenant_controlled = bits & 2,
			.working = bits & 4,
			.named = bits & 8,
			.own_tenant = bits & 16,
			.for_allocation = bits & 32,
			.allocation_here = bits & 64,
			.allocation_leaving = bits & 128,
		};
		bool may = !view.tenants_certificate && !view.tenant_controlled && view.working &&
			   view.named && view.own_tenant &&
			   (!view.for_allocation ||
			    (view.allocation_here && !view.allocation_leaving));

		assert_int_equal(secret_refusal(&view) == NULL, may);
		given += may;
	}
	assert_int_equal(given, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_view),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
