#include "control/core/body.h"

#include "lib/test.h"

#include <stdio.h>

static json_t *parse(const char *text)
{
	json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);

	assert_non_null(json);
	return json;
}

static const char *const KNOWN[] = {"text", "number", "truth", "choice", "id", NULL};

static void test_unknown_fields_are_named_with_what_is_known(void **state)
{
	struct error error;
	struct body body;
	json_t *json = parse("{\"text\":\"a\",\"txet\":\"b\"}");

	(void)state;
	expect_error(body_open(json, "", KNOWN, &body, &error), &error, ERROR_INVALID_INPUT,
		     "txet: unknown field");
	assert_string_equal(error.field, "txet");
	assert_non_null(strstr(error.hint, "text, number, truth"));
	expect_error(body_open(json, "policy.kubernetes", KNOWN, &body, &error), &error,
		     ERROR_INVALID_INPUT, "policy.kubernetes.txet");
	json_decref(json);
	json = parse("[1]");
	expect_error(body_open(json, "", KNOWN, &body, &error), &error, ERROR_INVALID_INPUT,
		     "body must be a JSON object");
	expect_error(body_open(json, "devices[0]", KNOWN, &body, &error), &error,
		     ERROR_INVALID_INPUT, "devices[0]: must be an object");
	json_decref(json);
	expect_error(body_open(NULL, "", KNOWN, &body, &error), &error, ERROR_INVALID_INPUT,
		     "body must be a JSON object");
}

/* What each reader refuses: a text, a number, a truth, a choice, an id. */
static void test_wrong_values_are_refused(void **state)
{
	static const struct {
		const char *json, *field, *text;
	} rows[] = {
		{"{}", "text", "is missing"},
		{"{\"text\":1}", "text", "must be a text"},
		{"{\"text\":null}", "text", "must be a text"},
		{"{\"text\":\"\"}", "text", "must not be empty"},
		{"{\"text\":\"abcdef\"}", "text", "has 6 bytes, at most 5"},
		{"{\"text\":\"a\\u0007\"}", "text", "control character"},
		{"{\"text\":\"a\\n\"}", "text", "control character"},
		{"{\"text\":\"a\"}", "number", "is missing"},
		{"{\"text\":\"a\",\"number\":\"7\"}", "number", "must be a whole number"},
		{"{\"text\":\"a\",\"number\":2.0}", "number", "must be a whole number"},
		{"{\"text\":\"a\",\"number\":1e1}", "number", "must be a whole number"},
		{"{\"text\":\"a\",\"number\":true}", "number", "must be a whole number"},
		{"{\"text\":\"a\",\"number\":0}", "number", "is 0, must be between 1 and 10"},
		{"{\"text\":\"a\",\"number\":11}", "number", "is 11, must be between 1 and 10"},
		{"{\"text\":\"a\",\"number\":9007199254740993}", "number", "9007199254740993"},
		{"{\"text\":\"a\",\"number\":1,\"truth\":1}", "truth", "must be true or false"},
		{"{\"text\":\"a\",\"number\":1,\"choice\":\"c\"}", "choice", "known: a, b"},
		{"{\"text\":\"a\",\"number\":1,\"choice\":\"A\"}", "choice", "unknown"},
		{"{\"text\":\"a\",\"number\":1,\"id\":\"pool_x\"}", "id", "pool_"},
		{"{\"text\":\"a\",\"number\":1,\"id\":\"ten_01jd4z5x9f0123456789abcdef\"}", "id",
		 "pool_"},
	};
	static const char *const choices[] = {"a", "b", NULL};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		json_t *json = parse(rows[i].json);
		const char *text, *id;
		int64_t number;
		bool truth = false;
		int choice;
		struct error error;
		struct body body;

		expect_ok(body_open(json, "", KNOWN, &body, &error), &error);
		expect_error(
			body_text(&body, "text", BODY_REQUIRED, 5, &text, &error) &&
				body_int(&body, "number", BODY_REQUIRED, 1, 10, &number, &error) &&
				body_bool(&body, "truth", &truth, &error) &&
				body_choice(&body, "choice", BODY_OPTIONAL, choices, &choice,
					    &error) &&
				body_id(&body, "id", BODY_OPTIONAL, "pool", &id, &error),
			&error, ERROR_INVALID_INPUT, rows[i].text);
		assert_string_equal(error.field, rows[i].field);
		json_decref(json);
	}
}

