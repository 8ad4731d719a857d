/*
 * rotation: new keys for the control plane, without a node lost.
 *
 * Stages    begin makes the next keys beside the current ones. From then on the gateway shows a
 *           chain that fits the pin of either serving CA, joins are opened and answered under the
 *           keys that the asker knows, and nodes of either node CA are let in: nodes are configured
 *           with both pins, or with the new ones, in any order. finish makes the next keys the
 *           current ones: old pins are refused from then on. cancel forgets them instead. Certificates of the node CA before stay
 *           good for PKI_OLD_NODE_MS, by when every node has renewed.
 * Atomic    the folder is the one before or the one after, never in between.
 * Blocks    on disk: CLI, start-up, and workers of the loop.
 */
#pragma once

#include "pki/folder.h"

#define PKI_NEXT          "next"
#define PKI_SERVING_CROSS "serving-cross.pem" /* in PKI_NEXT */
#define PKI_OLD_NODE_CA   "node-ca-old.pem"
#define PKI_ROTATION      "rotation.json"
/* A certificate's life, and the days after it in which it can still be renewed. */
#define PKI_OLD_NODE_MS ((int64_t)(CERT_NODE_DAYS + 7) * 24 * 60 * 60 * 1000)

enum pki_stage {
	PKI_STEADY,   /* one key of each kind */
	PKI_CHANGING, /* begun: old pins and new ones are good */
	PKI_RENEWING, /* finished: nodes still renew their certificates */
};
const char *pki_stage_name(enum pki_stage stage); /* "changing" ... */
enum pki_stage pki_folder_stage(const struct pki_folder *folder, struct wall now);
/* Does the node CA before the last change still count? */
bool pki_folder_has_old(const struct pki_folder *folder, struct wall now);

/* INVALID_STATE when one is under way. While certificates of an older node CA are about, a finish
 * would end them: then it is refused unless `force`. */
MUST_CHECK bool pki_rotate_begin(const char *path, bool force, struct wall now,
				 struct error *error);
/* INVALID_STATE when none is under way. */
MUST_CHECK bool pki_rotate_finish(const char *path, struct wall now, struct error *error);

/* Forgets the next keys; INVALID_STATE when none are there. No node has a certificate of theirs yet;
 * one that was given their pins alone is to have the current ones back. */
MUST_CHECK bool pki_rotate_cancel(const char *path, struct wall now, struct error *error);

/* Removes what a process that was killed left: keys that were being made, keys that were being
 * replaced. Not those that another process is at. What can't be removed is left. */
void pki_folder_tidy(const char *path, struct wall now);

/* Pins as they go into bcd's config.toml: one, or two with a comma. */
#define PKI_PINS_SIZE (2 * PIN_SIZE)
struct pki_pin_texts {
	char gateway_ca[PKI_PINS_SIZE];
	char join_signing[PKI_PINS_SIZE];
	char join_encryption[PKI_PINS_SIZE];
};
void pki_folder_pin_texts(const struct pki_folder *folder, struct pki_pin_texts *ret_texts);

/* What the gateway shows, made of its own certificate (PEM, leaf first). Added to `ret_pem`. */
void pki_folder_gateway_chain(const struct pki_folder *folder, const char *certificate_pem,
			      struct buf *ret_pem);
/* The authorities whose nodes are let in, as PEM. Added to `ret_pem`. */
void pki_folder_node_cas(const struct pki_folder *folder, struct wall now, struct buf *ret_pem);
/* FORBIDDEN unless one of them signed the certificate, and it was valid `at` that time. */
MUST_CHECK bool pki_folder_verify_node(const struct pki_folder *folder, const char *pem,
				       struct wall at, struct wall now, struct error *error);
