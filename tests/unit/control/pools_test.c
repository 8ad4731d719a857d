/* Pools: how they are made, read, changed and archived, and whom their clusters may belong to. */
#include "unit/control/world.h"

/* proves: POOL-1 POOL-28 POOL-26 */
static void test_pool_is_made_read_patched_and_archived(void **state)
{
	struct world *world = *state;
	json_t *pool = world_call(world, control_pool_get, world->pool, NULL);

	assert_string_equal(world_text(pool, "name"), "h100");
	assert_string_equal(world_text(pool, "state"), "active");
	assert_string_equal(world_text(pool, "class"), "metal-host");
	assert_string_equal(world_text(pool, "siteId"), world->site);
	assert_int_equal(world_int(pool, "version"), 1);
	assert_int_equal(world_int(pool, "nodes"), 0);
	assert_string_equal(world_text(pool, "createdAt"), "2027-01-15T08:00:00.000Z");
	assert_true(id_valid(world_text(pool, "id"), "pool"));

	pool = world_call(world, control_pool_patch, world->pool,
			  "{\"policy\":{\"placement\":\"spread\"},\"ifVersion\":1}");
	assert_int_equal(world_int(pool, "version"), 2);
	assert_string_equal(world_text(pool, "policy.placement"), "spread");
	world_refused(world, control_pool_patch, world->pool, ERROR_CONFLICT, "version 2, not 1",
		      "{\"policy\":{},\"ifVersion\":1}");
	world_refused(world, control_pool_patch, world->pool, ERROR_INVALID_INPUT, "policy",
		      "{\"ifVersion\":2}");
	world_refused(world, control_pool_patch, world->pool, ERROR_INVALID_INPUT, "name",
		      "{\"policy\":{},\"name\":\"X\"}");
	world_refused(world, control_pool_create, NULL, ERROR_CONFLICT, world->pool,
		      "{\"tenantId\":\"%s\",\"siteId\":\"%s\",\"name\":\"h100\",\"class\":"
		      "\"metal-host\",\"gpuModel\":\"H100\",\"policy\":{}}",
		      world->tenant, world->site);

	pool = world_call(world, control_pool_archive, world->pool, NULL);
	assert_string_equal(world_text(pool, "state"), "archived");
	assert_int_equal(
		world_int(world_call(world, control_pool_archive, world->pool, NULL), "version"),
		world_int(pool, "version"));
	world_refused(world, control_pool_patch, world->pool, ERROR_INVALID_STATE, "archived",
		      "{\"policy\":{}}");
	world_refused(world, control_reservation_create, NULL, ERROR_INVALID_STATE, "archived",
		      "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\","
		      "\"count\":1}],\"duration\":\"1h\",\"binding\":\"kubernetes\"}",
		      world->tenant, world->pool);
}

#define JOIN_POLICY(host)                                                                          \
	"{\"policy\":{\"kubernetes\":{\"apiServer\":\"https://" host "\",\"caCertSha256\":"        \
	"\"sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\","             \
	"\"joinTokenRef\":\"secret://ten_01jd4z5x9f0123456789abcdef/sec_"                          \
	"01jd4z5x9f0123456789abcdef\",\"taints\":[\"example.com/gpu=x:NoSchedule\"]}}}"

/* proves: POOL-13 POOL-28 */
static void test_cluster_of_joined_machines_cannot_be_swapped(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *pool;

	world_call(world, control_pool_patch, world->pool, JOIN_POLICY("a:6443"));
	world_call(world, control_pool_patch, world->pool, JOIN_POLICY("b:6443"));
	world_ready(world, &node, 1);
	world_refused(world, control_pool_patch, world->pool, ERROR_INVALID_STATE, "1 nodes",
		      JOIN_POLICY("c:6443"));
	pool = world_call(world, control_pool_patch, world->pool, "{\"policy\":{}}");
	assert_non_null(strstr(world_text(pool, "notes.0"), "taints"));
	pool = world_call(world, control_pool_patch, world->pool,
			  "{\"policy\":{\"placement\":\"spread\"}}");
	assert_false(world_has(pool, "notes"));
}

/* proves: POOL-17 POOL-18 */
static void test_platform_site_joins_only_what_the_platform_operates(void **state)
{
	struct world *world = *state;
	static const char body[] =
		"{\"tenantId\":\"%s\",\"siteId\":\"%s\",\"name\":\"%s\",\"class\":\"metal-host\","
		"\"gpuModel\":\"H100\",\"policy\":{\"kubernetes\":{\"platformOperated\":%s,"
		"\"apiServer\":\"https://k:6443\",\"caCertSha256\":\"sha256:"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\","
		"\"joinTokenRef\":\"secret://ten_01jd4z5x9f0123456789abcdef/sec_"
		"01jd4z5x9f0123456789abcdef\"}}}";
	const char *site = world_text(world_call(world, control_site_create, NULL,
						 "{\"tenantId\":\"%s\",\"name\":\"dc\",\"kind\":"
						 "\"platform\"}",
						 world->operator.tenant),
				      "id");

	world_refused(world, control_pool_create, NULL, ERROR_INVALID_INPUT, "platformOperated",
		      body, world->operator.tenant, site, "a", "false");
	world_refused(world, control_pool_create, NULL, ERROR_INVALID_INPUT, "platformOperated",
		      body, world->tenant, site, "b", "true");
	world_call(world, control_pool_create, NULL, body, world->operator.tenant, site, "c",
		   "true");
	world_call(world, control_pool_create, NULL, body, world->tenant, world->site, "d",
		   "false");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_pool_is_made_read_patched_and_archived),
		WORLD_TEST(test_cluster_of_joined_machines_cannot_be_swapped),
		WORLD_TEST(test_platform_site_joins_only_what_the_platform_operates),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
