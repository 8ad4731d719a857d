/* A create under a key is the same thing each time, for as long as the thing lives. */
#include "unit/control/world.h"

#define HOUR_MS ((int64_t)60 * 60 * 1000)

/* proves: POOL-5 POOL-6 POOL-27 */
static void test_same_key_and_input_is_the_same_thing(void **state)
{
	static const char body[] = "{\"tenantId\":\"%s\",\"siteId\":\"%s\",\"name\":\"%s\","
				   "\"class\":\"metal-host\",\"gpuModel\":\"H100\","
				   "\"policy\":{\"placement\":\"spread\",\"kubernetes\":{}},"
				   "\"idempotencyKey\":\"k1\"}";
	static const char turned[] = "{\"idempotencyKey\":\"k1\",\"policy\":{\"kubernetes\":{},"
				     "\"placement\":\"spread\"},\"gpuModel\":\"H100\",\"class\":"
				     "\"metal-host\",\"name\":\"%3$s\",\"siteId\":\"%2$s\","
				     "\"tenantId\":\"%1$s\"}";
	struct world *world = *state;
	json_t *first =
		world_call(world, control_pool_create, NULL, body, world->tenant, world->site, "p");
	json_t *again = world_call(world, control_pool_create, NULL, turned, world->tenant,
				   world->site, "p");

	assert_string_equal(world_text(first, "id"), world_text(again, "id"));
	world_refused(world, control_pool_create, NULL, ERROR_CONFLICT, world_text(first, "id"),
		      body, world->tenant, world->site, "q");
	/* The key is the operation's own. */
	world_call(world, control_tenant_create, NULL,
		   "{\"name\":\"t2\",\"idempotencyKey\":\"k1\"}");
	world_refused(world, control_tenant_create, NULL, ERROR_INVALID_INPUT, "idempotencyKey",
		      "{\"name\":\"t3\",\"idempotencyKey\":\"caf\xc3\xa9\"}");
	world_refused(world, control_tenant_create, NULL, ERROR_INVALID_INPUT, "idempotencyKey",
		      "{\"name\":\"t3\",\"idempotencyKey\":\"\"}");
	world_refused(world, control_tenant_create, NULL, ERROR_INVALID_INPUT, "idempotencyKey",
		      "{\"name\":\"t3\",\"idempotencyKey\":7}");
	world_refused(world, control_tenant_create, NULL, ERROR_INVALID_INPUT, "idempotencyKey",
		      "{\"name\":\"t3\",\"idempotencyKey\":\"%0129d\"}", 0);
	json_t *tenants = world_call(world, control_tenant_list, NULL, NULL);

	assert_int_equal(json_array_size(json_object_get(tenants, "items")), 3);
}

/* proves: POOL-27 */
static void test_idempotency_is_remembered_while_the_thing_lives(void **state)
{
	struct world *world = *state;
	struct world_node node;
	static const char body[] = "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":"
				   "\"gpu\",\"count\":1}],\"duration\":\"30d\",\"binding\":"
				   "\"kubernetes\",\"idempotencyKey\":\"%s\"}";
	json_t *live, *over;

	world_ready(world, &node, 2);
	live = world_call(world, control_reservation_create, NULL, body, world->tenant, world->pool,
			  "live");
	over = world_call(world, control_reservation_create, NULL, body, world->tenant, world->pool,
			  "over");
	world_call(world, control_reservation_release, world_text(over, "id"), NULL);
	for (int day = 0; day < 8; day++) {
		database_advance(24 * HOUR_MS);
		world_tick(world);
		if (day < 6)
			assert_string_equal(
				world_text(world_call(world, control_reservation_create, NULL, body,
						      world->tenant, world->pool, "over"),
					   "id"),
				world_text(over, "id"));
	}
	assert_string_equal(world_text(world_call(world, control_reservation_create, NULL, body,
						  world->tenant, world->pool, "live"),
				       "id"),
			    world_text(live, "id"));
	assert_string_not_equal(world_text(world_call(world, control_reservation_create, NULL, body,
						      world->tenant, world->pool, "over"),
					   "id"),
				world_text(over, "id"));
}

/* A thing that was deleted makes room for another under its key.
 * proves: POOL-27 */
static void test_a_deleted_thing_gives_its_idempotency_key_back(void **state)
{
	static const char body[] =
		"{\"tenantId\":\"%s\",\"maxDevices\":1,\"idempotencyKey\":\"q\"}";
	struct world *world = *state;
	const char *first = world_text(
		world_call(world, control_quota_create, NULL, body, world->tenant), "id");
	const char *second;

	world_call(world, control_quota_delete, first, NULL);
	second = world_text(world_call(world, control_quota_create, NULL, body, world->tenant),
			    "id");
	assert_string_not_equal(first, second);
	assert_string_equal(
		world_text(world_call(world, control_quota_create, NULL, body, world->tenant),
			   "id"),
		second);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_same_key_and_input_is_the_same_thing),
		WORLD_TEST(test_idempotency_is_remembered_while_the_thing_lives),
		WORLD_TEST(test_a_deleted_thing_gives_its_idempotency_key_back),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
