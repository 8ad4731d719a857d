/*
 * tls: TLS 1.3 settings of one listener or one client (ALPN h2).
 *
 * Source    RFC 8446; pins as of JOIN-37: "sha256/" and base64 of SHA-256 over a
 * SubjectPublicKeyInfo. Secrets   private keys are taken as PEM in memory and never logged.
 */
#pragma once

#include "base/error.h"

struct rpc_tls;

struct rpc_tls_server_options {
	const char *certificate_pem; /* leaf first, then the chain, the CA itself included */
	const char *key_pem;
	const char *client_ca_pem; /* clients may show a certificate of this CA; one that doesn't
				      verify ends the handshake, none at all is for the method to
				      judge */
};
MUST_CHECK bool rpc_tls_server_create(const struct rpc_tls_server_options *options,
				      struct rpc_tls **ret_tls, struct error *error);

struct rpc_tls_client_options {
	const char *server_name;     /* checked against the certificate's DNS names */
	const char *pins;            /* one or two pins, comma-separated: a CA in the server's chain
					must have one of these keys and is then the trust anchor */
	const char *ca_pem;          /* instead of pins */
	const char *certificate_pem; /* our own, with key; both NULL for none */
	const char *key_pem;
};
/* A handshake that fails on trust is FORBIDDEN with a message that says which pin was seen; one that the
 * server ended because of our certificate is UNAUTHENTICATED. */
MUST_CHECK bool rpc_tls_client_create(const struct rpc_tls_client_options *options,
				      struct rpc_tls **ret_tls, struct error *error);
/* Takes NULL. A server's connections go on; a client's are over by then. */
void rpc_tls_destroy(struct rpc_tls *tls);
