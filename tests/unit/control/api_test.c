/* The calls of the HTTP API: who may make them, how lists, bad input and what is only tried are answered. */
#include "unit/control/world.h"

#include <stdio.h>

/* proves: POOL-4 ADM-2 */
static void test_keys_open_and_stop_opening(void **state)
{
	struct world *world = *state;
	struct control_principal principal;
	char first[CONTROL_KEY_SIZE] = "untouched";
	json_t *key;
	struct error error;

	/* The first key is made once. */
	expect_ok(control_init(&world->control, first, &error), &error);
	assert_string_equal(first, "");
	expect_error(control_authenticate(&world->control, NULL, &principal, &error), &error,
		     ERROR_UNAUTHENTICATED, "no valid API key");
	expect_error(control_authenticate(&world->control, "bck_", &principal, &error), &error,
		     ERROR_UNAUTHENTICATED, "no valid API key");
	key = world_call(world, control_key_create, NULL,
			 "{\"tenantId\":\"%s\",\"role\":\"user\",\"name\":\"ci\"}", world->tenant);
	assert_true(str_starts(world_text(key, "key"), "bck_key_"));
	expect_ok(control_authenticate(&world->control, world_text(key, "key"), &principal, &error),
		  &error);
	assert_string_equal(principal.tenant, world->tenant);
	assert_string_equal(principal.key, world_text(key, "id"));
	assert_int_equal(principal.role, CONTROL_ROLE_USER);
	for (size_t i = 0; i < 2; i++)
		assert_false(world_has(world_call(world, control_key_list, NULL, NULL),
				       i ? "items.1.key" : "items.0.key"));
	world_call(world, control_key_revoke, world_text(key, "id"), NULL);
	expect_error(
		control_authenticate(&world->control, world_text(key, "key"), &principal, &error),
		&error, ERROR_UNAUTHENTICATED, "no valid API key");
}

/* Whoever has the database gets in again, though the first key is lost. */
static void test_another_operator_key(void **state)
{
	struct world *world = *state;
	struct control_principal principal;
	struct control_call made_by = {.principal = &principal, .key_id = principal.key};
	char key[CONTROL_KEY_SIZE];
	json_t *audit;
	struct error error;

	expect_ok(control_another_key(&world->control, key, &error), &error);
	expect_ok(control_authenticate(&world->control, key, &principal, &error), &error);
	assert_int_equal(principal.role, CONTROL_ROLE_OPERATOR);
	assert_string_equal(principal.tenant, world->operator.tenant);
	assert_string_not_equal(principal.key, world->operator.key);
	expect_ok(world_ask(world, control_audit_list, &made_by, &audit, &error), &error);
	assert_string_equal(world_text(audit, "items.0.action"), "compute:keys:create");
	assert_string_equal(world_text(audit, "items.0.object"), principal.key);
	json_decref(audit);
}

/* proves: POOL-4 */
static void test_nobody_makes_a_key_that_reaches_further(void **state)
{
	struct world *world = *state;
	struct control_principal owner = world_principal(world, world->tenant, "owner");

	world->operator= owner;
	world_refused(world, control_key_create, NULL, ERROR_FORBIDDEN, "may not make a key",
		      "{\"tenantId\":\"%s\",\"role\":\"operator\",\"name\":\"k\"}", world->tenant);
}

/* proves: POOL-30 */
static void test_lists_come_in_pages(void **state)
{
	struct world *world = *state;
	struct control_call call = {.principal = &world->operator, .limit = "3" };
	char cursor[64] = "", last[ID_SIZE] = "";
	size_t seen = 0;
	json_t *answer;
	struct error error;

	for (int i = 0; i < 8; i++)
		world_call(world, control_tenant_create, NULL, "{\"name\":\"t%d\"}", i);
	do {
		call.cursor = cursor[0] ? cursor : NULL;
		expect_ok(world_ask(world, control_tenant_list, &call, &answer, &error), &error);
		for (size_t i = 0; i < json_array_size(json_object_get(answer, "items")); i++) {
			char path[32];

			snprintf(path, sizeof path, "items.%zu.id", i);
			assert_true(strcmp(world_text(answer, path), last) > 0);
			str_copy(last, sizeof last, world_text(answer, path));
			seen++;
		}
		cursor[0] = '\0';
		if (world_has(answer, "nextCursor"))
			str_copy(cursor, sizeof cursor, world_text(answer, "nextCursor"));
		json_decref(answer);
	} while (cursor[0]);
	assert_int_equal(seen, 10);

	static const char *const wrong[] = {"0", "1001", "-1", "x", "", "99999999999999999999"};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		call = (struct control_call){.principal = &world->operator, .limit = wrong[i] };
		expect_error(world_ask(world, control_pool_list, &call, &answer, &error), &error,
			     ERROR_INVALID_INPUT, "limit");
		assert_string_equal(error.field, "limit");
	}
	call = (struct control_call){.principal = &world->operator, .cursor = "c1-rubbish" };
	expect_error(world_ask(world, control_pool_list, &call, &answer, &error), &error,
		     ERROR_INVALID_INPUT, "cursor");
	call.cursor = cursor;
	call.state = "releasing";
	expect_error(world_ask(world, control_reservation_list, &call, &answer, &error), &error,
		     ERROR_INVALID_INPUT, "state");
}

