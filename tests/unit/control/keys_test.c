/* API keys: shown once, rotated with an overlap, never more than who makes them, never none. */
#include "unit/control/world.h"

#include <pthread.h>

#define HOUR_MS ((int64_t)60 * 60 * 1000)

static json_t *make(struct world *world, const char *tenant, const char *role)
{
	static int number;

	return world_call(world, control_key_create, NULL,
			  "{\"tenantId\":\"%s\",\"role\":\"%s\",\"name\":\"ci-%d\"}", tenant, role,
			  ++number);
}

static bool opens(struct world *world, const char *text)
{
	struct control_principal principal;
	struct error error;

	return control_authenticate(&world->control, text, &principal, &error);
}

/* proves: ADM-2 */
static void test_a_rotated_key_has_two_secrets_for_a_while(void **state)
{
	struct world *world = *state;
	json_t *key = make(world, world->tenant, "user"), *second, *third, *shown;
	const char *id = world_text(key, "id");

	second = world_call(world, control_key_rotate, id, "{\"overlap\":\"1h\"}");
	assert_string_equal(world_text(second, "id"), id);
	assert_string_not_equal(world_text(second, "key"), world_text(key, "key"));
	assert_true(world_has(second, "oldSecretEndsAt"));
	assert_true(opens(world, world_text(key, "key")));
	assert_true(opens(world, world_text(second, "key")));
	database_advance(HOUR_MS - 1);
	assert_true(opens(world, world_text(key, "key")));
	database_advance(1);
	assert_false(opens(world, world_text(key, "key")));
	assert_true(opens(world, world_text(second, "key")));
	/* Without an overlap the old one ends at once. */
	third = world_call(world, control_key_rotate, id, NULL);
	assert_false(opens(world, world_text(second, "key")));
	assert_true(opens(world, world_text(third, "key")));
	/* Of three, the first has no overlap left. */
	second = world_call(world, control_key_rotate, id, "{\"overlap\":\"1d\"}");
	shown = world_call(world, control_key_rotate, id, "{\"overlap\":\"1d\"}");
	assert_false(opens(world, world_text(third, "key")));
	assert_true(opens(world, world_text(second, "key")));
	assert_true(opens(world, world_text(shown, "key")));
	/* Revoked, neither opens. */
	world_call(world, control_key_revoke, id, NULL);
	assert_false(opens(world, world_text(second, "key")));
	assert_false(opens(world, world_text(shown, "key")));
	world_refused(world, control_key_rotate, id, ERROR_INVALID_STATE, "is revoked", NULL);
	world_refused(world, control_key_patch, id, ERROR_INVALID_STATE, "is revoked",
		      "{\"name\":\"x\"}");
}

/* proves: ADM-2 */
static void test_records_never_show_the_secret(void **state)
{
	struct world *world = *state;
	json_t *key = make(world, world->tenant, "viewer"), *shown;
	const char *id = world_text(key, "id");

	shown = world_call(world, control_key_get, id, NULL);
	assert_memory_equal(world_text(shown, "name"), "ci-", 3);
	assert_string_equal(world_text(shown, "role"), "viewer");
	assert_false(world_has(shown, "key"));
	assert_false(world_has(shown, "revokedAt"));
	shown = world_call(world, control_key_patch, id, "{\"name\":\"deploy\",\"role\":\"user\"}");
	assert_string_equal(world_text(shown, "name"), "deploy");
	assert_string_equal(world_text(shown, "role"), "user");
	assert_false(world_has(shown, "key"));
	world_refused(world, control_key_patch, id, ERROR_INVALID_INPUT, "name", "{}");
	world_refused(world, control_key_rotate, id, ERROR_INVALID_INPUT, "overlap",
		      "{\"overlap\":\"31d\"}");
	world_refused(world, control_key_get, "key_1", ERROR_NOT_FOUND, "key", NULL);
}

/* Who has less can't take, change or stop what does more. proves: ADM-2 POOL-4 */
static void test_nobody_reaches_above_their_own_role(void **state)
{
	struct world *world = *state;
	json_t *above = make(world, world->tenant, "operator"), *answer, *body;
	struct control_principal owner = world_principal(world, world->tenant, "owner");
	struct control_call call = {.principal = &owner, .id = world_text(above, "id")};
	struct error error;

	expect_error(world_ask(world, control_key_rotate, &call, &answer, &error), &error,
		     ERROR_FORBIDDEN, "may not rotate a key of role operator");
	expect_error(world_ask(world, control_key_revoke, &call, &answer, &error), &error,
		     ERROR_FORBIDDEN, "may not revoke");
	body = json_pack("{s:s}", "role", "viewer");
	call.body = body;
	expect_error(world_ask(world, control_key_patch, &call, &answer, &error), &error,
		     ERROR_FORBIDDEN, "may not change");
	json_decref(body);
	body = json_pack("{s:s}", "role", "operator");
	call.body = body;
	call.id = owner.key;
	expect_error(world_ask(world, control_key_patch, &call, &answer, &error), &error,
		     ERROR_FORBIDDEN, "may not make a key of role operator");
	json_decref(body);
	assert_true(opens(world, world_text(above, "key")));
}

