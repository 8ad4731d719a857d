#include "gpu/core/field.h"
#include "lib/test.h"

static void test_optional_members_keep_what_was(void **state)
{
	CLEANUP(tree) json_t *object = json_pack("{s:s, s:i}", "text", "abc", "number", 7);
	char text[4] = "xyz";
	int32_t number = 1;
	bool flag = true;
	json_t *array = object, *child = object;
	struct error error;

	(void)state;
	expect_ok(field_text(object, "", "none", false, text, sizeof text, &error), &error);
	assert_string_equal(text, "xyz");
	expect_ok(field_int(object, "", "none", false, 0, 9, &number, &error), &error);
	assert_int_equal(number, 1);
	expect_ok(field_bool(object, "", "none", false, &flag, &error), &error);
	assert_true(flag);
	expect_ok(field_array(object, "", "none", false, 9, &array, &error), &error);
	assert_null(array);
	expect_ok(field_child(object, "", "none", false, &child, &error), &error);
	assert_null(child);
	expect_ok(field_text(object, "", "text", true, text, sizeof text, &error), &error);
	assert_string_equal(text, "abc");
	assert_false(field_text(object, "", "text", true, text, 3, &error)); /* one too long */
	assert_false(field_text(object, "", "number", false, text, sizeof text, &error));
	assert_false(field_int(object, "at", "number", true, 8, 9, &number, &error));
	assert_string_equal(error.field, "at.number");
	assert_false(field_object(json_object_get(object, "text"), "", &error));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_optional_members_keep_what_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
