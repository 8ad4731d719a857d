#include "lib/test.h"
#include "pki/wellknown.h"
#include "text/tree.h"

struct pair {
	struct pki_key *key;
	char pin[PIN_SIZE];
	char jwk[512];
};

static void pair_cleanup(struct pair *pair)
{
	pki_key_destroy(pair->key);
}

static void make(struct pair *pair, enum pki_use use)
{
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	expect_ok(pki_key_generate(&pair->key, &error), &error);
	expect_ok(pki_key_to_jwk(pair->key, use, false, &text, &error), &error);
	pki_key_pin(pair->key, pair->pin);
	assert_true(str_copy(pair->jwk, sizeof pair->jwk, buf_text(&text)));
}

static bool read_text(const char *url, const char *keys, const char *pins, struct wellknown *found,
		      struct error *error)
{
	CLEANUP(buf) struct buf body = {0};
	struct pin_list list;

	buf_printf(&body,
		   "{\"version\":1,\"gateway\":{\"url\":\"%s\",\"serverName\":\"gw.internal\"},"
		   "\"join\":{%s}}",
		   url, keys);
	expect_ok(pin_list_parse(pins, "pins", &list, error), error);
	return wellknown_read(&body, &list, found, error);
}

/* proves: JOIN-11 JOIN-19 JOIN-39 MAN-10 MAN-11 */
static void test_only_a_pinned_key_is_taken(void **state UNUSED)
{
	CLEANUP(pair) struct pair now = {0}, next = {0}, signing = {0};
	CLEANUP(wellknown) struct wellknown found = {0}, other = {0}, none = {0};
	CLEANUP(buf) struct buf keys = {0}, both = {0}, wrong = {0};
	char pin[PIN_SIZE];
	struct error error;

	make(&now, PKI_USE_ENCRYPTION);
	make(&next, PKI_USE_ENCRYPTION);
	make(&signing, PKI_USE_SIGNING);
	buf_printf(&keys, "\"encryptionJwk\":%s", now.jwk);
	buf_printf(&both, "\"encryptionJwk\":%s,\"nextEncryptionJwk\":%s", now.jwk, next.jwk);
	buf_printf(&wrong, "\"encryptionJwk\":%s", signing.jwk);

	expect_ok(read_text("https://gw:7443", buf_text(&keys), now.pin, &found, &error), &error);
	assert_string_equal(found.gateway_url, "https://gw:7443");
	assert_string_equal(found.gateway_server_name, "gw.internal");
	pki_key_pin(found.encryption_key, pin);
	assert_string_equal(pin, now.pin);
	/* while keys change */
	expect_ok(read_text("https://gw:7443", buf_text(&both), next.pin, &other, &error), &error);
	pki_key_pin(other.encryption_key, pin);
	assert_string_equal(pin, next.pin);

	expect_error(read_text("https://gw", buf_text(&keys), next.pin, &none, &error), &error,
		     ERROR_FORBIDDEN, now.pin);
	expect_error(read_text("https://gw", buf_text(&wrong), signing.pin, &none, &error), &error,
		     ERROR_INVALID_INPUT, "the join encryption key");
	expect_error(read_text("http://gw", buf_text(&keys), now.pin, &none, &error), &error,
		     ERROR_INVALID_INPUT, "'http://gw' is not https");
	expect_error(read_text("https:///x", buf_text(&keys), now.pin, &none, &error), &error,
		     ERROR_INVALID_INPUT, "is not https");
	expect_error(read_text("https://gw", "", now.pin, &none, &error), &error,
		     ERROR_INVALID_INPUT, "encryptionJwk");
	assert_null(none.encryption_key);
}

/* proves: MAN-10 */
static void test_pins_are_told(void **state UNUSED)
{
	static const char *const OTHERS[] = {"", ",\"pins\":7", ",\"pins\":{\"caPins\":\"x\"}",
					     ",\"pins\":{\"signingPins\":[]}"};
	CLEANUP(pair) struct pair key = {0}, other = {0};
	CLEANUP(wellknown) struct wellknown found = {0};
	CLEANUP(buf) struct buf body = {0};
	struct pin_list pins;
	struct error error;

	make(&key, PKI_USE_ENCRYPTION);
	make(&other, PKI_USE_SIGNING);
	expect_ok(pin_list_parse(key.pin, "pins", &pins, &error), &error);
	buf_printf(&body,
		   "{\"version\":1,\"gateway\":{\"url\":\"https://gw\",\"serverName\":\"gw\"},"
		   "\"join\":{\"encryptionJwk\":%s},\"pins\":{\"caPins\":\"%s,%s\","
		   "\"signingPins\":\"%s\"}}",
		   key.jwk, key.pin, other.pin, other.pin);
	expect_ok(wellknown_read(&body, &pins, &found, &error), &error);
	assert_int_equal(found.ca_pins.count, 2);
	assert_true(pin_list_has(&found.ca_pins, key.pin));
	assert_int_equal(found.signing_pins.count, 1);
	assert_string_equal(found.signing_pins.pins[0], other.pin);

	for (size_t i = 0; i < ARRAY_SIZE(OTHERS); i++) {
		CLEANUP(wellknown) struct wellknown none = {0};

		buf_clear(&body);
		buf_printf(&body,
			   "{\"version\":1,\"gateway\":{\"url\":\"https://gw\",\"serverName\":"
			   "\"gw\"},\"join\":{\"encryptionJwk\":%s}%s}",
			   key.jwk, OTHERS[i]);
		expect_ok(wellknown_read(&body, &pins, &none, &error), &error);
		assert_int_equal(none.ca_pins.count + none.signing_pins.count, 0);
	}
}

static void test_bounds(void **state UNUSED)
{
	CLEANUP(wellknown) struct wellknown none = {0};
	CLEANUP(buf) struct buf large = {0};
	struct pin_list pins = {0};
	struct error error;

	buf_printf(&large, "{\"version\":1%*s}", (int)WELLKNOWN_MAX_SIZE, "");
	expect_error(wellknown_read(&large, &pins, &none, &error), &error, ERROR_INVALID_INPUT,
		     "the well-known document");
	buf_clear(&large);
	buf_add_text(&large, "{\"version\":2}");
	expect_error(wellknown_read(&large, &pins, &none, &error), &error, ERROR_INVALID_INPUT,
		     "version");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_a_pinned_key_is_taken),
		cmocka_unit_test(test_pins_are_told),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
