/*
 * Join envelopes, keys, requests and certificates as they come from outside. The first byte says
 * which reader gets the rest.
 */
#include "pki/cert.h"
#include "pki/envelope.h"
#include "pki/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One fixed key, so that a finding can be replayed. */
static const char jwk[] = "{\"kty\":\"EC\",\"crv\":\"P-256\","
			  "\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
			  "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\","
			  "\"d\":\"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI\"}";

static void read_envelopes(const char *text, bool request)
{
	CLEANUP(pki_key) struct pki_key *key = NULL;
	struct join_request opened = {0};
	struct join_answer answer = {0};
	struct pin_list pins = {.count = 1};
	struct error error;

	if (!pki_key_from_jwk(jwk, sizeof jwk - 1, request ? PKI_USE_ENCRYPTION : PKI_USE_SIGNING,
			      &key, &error))
		abort();
	pki_key_pin(key, pins.pins[0]);
	if (request && join_request_open(text, key, &opened, &error))
		join_request_deinit(&opened);
	if (!request && join_answer_verify(text, &pins, "", &answer, &error))
		join_answer_deinit(&answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(pki_key) struct pki_key *key = NULL;
	CLEANUP(buf) struct buf text = {0};
	struct cert_node node;
	struct cert_info info;
	struct error error = {0};

	if (size == 0)
		return 0;
	buf_add(&text, data + 1, size - 1);
	switch (data[0] % 6) {
	case 0:
	case 1:
		read_envelopes(buf_text(&text), data[0] % 6 == 0);
		break;
	case 2:
		(void)!pki_key_from_jwk(buf_text(&text), text.length, PKI_USE_SIGNING, &key,
					&error);
		break;
	case 3:
		(void)!cert_request_check(text.data, text.length, &key, &error);
		break;
	case 4:
		(void)!cert_read_node(text.data, text.length, &node, &error);
		break;
	case 5:
		(void)!cert_read(buf_text(&text), text.length, &info, &error);
		break;
	}
	return 0;
}
