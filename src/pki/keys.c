#include "pki/keys.h"

#include "pki/ossl.h"

#include <jose/jwk.h>
#include <jose/openssl.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/pem.h>

#define CURVE "prime256v1" /* P-256, as OpenSSL names it */

struct pki_key {
	EVP_PKEY *pkey;
	bool is_private;
};

EVP_PKEY *ossl_key(const struct pki_key *key)
{
	return key->pkey;
}

void pki_key_destroy(struct pki_key *key)
{
	if (!key)
		return;
	EVP_PKEY_free(key->pkey);
	free(key);
}

bool pki_key_is_private(const struct pki_key *key)
{
	return key->is_private;
}

void pki_wipe(struct buf *secret)
{
	if (secret->data)
		OPENSSL_cleanse(secret->data, secret->capacity);
	buf_deinit(secret);
}

bool ossl_key_wrap(EVP_PKEY *pkey, bool is_private, struct pki_key **ret_key, struct error *error)
{
	CLEANUP(ossl_pkey) EVP_PKEY *owned = pkey;
	CLEANUP(ossl_pkey_ctx) EVP_PKEY_CTX *check = NULL;
	char curve[32] = "";

	if (!EVP_PKEY_is_a(pkey, "EC") ||
	    !EVP_PKEY_get_group_name(pkey, curve, sizeof curve, NULL) || !str_equal(curve, CURVE))
		return error_set(error, ERROR_INVALID_INPUT, "the key is not an EC key on P-256");
	check = EVP_PKEY_CTX_new_from_pkey(NULL, pkey, NULL);
	if (!check || (is_private ? EVP_PKEY_check(check) : EVP_PKEY_public_check(check)) != 1) {
		ossl_error(error, "check key");
		return error_set(error, ERROR_INVALID_INPUT,
				 "the key's numbers are not a P-256 key");
	}
	*ret_key = mem_alloc(sizeof **ret_key);
	(*ret_key)->pkey = TAKE(owned);
	(*ret_key)->is_private = is_private;
	return true;
}

bool pki_key_generate(struct pki_key **ret_key, struct error *error)
{
	EVP_PKEY *pkey = EVP_EC_gen("P-256");

	if (!pkey)
		return ossl_error(error, "generate a P-256 key");
	return ossl_key_wrap(pkey, true, ret_key, error);
}

/* --- PEM --- */

/* Without it OpenSSL would ask for a passphrase on the terminal. */
static int refuse_passphrase(char *out, int size, int writing, void *arg)
{
	(void)out, (void)size, (void)writing, (void)arg;
	return -1;
}

bool pki_key_from_pem(const char *text, size_t length, struct pki_key **ret_key,
		      struct error *error)
{
	CLEANUP(ossl_bio) BIO *bio = NULL;
	EVP_PKEY *pkey;

	if (length > PKI_PEM_MAX)
		return error_set(error, ERROR_INVALID_INPUT, "the key is over %zu bytes",
				 PKI_PEM_MAX);
	bio = ossl_bio_of(text, length);
	pkey = PEM_read_bio_PrivateKey(bio, NULL, refuse_passphrase, NULL);
	if (!pkey) {
		ossl_error(error, "read private key");
		error->code = ERROR_INVALID_INPUT;
		return false;
	}
	return ossl_key_wrap(pkey, true, ret_key, error);
}

bool pki_key_to_pem(const struct pki_key *key, struct buf *ret_pem, struct error *error)
{
	CLEANUP(ossl_bio) BIO *bio = BIO_new(BIO_s_secmem());

	assert(key->is_private);
	if (!bio || !PEM_write_bio_PKCS8PrivateKey(bio, key->pkey, NULL, NULL, 0, NULL, NULL))
		return ossl_error(error, "write private key");
	ossl_bio_take(bio, ret_pem);
	return true;
}

/* --- JWK --- */

