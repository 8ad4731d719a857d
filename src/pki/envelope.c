#include "pki/envelope.h"

#include "pki/ossl.h"
#include "sys/random.h"

#include <jose/b64.h>
#include <jose/cfg.h>
#include <jose/jwe.h>
#include <jose/jws.h>
#include <openssl/crypto.h>

#define JWE_ALGORITHM  "ECDH-ES+A256KW"
#define JWE_ENCRYPTION "A256GCM"
#define JWS_ALGORITHM  "ES256"
#define JWE_PARTS      5
#define JWS_PARTS      3
#define NONCE_BYTES    32
#define TOKEN_MAX      ((size_t)4 << 10) /* as of a token file (JOIN-10) */
#define ADDRESS_MAX    ((size_t)512)

DEFINE_CLEANUP(jose_cfg_ref, jose_cfg_t *, jose_cfg_decref)

static void say_nothing(void *misc, const char *file, int line, uint64_t code, const char *format,
			va_list args)
{
	(void)misc, (void)file, (void)line, (void)code, (void)format, (void)args;
}

/* The library prints its reasons to stderr unless told otherwise. */
static jose_cfg_t *quiet(void)
{
	jose_cfg_t *cfg = jose_cfg();

	if (!cfg)
		abort();
	jose_cfg_set_err_func(cfg, say_nothing, NULL);
	return cfg;
}

void join_nonce(char out[JOIN_NONCE_SIZE])
{
	uint8_t bytes[NONCE_BYTES];

	random_bytes(bytes, sizeof bytes);
	jose_b64_enc_buf(bytes, sizeof bytes, out, JOIN_NONCE_SIZE - 1);
	out[JOIN_NONCE_SIZE - 1] = '\0';
}

/* --- members --- */

/* Text that is kept: `*slot` is the holder's to free. */
static bool keep_text(const json_t *object, const char *name, const char *path, size_t max,
		      char **slot, struct error *error)
{
	const char *text;

	if (!tree_get_text(object, name, path, max, &text, error))
		return false;
	*slot = mem_strdup(text);
	return true;
}

/* The same for a member that may be absent: `*slot` stays NULL. */
static bool keep_optional(const json_t *object, const char *name, const char *path, size_t max,
			  char **slot, struct error *error)
{
	const char *text = NULL;

	if (!tree_opt_string(object, name, path, max, &text, error))
		return false;
	*slot = mem_strdup(text);
	return true;
}

static bool check_version(const json_t *object, struct error *error)
{
	int64_t version;

	return tree_get_int(object, "version", "", 1, 1, &version, error);
}

static bool read_nonce(const json_t *object, char out[JOIN_NONCE_SIZE], struct error *error)
{
	const char *nonce;

	if (!tree_get_string(object, "nonce", "", JOIN_NONCE_SIZE - 1, &nonce, error))
		return false;
	if (strlen(nonce) != JOIN_NONCE_SIZE - 1)
		return error_field(error, "nonce", "must be %d characters", JOIN_NONCE_SIZE - 1);
	str_copy(out, JOIN_NONCE_SIZE, nonce);
	return true;
}

/* --- compact form --- */

/* Splits at dots into exactly `count` parts, as members `names` of a new object. */
static bool split(const char *envelope, const char *const *names, size_t count, json_t **ret_parts,
		  struct error *error)
{
	CLEANUP(tree) json_t *parts = json_object();
	const char *at = envelope;

	if (strnlen(envelope, JOIN_ENVELOPE_MAX + 1) > JOIN_ENVELOPE_MAX)
		return error_set(error, ERROR_INVALID_INPUT, "the envelope is over %zu bytes",
				 JOIN_ENVELOPE_MAX);
	for (size_t i = 0; i < count; i++) {
		size_t length = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					   "0123456789-_");

		if (length == 0 || at[length] != (i + 1 < count ? '.' : '\0'))
			return error_set(error, ERROR_INVALID_INPUT,
					 "the envelope is not %zu parts of base64url", count);
		tree_set(parts, names[i], json_stringn(at, length));
		at += length + 1;
	}
	*ret_parts = TAKE(parts);
	return true;
}

static char *compact(const json_t *parts, const char *const *names, size_t count)
{
	CLEANUP(buf) struct buf text = {0};

	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			buf_add_char(&text, '.');
		buf_add_text(&text, json_string_value(json_object_get(parts, names[i])));
	}
	return buf_take_text(&text);
}

/* The protected header, which may have no member but `allowed`: nothing that changes how the rest
 * is read goes unnoticed ("crit", "zip", …). */
