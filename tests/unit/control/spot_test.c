/* Nodes that may be taken away, and labels that say nothing. */
#include "unit/control/gangs.h"

static json_t *reserve_spot(struct world *world)
{
	return world_call(world, control_reservation_create, NULL,
			  "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\","
			  "\"count\":1}],\"duration\":\"1h\",\"binding\":\"kubernetes\",\"spot\":"
			  "true}",
			  world->tenant, world->pool);
}

/* proves: RES-42 */
static void test_spot_nodes_take_spot_reservations_only(void **state)
{
	struct world *world = *state;
	struct world_node node, fake;
	json_t *waiting, *spot, *capacity;

	world_ready(world, &node, 8);
	set_label(world, node.id, "bc.dev/capacity", "spot", true);
	waiting = reserve_for(world, 1, "1h");
	/* No node of the pool could ever take it. */
	assert_string_equal(world_text(waiting, "state"), "denied");
	assert_string_equal(world_text(waiting, "reasons.0.reason"), "SpotOnly");
	capacity = world_call(world, control_capacity_get, NULL, NULL);
	assert_int_equal(world_int(capacity, "items.0.free"), 8);
	assert_int_equal(world_int(capacity, "items.0.spotOnly"), 8);
	spot = reserve_spot(world);
	assert_string_equal(world_text(spot, "state"), "placed");
	assert_true(world_int(spot, "spot"));
	world_bind(world, &node, world_text(spot, "allocations.0.id"));
	world_call(world, control_node_retire, node.id, "{\"lost\":true}");
	assert_string_equal(state_of(world, spot), "preempted");
	/* Only the system says what a node is rented as. */
	world_ready(world, &fake, 8);
	set_label(world, fake.id, "bc.dev/capacity", "spot", false);
	assert_string_equal(world_text(reserve_for(world, 1, "1h"), "state"), "placed");
}

/* A spot reservation wherever it is, and whatever is on a Spot node; the rest has failed.
 * proves: RES-41 */
static void test_what_ends_as_preempted(void **state)
{
	struct world *world = *state;

	for (int spot = 0; spot < 2; spot++) {
		for (int on_spot = 0; on_spot < 2; on_spot++) {
			struct world_node node;
			json_t *made;

			world_ready(world, &node, 1);
			made = spot ? reserve_spot(world) : reserve_for(world, 1, "1h");
			assert_string_equal(world_text(made, "allocations.0.nodeId"), node.id);
			world_bind(world, &node, world_text(made, "allocations.0.id"));
			if (on_spot)
				set_label(world, node.id, "bc.dev/capacity", "spot", true);
			world_call(world, control_node_retire, node.id, "{\"lost\":true}");
			assert_string_equal(state_of(world, made),
					    spot || on_spot ? "preempted" : "failed");
		}
	}
}

/* proves: RES-12 */
static void test_a_label_with_a_capability_s_name_is_no_capability(void **state)
{
	static const char *const none[] = {"something-else", NULL};
	struct world *world = *state;
	struct world_node node;
	json_t *waiting;

	world_join(world, &node);
	world_hello(world, &node, none);
	world_inventory(world, &node);
	world_conditions(world, &node, NULL, 0);
	world_refused(world, control_node_patch, node.id, ERROR_INVALID_INPUT, "bc.dev",
		      "{\"labels\":{\"bc.dev/capability.kubernetes-binding\":\"true\"}}");
	set_label(world, node.id, "bc.dev/capability.kubernetes-binding", "true", false);
	set_label(world, node.id, "kubernetes-binding", "true", false);
	waiting = reserve_for(world, 1, "1h");
	assert_string_equal(world_text(waiting, "state"), "pending");
	assert_string_equal(world_text(waiting, "reasons.0.reason"),
			    "KubernetesBindingUnsupported");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_spot_nodes_take_spot_reservations_only),
		WORLD_TEST(test_what_ends_as_preempted),
		WORLD_TEST(test_a_label_with_a_capability_s_name_is_no_capability),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
