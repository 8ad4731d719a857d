#include "pki/envelope.h"

#include "lib/test.h"

#include <jose/b64.h>
#include <jose/jws.h>
#include <stdio.h>

#define NODE "node_01jd4z5x9f0123456789abcdef"

struct world {
	struct pki_key *encryption, *signing, *other;
	struct pin_list pins; /* of `signing` */
	struct join_request request;
	struct join_answer answer;
};

static int set_up(void **state)
{
	struct world *world = mem_alloc(sizeof *world);
	struct error error;

	expect_ok(pki_key_generate(&world->encryption, &error), &error);
	expect_ok(pki_key_generate(&world->signing, &error), &error);
	expect_ok(pki_key_generate(&world->other, &error), &error);
	world->pins.count = 1;
	pki_key_pin(world->signing, world->pins.pins[0]);
	world->request = (struct join_request){
		.token = "bcj1_secret",
		.csr_pem = "csr",
		.hostname = "gpu-1",
		.boot_id = "boot",
	};
	join_nonce(world->request.nonce);
	world->answer = (struct join_answer){
		.node_id = NODE,
		.trust = "platform",
		.certificate_pem = "chain",
		.gateway_address = "127.0.0.1:7443",
		.gateway_server_name = "gateway",
		.rejoined = true,
	};
	memcpy(world->answer.nonce, world->request.nonce, JOIN_NONCE_SIZE);
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	pki_key_destroy(world->encryption);
	pki_key_destroy(world->signing);
	pki_key_destroy(world->other);
	free(world);
	return 0;
}

/* proves: JOIN-38 */
static void test_request(void **state)
{
	struct world *world = *state;
	struct join_request request = {0};
	char *envelope = NULL;
	struct error error;

	expect_ok(join_request_seal(&world->request, world->encryption, &envelope, &error), &error);
	assert_null(strstr(envelope, "secret"));
	expect_ok(join_request_open(envelope, world->encryption, &request, &error), &error);
	assert_string_equal(request.nonce, world->request.nonce);
	assert_string_equal(request.token, "bcj1_secret");
	assert_string_equal(request.csr_pem, "csr");
	assert_string_equal(request.hostname, "gpu-1");
	assert_string_equal(request.boot_id, "boot");
	assert_null(request.smbios_uuid);
	join_request_deinit(&request);
	free(envelope);

	assert_null(request.certificate_pem);
	world->request.smbios_uuid = "4c4c4544";
	world->request.certificate_pem = "old";
	expect_ok(join_request_seal(&world->request, world->encryption, &envelope, &error), &error);
	expect_ok(join_request_open(envelope, world->encryption, &request, &error), &error);
	assert_string_equal(request.smbios_uuid, "4c4c4544");
	assert_string_equal(request.certificate_pem, "old");
	join_request_deinit(&request);
	free(envelope);
	world->request.smbios_uuid = world->request.certificate_pem = NULL;
}

/* proves: JOIN-38 */
static void test_request_wrong_key(void **state)
{
	struct world *world = *state;
	struct join_request request = {0};
	char *envelope = NULL;
	struct error error;

	expect_ok(join_request_seal(&world->request, world->encryption, &envelope, &error), &error);
	expect_error(join_request_open(envelope, world->other, &request, &error), &error,
		     ERROR_INVALID_INPUT, "not sealed to this control plane's key");
	free(envelope);
}

/* Any character turned into another is refused. The last of a part may carry bits that mean
 * nothing; there the text must still not open to anything else. */
static void test_request_tampered(void **state)
{
	struct world *world = *state;
	struct error error;
	char *envelope = NULL;

	expect_ok(join_request_seal(&world->request, world->encryption, &envelope, &error), &error);
	for (size_t i = 0; envelope[i]; i++) {
		struct join_request request = {0};
		char kept = envelope[i];
		bool last = envelope[i + 1] == '.' || envelope[i + 1] == '\0';

		envelope[i] = kept == 'A' ? 'Q' : 'A';
		if (join_request_open(envelope, world->encryption, &request, &error)) {
			if (!last)
				fail_msg("character %zu was changed and the envelope opened", i);
			assert_string_equal(request.token, world->request.token);
			join_request_deinit(&request);
		} else {
			assert_int_equal(error.code, ERROR_INVALID_INPUT);
			assert_null(strstr(error.what, "bcj1_"));
		}
		envelope[i] = kept;
	}
	free(envelope);
}

static char *b64(const char *text)
{
	json_t *encoded = jose_b64_enc(text, strlen(text));
	char *copy = mem_strdup(json_string_value(encoded));

	json_decref(encoded);
	return copy;
}