static bool read_header(const json_t *parts, const char *const *allowed, size_t count,
			json_t **ret_header, struct error *error)
{
	const json_t *encoded = json_object_get(parts, "protected");
	size_t length = jose_b64_dec(encoded, NULL, 0);
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(tree) json_t *header = NULL;
	const char *name;
	json_t *value;

	if (length == SIZE_MAX || length > PKI_JWK_MAX ||
	    jose_b64_dec(encoded, buf_extend(&text, length), length) != length)
		return error_set(error, ERROR_INVALID_INPUT, "the envelope's header is malformed");
	if (!ossl_json_read(buf_text(&text), length, PKI_JWK_MAX, "envelope's header", &header,
			    error))
		return false;
	json_object_foreach(header, name, value)
	{
		bool known = false;

		for (size_t i = 0; i < count; i++)
			known |= str_equal(name, allowed[i]);
		if (!known)
			return error_set(error, ERROR_INVALID_INPUT,
					 "the envelope's header has an unexpected member");
	}
	*ret_header = TAKE(header);
	return true;
}

static bool header_is(const json_t *header, const char *name, const char *wanted,
		      struct error *error)
{
	const char *text = json_string_value(json_object_get(header, name));

	if (!text || !str_equal(text, wanted))
		return error_set(error, ERROR_INVALID_INPUT, "the envelope's '%s' must be '%s'",
				 name, wanted);
	return true;
}

/* --- request --- */

static const char *const jwe_parts[JWE_PARTS] = {"protected", "encrypted_key", "iv", "ciphertext",
						 "tag"};
static const char *const jwe_header[] = {"alg", "enc", "epk", "kid"};

void join_request_deinit(struct join_request *request)
{
	if (request->token)
		OPENSSL_cleanse(request->token, strlen(request->token));
	free(request->token);
	free(request->csr_pem);
	free(request->certificate_pem);
	free(request->smbios_uuid);
	free(request->hostname);
	free(request->boot_id);
	*request = (struct join_request){0};
}

static json_t *request_json(const struct join_request *request)
{
	json_t *json = json_object(), *machine = json_object();

	tree_set(json, "version", json_integer(1));
	tree_set(json, "nonce", tree_string(request->nonce));
	tree_set(json, "token", tree_string(request->token));
	tree_set(json, "csr", tree_string(request->csr_pem));
	if (request->certificate_pem)
		tree_set(json, "certificate", tree_string(request->certificate_pem));
	if (request->smbios_uuid && *request->smbios_uuid)
		tree_set(machine, "smbiosUuid", tree_string(request->smbios_uuid));
	tree_set(machine, "hostname", tree_string(request->hostname));
	tree_set(machine, "bootId", tree_string(request->boot_id));
	tree_set(json, "machine", machine);
	return json;
}

/* Wraps a content key for `key`, and moves what that put beside the protected header into it: the
 * compact form has no other place. */
static bool wrap_content_key(jose_cfg_t *cfg, json_t *jwe, const struct pki_key *key, json_t *cek,
			     struct error *error)
{
	CLEANUP(tree) json_t *jwk = NULL;
	json_t *epk;

	if (!ossl_key_json(key, false, &jwk, error))
		return false;
	if (!jose_jwe_enc_jwk(cfg, jwe, NULL, jwk, cek))
		return error_set(error, ERROR_INTERNAL, "wrap the join request's key");
	epk = json_object_get(json_object_get(jwe, "header"), "epk");
	if (!epk || json_object_set(json_object_get(jwe, "protected"), "epk", epk) != 0)
		return error_set(error, ERROR_INTERNAL, "the join request's key has no epk");
	json_object_del(jwe, "header");
	return true;
}

bool join_request_seal(const struct join_request *request, const struct pki_key *encryption_key,
		       char **ret_envelope, struct error *error)
{
	CLEANUP(jose_cfg_ref) jose_cfg_t *cfg = quiet();
	CLEANUP(tree) json_t *plain = request_json(request);
	CLEANUP(tree) json_t *jwe = json_object();
	CLEANUP(tree) json_t *cek = json_object();
	json_t *header;
	char id[PKI_KEY_ID_SIZE];
	char *text;
	bool done;

	pki_key_id(encryption_key, id);
	header = json_object();
	tree_set(header, "alg", tree_string(JWE_ALGORITHM));
	tree_set(header, "enc", tree_string(JWE_ENCRYPTION));
	tree_set(header, "kid", tree_string(id));
	tree_set(jwe, "protected", header);
	if (!wrap_content_key(cfg, jwe, encryption_key, cek, error))
		return false;
	text = json_dumps(plain, JSON_COMPACT);
	if (!text)
		abort();
	done = jose_jwe_enc_cek(cfg, jwe, cek, text, strlen(text));
	OPENSSL_cleanse(text, strlen(text));
	free(text);
	if (!done)
		return error_set(error, ERROR_INTERNAL, "encrypt the join request");
	*ret_envelope = compact(jwe, jwe_parts, JWE_PARTS);
	return true;
}

