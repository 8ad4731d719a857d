/* The meter: one row for each allocation that is over, right to the second, whatever happens. */
#include "unit/control/metered.h"

#include "store/driver.h"

static void expect_bad(struct world *world, world_call_fn *function, struct control_call call,
		       enum error_code code, const char *text)
{
	json_t *answer = NULL;
	struct error error = {0};

	if (!call.principal)
		call.principal = &world->operator;
	expect_error(world_ask(world, function, &call, &answer, &error), &error, code, text);
}

/* --- one row --- */

/* proves: RES-20 RES-53 RES-27 */
static void test_held_allocation_is_billed_to_its_own_end(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *reservation, *rows, *usage;
	const char *id, *allocation;

	world_ready(world, &node, 4);
	reservation = world_reserve(world, 2);
	id = world_text(reservation, "id");
	allocation = world_text(reservation, "allocations.0.id");
	database_advance(7 * SECOND_MS);
	world_bind(world, &node, allocation);
	database_advance(10 * MINUTE_MS + 900);
	/* Open ones count until now, and are no rows. */
	usage = ask(world, control_usage_get, (struct control_call){0});
	assert_int_equal(world_int(usage, "items.0.gpuSeconds"), 2 * 600);
	assert_int_equal(world_int(usage, "items.0.open"), 1);
	assert_string_equal(world_text(usage, "items.0.tenantId"), world->tenant);
	assert_false(world_has(usage, "items.0.poolId"));
	json_decref(usage);
	rows = ask(world, control_meter_list, (struct control_call){0});
	assert_int_equal(json_array_size(items_of(rows)), 0);
	json_decref(rows);

	world_call(world, control_reservation_release, id, NULL);
	database_advance(5 * HOUR_MS);
	world_heartbeat(world, &node);
	world_tick(world);
	/* Its pods held the devices for hours after its own end. */
	usage = ask(world, control_usage_get, (struct control_call){0});
	assert_int_equal(world_int(usage, "items.0.gpuSeconds"), 2 * (3600 - 7));
	json_decref(usage);
	world_store_spec(world, &node);
	world_released(world, &node, allocation);
	rows = ask(world, control_meter_list, (struct control_call){0});
	assert_int_equal(json_array_size(items_of(rows)), 1);
	assert_string_equal(world_text(rows, "items.0.allocationId"), allocation);
	assert_string_equal(world_text(rows, "items.0.reservationId"), id);
	assert_string_equal(world_text(rows, "items.0.tenantId"), world->tenant);
	assert_string_equal(world_text(rows, "items.0.poolId"), world->pool);
	assert_string_equal(world_text(rows, "items.0.nodeId"), node.id);
	assert_string_equal(world_text(rows, "items.0.reason"), "ReleaseRequested");
	assert_string_equal(world_text(rows, "items.0.devices.0.class"), "gpu");
	assert_int_equal(world_int(rows, "items.0.devices.0.count"), 2);
	assert_int_equal(world_int(rows, "items.0.gpuSeconds"), 2 * (3600 - 7));
	assert_int_equal(time_of(rows, "items.0.stoppedAt"), DATABASE_EPOCH_MS + HOUR_MS);
	assert_int_equal(time_of(rows, "items.0.startedAt"), DATABASE_EPOCH_MS + 7 * SECOND_MS);
	json_decref(rows);
	/* Said again, it changes nothing. */
	world_released(world, &node, allocation);
	rows = ask(world, control_meter_list, (struct control_call){0});
	assert_int_equal(json_array_size(items_of(rows)), 1);
	json_decref(rows);
	usage = ask(world, control_usage_get, (struct control_call){.by = "pool"});
	assert_int_equal(world_int(usage, "items.0.gpuSeconds"), 2 * (3600 - 7));
	assert_int_equal(world_int(usage, "items.0.open"), 0);
	assert_string_equal(world_text(usage, "items.0.poolId"), world->pool);
	json_decref(usage);
}

