#include "manifest/manifest.h"
#include "pki/keys.h"
#include "sample.h"

#include <stdio.h>

static void set_pin(json_t *options, const char *name, const char *pin)
{
	tree_set(json_object_get(options, "pins"), name, tree_string(pin));
}

/* A new key in `options`, pinned. */
static void add_key(json_t *options, enum pki_use use, bool pinned)
{
	CLEANUP(pki_key) struct pki_key *key = NULL;
	CLEANUP(buf) struct buf jwk = {0};
	char pin[PIN_SIZE];
	struct error error;

	expect_ok(pki_key_generate(&key, &error), &error);
	expect_ok(pki_key_to_jwk(key, use, false, &jwk, &error), &error);
	tree_set(options, "joinEncryptionJwk", sample_parse(buf_text(&jwk)));
	json_object_del(options, "controlPlaneUrl");
	pki_key_pin(key, pin);
	if (pinned)
		set_pin(options, "joinEncryptionPin", pin);
}

/* proves: MAN-42 MAN-43 JOIN-37 */
static void test_pins_and_key(void **state UNUSED)
{
	CLEANUP(tree) json_t *options = sample_options();
	CLEANUP(settings) struct settings settings = {0}, none = {0};
	struct error error;

	add_key(options, PKI_USE_ENCRYPTION, false);
	expect_error(manifest_read(options, &none, &error), &error, ERROR_INVALID_CONFIG,
		     "joinEncryptionJwk has pin");
	add_key(options, PKI_USE_SIGNING, true);
	expect_error(manifest_read(options, &none, &error), &error, ERROR_INVALID_CONFIG,
		     "joinEncryptionJwk: ");
	add_key(options, PKI_USE_ENCRYPTION, true);
	expect_ok(manifest_read(options, &settings, &error), &error);
	set_pin(options, "servingCaPin", SAMPLE_PIN "," SAMPLE_PIN "," SAMPLE_PIN);
	expect_error(manifest_read(options, &none, &error), &error, ERROR_INVALID_CONFIG,
		     "pins.servingCaPin: ");
	set_pin(options, "servingCaPin", SAMPLE_PIN);
	set_pin(options, "joinSigningPin", "sha256/short");
	expect_error(manifest_read(options, &none, &error), &error, ERROR_INVALID_CONFIG,
		     "pins.joinSigningPin: ");
	assert_null(none.image);
}

static void render(json_t *options, struct buf *out)
{
	CLEANUP(settings) struct settings settings = {0};
	CLEANUP(tree) json_t *objects = NULL;
	struct error error;

	expect_ok(manifest_read(options, &settings, &error), &error);
	expect_ok(manifest_objects(&settings, &objects, &error), &error);
	render_json(objects, out);
}

/* proves: MAN-2 MAN-66 HOSTED-33 */
static void test_same_options_same_bytes(void **state UNUSED)
{
	CLEANUP(tree) json_t *options = sample_options(), *copy = NULL;
	CLEANUP(buf) struct buf first = {0}, second = {0}, third = {0};
	CLEANUP(free) char *sorted = json_dumps(options, JSON_SORT_KEYS);

	copy = sample_parse(sorted);
	render(options, &first);
	render(copy, &second);
	assert_string_equal(buf_text(&first), buf_text(&second));
	/* sha256sum of the config.toml that nodeconfig_test.c has */
	assert_non_null(
		strstr(buf_text(&first),
		       "\"bcd.dev/config-sha256\": "
		       "\"2ab443822ed7d70ed6d6363d24ce6f763a4c988fe4bb37c5eb183bd917e9c21b\""));
	tree_set(copy, "gatewayUrl", tree_string("https://other.example.com"));
	render(copy, &third);
	assert_null(strstr(buf_text(&third),
			   "2ab443822ed7d70ed6d6363d24ce6f763a4c988fe4bb37c5eb183bd917e9c21b"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pins_and_key),
		cmocka_unit_test(test_same_options_same_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
