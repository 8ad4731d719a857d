/*
 * secure: one TLS 1.3 connection as bytes in, bytes out; OpenSSL reads and writes the caller's.
 *
 * Trust     a client's failed check is FORBIDDEN and says why; so is a server's refusal of us. With
 *           TLS 1.3 that refusal comes after our own handshake is done, as an error of
 *           secure_receive().
 * Owns      its OpenSSL objects; the struct rpc_tls of a client must outlive it; a server's need not.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <openssl/ssl.h>

#define SECURE_MAX_PINS 2
#define SECURE_PIN_SIZE 52 /* "sha256/", 44 characters, NUL */

struct rpc_tls {
	SSL_CTX *context;
	char *server_name; /* client; NULL for a server */
	char pins[SECURE_MAX_PINS][SECURE_PIN_SIZE];
	size_t pins_count; /* client; 0: the context's CA is to be trusted */
};

/* The pin of a certificate's key. */
void secure_pin(const X509 *certificate, char out[SECURE_PIN_SIZE]);

struct secure;

struct secure *secure_create(const struct rpc_tls *tls);
void secure_destroy(struct secure *secure); /* takes NULL */

/* Appends to `out` what the first flight is; a server's is empty. */
MUST_CHECK bool secure_start(struct secure *secure, struct buf *out, struct error *error);
/* Takes bytes from the peer; appends plaintext to `plain`, and to `out` what TLS itself has to say
 * (also on failure: the alert). */
MUST_CHECK bool secure_receive(struct secure *secure, const uint8_t *data, size_t length,
			       struct buf *plain, struct buf *out, struct error *error);
/* Appends the ciphertext of `data` to `out`. Only once secure_is_ready(). */
MUST_CHECK bool secure_send(struct secure *secure, const uint8_t *data, size_t length,
			    struct buf *out, struct error *error);
void secure_end(struct secure *secure, struct buf *out); /* says goodbye */

bool secure_is_ready(const struct secure *secure); /* handshake done, ALPN h2 agreed */

/* The peer's verified certificate as DER, or NULL without one. */
const uint8_t *secure_peer_certificate(const struct secure *secure, size_t *ret_length);

/* For the verification callback in tls.c. */
struct error *secure_verify_error(SSL *ssl);
