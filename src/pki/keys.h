/*
 * keys: P-256 key pairs, as PEM on disk and as JWK on the wire.
 *
 * Owns      the only way a private key is read, written or made.
 * Secrets   private parts are wiped when a key or its text goes, and appear in no message.
 * Threads   any; one key may be read by several threads.
 * Source    RFC 5958 (PKCS#8), RFC 7517/7518 (JWK), RFC 7638 (thumbprint).
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "pki/pin.h"

#define PKI_PEM_MAX     ((size_t)16 << 10) /* of a key, a request or a chain */
#define PKI_JWK_MAX     ((size_t)4 << 10)
#define PKI_KEY_ID_SIZE 44 /* base64url of SHA-256, and NUL */

/* A public key, with or without its private half. */
struct pki_key;

/* What a JWK is for; written as "alg" and "use", and when present in what is read it must agree. */
enum pki_use {
	PKI_USE_ENCRYPTION, /* ECDH-ES+A256KW */
	PKI_USE_SIGNING,    /* ES256 */
};

MUST_CHECK bool pki_key_generate(struct pki_key **ret_key, struct error *error);
void pki_key_destroy(struct pki_key *key); /* takes NULL */
DEFINE_CLEANUP(pki_key, struct pki_key *, pki_key_destroy)
bool pki_key_is_private(const struct pki_key *key);

/* PKCS#8 PEM, private. `text` need not end in NUL. Other curves and kinds: INVALID_INPUT. */
MUST_CHECK bool pki_key_from_pem(const char *text, size_t length, struct pki_key **ret_key,
				 struct error *error);
/* Adds to `ret_pem`; wipe it with pki_wipe() once it is written. */
MUST_CHECK bool pki_key_to_pem(const struct pki_key *key, struct buf *ret_pem, struct error *error);

/* A JWK as JSON text; private when it has "d". A point off the curve is INVALID_INPUT. */
MUST_CHECK bool pki_key_from_jwk(const char *text, size_t length, enum pki_use use,
				 struct pki_key **ret_key, struct error *error);
/* One line of JSON, added to `ret_json`; the private half only when `with_private`. */
MUST_CHECK bool pki_key_to_jwk(const struct pki_key *key, enum pki_use use, bool with_private,
			       struct buf *ret_json, struct error *error);

/* The pin of its public half (JOIN-37), and its JWK thumbprint ("kid"). */
void pki_key_pin(const struct pki_key *key, char out[PIN_SIZE]);
void pki_key_id(const struct pki_key *key, char out[PKI_KEY_ID_SIZE]);

/* Overwrites what the buf holds and frees it. */
void pki_wipe(struct buf *secret);
