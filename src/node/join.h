/*
 * join: how this machine becomes a node, once (JOIN-6..13, 19, 20, 38..42).
 *
 * By key    a node whose certificate expired, or whose identity.json is lost, can prove who it is by its
 *           key: where no token is given, where its file is gone, or where it is refused.
 * Spends    a use of the token only when the machine isn't joined; a second try of a machine whose
 *           first answer was lost uses the same key, so it is free.
 * Secrets   the token is read from a private file into memory, sealed, and wiped; it is in no
 *           message.
 * Blocks    with a loop of its own, for at most JOIN_TIMEOUT_MS.
 */
#pragma once

#include "node/joining.h"

#define JOIN_TIMEOUT_MS ((int64_t)60 * 1000)
#define JOIN_MAX_TOKEN  ((size_t)4 << 10)

/* `token_file` may be NULL, or not be there: then only a machine that has joined is fine, or one that can
 * prove it by its key. `*ret_identity` must be empty; set on JOIN_DONE. */
enum join_exit join_run(const struct config *config, const char *token_file,
			struct identity *ret_identity, bool *ret_already, struct error *error);
