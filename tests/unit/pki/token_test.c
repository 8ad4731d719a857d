#include "pki/token.h"

#include "lib/test.h"

#include <stdio.h>

#define ID "jt_01jd4z5x9f0123456789abcdef"

/* proves: JOIN-36 */
static void test_form(void **state)
{
	char token[TOKEN_SIZE], again[TOKEN_SIZE], id[ID_SIZE];

	(void)state;
	for (int i = 0; i < 500; i++) { /* often enough to meet '_' and '-' at every place */
		token_make(token, TOKEN_PREFIX_JOIN, ID);
		assert_true(token_parse(token, TOKEN_PREFIX_JOIN, "jt", id));
		assert_string_equal(id, ID);
		assert_true(str_starts(token, "bcj1_" ID "_"));
	}
	token_make(again, TOKEN_PREFIX_JOIN, ID);
	assert_string_not_equal(token, again);
}

/* proves: JOIN-36 */
static void test_other_forms(void **state)
{
	char token[TOKEN_SIZE], changed[TOKEN_SIZE + 8], id[ID_SIZE] = "same";

	(void)state;
	token_make(token, TOKEN_PREFIX_JOIN, ID);
	assert_false(token_parse("", TOKEN_PREFIX_JOIN, "jt", id));
	assert_false(token_parse("bcj1_" ID, TOKEN_PREFIX_JOIN, "jt", id));
	assert_false(token_parse(token, TOKEN_PREFIX_KEY, "key", id));
	assert_false(token_parse(token, TOKEN_PREFIX_JOIN, "key", id));
	snprintf(changed, sizeof changed, "%s\n", token);
	assert_false(token_parse(changed, TOKEN_PREFIX_JOIN, "jt", id));
	snprintf(changed, sizeof changed, "%.*s", (int)strlen(token) - 1, token);
	assert_false(token_parse(changed, TOKEN_PREFIX_JOIN, "jt", id));
	snprintf(changed, sizeof changed, "BCJ1%s", token + 4);
	assert_false(token_parse(changed, TOKEN_PREFIX_JOIN, "jt", id));
	memcpy(changed, token, strlen(token) + 1);
	changed[strlen(token) - 1] = '=';
	assert_false(token_parse(changed, TOKEN_PREFIX_JOIN, "jt", id));
	memcpy(changed, token, strlen(token) + 1);
	changed[strlen("bcj1_jt_")] = 'U'; /* not in the ids' alphabet */
	assert_false(token_parse(changed, TOKEN_PREFIX_JOIN, "jt", id));
	assert_string_equal(id, "same");
}

static void test_hash(void **state)
{
	char hash[TOKEN_HASH_SIZE];

	(void)state;
	token_hash("abc", hash); /* FIPS 180-4, example 1 */
	assert_string_equal(hash,
			    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_form),
		cmocka_unit_test(test_other_forms),
		cmocka_unit_test(test_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