/* Each class, and each profile, is counted on its own. proves: RES-53 */
static void test_classes_are_counted_apart(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *reservation, *rows, *usage;

	world_join(world, &node);
	node.gpus = 4;
	node.migs = 2;
	world_hello(world, &node, NULL);
	world_inventory(world, &node);
	world_conditions(world, &node, NULL, 0);
	reservation = world_call(world, control_reservation_create, NULL,
				 "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":"
				 "\"gpu\",\"count\":2},{\"class\":\"gpu.mig\",\"profile\":"
				 "\"1g.10gb\",\"count\":3}],\"duration\":\"1h\",\"binding\":"
				 "\"kubernetes\"}",
				 world->tenant, world->pool);
	world_bind(world, &node, world_text(reservation, "allocations.0.id"));
	database_advance(100 * SECOND_MS);
	world_call(world, control_reservation_release, world_text(reservation, "id"), NULL);
	world_store_spec(world, &node);
	world_released(world, &node, world_text(reservation, "allocations.0.id"));
	rows = ask(world, control_meter_list, (struct control_call){0});
	assert_int_equal(json_array_size(items_of(rows)), 1);
	assert_int_equal(world_int(rows, "items.0.devices.0.gpuSeconds"), 200);
	assert_string_equal(world_text(rows, "items.0.devices.1.profile"), "1g.10gb");
	assert_int_equal(world_int(rows, "items.0.devices.1.gpuSeconds"), 300);
	assert_int_equal(world_int(rows, "items.0.gpuSeconds"), 500);
	json_decref(rows);
	usage = ask(world, control_usage_get, (struct control_call){0});
	assert_string_equal(world_text(usage, "items.0.class"), "gpu");
	assert_int_equal(world_int(usage, "items.0.gpuSeconds"), 200);
	assert_string_equal(world_text(usage, "items.1.class"), "gpu.mig");
	assert_string_equal(world_text(usage, "items.1.profile"), "1g.10gb");
	assert_int_equal(world_int(usage, "items.1.gpuSeconds"), 300);
	json_decref(usage);
}

/* What was never bound is closed with a row that costs nothing. proves: RES-53 */
static void test_what_was_never_given_costs_nothing(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *reservation, *rows, *usage;

	world_ready(world, &node, 1);
	reservation = world_reserve(world, 1);
	world_store_spec(world, &node);
	database_advance(MINUTE_MS);
	world_failed(world, &node, world_text(reservation, "allocations.0.id"), "NoRoom");
	rows = ask(world, control_meter_list, (struct control_call){0});
	assert_int_equal(json_array_size(items_of(rows)), 1);
	assert_string_equal(world_text(rows, "items.0.reason"), "NoRoom");
	assert_int_equal(world_int(rows, "items.0.gpuSeconds"), 0);
	json_decref(rows);
	usage = ask(world, control_usage_get, (struct control_call){0});
	assert_int_equal(json_array_size(items_of(usage)), 0);
	json_decref(usage);
}

/* --- databases from before there was a meter --- */

struct refill_work {
	const char *const *statements; /* those of the migration that fill the meter */
};

static bool refill_body(struct store_connection *db, void *argument, struct error *error)
{
	const struct refill_work *work = argument;

	if (!store_exec(db, "DELETE FROM meter_devices", STORE_NO_PARAMS, error) ||
	    !store_exec(db, "DELETE FROM meter", STORE_NO_PARAMS, error))
		return false;
	for (const char *const *sql = work->statements; *sql; sql++) {
		if (str_starts(*sql, "INSERT") && !store_exec(db, *sql, STORE_NO_PARAMS, error))
			return false;
	}
	return true;
}

