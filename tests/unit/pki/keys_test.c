#include "pki/keys.h"

#include "lib/test.h"

#include <stdio.h>

/* RFC 7515, appendix A.3.1. */
#define RFC_PUBLIC                                                                                 \
	"\"kty\":\"EC\",\"crv\":\"P-256\","                                                        \
	"\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","                                   \
	"\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\""
#define RFC_PRIVATE RFC_PUBLIC ",\"d\":\"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI\""

static bool from_jwk(const char *text, struct pki_key **ret_key, struct error *error)
{
	return pki_key_from_jwk(text, strlen(text), PKI_USE_SIGNING, ret_key, error);
}

static void test_pem_round_trip(void **state)
{
	CLEANUP(pki_key) struct pki_key *key = NULL;
	CLEANUP(pki_key) struct pki_key *again = NULL;
	struct buf pem = {0};
	char pin[PIN_SIZE], pin_again[PIN_SIZE];
	struct error error;

	(void)state;
	expect_ok(pki_key_generate(&key, &error), &error);
	expect_ok(pki_key_to_pem(key, &pem, &error), &error);
	assert_true(str_starts(buf_text(&pem), "-----BEGIN PRIVATE KEY-----\n"));
	expect_ok(pki_key_from_pem(buf_text(&pem), pem.length, &again, &error), &error);
	assert_true(pki_key_is_private(again));
	pki_key_pin(key, pin);
	pki_key_pin(again, pin_again);
	assert_string_equal(pin, pin_again);
	pki_wipe(&pem);
	assert_null(pem.data);
}

static void test_jwk_round_trip(void **state)
{
	CLEANUP(pki_key) struct pki_key *key = NULL;
	CLEANUP(pki_key) struct pki_key *private = NULL;
	CLEANUP(pki_key) struct pki_key *public = NULL;
	CLEANUP(buf) struct buf full = {0};
	CLEANUP(buf) struct buf half = {0};
	char pin[PIN_SIZE], pin_again[PIN_SIZE];
	struct error error;

	(void)state;
	expect_ok(pki_key_generate(&key, &error), &error);
	expect_ok(pki_key_to_jwk(key, PKI_USE_SIGNING, true, &full, &error), &error);
	expect_ok(pki_key_to_jwk(key, PKI_USE_SIGNING, false, &half, &error), &error);
	assert_non_null(strstr(buf_text(&full), "\"d\":"));
	assert_null(strstr(buf_text(&half), "\"d\":"));
	expect_ok(from_jwk(buf_text(&full), &private, &error), &error);
	expect_ok(from_jwk(buf_text(&half), &public, &error), &error);
	assert_true(pki_key_is_private(private));
	assert_false(pki_key_is_private(public));
	pki_key_pin(private, pin);
	pki_key_pin(public, pin_again);
	assert_string_equal(pin, pin_again);
}

/* proves: JOIN-37 */
static void test_published_key(void **state)
{
	CLEANUP(pki_key) struct pki_key *key = NULL;
	char pin[PIN_SIZE], id[PKI_KEY_ID_SIZE];
	struct error error;

	(void)state;
	expect_ok(from_jwk("{" RFC_PRIVATE "}", &key, &error), &error);
	/* computed apart, from the DER written out by hand */
	pki_key_pin(key, pin);
	assert_string_equal(pin, "sha256/K9G7DESol8MKeqCZHN442AYv5EHeUNoPRoJTRPYC6Cc=");
	pki_key_id(key, id); /* RFC 7638 */
	assert_string_equal(id, "oKIywvGUpTVTyxMQ3bwIIeQUudfr_CkLMjCE19ECD-U");
}

static void test_bad_jwk(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"", "JWK: empty"},
		{"[]", "not a JSON object"},
		{"{}", "kty"},
		{"{" RFC_PUBLIC "} trailing", "JWK:1:"},
		{"{" RFC_PUBLIC ",\"kty\":\"EC\"}", "\"kty\" is there twice"},
		{"{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}", "kty"},
		{"{\"kty\":\"EC\",\"crv\":\"P-384\",\"x\":\"AA\",\"y\":\"AA\"}", "crv"},
		{"{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AA\",\"y\":\"AA\"}", "P-256"},
		{"{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":5,\"y\":\"AA\"}", "P-256"},
		{"{\"kty\":\"EC\",\"crv\":\"P-256\"}", "P-256"},
		{"{" RFC_PUBLIC ",\"alg\":\"ECDH-ES+A256KW\"}", "alg"},
		{"{" RFC_PUBLIC ",\"alg\":5}", "alg"},
		{"{" RFC_PUBLIC ",\"use\":\"enc\"}", "use"},
		/* a private half of another key */
		{"{" RFC_PUBLIC ",\"d\":\"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LE\"}", "P-256"},
		{"{\"kty\":\"EC\",\"crv\":\"P-256\","
		 "\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
		 "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a1\"}", /* off the curve */
		 "P-256"},
	};
	struct pki_key *key = NULL;
	struct error error;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		expect_error(from_jwk(cases[i].text, &key, &error), &error, ERROR_INVALID_INPUT,
			     cases[i].message);
	assert_null(key);
}

static void test_oversize(void **state)
{
	CLEANUP(buf) struct buf text = {0};
	struct pki_key *key = NULL;
	struct error error;

	(void)state;
	while (text.length <= PKI_PEM_MAX)
		buf_add_text(&text, "                ");
	expect_error(pki_key_from_pem(buf_text(&text), text.length, &key, &error), &error,
		     ERROR_INVALID_INPUT, "over 16384 bytes");
	expect_error(from_jwk(buf_text(&text), &key, &error), &error, ERROR_INVALID_INPUT,
		     "larger than 4096 bytes");
	/* At the bound a key with blanks after it is read. */
	buf_clear(&text);
	buf_add_text(&text, "{" RFC_PUBLIC "}");
	while (text.length < PKI_JWK_MAX)
		buf_add_char(&text, ' ');
	expect_ok(pki_key_from_jwk(buf_text(&text), text.length, PKI_USE_SIGNING, &key, &error),
		  &error);
	pki_key_destroy(key);
}

static void test_bad_pem(void **state)
{
	/* RSA would be too long here: Ed25519 (RFC 8410, section 10.3), and an encrypted header. */
	static const char *const bad[] = {
		"",
		"hello",
		"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
		"-----BEGIN PRIVATE KEY-----\n"
		"MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
		"-----END PRIVATE KEY-----\n",
		"-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"
		"DEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF\n\nAAAA\n"
		"-----END EC PRIVATE KEY-----\n",
	};
	struct pki_key *key = NULL;
	struct error error;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		expect_error(pki_key_from_pem(bad[i], strlen(bad[i]), &key, &error), &error,
			     ERROR_INVALID_INPUT, "key");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pem_round_trip), cmocka_unit_test(test_jwk_round_trip),
		cmocka_unit_test(test_published_key),  cmocka_unit_test(test_bad_jwk),
		cmocka_unit_test(test_oversize),       cmocka_unit_test(test_bad_pem),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