static bool request_read(const json_t *json, struct join_request *request, struct error *error)
{
	json_t *machine;

	return check_version(json, error) && read_nonce(json, request->nonce, error) &&
	       keep_text(json, "token", "", TOKEN_MAX, &request->token, error) &&
	       keep_text(json, "csr", "", PKI_PEM_MAX, &request->csr_pem, error) &&
	       keep_optional(json, "certificate", "", PKI_PEM_MAX, &request->certificate_pem,
			     error) &&
	       tree_get_object(json, "machine", "", &machine, error) &&
	       keep_optional(machine, "smbiosUuid", "machine", JOIN_FACT_MAX, &request->smbios_uuid,
			     error) &&
	       keep_text(machine, "hostname", "machine", JOIN_FACT_MAX, &request->hostname,
			 error) &&
	       keep_text(machine, "bootId", "machine", JOIN_FACT_MAX, &request->boot_id, error);
}

/* The plaintext of a JWE whose header was checked; NULL when it isn't for this key or was changed.
 */
static char *decrypt(const json_t *jwe, const struct pki_key *key, size_t *ret_length)
{
	CLEANUP(jose_cfg_ref) jose_cfg_t *cfg = quiet();
	CLEANUP(tree) json_t *jwk = NULL;
	struct error ignored;

	if (!ossl_key_json(key, true, &jwk, &ignored))
		return NULL;
	return jose_jwe_dec(cfg, jwe, NULL, jwk, ret_length);
}

bool join_request_open(const char *envelope, const struct pki_key *encryption_key,
		       struct join_request *ret_request, struct error *error)
{
	CLEANUP(tree) json_t *jwe = NULL;
	CLEANUP(tree) json_t *header = NULL;
	CLEANUP(tree) json_t *json = NULL;
	struct join_request request = {0};
	size_t length = 0;
	char *plain;
	bool done;

	if (!split(envelope, jwe_parts, JWE_PARTS, &jwe, error) ||
	    !read_header(jwe, jwe_header, ARRAY_SIZE(jwe_header), &header, error) ||
	    !header_is(header, "alg", JWE_ALGORITHM, error) ||
	    !header_is(header, "enc", JWE_ENCRYPTION, error))
		return error_wrap(error, "join request");
	plain = decrypt(jwe, encryption_key, &length);
	if (!plain) {
		error_set(error, ERROR_INVALID_INPUT,
			  "join request: it is not sealed to this control plane's key");
		return error_hint(error, "Compare the node's encryption pin with 'better-compute "
					 "pki show'.");
	}
	done = ossl_json_read(plain, length, JOIN_ENVELOPE_MAX, "content", &json, error) &&
	       request_read(json, &request, error);
	OPENSSL_cleanse(plain, length);
	free(plain);
	if (!done) {
		join_request_deinit(&request);
		return error_wrap(error, "join request");
	}
	*ret_request = request;
	return true;
}

/* --- answer --- */

static const char *const jws_parts[JWS_PARTS] = {"protected", "payload", "signature"};
static const char *const jws_header[] = {"alg", "jwk"};

void join_answer_deinit(struct join_answer *answer)
{
	free(answer->trust);
	free(answer->certificate_pem);
	free(answer->gateway_address);
	free(answer->gateway_server_name);
	*answer = (struct join_answer){0};
}

static json_t *answer_json(const struct join_answer *answer)
{
	json_t *json = json_object(), *gateway = json_object();

	tree_set(json, "version", json_integer(1));
	tree_set(json, "nonce", tree_string(answer->nonce));
	tree_set(json, "nodeId", tree_string(answer->node_id));
	tree_set(json, "trust", tree_string(answer->trust));
	tree_set(json, "certificate", tree_string(answer->certificate_pem));
	tree_set(gateway, "address", tree_string(answer->gateway_address));
	tree_set(gateway, "serverName", tree_string(answer->gateway_server_name));
	tree_set(json, "gateway", gateway);
	tree_set(json, "rejoined", json_boolean(answer->rejoined));
	return json;
}