/* The migration writes the rows that closing would have written. proves: RES-53 */
static void test_what_closed_before_has_the_same_rows(void **state)
{
	struct world *world = *state;
	const struct store_migration *migrations =
		database_is_postgres() ? store_postgres_migrations : store_sqlite_migrations;
	struct refill_work work = {0};
	struct world_node node;
	json_t *before, *after;
	struct error error;

	for (size_t i = 0; i < STORE_MIGRATIONS; i++) {
		if (str_equal(migrations[i].name, "money"))
			work.statements = migrations[i].statements;
	}
	assert_non_null(work.statements);
	world_ready(world, &node, 8);
	/* Released early, held beyond its end, never bound, and failed. */
	for (int i = 0; i < 4; i++) {
		json_t *reservation = world_reserve(world, 2);
		const char *id = world_text(reservation, "allocations.0.id");

		database_advance(7 * SECOND_MS + 300);
		world_store_spec(world, &node);
		if (i < 2)
			world_bind(world, &node, id);
		database_advance(i == 1 ? 2 * HOUR_MS : MINUTE_MS);
		world_heartbeat(world, &node);
		if (i == 3) {
			world_failed(world, &node, id, "NoRoom");
		} else {
			world_call(world, control_reservation_release,
				   world_text(reservation, "id"), NULL);
			world_store_spec(world, &node);
			world_released(world, &node, id);
		}
	}
	before = ask(world, control_meter_list, (struct control_call){0});
	assert_int_equal(json_array_size(items_of(before)), 4);
	expect_ok(store_run(world->control.connection, STORE_WRITE, refill_body, &work, &error),
		  &error);
	after = ask(world, control_meter_list, (struct control_call){0});
	assert_int_equal(json_array_size(items_of(after)), 4);
	for (size_t i = 0; i < 4; i++) {
		json_t *row = json_array_get(items_of(before), i);
		bool found = false;

		json_object_del(row, "id");
		for (size_t j = 0; j < 4; j++) {
			json_t *other = json_deep_copy(json_array_get(items_of(after), j));

			json_object_del(other, "id");
			found |= json_equal(row, other) == 1;
			json_decref(other);
		}
		assert_true(found);
	}
	json_decref(before);
	json_decref(after);
}

/* proves: RES-53 POOL-4 */
static void test_reports_keep_to_their_tenant_and_window(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_principal own, other;
	json_t *reservation, *answer, *tenant;

	world_ready(world, &node, 1);
	reservation = world_reserve(world, 1);
	world_bind(world, &node, world_text(reservation, "allocations.0.id"));
	database_advance(HOUR_MS);
	tenant = world_call(world, control_tenant_create, NULL, "{\"name\":\"other\"}");
	own = world_principal(world, world->tenant, "viewer");
	other = world_principal(world, world_text(tenant, "id"), "owner");
	answer = ask(world, control_usage_get, (struct control_call){.principal = &own});
	assert_int_equal(world_int(answer, "items.0.gpuSeconds"), 3600);
	json_decref(answer);
	answer = ask(world, control_usage_get, (struct control_call){.principal = &other});
	assert_int_equal(json_array_size(items_of(answer)), 0);
	json_decref(answer);
	expect_bad(world, control_usage_get,
		   (struct control_call){.principal = &other, .tenant_id = world->tenant},
		   ERROR_NOT_FOUND, "tenant");
	expect_bad(world, control_usage_get, (struct control_call){.by = "node"},
		   ERROR_INVALID_INPUT, "by");
	expect_bad(world, control_usage_get, (struct control_call){.from = "yesterday"},
		   ERROR_INVALID_INPUT, "from");
	expect_bad(
		world, control_meter_list,
		(struct control_call){.from = "2027-01-02T00:00:00Z", .to = "2027-01-02T00:00:00Z"},
		ERROR_INVALID_INPUT, "to");
	expect_bad(world, control_meter_list, (struct control_call){.pool_id = "ten_1"},
		   ERROR_INVALID_INPUT, "poolId");
	/* Ten minutes of the hour. */
	answer = ask(world, control_usage_get,
		     (struct control_call){.from = "2027-01-15T08:10:00Z",
					   .to = "2027-01-15T08:20:00Z"});
	assert_int_equal(world_int(answer, "items.0.gpuSeconds"), 600);
	json_decref(answer);
	answer = ask(world, control_usage_get,
		     (struct control_call){.from = "2027-01-15T10:00:00Z",
					   .to = "2027-01-16T00:00:00Z"});
	assert_int_equal(json_array_size(items_of(answer)), 0);
	json_decref(answer);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_held_allocation_is_billed_to_its_own_end),
		WORLD_TEST(test_classes_are_counted_apart),
		WORLD_TEST(test_what_was_never_given_costs_nothing),
		WORLD_TEST(test_what_closed_before_has_the_same_rows),
		WORLD_TEST(test_reports_keep_to_their_tenant_and_window),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