static void test_bad_input_names_its_field(void **state)
{
	static const struct {
		const char *body, *field;
	} rows[] = {
		{"{\"name\":\"x\",\"colour\":1}", "colour"},
		{"{}", "name"},
		{"{\"name\":7}", "name"},
		{"{\"name\":null}", "name"},
		{"{\"name\":\"\"}", "name"},
		{"{\"name\":\"A\"}", "name"},
		{"{\"name\":\"caf\xc3\xa9\"}", "name"},
		{"{\"name\":\"a b\"}", "name"},
		{"{\"name\":\"-a\"}", "name"},
		{"{\"name\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}",
		 "name"},
	};
	struct world *world = *state;
	struct control_call call = {.principal = &world->operator};
	json_t *answer = NULL;
	struct error error;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		json_t *body = json_loads(rows[i].body, 0, NULL);

		call.body = body;
		expect_error(world_ask(world, control_tenant_create, &call, &answer, &error),
			     &error, ERROR_INVALID_INPUT, rows[i].field);
		assert_string_equal(error.field, rows[i].field);
		json_decref(body);
	}
	call.body = NULL;
	expect_error(world_ask(world, control_tenant_create, &call, &answer, &error), &error,
		     ERROR_INVALID_INPUT, "body must be a JSON object");
	world_refused(world, control_pool_get, "pool_nonsense", ERROR_NOT_FOUND, "pool_nonsense",
		      NULL);
	world_refused(world, control_pool_get, "../../etc", ERROR_NOT_FOUND, "pool", NULL);
	world_refused(world, control_reservation_get, NULL, ERROR_NOT_FOUND, "reservation", NULL);
}

/* What is tried answers as if it were done, or is refused as it would be, and nothing is different. */
static void test_what_is_tried_changes_nothing(void **state)
{
	struct world *world = *state;
	const char *id = world_text(world_reserve(world, 1), "id");
	json_t *shorter = json_pack("{s:s}", "duration", "2h");
	json_t *longer = json_pack("{s:s}", "duration", "9000d");
	struct control_call call = {
		.principal = &world->operator, .id = id, .body = shorter, .dry_run = "true"};
	json_t *before, *answer;
	struct error error;

	expect_ok(world_ask(world, control_reservation_get, &call, &before, &error), &error);
	expect_ok(world_ask(world, control_reservation_patch, &call, &answer, &error), &error);
	assert_string_equal(world_text(answer, "duration"), "2h");
	json_decref(answer);
	call.body = longer;
	expect_error(world_ask(world, control_reservation_patch, &call, &answer, &error), &error,
		     ERROR_INVALID_INPUT, "duration");
	call.body = NULL;
	expect_ok(world_ask(world, control_reservation_release, &call, &answer, &error), &error);
	assert_string_equal(world_text(answer, "state"), "released");
	json_decref(answer);
	expect_ok(world_ask(world, control_reservation_get, &call, &answer, &error), &error);
	assert_true(json_equal(answer, before));
	assert_int_equal(world_count_events(world, "reservation.changed", id), 0);
	json_decref(answer);
	call.dry_run = "false";
	call.body = shorter;
	expect_ok(world_ask(world, control_reservation_patch, &call, &answer, &error), &error);
	assert_int_equal(world_count_events(world, "reservation.changed", id), 1);
	json_decref(answer);
	json_decref(before);
	json_decref(shorter);
	json_decref(longer);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_keys_open_and_stop_opening),
		WORLD_TEST(test_another_operator_key),
		WORLD_TEST(test_nobody_makes_a_key_that_reaches_further),
		WORLD_TEST(test_lists_come_in_pages),
		WORLD_TEST(test_bad_input_names_its_field),
		WORLD_TEST(test_what_is_tried_changes_nothing),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
