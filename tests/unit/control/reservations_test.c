/* Reservations by the API: who books, what ends one, what excludes what, and which are listed. */
#include "unit/control/world.h"

/* proves: RES-6 */
static void test_only_the_pools_tenant_books_it(void **state)
{
	static const char body[] = "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":"
				   "\"gpu\",\"count\":1}],\"duration\":\"1h\",\"binding\":"
				   "\"kubernetes\"}";
	struct world *world = *state;
	const char *other = world_text(
		world_call(world, control_tenant_create, NULL, "{\"name\":\"other\"}"), "id");

	world_refused(world, control_reservation_create, NULL, ERROR_FORBIDDEN,
		      "only the tenant that owns", body, other, world->pool);
	world_refused(world, control_capacity_preview, NULL, ERROR_FORBIDDEN,
		      "only the tenant that owns", body, other, world->pool);
}

/* proves: RES-46 RES-54 */
static void test_release_and_cancel_by_state(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *pending = world_reserve(world, 1), *placed;
	const char *id = world_text(pending, "id");

	pending = world_call(world, control_reservation_cancel, id, NULL);
	assert_string_equal(world_text(pending, "state"), "cancelled");
	assert_string_equal(
		world_text(world_call(world, control_reservation_cancel, id, NULL), "state"),
		"cancelled");
	assert_string_equal(
		world_text(world_call(world, control_reservation_release, id, NULL), "state"),
		"cancelled");
	pending = world_reserve(world, 1);
	pending = world_call(world, control_reservation_release, world_text(pending, "id"), NULL);
	assert_string_equal(world_text(pending, "state"), "released");

	world_ready(world, &node, 1);
	placed = world_reserve(world, 1);
	id = world_text(placed, "id");
	world_refused(world, control_reservation_cancel, id, ERROR_INVALID_STATE, "only a pending",
		      NULL);
	placed = world_call(world, control_reservation_release, id, NULL);
	assert_string_equal(world_text(placed, "state"), "released");
	assert_true(world_has(placed, "releaseRequestedAt"));
	assert_true(json_equal(placed, world_call(world, control_reservation_release, id, NULL)));
	world_refused(world, control_reservation_cancel, id, ERROR_INVALID_STATE, "released", NULL);
}

static void test_archived_pool_denies_what_waits(void **state)
{
	struct world *world = *state;
	json_t *pending = world_reserve(world, 1);

	world_call(world, control_pool_archive, world->pool, NULL);
	world_tick(world);
	pending = world_reservation(world, world_text(pending, "id"));
	assert_string_equal(world_text(pending, "state"), "denied");
	assert_string_equal(world_text(pending, "stateReason"), "PoolArchived");
}

/* proves: RES-4 RES-50 */
static void test_preview_says_where_or_when_and_books_nothing(void **state)
{
	static const char body[] = "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":"
				   "\"gpu\",\"count\":%d}],\"duration\":\"2h\",\"binding\":"
				   "\"kubernetes\"}";
	struct world *world = *state;
	struct world_node node;
	json_t *preview;

	world_ready(world, &node, 4);
	preview = world_call(world, control_capacity_preview, NULL, body, world->tenant,
			     world->pool, 3);
	assert_true(world_int(preview, "fits"));
	assert_string_equal(world_text(preview, "nodes.0.id"), node.id);
	assert_true(world_has(preview, "nodes.0.devices.2"));
	assert_false(world_has(preview, "firstFitAt"));
	assert_int_equal(
		world_int(world_call(world, control_capacity_get, NULL, NULL), "items.0.free"), 4);
	/* For an hour two are taken: three fit after that, five never. */
	world_reserve(world, 2);
	preview = world_call(world, control_capacity_preview, NULL, body, world->tenant,
			     world->pool, 3);
	assert_false(world_int(preview, "fits"));
	assert_string_equal(world_text(preview, "firstFitAt"), "2027-01-15T09:00:00.000Z");
	assert_string_equal(world_text(preview, "reasons.0.reason"), "DevicesBusy");
	assert_int_equal(world_int(preview, "reasons.0.nodes"), 1);
	assert_int_equal(world_int(preview, "reasons.0.largest"), 2);
	preview = world_call(world, control_capacity_preview, NULL, body, world->tenant,
			     world->pool, 5);
	assert_false(world_has(preview, "firstFitAt"));
	assert_string_equal(world_text(preview, "reasons.0.reason"), "DeviceClassMissing");
	world_refused(world, control_capacity_preview, NULL, ERROR_INVALID_INPUT, "idempotencyKey",
		      "{\"idempotencyKey\":\"x\"}");
}

