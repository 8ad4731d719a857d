/*
 * issue: a node's certificate from the node CA, with the role that its trust allows (JOIN-22).
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "control/control.h"
#include "pki/folder.h"

/* PEM of leaf and CA, added to `ret_pem`. */
MUST_CHECK bool issue_node(const struct pki_folder *pki, const struct pki_key *key,
			   const char *node_id, enum control_trust trust, struct wall now,
			   struct buf *ret_pem, struct error *error);
