/*
 * join: how this machine becomes a node, once (JOIN-6..13, 19, 20, 38..42).
 *
 * Spends    a use of the token only when the machine isn't joined; a second try of a machine whose
 *           first answer was lost uses the same key, so it is free.
 * Secrets   the token is read from a private file into memory, sealed, and wiped; it is in no
 *           message.
 * Blocks    with a loop of its own, for at most JOIN_TIMEOUT_MS.
 */
#pragma once

#include "node/core/config.h"
#include "node/identity.h"

#define JOIN_TIMEOUT_MS ((int64_t)60 * 1000)
#define JOIN_MAX_TOKEN  ((size_t)4 << 10)

/* What `bcd join` exits with (JOIN-42). */
enum join_exit {
	JOIN_DONE = 0, /* joined now, or before */
	JOIN_FAILED = 1,
	JOIN_USAGE = 2,
	JOIN_TOKEN_FILE = 3, /* not private, not a file, too large, unreadable */
	JOIN_TOKEN = 4,      /* refused by the control plane */
	JOIN_PINS = 5,       /* somebody isn't who the operator said */
	JOIN_NETWORK = 6,    /* try again */
};

/* `token_file` may be NULL: then only a machine that has joined is fine, or one whose certificate
 * expired and that still has its key. `*ret_identity` must be empty; set on JOIN_DONE. */
enum join_exit join_run(const struct config *config, const char *token_file,
			struct identity *ret_identity, bool *ret_already, struct error *error);
