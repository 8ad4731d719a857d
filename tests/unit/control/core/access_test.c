#include "control/core/access.h"

#include "lib/test.h"

#include <stdio.h>

/* Each action and the least role that may do it.
 * proves: POOL-4 JOIN-1 */
static void test_every_role_and_every_action(void **state)
{
	static const struct {
		enum access_action action;
		const char *name;
		enum control_role least;
	} rows[] = {
		{ACCESS_TENANTS_CREATE, "tenants:create", CONTROL_ROLE_OPERATOR},
		{ACCESS_TENANTS_READ, "tenants:read", CONTROL_ROLE_VIEWER},
		{ACCESS_TENANTS_PATCH, "tenants:patch", CONTROL_ROLE_OWNER},
		{ACCESS_TENANTS_ARCHIVE, "tenants:archive", CONTROL_ROLE_OPERATOR},
		{ACCESS_SITES_PATCH, "sites:patch", CONTROL_ROLE_OWNER},
		{ACCESS_SITES_ARCHIVE, "sites:archive", CONTROL_ROLE_OWNER},
		{ACCESS_NODES_PATCH, "nodes:patch", CONTROL_ROLE_OWNER},
		{ACCESS_NODES_DRAIN, "nodes:drain", CONTROL_ROLE_OWNER},
		{ACCESS_NODES_UNDRAIN, "nodes:undrain", CONTROL_ROLE_OWNER},
		{ACCESS_AUDIT_READ, "audit:read", CONTROL_ROLE_OWNER},
		{ACCESS_SITES_CREATE, "sites:create", CONTROL_ROLE_OWNER},
		{ACCESS_SITES_CREATE_PLATFORM, "sites:create-platform", CONTROL_ROLE_OPERATOR},
		{ACCESS_SITES_READ, "sites:read", CONTROL_ROLE_VIEWER},
		{ACCESS_POOLS_CREATE, "pools:create", CONTROL_ROLE_OWNER},
		{ACCESS_POOLS_PATCH, "pools:patch", CONTROL_ROLE_OWNER},
		{ACCESS_POOLS_ARCHIVE, "pools:archive", CONTROL_ROLE_OWNER},
		{ACCESS_POOLS_READ, "pools:read", CONTROL_ROLE_VIEWER},
		{ACCESS_JOIN_TOKENS_CREATE, "join-tokens:create", CONTROL_ROLE_OWNER},
		{ACCESS_JOIN_TOKENS_REVOKE, "join-tokens:revoke", CONTROL_ROLE_OWNER},
		{ACCESS_JOIN_TOKENS_READ, "join-tokens:read", CONTROL_ROLE_VIEWER},
		{ACCESS_NODES_RETIRE, "nodes:retire", CONTROL_ROLE_OWNER},
		{ACCESS_NODES_DECLARE_LOST, "nodes:declare-lost", CONTROL_ROLE_OPERATOR},
		{ACCESS_NODES_READ, "nodes:read", CONTROL_ROLE_VIEWER},
		{ACCESS_RESERVATIONS_CREATE, "reservations:create", CONTROL_ROLE_USER},
		{ACCESS_RESERVATIONS_PATCH, "reservations:patch", CONTROL_ROLE_USER},
		{ACCESS_RESERVATIONS_RELEASE, "reservations:release", CONTROL_ROLE_USER},
		{ACCESS_RESERVATIONS_CANCEL, "reservations:cancel", CONTROL_ROLE_USER},
		{ACCESS_RESERVATIONS_READ, "reservations:read", CONTROL_ROLE_VIEWER},
		{ACCESS_CAPACITY_READ, "capacity:read", CONTROL_ROLE_VIEWER},
		{ACCESS_EVENTS_READ, "events:read", CONTROL_ROLE_VIEWER},
		{ACCESS_KEYS_CREATE, "keys:create", CONTROL_ROLE_OWNER},
		{ACCESS_KEYS_REVOKE, "keys:revoke", CONTROL_ROLE_OWNER},
		{ACCESS_KEYS_READ, "keys:read", CONTROL_ROLE_OWNER},
		{ACCESS_USAGE_READ, "usage:read", CONTROL_ROLE_VIEWER},
		{ACCESS_QUOTAS_CREATE, "quotas:create", CONTROL_ROLE_OPERATOR},
		{ACCESS_QUOTAS_PATCH, "quotas:patch", CONTROL_ROLE_OPERATOR},
		{ACCESS_QUOTAS_DELETE, "quotas:delete", CONTROL_ROLE_OPERATOR},
		{ACCESS_QUOTAS_READ, "quotas:read", CONTROL_ROLE_VIEWER},
		{ACCESS_SECRETS_CREATE, "secrets:create", CONTROL_ROLE_OWNER},
		{ACCESS_SECRETS_PATCH, "secrets:patch", CONTROL_ROLE_OWNER},
		{ACCESS_SECRETS_DELETE, "secrets:delete", CONTROL_ROLE_OWNER},
		{ACCESS_SECRETS_READ, "secrets:read", CONTROL_ROLE_OWNER},
		{ACCESS_KEYS_PATCH, "keys:patch", CONTROL_ROLE_OWNER},
		{ACCESS_KEYS_ROTATE, "keys:rotate", CONTROL_ROLE_OWNER},
		{ACCESS_PKI_READ, "pki:read", CONTROL_ROLE_OPERATOR},
	};
	struct error error;

	(void)state;
	assert_int_equal(ARRAY_SIZE(rows), ACCESS_PKI_READ + 1);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char name[64], hint[64];

		snprintf(name, sizeof name, "compute:%s", rows[i].name);
		assert_string_equal(access_action_name(rows[i].action), name);
		for (int role = CONTROL_ROLE_VIEWER; role <= CONTROL_ROLE_OPERATOR; role++) {
			struct control_principal principal = {.role = (enum control_role)role};

			if (role >= (int)rows[i].least)
				expect_ok(access_check(&principal, rows[i].action, &error), &error);
			else
				expect_error(access_check(&principal, rows[i].action, &error),
					     &error, ERROR_FORBIDDEN, name);
			if (role >= (int)rows[i].least)
				continue;
			/* There is nothing above an operator. */
			snprintf(hint, sizeof hint, "It takes a key with the role %s%s.",
				 control_role_name(rows[i].least),
				 rows[i].least == CONTROL_ROLE_OPERATOR ? "" : " or more");
			assert_string_equal(error.hint, hint);
		}
	}
}