/* proves: ADM-2 */
static void test_the_last_operator_key_stays(void **state)
{
	struct world *world = *state;
	json_t *second;

	world_refused(world, control_key_revoke, world->operator.key, ERROR_INVALID_STATE,
		      "last operator key", NULL);
	world_refused(world, control_key_patch, world->operator.key, ERROR_INVALID_STATE,
		      "last operator key", "{\"role\":\"owner\"}");
	world_call(world, control_key_patch, world->operator.key, "{\"name\":\"chief\"}");
	second = make(world, world->tenant, "operator");
	world_call(world, control_key_revoke, world->operator.key, NULL);
	world_call(world, control_key_revoke, world->operator.key, NULL);
	world_refused(world, control_key_revoke, world_text(second, "id"), ERROR_INVALID_STATE,
		      "last operator key", NULL);
}

/* --- two at once --- */

struct racer {
	pthread_t thread;
	struct world *world;
	struct control control;
	const char *id;
	bool revoked;
	struct error error;
};

static void *race(void *argument)
{
	struct racer *racer = argument;
	struct control_call call = {.principal = &racer->world->operator, .id = racer->id };
	json_t *answer = NULL;

	racer->revoked = control_key_revoke(&racer->control, &call, &answer, &racer->error);
	json_decref(answer);
	return NULL;
}

/* Two operators who revoke each other at once: one of them stays. proves: ADM-2 */
static void test_two_revocations_at_once_leave_one(void **state)
{
	struct world *world = *state;

	for (int round = 0; round < 5; round++) {
		json_t *other = make(world, world->tenant, "operator");
		struct racer racers[2] = {{.world = world, .id = world->operator.key },
					   {.world = world, .id = world_text(other, "id")}};

		for (int i = 0; i < 2; i++) {
			world_connect(world, i ? "b" : "a", &racers[i].control);
			pthread_create(&racers[i].thread, NULL, race, &racers[i]);
		}
		for (int i = 0; i < 2; i++) {
			pthread_join(racers[i].thread, NULL);
			world_disconnect(&racers[i].control);
		}
		assert_int_equal(racers[0].revoked + racers[1].revoked, 1);
		if (racers[0].revoked)
			str_copy(world->operator.key, ID_SIZE, racers[1].id);
	}
}

/* proves: ADM-1 */
static void test_an_archived_tenant_gets_nothing_new(void **state)
{
	struct world *world = *state;
	const char *tenant = world_text(
		world_call(world, control_tenant_create, NULL, "{\"name\":\"gone\"}"), "id");

	world_call(world, control_tenant_archive, tenant, NULL);
	world_refused(world, control_key_create, NULL, ERROR_INVALID_STATE, "archived",
		      "{\"tenantId\":\"%s\",\"role\":\"owner\",\"name\":\"k\"}", tenant);
	world_refused(world, control_quota_create, NULL, ERROR_INVALID_STATE, "archived",
		      "{\"tenantId\":\"%s\",\"maxDevices\":1}", tenant);
}

/* proves: ADM-2 */
static void test_a_name_is_one_key_s(void **state)
{
	static const char body[] = "{\"tenantId\":\"%s\",\"role\":\"user\",\"name\":\"one\"}";
	struct world *world = *state;
	const char *first =
		world_text(world_call(world, control_key_create, NULL, body, world->tenant), "id");
	const char *second = world_text(make(world, world->tenant, "user"), "id");

	world_refused(world, control_key_create, NULL, ERROR_CONFLICT, first, body, world->tenant);
	world_refused(world, control_key_patch, second, ERROR_CONFLICT, first,
		      "{\"name\":\"one\"}");
	world_call(world, control_key_patch, first, "{\"name\":\"one\"}");
	/* Another tenant's name is none of theirs, and a revoked key has given its own back. */
	world_call(world, control_key_create, NULL, body, world->operator.tenant);
	world_call(world, control_key_revoke, first, NULL);
	world_call(world, control_key_patch, second, "{\"name\":\"one\"}");
}

static void test_whoami_says_the_names(void **state)
{
	struct world *world = *state;
	struct control_principal user = world_principal(world, world->tenant, "user");
	struct control_call call = {.principal = &user};
	json_t *answer;
	struct error error;

	world_call(world, control_key_patch, user.key, "{\"name\":\"ci\"}");
	world_call(world, control_tenant_patch, world->tenant, "{\"name\":\"acme\"}");
	expect_ok(world_ask(world, control_whoami, &call, &answer, &error), &error);
	assert_string_equal(world_text(answer, "keyName"), "ci");
	assert_string_equal(world_text(answer, "tenantName"), "acme");
	assert_string_equal(world_text(answer, "role"), "user");
	json_decref(answer);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_a_name_is_one_key_s),
		WORLD_TEST(test_whoami_says_the_names),
		WORLD_TEST(test_a_rotated_key_has_two_secrets_for_a_while),
		WORLD_TEST(test_records_never_show_the_secret),
		WORLD_TEST(test_nobody_reaches_above_their_own_role),
		WORLD_TEST(test_the_last_operator_key_stays),
		WORLD_TEST(test_two_revocations_at_once_leave_one),
		WORLD_TEST(test_an_archived_tenant_gets_nothing_new),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
