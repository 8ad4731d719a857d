#include "control/core/trust.h"

static const char *const TRUST_NAMES[] = {
	[CONTROL_TRUST_PLATFORM] = "platform",
	[CONTROL_TRUST_TENANT_OWNED] = "tenant-owned",
	[CONTROL_TRUST_TENANT_CONTROLLED] = "tenant-controlled",
};

static const char *const TOKEN_STATE_NAMES[] = {
	[TRUST_TOKEN_LIVE] = "live",
	[TRUST_TOKEN_EXPIRED] = "expired",
	[TRUST_TOKEN_USED_UP] = "used-up",
	[TRUST_TOKEN_REVOKED] = "revoked",
};

const char *control_trust_name(enum control_trust trust)
{
	assert((size_t)trust < ARRAY_SIZE(TRUST_NAMES));
	return TRUST_NAMES[trust];
}

bool control_trust_parse(const char *name, enum control_trust *ret_trust)
{
	for (size_t i = 0; i < ARRAY_SIZE(TRUST_NAMES); i++) {
		if (!str_equal(TRUST_NAMES[i], name))
			continue;
		*ret_trust = (enum control_trust)i;
		return true;
	}
	return false;
}

bool trust_platform_counts(const struct trust_pool *pool)
{
	if (!pool->platform_operated || pool->site_is_custom)
		return false;
	if (!str_equal(pool->pool_tenant, pool->site_tenant))
		return false;
	return !pool->root_tenant || str_equal(pool->pool_tenant, pool->root_tenant);
}

enum control_trust trust_of_join(const struct trust_pool *pool, bool hosted_token)
{
	if (pool->site_is_custom)
		return CONTROL_TRUST_TENANT_OWNED;
	if (hosted_token && !trust_platform_counts(pool))
		return CONTROL_TRUST_TENANT_CONTROLLED;
	return CONTROL_TRUST_PLATFORM;
}

const char *trust_token_state_name(enum trust_token_state state)
{
	assert((size_t)state < ARRAY_SIZE(TOKEN_STATE_NAMES));
	return TOKEN_STATE_NAMES[state];
}

enum trust_token_state trust_token_state(const struct trust_token *token, struct wall now)
{
	if (token->revoked)
		return TRUST_TOKEN_REVOKED;
	if (now.ms >= token->expires.ms)
		return TRUST_TOKEN_EXPIRED;
	if (token->uses >= token->max_uses)
		return TRUST_TOKEN_USED_UP;
	return TRUST_TOKEN_LIVE;
}

bool trust_token_admits(const struct trust_token *token, bool joined_before, struct wall now,
			struct error *error)
{
	enum trust_token_state state = trust_token_state(token, now);

	switch (state) {
	case TRUST_TOKEN_LIVE:
		return true;
	case TRUST_TOKEN_USED_UP:
		if (joined_before)
			return true;
		return error_set(error, ERROR_UNAUTHENTICATED,
				 "the join token is used up (%lld of %lld)", (long long)token->uses,
				 (long long)token->max_uses);
	case TRUST_TOKEN_EXPIRED:
		return error_set(error, ERROR_UNAUTHENTICATED, "the join token has expired");
	case TRUST_TOKEN_REVOKED:
		return error_set(error, ERROR_UNAUTHENTICATED, "the join token was revoked");
	}
	return false;
}