/* What a call changes is told by an event of its noun; reading tells nothing, and a change of state
 * has an event of its own. */
static void test_every_change_has_an_event(void **state)
{
	static const enum access_action states[] = {
		ACCESS_NODES_RETIRE,        ACCESS_NODES_DECLARE_LOST,  ACCESS_NODES_DRAIN,
		ACCESS_NODES_UNDRAIN,       ACCESS_RESERVATIONS_CREATE, ACCESS_RESERVATIONS_RELEASE,
		ACCESS_RESERVATIONS_CANCEL,
	};

	(void)state;
	for (int action = 0; action <= ACCESS_PKI_READ; action++) {
		const char *name = access_action_name((enum access_action)action);
		const char *event = access_action_event((enum access_action)action);
		const char *noun = name + strlen("compute:");
		size_t length = strcspn(noun, ":");
		bool silent = str_equal(noun + length, ":read");

		for (size_t i = 0; i < ARRAY_SIZE(states); i++)
			silent = silent || states[i] == (enum access_action)action;
		assert_int_equal(event == NULL, silent);
		if (silent)
			continue;
		/* "pools" becomes "pool.changed". */
		assert_memory_equal(event, noun, length - 1);
		assert_string_equal(event + length - 1, ".changed");
	}
}

static void test_tenants_are_walls_but_for_the_operator(void **state)
{
	struct control_principal principal = {.tenant = "ten_a", .role = CONTROL_ROLE_OWNER};

	(void)state;
	assert_true(access_reaches(&principal, "ten_a"));
	assert_false(access_reaches(&principal, "ten_b"));
	principal.role = CONTROL_ROLE_OPERATOR;
	assert_true(access_reaches(&principal, "ten_b"));
}

static void test_roles_have_names(void **state)
{
	enum control_role parsed;

	(void)state;
	for (int role = CONTROL_ROLE_VIEWER; role <= CONTROL_ROLE_OPERATOR; role++) {
		assert_true(access_role_parse(control_role_name((enum control_role)role), &parsed));
		assert_int_equal(parsed, role);
	}
	assert_false(access_role_parse("root", &parsed));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_role_and_every_action),
		cmocka_unit_test(test_every_change_has_an_event),
		cmocka_unit_test(test_tenants_are_walls_but_for_the_operator),
		cmocka_unit_test(test_roles_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
