#include "node/core/gpu_api.h"

#include "lib/test.h"

/* Each of what a configuration and a pool may say.  proves: DRA-2 DP-38 JOIN-34 */
static void test_both_have_to_say_it(void **state)
{
	static const struct {
		const char *own, *pool, *why; /* NULL: offered */
	} rows[] = {
		{"device-plugin", "", NULL},
		{"device-plugin", "device-plugin", NULL},
		{"device-plugin", "dra", "the pool's gpuApi is dra"},
		{"device-plugin", "later", "the pool's gpuApi is later"},
		{"dra", "", "[kubernetes] gpu_api = \"dra\", and this bcd has no DRA driver"},
		{"dra", "device-plugin", "has no DRA driver"},
		{"dra", "dra", "has no DRA driver"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(buf) struct buf why = {0};

		assert_int_equal(gpu_api_offers(rows[i].own, rows[i].pool, &why), !rows[i].why);
		if (rows[i].why) {
			assert_non_null(strstr(buf_text(&why), rows[i].why));
			assert_non_null(strstr(buf_text(&why), "--gpu-api device-plugin"));
		} else {
			assert_int_equal(why.length, 0);
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_have_to_say_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
