/*
 * envelope: what a machine and the join service say to each other (JOIN-38).
 *
 * The request is a JWE (compact, ECDH-ES+A256KW, A256GCM) to the join encryption key; the answer a
 * JWS (compact, ES256) that carries the join signing key in its header, which counts only when its
 * pin is one the operator gave. The nonce binds an answer to its request.
 * Secrets   the request holds the token: join_request_deinit() wipes it, and no message shows it.
 * Threads   any.
 * Source    RFC 7515, 7516, 7518; proto/join.proto.
 * Fuzzed    fuzz/envelope_fuzz.c
 */
#pragma once

#include "base/error.h"
#include "base/id.h"
#include "pki/keys.h"
#include "pki/pin.h"

#define JOIN_ENVELOPE_MAX ((size_t)32 << 10)
#define JOIN_NONCE_SIZE   44  /* base64url of 32 bytes, and NUL */
#define JOIN_FACT_MAX     256 /* bytes of a hostname, boot id or SMBIOS UUID */

void join_nonce(char out[JOIN_NONCE_SIZE]);

/* Owned text; `{0}` is empty. */
struct join_request {
	char nonce[JOIN_NONCE_SIZE];
	char *token;           /* as in the token file; "" with a certificate */
	char *csr_pem;         /* cert_request_make() */
	char *certificate_pem; /* one that expired, renewed by proof of its key (JOIN-41); or NULL
				*/
	char *smbios_uuid;     /* NULL when the machine has none */
	char *hostname;
	char *boot_id;
};
void join_request_deinit(struct join_request *request);

/* `*ret_envelope` is the caller's to free. */
MUST_CHECK bool join_request_seal(const struct join_request *request,
				  const struct pki_key *encryption_key, char **ret_envelope,
				  struct error *error);
/* INVALID_INPUT for whatever isn't exactly such an envelope to this key. `*ret_request` must be
 * empty. */
MUST_CHECK bool join_request_open(const char *envelope, const struct pki_key *encryption_key,
				  struct join_request *ret_request, struct error *error);

/* Owned text; `{0}` is empty. */
struct join_answer {
	char nonce[JOIN_NONCE_SIZE];
	char node_id[ID_SIZE];
	char *trust;           /* "platform", "tenant-owned" or "tenant-controlled" */
	char *certificate_pem; /* leaf, then the node CA */
	char *gateway_address; /* "host:port" */
	char *gateway_server_name;
	bool rejoined; /* the machine was known already */
};
void join_answer_deinit(struct join_answer *answer);

MUST_CHECK bool join_answer_sign(const struct join_answer *answer,
				 const struct pki_key *signing_key, char **ret_envelope,
				 struct error *error);
/* FORBIDDEN when the signer isn't pinned, the signature is wrong, or the nonce is another
 * request's; INVALID_INPUT for a malformed one. */
MUST_CHECK bool join_answer_verify(const char *envelope, const struct pin_list *signing_pins,
				   const char *nonce, struct join_answer *ret_answer,
				   struct error *error);
