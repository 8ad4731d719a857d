/*
 * access: what a role may do. Pure.
 *
 * An action is named "compute:<noun>:<verb>"; the names stand in the audit.
 */
#pragma once

#include "base/error.h"
#include "base/id.h"

enum control_role {
	CONTROL_ROLE_VIEWER,   /* reads of its tenant */
	CONTROL_ROLE_USER,     /* and reservations */
	CONTROL_ROLE_OWNER,    /* and everything else of its tenant */
	CONTROL_ROLE_OPERATOR, /* everything */
};
const char *control_role_name(enum control_role role); /* "viewer" ... */

#define ACCESS_ADDRESS_SIZE 46 /* numeric, IPv4 or IPv6 */

struct control_principal {
	char key[ID_SIZE];    /* key_... */
	char tenant[ID_SIZE]; /* ten_... */
	enum control_role role;
	char request[ID_SIZE];             /* the request's id, for the audit; "" if none */
	char address[ACCESS_ADDRESS_SIZE]; /* where it came from, likewise */
};

enum access_action {
	ACCESS_TENANTS_CREATE,
	ACCESS_TENANTS_READ,
	ACCESS_TENANTS_PATCH,
	ACCESS_TENANTS_ARCHIVE,
	ACCESS_SITES_CREATE,
	ACCESS_SITES_CREATE_PLATFORM, /* a site of the platform itself */
	ACCESS_SITES_READ,
	ACCESS_SITES_PATCH,
	ACCESS_SITES_ARCHIVE,
	ACCESS_POOLS_CREATE,
	ACCESS_POOLS_PATCH,
	ACCESS_POOLS_ARCHIVE,
	ACCESS_POOLS_READ,
	ACCESS_JOIN_TOKENS_CREATE,
	ACCESS_JOIN_TOKENS_REVOKE,
	ACCESS_JOIN_TOKENS_READ,
	ACCESS_NODES_RETIRE,
	ACCESS_NODES_DECLARE_LOST,
	ACCESS_NODES_READ,
	ACCESS_NODES_PATCH,
	ACCESS_NODES_DRAIN,
	ACCESS_NODES_UNDRAIN,
	ACCESS_RESERVATIONS_CREATE,
	ACCESS_RESERVATIONS_PATCH,
	ACCESS_RESERVATIONS_RELEASE,
	ACCESS_RESERVATIONS_CANCEL,
	ACCESS_RESERVATIONS_READ,
	ACCESS_CAPACITY_READ,
	ACCESS_EVENTS_READ,
	ACCESS_AUDIT_READ,
	ACCESS_KEYS_CREATE,
	ACCESS_KEYS_REVOKE,
	ACCESS_KEYS_READ,
	ACCESS_USAGE_READ,
	ACCESS_QUOTAS_CREATE,
	ACCESS_QUOTAS_PATCH,
	ACCESS_QUOTAS_DELETE,
	ACCESS_QUOTAS_READ,
	ACCESS_SECRETS_CREATE,
	ACCESS_SECRETS_PATCH,
	ACCESS_SECRETS_DELETE,
	ACCESS_SECRETS_READ,
	ACCESS_KEYS_PATCH,
	ACCESS_KEYS_ROTATE,
	ACCESS_PKI_READ,
};

const char *access_action_name(enum access_action action);

/* The event by which subscribers hear of it, such as "pool.changed"; NULL for what changes nothing,
 * and for what publishes a change of state of its own. */
const char *access_action_event(enum access_action action);

/* By control_role_name(); false: unknown, untouched. */
bool access_role_parse(const char *name, enum control_role *ret_role);

/* FORBIDDEN unless the role reaches; whether the thing is in the principal's tenant is the next
 * question, access_reaches(). */
MUST_CHECK bool access_check(const struct control_principal *principal, enum access_action action,
			     struct error *error);

/* Does this principal see things of this tenant at all? */
bool access_reaches(const struct control_principal *principal, const char *tenant);
