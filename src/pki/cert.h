/*
 * cert: the certificates of the control plane's two authorities.
 *
 * The serving CA signs gateways (DNS names); the node CA signs nodes. A node's certificate lives 30
 * days, has the node's id as common name and "better-compute://<role>/<node id>" as URI name; both
 * must agree when it is read. Times are arguments; nobody here reads a clock.
 * Threads   any.
 * Source    RFC 5280, RFC 2986.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/id.h"
#include "pki/keys.h"
#include "pki/pin.h"

#define CERT_NODE_DAYS    30
#define CERT_GATEWAY_DAYS 397
#define CERT_CA_DAYS      3650
#define CERT_BACKDATE_MS  ((int64_t)5 * 60 * 1000) /* for peers whose clock is behind */
#define CERT_MAX_DER      ((size_t)8 << 10)
#define CERT_SERIAL_SIZE  41 /* hex of at most 20 bytes, and NUL */

/* What a node's certificate lets it be: "node", or "node-tenant", which never gets platform secrets
 * (JOIN-22). */
enum cert_role {
	CERT_ROLE_NODE,
	CERT_ROLE_NODE_TENANT,
};
const char *cert_role_name(enum cert_role role);
bool cert_role_parse(const char *name, enum cert_role *ret_role);

/* --- requests --- */

/* A PKCS#10 request for `key`, self-signed, without names (the issuer decides those). Both forms
 * may be asked for; NULL leaves one out. */
MUST_CHECK bool cert_request_make(const struct pki_key *key, struct buf *ret_pem,
				  struct buf *ret_der, struct error *error);
/* Checks size, curve and the request's own signature (proof that the asker has the key). PEM or DER
 * by its first byte. INVALID_INPUT otherwise. */
MUST_CHECK bool cert_request_check(const void *request, size_t length, struct pki_key **ret_key,
				   struct error *error);

/* --- issuing; PEM is added to `ret_pem` --- */

MUST_CHECK bool cert_make_ca(const struct pki_key *key, const char *common_name, struct wall now,
			     struct buf *ret_pem, struct error *error);

struct cert_issuer;
/* The CA of `subject_pem` with its own name and key, signed by the issuer: whoever trusts either of
 * the two then trusts what the subject issues. */
MUST_CHECK bool cert_cross_sign(const struct cert_issuer *issuer, const char *subject_pem,
				struct wall now, struct buf *ret_pem, struct error *error);

struct cert_issuer {
	const char *ca_pem;
	const struct pki_key *ca_key; /* private */
};
/* Leaf first, then the CA. `key` is the node's public key. */
MUST_CHECK bool cert_issue_node(const struct cert_issuer *issuer, const struct pki_key *key,
				const char *node_id, enum cert_role role, struct wall now,
				struct buf *ret_pem, struct error *error);
MUST_CHECK bool cert_issue_gateway(const struct cert_issuer *issuer, const struct pki_key *key,
				   const char *const *dns_names, size_t dns_count, struct wall now,
				   struct buf *ret_pem, struct error *error);

/* --- reading --- */

struct cert_info {
	struct wall not_before, not_after;
	char key_pin[PIN_SIZE];
	char serial[CERT_SERIAL_SIZE];
};
/* Of the first certificate. */
MUST_CHECK bool cert_read(const char *pem, size_t length, struct cert_info *ret_info,
			  struct error *error);

struct cert_node {
	char node_id[ID_SIZE];
	enum cert_role role;
	struct cert_info info;
};
/* A node's leaf, as DER (rpc_peer_certificate) or PEM. Says what the certificate claims: the chain
 * is the TLS listener's to verify, or cert_verify's. */
MUST_CHECK bool cert_read_node(const void *certificate, size_t length, struct cert_node *ret_node,
			       struct error *error);
/* FORBIDDEN unless the first certificate of `pem` is signed by `ca_pem` and valid at `now`. */
MUST_CHECK bool cert_verify(const char *pem, const char *ca_pem, struct wall now,
			    struct error *error);
/* FORBIDDEN unless the first certificate is for this key. */
MUST_CHECK bool cert_check_key(const char *pem, const struct pki_key *key, struct error *error);
/* INVALID_INPUT unless the PEM is whole certificates, each signed by the next; one alone is fine. Times aren't
 * looked at. */
MUST_CHECK bool cert_check_chain(const char *pem, struct error *error);
/* Does the first certificate carry this DNS name? An unreadable one does not. */
bool cert_has_dns_name(const char *pem, const char *name);