/* proves: RES-1 RES-5 RES-13 */
static void test_parts_exclude_the_whole_and_the_other_way(void **state)
{
	static const char body[] = "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":"
				   "\"%s\",%s\"count\":%d}],\"duration\":\"1h\",\"binding\":"
				   "\"kubernetes\"}";
	struct world *world = *state;
	struct world_node node;
	json_t *slots, *migs, *capacity;

	world_join(world, &node);
	node.gpus = 2;
	node.slots = 4;
	world_hello(world, &node, NULL);
	world_inventory(world, &node);
	world_conditions(world, &node, NULL, 0);
	slots = world_call(world, control_reservation_create, NULL, body, world->tenant,
			   world->pool, "gpu.slot", "", 3);
	assert_string_equal(world_text(slots, "state"), "placed");
	assert_string_equal(world_text(slots, "allocations.0.devices.0.gpu"),
			    world_text(slots, "allocations.0.devices.2.gpu"));
	assert_string_equal(world_text(world_reserve(world, 2), "state"), "pending");
	assert_string_equal(world_text(world_reserve(world, 1), "state"), "placed");
	capacity = world_call(world, control_capacity_get, NULL, NULL);
	assert_string_equal(world_text(capacity, "items.0.class"), "gpu");
	assert_int_equal(world_int(capacity, "items.0.booked"), 2);
	assert_string_equal(world_text(capacity, "items.1.class"), "gpu.slot");
	assert_int_equal(world_int(capacity, "items.1.free"), 1);

	node.slots = 0;
	node.migs = 7;
	world_ready(world, &node, 1);
	node.migs = 7;
	world_inventory(world, &node);
	migs = world_call(world, control_reservation_create, NULL, body, world->tenant, world->pool,
			  "gpu.mig", "\"profile\":\"1g.10gb\",", 7);
	assert_string_equal(world_text(migs, "state"), "placed");
	assert_string_equal(world_text(migs, "allocations.0.nodeId"), node.id);
	migs = world_call(world, control_reservation_create, NULL, body, world->tenant, world->pool,
			  "gpu.mig", "\"profile\":\"2g.20gb\",", 1);
	assert_string_equal(world_text(migs, "reasons.0.reason"), "DeviceClassMissing");
	assert_int_equal(world_int(migs, "reasons.0.nodes"), 2);
}

/* Two nodes that report the same card: it is one card, and booked once. */
static void test_one_card_seen_by_two_nodes_is_booked_once(void **state)
{
	struct world *world = *state;
	struct world_node first, second;

	world_ready(world, &first, 1);
	world_ready(world, &second, 1);
	str_copy(second.uuids[0], sizeof second.uuids[0], first.uuids[0]);
	world_inventory(world, &second);
	assert_string_equal(world_text(world_reserve(world, 1), "state"), "placed");
	assert_string_equal(world_text(world_reserve(world, 1), "state"), "pending");
}

static size_t listed(struct world *world, struct control_call call)
{
	json_t *answer;
	struct error error;
	size_t count;

	call.principal = &world->operator;
	expect_ok(world_ask(world, control_reservation_list, &call, &answer, &error), &error);
	count = json_array_size(json_object_get(answer, "items"));
	json_decref(answer);
	return count;
}

static void test_reservations_are_narrowed(void **state)
{
	struct world *world = *state;
	struct world_node node;
	const char *over, *held, *allocation;
	const json_t *reservation;
	struct control_call call = {.principal = &world->operator,
				    .from = "2027-01-15T09:00:00Z",
				    .to = "2027-01-15T08:00:00Z"};
	json_t *answer;
	struct error error;

	world_ready(world, &node, 2);
	over = world_text(world_reserve(world, 1), "id");
	world_call(world, control_reservation_release, over, NULL);
	database_advance((int64_t)2 * 60 * 60 * 1000);
	world_heartbeat(world, &node);
	reservation = world_reserve(world, 1);
	held = world_text(reservation, "id");
	allocation = world_text(reservation, "allocations.0.id");
	world_bind(world, &node, allocation);
	world_call(world, control_reservation_release, held, NULL);
	world_reserve(world, 2);
	assert_int_equal(listed(world, (struct control_call){0}), 3);
	/* What pods still hold isn't over, though it shows as released. */
	assert_int_equal(listed(world, (struct control_call){.live = "true"}), 2);
	assert_int_equal(listed(world, (struct control_call){.live = "false"}), 1);
	assert_int_equal(listed(world, (struct control_call){.live = "true", .state = "released"}),
			 1);
	assert_int_equal(listed(world, (struct control_call){.tenant_id = world->tenant}), 3);
	assert_int_equal(listed(world, (struct control_call){.tenant_id = world->operator.tenant}),
			 0);
	assert_int_equal(listed(world, (struct control_call){.from = "2027-01-15T09:00:00Z"}), 2);
	assert_int_equal(listed(world, (struct control_call){.to = "2027-01-15T09:00:00Z"}), 1);
	/* A window that ends before it begins was meant otherwise, whatever is asked. */
	expect_error(world_ask(world, control_reservation_list, &call, &answer, &error), &error,
		     ERROR_INVALID_INPUT, "is not after from");
	expect_error(world_ask(world, control_audit_list, &call, &answer, &error), &error,
		     ERROR_INVALID_INPUT, "is not after from");
	call = (struct control_call){.principal = &world->operator, .live = "yes" };
	expect_error(world_ask(world, control_reservation_list, &call, &answer, &error), &error,
		     ERROR_INVALID_INPUT, "live");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_only_the_pools_tenant_books_it),
		WORLD_TEST(test_release_and_cancel_by_state),
		WORLD_TEST(test_archived_pool_denies_what_waits),
		WORLD_TEST(test_preview_says_where_or_when_and_books_nothing),
		WORLD_TEST(test_parts_exclude_the_whole_and_the_other_way),
		WORLD_TEST(test_one_card_seen_by_two_nodes_is_booked_once),
		WORLD_TEST(test_reservations_are_narrowed),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
