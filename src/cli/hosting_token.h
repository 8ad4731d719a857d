/*
 * hosting_token: the join token of a rollout, from its making until it is in its Secret.
 *
 * Owns      the promise that no token stays live that nobody was told of (MAN-63): one whose answer
 *           is lost is asked for again by its key, and one that can't be handed over is revoked;
 *           where that can't be done either, the error says which one it is, or how to learn it.
 * Signals   the caller holds them back (guard.h).
 */
#pragma once

#include "cli/cli.h"

struct hosting_token {
	const char *pool; /* its id */
	const char *ttl;
	int64_t max_uses;
	const char *key;   /* the idempotency key */
	const char *names; /* the options whose files are there, when a run was killed */
	bool own_key;      /* made up for this run: what it finds can be nobody else's */
};

/* As the flags say it, with a key. Nothing is made yet. */
MUST_CHECK bool hosting_token_of(struct cli *cli, struct hosting_token *ret_token,
				 struct error *error);

/* What stands in the Secret's file until the Secret does. */
const char *hosting_token_placeholder(const struct hosting_token *token, struct arena *arena);

/* The API's record with the token in it: a new reference. */
MUST_CHECK bool hosting_token_mint(struct cli *cli, const struct hosting_token *token,
				   json_t **ret_record, struct error *error);

/* Revokes it, as it can't be handed over for the reason in `error`, which says then whether that went
 * well. Returns false. */
bool hosting_token_take_back(struct cli *cli, const char *id, struct error *error);
