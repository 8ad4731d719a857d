/*
 * folder: the control plane's own keys on disk, as listed in docs/internals/layout.md.
 *
 * Made whole or not at all: written to a folder beside, synced, then renamed. Private files are
 * 0600 and a folder whose private files others may read is refused. Blocks    on disk: start-up and
 * CLI only.
 */
#pragma once

#include "base/error.h"
#include "pki/cert.h"
#include "pki/keys.h"

/* Owned; `{0}` is empty. */
struct pki_folder {
	char *path;
	char *serving_ca_pem;
	char *node_ca_pem;
	struct pki_key *serving_ca_key;
	struct pki_key *node_ca_key;
	struct pki_key *join_encryption_key;
	struct pki_key *join_signing_key;
	/* While they change (rotation.h); else NULL. */
	struct pki_folder *next; /* the keys to come: its own next is NULL */
	char *serving_cross_pem; /* this serving CA, signed by the next one */
	/* After a change: the node CA before, whose certificates are still about; else NULL. */
	char *old_node_ca_pem;
	struct wall finished;
};
void pki_folder_deinit(struct pki_folder *folder);

/* Makes the folder and everything in it; CONFLICT when it is there already. */
MUST_CHECK bool pki_folder_init(const char *path, struct wall now, struct error *error);
/* Reads and cross-checks it (each certificate belongs to its key). NOT_FOUND when it is absent.
 * `*ret_folder` must be empty. */
MUST_CHECK bool pki_folder_load(const char *path, struct pki_folder *ret_folder,
				struct error *error);

/* gateway.key and gateway.pem for `server_name`: read when they are good for another third of their
 * life, else made anew and written. PEM into empty bufs; the key is a secret (pki_wipe). */
MUST_CHECK bool pki_folder_gateway(const struct pki_folder *folder, const char *server_name,
				   struct wall now, struct buf *ret_certificate_pem,
				   struct buf *ret_key_pem, struct error *error);

/* Is a certificate of this life near its end: good for less than a third of it? */
bool pki_gateway_due(struct wall not_before, struct wall not_after, struct wall now);

/* What an operator gives to nodes (JOIN-17). */
struct pki_pins {
	char gateway_ca[PIN_SIZE];
	char join_signing[PIN_SIZE];
	char join_encryption[PIN_SIZE];
};
void pki_folder_pins(const struct pki_folder *folder, struct pki_pins *ret_pins);
