#include "control/core/label.h"

#include "lib/test.h"

/* proves: POOL-29 */
static void test_names(void **state)
{
	static const struct {
		const char *name;
		bool valid;
	} cases[] = {
		{"rack", true},
		{"a", true},
		{"Rack_1.b-c", true},
		{"example.com/rack", true},
		{"a-b.example.com/r", true},
		{"", false},
		{"/", false},
		{"/rack", false},
		{"example.com/", false},
		{"-rack", false},
		{"rack-", false},
		{"ra ck", false},
		{"Example.com/rack", false},
		{"example..com/rack", false},
		{".example.com/rack", false},
		{"-example.com/rack", false},
		{"example-.com/rack", false},
		{"a/b/c", false},
		{"caf\xc3\xa9", false},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", true},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		if (label_name_valid(cases[i].name, strlen(cases[i].name)) != cases[i].valid)
			fail_msg("'%s'", cases[i].name);
	}
	/* Only so many bytes are looked at. */
	assert_true(label_name_valid("rack=", 4));
}

static void test_values(void **state)
{
	(void)state;
	assert_true(label_value_valid("", 0));
	assert_true(label_value_valid("r17", 3));
	assert_false(label_value_valid("r 17", 4));
	assert_false(label_value_valid("-", 1));
}

/* proves: POOL-29 GANG-11 */
static void test_domains(void **state)
{
	(void)state;
	assert_null(label_reserved_domain("rack"));
	assert_null(label_reserved_domain("example.com/rack"));
	assert_null(label_reserved_domain("notbc.dev/rack"));
	assert_string_equal(label_reserved_domain("bc.dev/rack"), "bc.dev");
	assert_string_equal(label_reserved_domain("a.b.k8s.io/rack"), "k8s.io");
	assert_string_equal(label_reserved_domain("bc.dev/topology.rack"), "bc.dev");
	assert_true(label_is_topology("bc.dev/topology.rack"));
	assert_true(label_is_topology("bc.dev/topology.nvlinkDomain"));
	assert_false(label_is_topology("bc.dev/topology.row"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_domains),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
