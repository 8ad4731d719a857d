/*
 * identity: who this machine is: node id, key and certificate (JOIN-6, JOIN-14).
 *
 * On disk   node.key, node.pem, then identity.json, all 0600: the last one's presence means joined
 *           (docs/formats/identity.json.md). Blocks on disk: start-up and `bcd join` only.
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

/* `{0}` is empty. */
struct identity {
	char node_id[ID_SIZE];
	char trust[IDENTITY_TRUST_SIZE];
	struct buf key_pem, certificate_pem;
	char gateway_address[256]; /* as told at the join; the configuration's come first */
	char gateway_server_name[256];
};
void identity_deinit(struct identity *identity);

static inline void identity_cleanup(struct identity *identity)
{
	identity_deinit(identity);
}

/* NOT_FOUND when the machine hasn't joined. `*ret_identity` must be empty. */
MUST_CHECK bool identity_load(const char *data_folder, struct identity *ret_identity,
			      struct error *error);
MUST_CHECK bool identity_store(const char *data_folder, const struct identity *identity,
			       struct error *error);
/* "<data_folder>/<name>"; the caller's to free. */
char *identity_path(const char *data_folder, const char *name);
