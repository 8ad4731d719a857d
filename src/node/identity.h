/*
 * identity: who this machine is: node id, key and certificate (JOIN-6, JOIN-14).
 *
 * On disk   node.key, node.pem, then identity.json, all 0600: the last one's presence means joined
 *           (docs/formats/identity.json.md). Read as a whole or not at all: files that others may
 *           have written or read, that are damaged, or that don't belong together are an error that
 *           names the file and what to do; nothing is changed by it. An expired certificate is none:
 *           it can be renewed.
 * Blocks    on disk, for three small files.
 * Secrets   the key is wiped by identity_deinit() and shown nowhere.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/id.h"

#define IDENTITY_FILE        "identity.json"
#define IDENTITY_KEY         "node.key"
#define IDENTITY_CERTIFICATE "node.pem"
#define IDENTITY_TRUST_SIZE  32
#define IDENTITY_NAME_SIZE   256

/* `{0}` is empty. */
struct pki_key;
struct identity {
	char node_id[ID_SIZE];
	char trust[IDENTITY_TRUST_SIZE];
	struct buf key_pem, certificate_pem;
	char gateway_address[256]; /* as told at the join; the configuration's come first */
	char gateway_server_name[256];
	/* Where it is, as the control plane said last: the site's id, the pool's name; "" unknown. */
	char site[ID_SIZE], pool[IDENTITY_NAME_SIZE];
	/* No Spec has been stored since this machine became this node: a spec.json that is there may be
	 * of the node that it was before, whose generations say nothing of this one's. */
	bool fresh;
};
void identity_deinit(struct identity *identity);

static inline void identity_cleanup(struct identity *identity)
{
	identity_deinit(identity);
}

/* NOT_FOUND when the machine hasn't joined, INVALID_STATE or FORBIDDEN for one that can't be used.
 * `*ret_identity` must be empty. */
MUST_CHECK bool identity_load(const char *data_folder, struct identity *ret_identity,
			      struct error *error);
/* What is left of it where identity.json is lost: the key, its certificate, and the node's id in
 * that. `*ret_identity` must be empty. */
MUST_CHECK bool identity_load_rest(const char *data_folder, struct identity *ret_identity,
				   struct error *error);
/* The key as `bcd join` left it, maybe before there was more; wipe it. NOT_FOUND without one. */
MUST_CHECK bool identity_load_key(const char *data_folder, struct pki_key **ret_key,
				  struct error *error);
/* Has its certificate expired? */
bool identity_expired(const struct identity *identity, struct wall now);
/* Is what the control plane issued just now valid by our own clock? INVALID_STATE: by how much the two
 * clocks differ, and what to do. */
MUST_CHECK bool identity_check_clock(const struct buf *certificate_pem, struct wall now,
				     struct error *error);
/* Somebody may have joined again or renewed: takes key and certificate over if those on disk are this
 * node's and end later. */
bool identity_refresh(struct identity *identity, const char *data_folder);
MUST_CHECK bool identity_store(const char *data_folder, const struct identity *identity,
			       struct error *error);
/* What identity.json holds of it. */
void identity_format(const struct identity *identity, struct buf *out);
/* "<data_folder>/<name>"; the caller's to free. */
char *identity_path(const char *data_folder, const char *name);
