/* What changes leave behind: rows of the audit, and events. */
#include "unit/control/world.h"

#include <stdio.h>

struct audit_work {
	int64_t rows, with_request;
};

static bool audit_body(struct store_connection *db, void *argument, struct error *error)
{
	struct audit_work *work = argument;
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db,
			 "SELECT count(*), count(CASE WHEN request = 'req_test' THEN 1 END) FROM "
			 "audit WHERE action = 'compute:tenants:create'",
			 STORE_NO_PARAMS, &rows, error))
		return false;
	work->rows = store_get_int(&rows, 0, 0);
	work->with_request = store_get_int(&rows, 0, 1);
	return true;
}

static void test_each_change_is_an_audit_row_and_no_refusal(void **state)
{
	struct world *world = *state;
	struct audit_work work;
	struct error error;

	world_refused(world, control_tenant_create, NULL, ERROR_CONFLICT, "acme",
		      "{\"name\":\"acme\"}");
	world_call(world, control_tenant_create, NULL, "{\"name\":\"b\",\"idempotencyKey\":\"k\"}");
	world_call(world, control_tenant_create, NULL, "{\"name\":\"b\",\"idempotencyKey\":\"k\"}");
	expect_ok(store_run(world->control.connection, STORE_READ, audit_body, &work, &error),
		  &error);
	assert_int_equal(work.rows, 2);
	assert_int_equal(work.with_request, 2);
}

static void test_events_come_after_what_was_read(void **state)
{
	struct world *world = *state;
	struct control_call call = {.principal = &world->operator, .after = "0", .limit = "1"};
	char after[32];
	int64_t last;
	json_t *answer;
	struct error error;

	expect_ok(world_ask(world, control_event_list, &call, &answer, &error), &error);
	assert_int_equal(world_int(answer, "items.0.seq"), 1);
	assert_false(world_has(answer, "items.1"));
	last = world_int(answer, "last");
	json_decref(answer);
	world_reserve(world, 1);
	world_reserve(world, 1);
	/* Whoever wants the newest alone begins there. */
	snprintf(after, sizeof after, "%lld", (long long)last);
	call.after = after;
	expect_ok(world_ask(world, control_event_list, &call, &answer, &error), &error);
	assert_int_equal(world_int(answer, "items.0.seq"), last + 1);
	assert_int_equal(world_int(answer, "next"), last + 1);
	assert_int_equal(world_int(answer, "last"), last + 2);
	assert_string_equal(world_text(answer, "items.0.type"), "reservation.state.changed");
	assert_string_equal(world_text(answer, "items.0.data.state"), "pending");
	assert_false(world_has(answer, "items.1"));
	json_decref(answer);
	snprintf(after, sizeof after, "%lld", (long long)last + 1);
	expect_ok(world_ask(world, control_event_list, &call, &answer, &error), &error);
	assert_int_equal(world_int(answer, "items.0.seq"), last + 2);
	json_decref(answer);
	/* Of another log than this: nothing of it has been read. */
	snprintf(after, sizeof after, "%lld", (long long)last + 3);
	expect_ok(world_ask(world, control_event_list, &call, &answer, &error), &error);
	assert_int_equal(world_int(answer, "items.0.seq"), 1);
	json_decref(answer);
	call.after = "-1";
	expect_error(world_ask(world, control_event_list, &call, &answer, &error), &error,
		     ERROR_INVALID_INPUT, "after");
}

/* What is an event of no state: a changed end, a new name. Who may not read keys hears of none. */
static void test_each_change_is_an_event(void **state)
{
	struct world *world = *state;
	struct control_principal viewer = world_principal(world, world->tenant, "viewer");
	struct control_call call = {.principal = &viewer, .limit = "1000"};
	const json_t *reservation = world_reserve(world, 1);
	const char *id = world_text(reservation, "id");
	json_t *answer, *item;
	size_t index;
	struct error error;

	assert_int_equal(world_count_events(world, "reservation.changed", id), 0);
	world_call(world, control_reservation_patch, id, "{\"duration\":\"2h\"}");
	assert_int_equal(world_count_events(world, "reservation.changed", id), 1);
	assert_int_equal(world_count_events(world, "pool.changed", world->pool), 1);
	world_call(world, control_pool_patch, world->pool, "{\"name\":\"other\"}");
	assert_int_equal(world_count_events(world, "pool.changed", world->pool), 2);
	world_call(world, control_site_patch, world->site, "{\"name\":\"a\"}");
	world_call(world, control_site_patch, world->site, "{\"name\":\"a\"}");
	assert_int_equal(world_count_events(world, "site.changed", world->site), 2);
	assert_int_equal(world_count_events(world, "key.changed", viewer.key), 1);
	expect_ok(world_ask(world, control_event_list, &call, &answer, &error), &error);
	json_array_foreach(json_object_get(answer, "items"), index, item)
		assert_string_not_equal(world_text(item, "type"), "key.changed");
	assert_true(json_array_size(json_object_get(answer, "items")) > 0);
	json_decref(answer);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_each_change_is_an_audit_row_and_no_refusal),
		WORLD_TEST(test_events_come_after_what_was_read),
		WORLD_TEST(test_each_change_is_an_event),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
