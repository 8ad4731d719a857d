/*
 * ossl: what the files of this room share about OpenSSL and JSON. For this room only.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "pki/keys.h"
#include "text/tree.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

DEFINE_CLEANUP(ossl_pkey, EVP_PKEY *, EVP_PKEY_free)
DEFINE_CLEANUP(ossl_pkey_ctx, EVP_PKEY_CTX *, EVP_PKEY_CTX_free)
DEFINE_CLEANUP(ossl_bio, BIO *, BIO_free_all)
DEFINE_CLEANUP(ossl_x509, X509 *, X509_free)
DEFINE_CLEANUP(ossl_request, X509_REQ *, X509_REQ_free)

/* INTERNAL with OpenSSL's own last reason, whose queue is empty afterwards. Returns false. */
bool ossl_error(struct error *error, const char *format, ...) PRINTF(2, 3);

/* Borrowed; OpenSSL counts references where it keeps one. */
EVP_PKEY *ossl_key(const struct pki_key *key);
/* Takes `pkey` over, also on failure. INVALID_INPUT unless it is a sound P-256 key. */
MUST_CHECK bool ossl_key_wrap(EVP_PKEY *pkey, bool is_private, struct pki_key **ret_key,
			      struct error *error);

/* {kty, crv, x, y} and, when asked, d. */
MUST_CHECK bool ossl_key_json(const struct pki_key *key, bool with_private, json_t **ret_jwk,
			      struct error *error);

/* pki_key_from_jwk() after its text was read. */
MUST_CHECK bool ossl_key_from_json(const json_t *jwk, enum pki_use use, struct pki_key **ret_key,
				   struct error *error);

/* tree_parse(), and the root must be an object. */
MUST_CHECK bool ossl_json_read(const char *text, size_t length, size_t max, const char *thing,
			       json_t **ret_json, struct error *error);

/* A memory BIO's bytes, added to `out`. */
void ossl_bio_take(BIO *bio, struct buf *out);
/* A memory BIO over bytes that stay the caller's. */
BIO *ossl_bio_of(const void *data, size_t length);
