#include "control/core/access.h"

static const struct {
	const char *name;
	enum control_role least;
	const char *event;
} ACTIONS[] = {
	[ACCESS_TENANTS_CREATE] = {"compute:tenants:create", CONTROL_ROLE_OPERATOR,
				   "tenant.changed"},
	[ACCESS_TENANTS_READ] = {"compute:tenants:read", CONTROL_ROLE_VIEWER},
	[ACCESS_TENANTS_PATCH] = {"compute:tenants:patch", CONTROL_ROLE_OWNER, "tenant.changed"},
	[ACCESS_TENANTS_ARCHIVE] = {"compute:tenants:archive", CONTROL_ROLE_OPERATOR,
				    "tenant.changed"},
	[ACCESS_SITES_CREATE] = {"compute:sites:create", CONTROL_ROLE_OWNER, "site.changed"},
	[ACCESS_SITES_CREATE_PLATFORM] = {"compute:sites:create-platform", CONTROL_ROLE_OPERATOR,
					  "site.changed"},
	[ACCESS_SITES_READ] = {"compute:sites:read", CONTROL_ROLE_VIEWER},
	[ACCESS_SITES_PATCH] = {"compute:sites:patch", CONTROL_ROLE_OWNER, "site.changed"},
	[ACCESS_SITES_ARCHIVE] = {"compute:sites:archive", CONTROL_ROLE_OWNER, "site.changed"},
	[ACCESS_POOLS_CREATE] = {"compute:pools:create", CONTROL_ROLE_OWNER, "pool.changed"},
	[ACCESS_POOLS_PATCH] = {"compute:pools:patch", CONTROL_ROLE_OWNER, "pool.changed"},
	[ACCESS_POOLS_ARCHIVE] = {"compute:pools:archive", CONTROL_ROLE_OWNER, "pool.changed"},
	[ACCESS_POOLS_READ] = {"compute:pools:read", CONTROL_ROLE_VIEWER},
	[ACCESS_JOIN_TOKENS_CREATE] = {"compute:join-tokens:create", CONTROL_ROLE_OWNER,
				       "join-token.changed"},
	[ACCESS_JOIN_TOKENS_REVOKE] = {"compute:join-tokens:revoke", CONTROL_ROLE_OWNER,
				       "join-token.changed"},
	[ACCESS_JOIN_TOKENS_READ] = {"compute:join-tokens:read", CONTROL_ROLE_VIEWER},
	[ACCESS_NODES_RETIRE] = {"compute:nodes:retire", CONTROL_ROLE_OWNER},
	[ACCESS_NODES_DECLARE_LOST] = {"compute:nodes:declare-lost", CONTROL_ROLE_OPERATOR},
	[ACCESS_NODES_READ] = {"compute:nodes:read", CONTROL_ROLE_VIEWER},
	[ACCESS_NODES_PATCH] = {"compute:nodes:patch", CONTROL_ROLE_OWNER, "node.changed"},
	[ACCESS_NODES_DRAIN] = {"compute:nodes:drain", CONTROL_ROLE_OWNER},
	[ACCESS_NODES_UNDRAIN] = {"compute:nodes:undrain", CONTROL_ROLE_OWNER},
	[ACCESS_RESERVATIONS_CREATE] = {"compute:reservations:create", CONTROL_ROLE_USER},
	[ACCESS_RESERVATIONS_PATCH] = {"compute:reservations:patch", CONTROL_ROLE_USER,
				       "reservation.changed"},
	[ACCESS_RESERVATIONS_RELEASE] = {"compute:reservations:release", CONTROL_ROLE_USER},
	[ACCESS_RESERVATIONS_CANCEL] = {"compute:reservations:cancel", CONTROL_ROLE_USER},
	[ACCESS_RESERVATIONS_READ] = {"compute:reservations:read", CONTROL_ROLE_VIEWER},
	[ACCESS_CAPACITY_READ] = {"compute:capacity:read", CONTROL_ROLE_VIEWER},
	[ACCESS_EVENTS_READ] = {"compute:events:read", CONTROL_ROLE_VIEWER},
	[ACCESS_AUDIT_READ] = {"compute:audit:read", CONTROL_ROLE_OWNER},
	[ACCESS_KEYS_CREATE] = {"compute:keys:create", CONTROL_ROLE_OWNER, "key.changed"},
	[ACCESS_KEYS_REVOKE] = {"compute:keys:revoke", CONTROL_ROLE_OWNER, "key.changed"},
	[ACCESS_KEYS_READ] = {"compute:keys:read", CONTROL_ROLE_OWNER},
	[ACCESS_USAGE_READ] = {"compute:usage:read", CONTROL_ROLE_VIEWER},
	[ACCESS_QUOTAS_CREATE] = {"compute:quotas:create", CONTROL_ROLE_OPERATOR, "quota.changed"},
	[ACCESS_QUOTAS_PATCH] = {"compute:quotas:patch", CONTROL_ROLE_OPERATOR, "quota.changed"},
	[ACCESS_QUOTAS_DELETE] = {"compute:quotas:delete", CONTROL_ROLE_OPERATOR, "quota.changed"},
	[ACCESS_QUOTAS_READ] = {"compute:quotas:read", CONTROL_ROLE_VIEWER},
	[ACCESS_SECRETS_CREATE] = {"compute:secrets:create", CONTROL_ROLE_OWNER, "secret.changed"},
	[ACCESS_SECRETS_PATCH] = {"compute:secrets:patch", CONTROL_ROLE_OWNER, "secret.changed"},
	[ACCESS_SECRETS_DELETE] = {"compute:secrets:delete", CONTROL_ROLE_OWNER, "secret.changed"},
	[ACCESS_SECRETS_READ] = {"compute:secrets:read", CONTROL_ROLE_OWNER},
	[ACCESS_KEYS_PATCH] = {"compute:keys:patch", CONTROL_ROLE_OWNER, "key.changed"},
	[ACCESS_KEYS_ROTATE] = {"compute:keys:rotate", CONTROL_ROLE_OWNER, "key.changed"},
	[ACCESS_PKI_READ] = {"compute:pki:read", CONTROL_ROLE_OPERATOR},
};