static void test_right_values_are_read(void **state)
{
	static const char *const choices[] = {"a", "b", NULL};
	json_t *json = parse("{\"text\":\"caf\\u00e9\",\"number\":10,\"truth\":true,"
			     "\"choice\":\"b\",\"id\":\"pool_01jd4z5x9f0123456789abcdef\"}");
	const char *text, *id;
	int64_t number = 0;
	bool truth = false;
	int choice = 0;
	struct error error;
	struct body body;

	(void)state;
	expect_ok(body_open(json, "", KNOWN, &body, &error), &error);
	expect_ok(body_text(&body, "text", BODY_REQUIRED, 5, &text, &error), &error);
	expect_ok(body_int(&body, "number", BODY_REQUIRED, 1, 10, &number, &error), &error);
	expect_ok(body_bool(&body, "truth", &truth, &error), &error);
	expect_ok(body_choice(&body, "choice", BODY_REQUIRED, choices, &choice, &error), &error);
	expect_ok(body_id(&body, "id", BODY_REQUIRED, "pool", &id, &error), &error);
	assert_string_equal(text, "caf\xc3\xa9");
	assert_int_equal(number, 10);
	assert_true(truth);
	assert_int_equal(choice, 1);
	assert_string_equal(id, "pool_01jd4z5x9f0123456789abcdef");
	json_decref(json);
	/* What is absent leaves what was. */
	json = parse("{}");
	expect_ok(body_open(json, "", KNOWN, &body, &error), &error);
	expect_ok(body_int(&body, "number", BODY_OPTIONAL, 1, 10, &number, &error), &error);
	expect_ok(body_bool(&body, "truth", &truth, &error), &error);
	expect_ok(body_text(&body, "text", BODY_OPTIONAL, 5, &text, &error), &error);
	assert_int_equal(number, 10);
	assert_true(truth);
	assert_null(text);
	json_decref(json);
}

static void test_names_are_lower_case_words(void **state)
{
	static const char *const right[] = {"a", "a-b.c_d", "0", "h100"};
	static const char *const wrong[] = {"A", "a b", "-a", "a-", ".", "a/b", "caf\xc3\xa9"};
	struct error error;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(right) + ARRAY_SIZE(wrong); i++) {
		bool good = i < ARRAY_SIZE(right);
		const char *name = good ? right[i] : wrong[i - ARRAY_SIZE(right)], *read;
		json_t *json = json_pack("{s:s}", "name", name);
		struct body body = {json, ""};

		if (good)
			expect_ok(body_name(&body, "name", &read, &error), &error);
		else
			expect_error(body_name(&body, "name", &read, &error), &error,
				     ERROR_INVALID_INPUT, "is not a name");
		json_decref(json);
	}
}

/* proves: POOL-27 */
static void test_idempotency_keys_are_printable_ascii(void **state)
{
	json_t *json = json_pack("{s:s}", "idempotencyKey", "a key! ~");
	struct body body = {json, ""};
	const char *key;
	struct error error;
	char large[130];

	(void)state;
	expect_ok(body_idempotency_key(&body, &key, &error), &error);
	assert_string_equal(key, "a key! ~");
	memset(large, 'k', sizeof large);
	large[128] = '\0';
	json_object_set_new(json, "idempotencyKey", json_string(large));
	expect_ok(body_idempotency_key(&body, &key, &error), &error);
	large[128] = 'k';
	large[129] = '\0';
	json_object_set_new(json, "idempotencyKey", json_string(large));
	expect_error(body_idempotency_key(&body, &key, &error), &error, ERROR_INVALID_INPUT,
		     "129 bytes");
	json_object_set_new(json, "idempotencyKey", json_string("caf\xc3\xa9"));
	expect_error(body_idempotency_key(&body, &key, &error), &error, ERROR_INVALID_INPUT,
		     "printable ASCII");
	json_decref(json);
}

/* proves: POOL-27 */
static void test_canonical_text_is_of_the_input_alone(void **state)
{
	static const char *const same[] = {
		"{\"a\":1,\"b\":{\"c\":[1,2],\"d\":\"x\"},\"idempotencyKey\":\"k\"}",
		"{\"b\":{\"d\":\"x\",\"c\":[1,2]},\"a\":1}",
		" { \"idempotencyKey\" : \"other\", \"b\":{\"d\":\"\\u0078\",\"c\":[1,2]},\"a\":1}",
	};
	static const char *const other[] = {
		"{\"a\":1,\"b\":{\"c\":[2,1],\"d\":\"x\"}}",
		"{\"a\":1.0,\"b\":{\"c\":[1,2],\"d\":\"x\"}}",
		"{\"a\":1,\"b\":{\"c\":[1,2],\"d\":\"x\",\"idempotencyKey\":\"k\"}}",
		"{\"a\":9007199254740993,\"b\":{\"c\":[1,2],\"d\":\"x\"}}",
		"{\"a\":9007199254740992,\"b\":{\"c\":[1,2],\"d\":\"x\"}}",
	};
	CLEANUP(free) char *wanted = NULL, *last = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(same); i++) {
		json_t *json = parse(same[i]);
		char *text = body_canonical(json);

		json_decref(json);
		if (!wanted)
			wanted = mem_strdup(text);
		assert_string_equal(text, wanted);
		free(text);
	}
	for (size_t i = 0; i < ARRAY_SIZE(other); i++) {
		json_t *json = parse(other[i]);
		char *text = body_canonical(json);

		json_decref(json);
		assert_string_not_equal(text, wanted);
		if (last)
			assert_string_not_equal(text, last);
		free(last);
		last = text;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unknown_fields_are_named_with_what_is_known),
		cmocka_unit_test(test_wrong_values_are_refused),
		cmocka_unit_test(test_right_values_are_read),
		cmocka_unit_test(test_names_are_lower_case_words),
		cmocka_unit_test(test_idempotency_keys_are_printable_ascii),
		cmocka_unit_test(test_canonical_text_is_of_the_input_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
