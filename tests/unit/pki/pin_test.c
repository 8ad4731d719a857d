#include "pki/pin.h"

#include "lib/test.h"
#include "pki/keys.h"

#define PIN_A "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
#define PIN_B "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=" /* of no bytes */

/* proves: JOIN-37 */
static void test_form(void **state)
{
	char pin[PIN_SIZE];

	(void)state;
	pin_of_spki("", 0, pin);
	assert_string_equal(pin, PIN_B);
	assert_int_equal(strlen(pin) - strlen("sha256/"), 44);
}

/* proves: JOIN-37 */
static void test_lists(void **state)
{
	struct error error;
	struct pin_list pins = {0};

	(void)state;
	assert_false(pin_list_has(&pins, PIN_A));
	expect_ok(pin_list_parse(PIN_A, "gateway.ca_pins", &pins, &error), &error);
	assert_int_equal(pins.count, 1);
	assert_true(pin_list_has(&pins, PIN_A));
	assert_false(pin_list_has(&pins, PIN_B));
	expect_ok(pin_list_parse(" " PIN_A " , " PIN_B " ", "gateway.ca_pins", &pins, &error),
		  &error);
	assert_int_equal(pins.count, 2);
	assert_true(pin_list_has(&pins, PIN_B));
}

/* proves: JOIN-37 */
static void test_bad_lists(void **state)
{
	static const char *const bad[] = {
		"",
		",",
		" ",
		PIN_A ",",
		"," PIN_A,
		PIN_A "," PIN_B "," PIN_A,
		"sha1/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
		"SHA256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
		"sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",   /* no padding */
		"sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", /* one more */
		"sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==",  /* 31 bytes */
		"sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB=",  /* stray bits */
		"sha256/AAAAAAAAAAAAAAAAAAAA AAAAAAAAAAAAAAAAAAAAAA=",
		"sha256/-_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", /* base64url */
	};
	struct error error;
	struct pin_list pins = {.count = 7};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		expect_error(pin_list_parse(bad[i], "join.signing_pins", &pins, &error), &error,
			     ERROR_INVALID_CONFIG, "join.signing_pins");
		assert_string_equal(error.field, "join.signing_pins");
	}
	assert_int_equal(pins.count, 7); /* untouched */
	expect_error(pin_list_parse("", "join.signing_pins", &pins, &error), &error,
		     ERROR_INVALID_CONFIG, "join.signing_pins: is missing");
}

/* proves: JOIN-19 */
static void test_check(void **state)
{
	struct error error;
	struct pin_list pins = {0};

	(void)state;
	expect_error(pin_check(&pins, PIN_A, "the key", &error), &error, ERROR_FORBIDDEN, "none");
	expect_ok(pin_list_parse(PIN_B, "p", &pins, &error), &error);
	expect_error(pin_check(&pins, PIN_A, "the join key", &error), &error, ERROR_FORBIDDEN,
		     "the join key has pin '" PIN_A "'");
	assert_non_null(strstr(error.what, PIN_B));
	expect_ok(pin_check(&pins, PIN_B, "the join key", &error), &error);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_form),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_bad_lists),
		cmocka_unit_test(test_check),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
