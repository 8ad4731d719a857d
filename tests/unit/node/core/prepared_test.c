#include "core/fixture.h"
#include "node/core/prepared.h"

#define UUID     "00000000-1111-2222-3333-444444444444"
#define DEVICE_A "gpu-" UUID "-49bc066d"
#define DEVICE_B "gpu-" UUID "-gi1-ci0-9fd75c0e"
#define HEAD     "{\"version\":1,\"bootId\":\"b\",\"claims\":["
#define ONE(device, allocation)                                                                    \
	"{\"device\":\"" device "\",\"pool\":\"n1\",\"allocation\":\"" allocation "\"}"
#define CLAIM(uid, devices)                                                                        \
	"{\"uid\":\"" uid "\",\"namespace\":\"ns\",\"name\":\"gpus\",\"devices\":[" devices "]}"
#define WHOLE HEAD CLAIM("u-1", ONE(DEVICE_A, ALC_A) "," ONE(DEVICE_B, ALC_B)) "]}"

static bool parse(const char *text, struct prepared *prepared, struct error *error)
{
	return prepared_parse(text, strlen(text), prepared, error);
}

/* proves: DRA-45 REL-8 */
static void test_reads_who_has_what_prepared(void **state)
{
	CLEANUP(prepared) struct prepared prepared = {0};
	const struct prepared_claim *claim;
	struct error error;

	(void)state;
	expect_ok(parse(WHOLE, &prepared, &error), &error);
	assert_string_equal(prepared.boot_id, "b");
	assert_int_equal(prepared.claims.count, 1);
	claim = &prepared.claims.items[0];
	assert_string_equal(claim->uid, "u-1");
	assert_string_equal(claim->namespace, "ns");
	assert_string_equal(claim->name, "gpus");
	assert_int_equal(claim->devices.count, 2);
	assert_string_equal(claim->devices.items[0].device, DEVICE_A);
	assert_string_equal(claim->devices.items[0].allocation, ALC_A);
	assert_string_equal(claim->devices.items[1].device, DEVICE_B);
	assert_string_equal(claim->devices.items[1].allocation, ALC_B);
	assert_string_equal(claim->devices.items[1].pool, "n1");
}

/* A newer bcd's members survive, and what is written is read again to the same bytes. */
static void test_a_round(void **state)
{
	CLEANUP(prepared) struct prepared first = {0}, second = {0};
	CLEANUP(buf) struct buf text = {0}, again = {0};
	struct error error;

	(void)state;
	expect_ok(parse("{\"version\":1,\"bootId\":\"b\",\"newer\":7,\"claims\":[{\"uid\":\"u\","
			"\"namespace\":\"n\",\"name\":\"c\",\"since\":5,\"devices\":[]}]}",
			&first, &error),
		  &error);
	prepared_format(&first, &text);
	assert_non_null(strstr(buf_text(&text), "\"newer\": 7"));
	assert_non_null(strstr(buf_text(&text), "\"since\": 5"));
	expect_ok(parse(buf_text(&text), &second, &error), &error);
	prepared_format(&second, &again);
	assert_string_equal(buf_text(&text), buf_text(&again));
}

/* What isn't the whole record is an error, never "nothing". proves: DRA-45 REL-9 */
static void test_damage_is_an_error(void **state)
{
	static const char *const TEXTS[] = {
		"",
		"{}",
		"null",
		"[]",
		"{\"version\":1,\"bootId\":\"b\"}",
		"{\"version\":1,\"claims\":[]}",
		"{\"version\":2,\"bootId\":\"b\",\"claims\":[]}",
		"{\"version\":1,\"bootId\":\"b\",\"claims\":{}}",
		"{\"version\":1,\"version\":1,\"bootId\":\"b\",\"claims\":[]}",
		HEAD "]}x",
		HEAD "{}]}",
		HEAD "7]}",
		HEAD CLAIM("", "") "]}",
		HEAD CLAIM("u", "7") "]}",
		HEAD CLAIM("u", ONE("gpu-0", ALC_A)) "]}",
		HEAD CLAIM("u", ONE(DEVICE_A, "x")) "]}",
		HEAD CLAIM("u", ONE(DEVICE_A, ALC_B)) "]}", /* another's tag */
		HEAD CLAIM("u", ONE(DEVICE_A, ALC_A) "," ONE(DEVICE_A, ALC_A)) "]}",
		HEAD CLAIM("u", ONE(DEVICE_A, ALC_A)) "," CLAIM("v", ONE(DEVICE_A, ALC_A)) "]}",
		HEAD CLAIM("u", "") "," CLAIM("u", "") "]}",
	};
	CLEANUP(prepared) struct prepared prepared = {0};
	struct error error;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(TEXTS); i++)
		if (parse(TEXTS[i], &prepared, &error))
			fail_msg("%s was taken", TEXTS[i]);
	assert_false(prepared_parse(HEAD "]}\0", sizeof HEAD "]}", &prepared, &error));
	for (size_t length = 0; length < strlen(WHOLE); length++)
		if (prepared_parse(WHOLE, length, &prepared, &error))
			fail_msg("the first %zu bytes were taken", length);
	assert_false(parse(HEAD CLAIM("u", ONE(DEVICE_A, ALC_B)) "]}", &prepared, &error));
	assert_non_null(strstr(error.what, "prepared.json"));
	assert_string_equal(error.field, "claims[0].devices[0]");
	assert_false(parse(HEAD CLAIM("u", ONE(DEVICE_B, ALC_B)) "," CLAIM(
				   "v", ONE(DEVICE_A, ALC_A) "," ONE(DEVICE_B, ALC_B)) "]}",
			   &prepared, &error));
	assert_string_equal(error.field, "claims[1].devices[1]");
	assert_non_null(strstr(error.what, "is another claim's, too"));
	assert_false(parse(HEAD CLAIM("u", "") "," CLAIM("v", "") "," CLAIM("u", "") "]}",
			   &prepared, &error));
	assert_string_equal(error.field, "claims[2]");
}

/* After a boot nobody has anything prepared any more. proves: DRA-45 */
static void test_another_boot(void **state)
{
	const struct prepared prepared = {.boot_id = "b"}, untold = {.boot_id = ""};

	(void)state;
	assert_true(prepared_counts(&untold, "b")); /* who wrote it could not tell */
	assert_true(prepared_counts(&prepared, "b"));
	assert_false(prepared_counts(&prepared, "c"));
	assert_true(prepared_counts(&prepared, "")); /* it can't be told */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_who_has_what_prepared),
		cmocka_unit_test(test_a_round),
		cmocka_unit_test(test_damage_is_an_error),
		cmocka_unit_test(test_another_boot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