static void test_request_forms(void **state)
{
	struct world *world = *state;
	static const char *const headers[] = {
		"{}",
		"[]",
		"{\"alg\":\"none\",\"enc\":\"A256GCM\"}",
		"{\"alg\":\"dir\",\"enc\":\"A256GCM\"}",
		"{\"alg\":\"ECDH-ES\",\"enc\":\"A256GCM\"}",
		"{\"alg\":\"PBES2-HS256+A128KW\",\"enc\":\"A256GCM\",\"p2c\":2147483647}",
		"{\"alg\":\"ECDH-ES+A256KW\",\"enc\":\"A128CBC-HS256\"}",
		"{\"alg\":\"ECDH-ES+A256KW\",\"enc\":\"A256GCM\",\"zip\":\"DEF\"}",
		"{\"alg\":\"ECDH-ES+A256KW\",\"enc\":\"A256GCM\",\"crit\":[\"exp\"],\"exp\":1}",
		"{\"alg\":\"ECDH-ES+A256KW\",\"enc\":\"A256GCM\"}", /* no epk */
		"{\"alg\":\"ECDH-ES+A256KW\",\"alg\":\"ECDH-ES+A256KW\",\"enc\":\"A256GCM\"}",
		"{\"alg\":\"ECDH-ES+A256KW\",\"enc\":\"A256GCM\",\"epk\":{\"kty\":\"EC\","
		"\"crv\":\"P-256\",\"x\":\"AA\",\"y\":\"AA\"}}",
	};
	static const char *const texts[] = {
		"",
		".",
		"....",
		"a.b.c.d",
		"a.b.c.d.e.f",
		"a.b.c.d.",
		"a.b.c.d.e\n",
		"a.b. .d.e",
		"{\"protected\":\"e30\"}",
		"a.b.c.d.e",
	};
	struct join_request request = {0};
	struct error error;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		expect_error(join_request_open(texts[i], world->encryption, &request, &error),
			     &error, ERROR_INVALID_INPUT, "join request: ");
	for (size_t i = 0; i < ARRAY_SIZE(headers); i++) {
		CLEANUP(buf) struct buf envelope = {0};
		char *header = b64(headers[i]);

		buf_printf(&envelope, "%s.AAAA.AAAA.AAAA.AAAA", header);
		expect_error(
			join_request_open(buf_text(&envelope), world->encryption, &request, &error),
			&error, ERROR_INVALID_INPUT, "join request: ");
		free(header);
	}
}

static void test_request_fields(void **state)
{
	struct world *world = *state;
	struct join_request request = {0}, bad = world->request;
	char *envelope = NULL, *long_text = mem_alloc(JOIN_FACT_MAX + 2);
	struct error error;

	memset(long_text, 'h', JOIN_FACT_MAX);
	bad.hostname = long_text;
	expect_ok(join_request_seal(&bad, world->encryption, &envelope, &error), &error);
	expect_ok(join_request_open(envelope, world->encryption, &request, &error), &error);
	join_request_deinit(&request);
	free(envelope);
	long_text[JOIN_FACT_MAX] = 'h';
	expect_ok(join_request_seal(&bad, world->encryption, &envelope, &error), &error);
	expect_error(join_request_open(envelope, world->encryption, &request, &error), &error,
		     ERROR_INVALID_INPUT, "machine.hostname: is longer than 256 bytes");
	free(envelope);
	free(long_text);
	bad.hostname = "\xff";
	expect_ok(join_request_seal(&bad, world->encryption, &envelope, &error), &error);
	expect_ok(join_request_open(envelope, world->encryption, &request, &error), &error);
	assert_string_equal(request.hostname, "\xef\xbf\xbd"); /* U+FFFD: JSON has no other bytes */
	join_request_deinit(&request);
	free(envelope);
	bad.hostname = "h";
	bad.nonce[5] = '\0';
	expect_ok(join_request_seal(&bad, world->encryption, &envelope, &error), &error);
	expect_error(join_request_open(envelope, world->encryption, &request, &error), &error,
		     ERROR_INVALID_INPUT, "nonce");
	free(envelope);
}

static void test_oversize(void **state)
{
	struct world *world = *state;
	char *envelope = mem_alloc(((size_t)1 << 20) + 1);
	struct join_request request = {0};
	struct join_answer answer = {0};
	struct error error;

	memset(envelope, 'a', (size_t)1 << 20);
	expect_error(join_request_open(envelope, world->encryption, &request, &error), &error,
		     ERROR_INVALID_INPUT, "over 32768 bytes");
	expect_error(join_answer_verify(envelope, &world->pins, "", &answer, &error), &error,
		     ERROR_INVALID_INPUT, "over 32768 bytes");
	envelope[JOIN_ENVELOPE_MAX] = '\0';
	expect_error(join_request_open(envelope, world->encryption, &request, &error), &error,
		     ERROR_INVALID_INPUT, "5 parts");
	free(envelope);
}

