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

static void test_others_are_what_is_not_known(void **state)
{
	static const char *const KEYS[] = {"a", "b", NULL}, *const ALL[] = {"a", "c", NULL};
	CLEANUP(tree) json_t *object = json_pack("{s:i, s:i}", "a", 1, "c", 2);
	CLEANUP(tree) json_t *others = field_others(object, KEYS);

	(void)state;
	assert_int_equal(json_object_size(others), 1);
	assert_int_equal(json_integer_value(json_object_get(others, "c")), 2);
	assert_int_equal(json_object_size(object), 2);
	assert_null(field_others(object, ALL));
}

/* Who wrote it is told, and that it isn't lost. */
static void test_a_version(void **state)
{
	CLEANUP(tree) json_t *mine = json_pack("{s:i}", "version", 3);
	CLEANUP(tree) json_t *newer = json_pack("{s:i, s:{}}", "version", 4, "more");
	CLEANUP(tree) json_t *older = json_pack("{s:i}", "version", 2);
	CLEANUP(tree) json_t *none = json_pack("{s:s}", "version", "3");
	struct error error = {0};

	(void)state;
	expect_ok(field_version(mine, 3, &error), &error);
	expect_error(field_version(newer, 3, &error), &error, ERROR_INVALID_INPUT,
		     "is 4, of a newer bcd; this bcd reads version 3");
	assert_string_equal(error.field, "version");
	assert_non_null(strstr(error.hint, "Run the bcd that wrote it"));
	expect_error(field_version(older, 3, &error), &error, ERROR_INVALID_INPUT,
		     "is 2; this bcd reads version 3");
	assert_false(field_version(none, 3, &error));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_optional_members_keep_what_was),
		cmocka_unit_test(test_others_are_what_is_not_known),
		cmocka_unit_test(test_a_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
