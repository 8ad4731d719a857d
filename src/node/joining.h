/*
 * joining: one question to the join service and its answer, as data (JOIN-11, 12, 19, 20, 38, 41).
 *
 * Owns      whom to ask, under which key, what is sealed to it, and how the answer is judged. Carrying it
 *           there is the caller's: join.c blocks, renew.c is on bcd's loop.
 * Order     begin; the document's key if joining_needs_key(); seal; per address: a connection with
 *           joining_tls(), method METHOD_JOIN_JOIN with `request`; judge.
 * Errors    FORBIDDEN: somebody isn't who the operator's pins say.
 * Secrets   the token is in the envelope alone.
 */
#pragma once

#include "base/arena.h"
#include "node/core/config.h"
#include "node/identity.h"
#include "pki/envelope.h"
#include "rpc/rpc.h"
#include "rpc/tls.h"

#define JOINING_CALL_MS 20000 /* for the document, and for each address */

/* What `bcd join` exits with (JOIN-42). */
enum join_exit {
	JOIN_DONE = 0, /* joined now, or before */
	JOIN_FAILED = 1,
	JOIN_USAGE = 2,
	JOIN_TOKEN_FILE = 3, /* not private, not a file, too large, unreadable, no token */
	JOIN_TOKEN = 4,      /* refused by the control plane */
	JOIN_PINS = 5,       /* somebody isn't who the operator said */
	JOIN_NETWORK = 6,    /* try again */
};

/* To whom the document's server shows a certificate that isn't trusted. */
#define JOINING_AUTHORITY_HINT                                                                     \
	"A certificate of a private authority needs join.ca_file (--ca-file), one not "            \
	"valid yet or any more the right clock. Else configure join.encryption_jwk: "              \
	"'better-compute pki show -o json' on the control plane's host prints it"

/* To whoever has no way to the key. */
#define JOINING_KEY_HINT                                                                           \
	"join.server is an https:// address; where there is none, configure join.encryption_jwk: " \
	"`better-compute pki show -o json` on the control plane prints it (encryptionJwk)"

/* To whom only a new token helps: what to do for one, in a pod or on a machine, whose token's file is this
 * (NULL: whichever). */
void joining_hint_token(const struct config *config, const char *token_file, struct error *error);
/* How a call ended, by its status. */
enum join_exit joining_exit_of(const struct rpc_status *status);
/* What went wrong is the operator's pins against who answered, no file of ours. */
static inline bool joining_is_mistrust(const struct error *error)
{
	return error->code == ERROR_FORBIDDEN && error->os == 0;
}

/* `{0}` is empty. */
struct joining {
	const struct config *config; /* outlives it */
	struct arena arena;
	struct pki_key *encryption_key;
	struct pin_list encryption_pins, signing_pins;
	const char *addresses[CONFIG_MAX_ADDRESSES];
	size_t address_count;
	const char *server_name;
	char nonce[JOIN_NONCE_SIZE];
	struct buf request; /* the packed message */
};
void joining_deinit(struct joining *joining);

/* What the configuration says. */
MUST_CHECK bool joining_begin(struct joining *joining, const struct config *config,
			      struct error *error);
/* Is the key in the document at joining_url()? */
bool joining_needs_key(const struct joining *joining);
void joining_url(const struct joining *joining, struct buf *out);
/* The document, which carries no trust: its key is checked by its pin. */
MUST_CHECK bool joining_take_document(struct joining *joining, int status, const struct buf *body,
				      struct error *error);
/* `token` is "" when `certificate_pem`, which is otherwise NULL, is renewed by proof of its key. */
MUST_CHECK bool joining_seal(struct joining *joining, const struct pki_key *key, const char *token,
			     const char *certificate_pem, struct error *error);
MUST_CHECK bool joining_tls(const struct joining *joining, struct rpc_tls **ret_tls,
			    struct error *error);
/* The answer to what was sealed last. `*ret_identity` must be empty; its `fresh` is the caller's. */
MUST_CHECK bool joining_judge(const struct joining *joining, const struct pki_key *key,
			      const uint8_t *data, size_t length, struct identity *ret_identity,
			      struct error *error);