static const struct {
	const char *algorithm, *use;
} jwk_uses[] = {
	[PKI_USE_ENCRYPTION] = {"ECDH-ES+A256KW", "enc"},
	[PKI_USE_SIGNING] = {"ES256", "sig"},
};

/* A text member that, when there, must be `wanted`. */
static bool jwk_member(const json_t *jwk, const char *name, const char *wanted, bool needed,
		       struct error *error)
{
	const json_t *value = json_object_get(jwk, name);
	const char *text = json_string_value(value);

	if (!value && !needed)
		return true;
	if (!text || !str_equal(text, wanted))
		return error_field(error, name, "must be \"%s\" in this key", wanted);
	return true;
}

bool ossl_key_from_json(const json_t *jwk, enum pki_use use, struct pki_key **ret_key,
			struct error *error)
{
	EVP_PKEY *pkey;

	if (!jwk_member(jwk, "kty", "EC", true, error) ||
	    !jwk_member(jwk, "crv", "P-256", true, error) ||
	    !jwk_member(jwk, "alg", jwk_uses[use].algorithm, false, error) ||
	    !jwk_member(jwk, "use", jwk_uses[use].use, false, error))
		return error_wrap(error, "JWK");
	pkey = jose_openssl_jwk_to_EVP_PKEY(NULL, jwk);
	if (!pkey)
		return error_set(error, ERROR_INVALID_INPUT,
				 "JWK: 'x' and 'y' are not a point on P-256");
	return ossl_key_wrap(pkey, json_object_get(jwk, "d") != NULL, ret_key, error);
}

bool pki_key_from_jwk(const char *text, size_t length, enum pki_use use, struct pki_key **ret_key,
		      struct error *error)
{
	CLEANUP(tree) json_t *jwk = NULL;

	return ossl_json_read(text, length, PKI_JWK_MAX, "JWK", &jwk, error) &&
	       ossl_key_from_json(jwk, use, ret_key, error);
}

bool ossl_key_json(const struct pki_key *key, bool with_private, json_t **ret_jwk,
		   struct error *error)
{
	json_t *jwk = jose_openssl_jwk_from_EVP_PKEY(NULL, key->pkey);

	assert(!with_private || key->is_private);
	if (!jwk)
		return ossl_error(error, "write key as JWK");
	if (!with_private)
		json_object_del(jwk, "d");
	*ret_jwk = jwk;
	return true;
}

bool pki_key_to_jwk(const struct pki_key *key, enum pki_use use, bool with_private,
		    struct buf *ret_json, struct error *error)
{
	CLEANUP(tree) json_t *jwk = NULL;
	char id[PKI_KEY_ID_SIZE];

	if (!ossl_key_json(key, with_private, &jwk, error))
		return false;
	pki_key_id(key, id);
	tree_set(jwk, "alg", tree_string(jwk_uses[use].algorithm));
	tree_set(jwk, "use", tree_string(jwk_uses[use].use));
	tree_set(jwk, "kid", tree_string(id));
	tree_dump_canonical(ret_json, jwk);
	return true;
}

/* --- names of a key --- */

void pki_key_pin(const struct pki_key *key, char out[PIN_SIZE])
{
	uint8_t *der = NULL;
	int length = i2d_PUBKEY(key->pkey, &der);

	if (length <= 0)
		abort(); /* out of memory: the key was checked when it was wrapped */
	pin_of_spki(der, (size_t)length, out);
	OPENSSL_free(der);
}

void pki_key_id(const struct pki_key *key, char out[PKI_KEY_ID_SIZE])
{
	CLEANUP(tree) json_t *jwk = jose_openssl_jwk_from_EVP_PKEY(NULL, key->pkey);
	CLEANUP(tree) json_t *thumbprint = jose_jwk_thp(NULL, jwk, "S256");

	if (!thumbprint || !str_copy(out, PKI_KEY_ID_SIZE, json_string_value(thumbprint)))
		abort(); /* out of memory, as above */
}