bool join_answer_sign(const struct join_answer *answer, const struct pki_key *signing_key,
		      char **ret_envelope, struct error *error)
{
	CLEANUP(jose_cfg_ref) jose_cfg_t *cfg = quiet();
	CLEANUP(tree) json_t *payload = answer_json(answer);
	CLEANUP(tree) json_t *jws = json_object();
	CLEANUP(tree) json_t *signature = json_object();
	CLEANUP(tree) json_t *private = NULL;
	json_t *header, *public;

	if (!ossl_key_json(signing_key, true, &private, error) ||
	    !ossl_key_json(signing_key, false, &public, error))
		return false;
	header = json_object();
	tree_set(header, "alg", tree_string(JWS_ALGORITHM));
	tree_set(header, "jwk", public);
	tree_set(signature, "protected", header);
	tree_set(jws, "payload", jose_b64_enc_dump(payload));
	if (!jose_jws_sig(cfg, jws, signature, private))
		return error_set(error, ERROR_INTERNAL, "sign the join answer");
	*ret_envelope = compact(jws, jws_parts, JWS_PARTS);
	return true;
}

static bool answer_read(const json_t *json, struct join_answer *answer, struct error *error)
{
	const char *node_id;
	json_t *gateway;

	if (!check_version(json, error) || !read_nonce(json, answer->nonce, error) ||
	    !tree_get_string(json, "nodeId", "", ID_SIZE - 1, &node_id, error))
		return false;
	if (!id_valid(node_id, "node"))
		return error_field(error, "nodeId", "is not a node's id");
	str_copy(answer->node_id, ID_SIZE, node_id);
	return keep_text(json, "trust", "", JOIN_FACT_MAX, &answer->trust, error) &&
	       keep_text(json, "certificate", "", PKI_PEM_MAX, &answer->certificate_pem, error) &&
	       tree_get_bool(json, "rejoined", "", &answer->rejoined, error) &&
	       tree_get_object(json, "gateway", "", &gateway, error) &&
	       keep_text(gateway, "address", "gateway", ADDRESS_MAX, &answer->gateway_address,
			 error) &&
	       keep_text(gateway, "serverName", "gateway", ADDRESS_MAX,
			 &answer->gateway_server_name, error);
}

/* The signer's key stands in the header; its pin decides whether it counts, then its signature. */
static bool check_signature(const json_t *jws, const struct pin_list *pins, struct error *error)
{
	CLEANUP(jose_cfg_ref) jose_cfg_t *cfg = quiet();
	CLEANUP(tree) json_t *header = NULL;
	CLEANUP(pki_key) struct pki_key *signer = NULL;
	const json_t *jwk;
	char pin[PIN_SIZE];

	if (!read_header(jws, jws_header, ARRAY_SIZE(jws_header), &header, error) ||
	    !header_is(header, "alg", JWS_ALGORITHM, error))
		return false;
	jwk = json_object_get(header, "jwk");
	if (!json_is_object(jwk))
		return error_set(error, ERROR_INVALID_INPUT, "the envelope's 'jwk' is no key");
	if (!ossl_key_from_json(jwk, PKI_USE_SIGNING, &signer, error))
		return false;
	pki_key_pin(signer, pin);
	if (!pin_check(pins, pin, "the join answer's signing key", error))
		return false;
	if (!jose_jws_ver(cfg, jws, NULL, jwk, false))
		return error_set(error, ERROR_FORBIDDEN, "the signature is wrong");
	return true;
}

bool join_answer_verify(const char *envelope, const struct pin_list *signing_pins,
			const char *nonce, struct join_answer *ret_answer, struct error *error)
{
	CLEANUP(tree) json_t *jws = NULL;
	CLEANUP(tree) json_t *json = NULL;
	CLEANUP(buf) struct buf payload = {0};
	struct join_answer answer = {0};
	const json_t *encoded;
	size_t length;

	if (!split(envelope, jws_parts, JWS_PARTS, &jws, error) ||
	    !check_signature(jws, signing_pins, error))
		return error_wrap(error, "join answer");
	encoded = json_object_get(jws, "payload");
	length = jose_b64_dec(encoded, NULL, 0);
	if (length > JOIN_ENVELOPE_MAX ||
	    jose_b64_dec(encoded, buf_extend(&payload, length), length) != length)
		return error_set(error, ERROR_INVALID_INPUT, "join answer: malformed payload");
	if (!ossl_json_read(buf_text(&payload), length, JOIN_ENVELOPE_MAX, "payload", &json,
			    error) ||
	    !answer_read(json, &answer, error)) {
		join_answer_deinit(&answer);
		return error_wrap(error, "join answer");
	}
	if (!str_equal(answer.nonce, nonce)) {
		join_answer_deinit(&answer);
		return error_set(error, ERROR_FORBIDDEN,
				 "join answer: it belongs to another request (nonce)");
	}
	*ret_answer = answer;
	return true;
}
