/*
 * trust: what a joining machine is taken for, and whether its token lets it in.
 *
 * Owns      the rule that the token and the pool decide, never what the machine claims (JOIN-23),
 *           and that a hosted token only lowers trust (JOIN-24).
 * Pure
 */
#pragma once

#include "base/error.h"

enum control_trust {
	CONTROL_TRUST_PLATFORM,
	CONTROL_TRUST_TENANT_OWNED,
	CONTROL_TRUST_TENANT_CONTROLLED, /* gets a "node-tenant" certificate */
};
const char *control_trust_name(enum control_trust trust); /* "tenant-owned" ... */
bool control_trust_parse(const char *name, enum control_trust *ret_trust);

/* What decides about a pool's `platformOperated`. Ids are borrowed. */
struct trust_pool {
	const char *pool_tenant, *site_tenant;
	const char *root_tenant; /* NULL: the deployment names none */
	bool site_is_custom;
	bool platform_operated; /* as the policy has it */
};

/* Does the pool's platformOperated have effect (POOL-18)? */
bool trust_platform_counts(const struct trust_pool *pool);

enum control_trust trust_of_join(const struct trust_pool *pool, bool hosted_token);

/* A join token at one moment. */
enum trust_token_state {
	TRUST_TOKEN_LIVE,
	TRUST_TOKEN_EXPIRED,
	TRUST_TOKEN_USED_UP,
	TRUST_TOKEN_REVOKED,
};
const char *trust_token_state_name(enum trust_token_state state); /* "used-up" ... */

struct trust_token {
	bool revoked;
	struct wall expires;
	int64_t uses, max_uses;
};
/* Revoked before expired before used up. */
enum trust_token_state trust_token_state(const struct trust_token *token, struct wall now);

/* May a machine join with it? A machine whose key has joined before spends nothing, so a used-up
 * token lets it in again. UNAUTHENTICATED with the reason otherwise. */
MUST_CHECK bool trust_token_admits(const struct trust_token *token, bool joined_before,
				   struct wall now, struct error *error);