static const char *const ROLES[] = {
	[CONTROL_ROLE_VIEWER] = "viewer",
	[CONTROL_ROLE_USER] = "user",
	[CONTROL_ROLE_OWNER] = "owner",
	[CONTROL_ROLE_OPERATOR] = "operator",
};

const char *control_role_name(enum control_role role)
{
	assert((size_t)role < ARRAY_SIZE(ROLES));
	return ROLES[role];
}

bool access_role_parse(const char *name, enum control_role *ret_role)
{
	for (size_t i = 0; i < ARRAY_SIZE(ROLES); i++) {
		if (!str_equal(ROLES[i], name))
			continue;
		*ret_role = (enum control_role)i;
		return true;
	}
	return false;
}

const char *access_action_name(enum access_action action)
{
	assert((size_t)action < ARRAY_SIZE(ACTIONS));
	return ACTIONS[action].name;
}

const char *access_action_event(enum access_action action)
{
	assert((size_t)action < ARRAY_SIZE(ACTIONS));
	return ACTIONS[action].event;
}

bool access_check(const struct control_principal *principal, enum access_action action,
		  struct error *error)
{
	assert((size_t)action < ARRAY_SIZE(ACTIONS));
	if (principal->role >= ACTIONS[action].least)
		return true;
	error_set(error, ERROR_FORBIDDEN, "the role %s may not %s",
		  control_role_name(principal->role), ACTIONS[action].name);
	return error_hint(error, "It takes a key with the role %s%s.",
			  control_role_name(ACTIONS[action].least),
			  ACTIONS[action].least == CONTROL_ROLE_OPERATOR ? "" : " or more");
}

bool access_reaches(const struct control_principal *principal, const char *tenant)
{
	return principal->role == CONTROL_ROLE_OPERATOR || str_equal(principal->tenant, tenant);
}