/* proves: JOIN-38 JOIN-20 */
static void test_answer(void **state)
{
	struct world *world = *state;
	struct join_answer answer = {0};
	struct pin_list other = {.count = 1}, both;
	char *envelope = NULL, nonce[JOIN_NONCE_SIZE];
	struct error error;

	expect_ok(join_answer_sign(&world->answer, world->signing, &envelope, &error), &error);
	expect_ok(join_answer_verify(envelope, &world->pins, world->request.nonce, &answer, &error),
		  &error);
	assert_string_equal(answer.node_id, NODE);
	assert_string_equal(answer.trust, "platform");
	assert_string_equal(answer.certificate_pem, "chain");
	assert_string_equal(answer.gateway_address, "127.0.0.1:7443");
	assert_string_equal(answer.gateway_server_name, "gateway");
	assert_true(answer.rejoined);
	join_answer_deinit(&answer);

	pki_key_pin(world->other, other.pins[0]);
	expect_error(join_answer_verify(envelope, &other, world->request.nonce, &answer, &error),
		     &error, ERROR_FORBIDDEN, "signing key has pin");
	both = (struct pin_list){.count = 2};
	memcpy(both.pins[0], other.pins[0], PIN_SIZE);
	memcpy(both.pins[1], world->pins.pins[0], PIN_SIZE);
	expect_ok(join_answer_verify(envelope, &both, world->request.nonce, &answer, &error),
		  &error);
	join_answer_deinit(&answer);
	join_nonce(nonce);
	expect_error(join_answer_verify(envelope, &world->pins, nonce, &answer, &error), &error,
		     ERROR_FORBIDDEN, "another request");
	free(envelope);
}

/* proves: JOIN-20 */
static void test_answer_tampered(void **state)
{
	struct world *world = *state;
	char *envelope = NULL;
	struct error error;

	expect_ok(join_answer_sign(&world->answer, world->signing, &envelope, &error), &error);
	for (size_t i = 0; envelope[i]; i++) {
		struct join_answer answer = {0};
		char kept = envelope[i];
		bool last = envelope[i + 1] == '.' || envelope[i + 1] == '\0';

		envelope[i] = kept == 'A' ? 'Q' : 'A';
		if (join_answer_verify(envelope, &world->pins, world->request.nonce, &answer,
				       &error)) {
			if (!last)
				fail_msg("character %zu was changed and the answer taken", i);
			assert_string_equal(answer.node_id, NODE);
			join_answer_deinit(&answer);
		}
		envelope[i] = kept;
	}
	free(envelope);
}

/* A signer whose own key is in the header is nobody, and a signature of "none" is none. */
static void test_answer_forged(void **state)
{
	struct world *world = *state;
	static const char *const headers[] = {
		"{\"alg\":\"none\"}",
		"{\"alg\":\"HS256\",\"jwk\":{\"kty\":\"oct\",\"k\":\"AAAA\"}}",
		"{\"alg\":\"ES256\"}",
		"{\"alg\":\"ES256\",\"jwk\":\"key\"}",
		"{\"alg\":\"ES256\",\"jwk\":{}}",
	};
	struct join_answer answer = {0};
	char *envelope = NULL;
	struct error error;

	for (size_t i = 0; i < ARRAY_SIZE(headers); i++) {
		CLEANUP(buf) struct buf text = {0};
		char *header = b64(headers[i]);

		buf_printf(&text, "%s.e30.AAAA", header);
		expect_error(join_answer_verify(buf_text(&text), &world->pins, world->request.nonce,
						&answer, &error),
			     &error, ERROR_INVALID_INPUT, "join answer: ");
		free(header);
	}
	expect_ok(join_answer_sign(&world->answer, world->other, &envelope, &error), &error);
	expect_error(
		join_answer_verify(envelope, &world->pins, world->request.nonce, &answer, &error),
		&error, ERROR_FORBIDDEN, "signing key has pin");
	free(envelope);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request),          cmocka_unit_test(test_request_wrong_key),
		cmocka_unit_test(test_request_tampered), cmocka_unit_test(test_request_forms),
		cmocka_unit_test(test_request_fields),   cmocka_unit_test(test_oversize),
		cmocka_unit_test(test_answer),           cmocka_unit_test(test_answer_tampered),
		cmocka_unit_test(test_answer_forged),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
