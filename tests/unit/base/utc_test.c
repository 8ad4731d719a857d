#include "base/utc.h"

#include "lib/test.h"

static void test_moments(void **state UNUSED)
{
	static const struct {
		int64_t ms;
		const char *text, *with_ms;
	} TABLE[] = {
		{0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"},
		{-1, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999Z"},
		{-1000, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.000Z"},
		{1772589600999, "2026-03-04T02:00:00Z", "2026-03-04T02:00:00.999Z"},
		{1709251199007, "2024-02-29T23:59:59Z", "2024-02-29T23:59:59.007Z"},
		{253402300799999, "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999Z"},
	};
	char text[UTC_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		utc_format(text, (struct wall){TABLE[i].ms});
		assert_string_equal(text, TABLE[i].text);
		assert_int_equal(text[UTC_DATE_SIZE - 1], 'T');
		utc_format_ms(text, (struct wall){TABLE[i].ms});
		assert_string_equal(text, TABLE[i].with_ms);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
