/* What nodes are told. */
#include "unit/control/world.h"

/* proves: RES-8 RES-9 RES-10 RES-11 RES-44 GW-3 */
static void test_old_bcd_never_gets_what_it_does_not_know(void **state)
{
	static const char *const none[] = {NULL};
	static const char *const binding_only[] = {"kubernetes-binding", NULL};
	struct world *world = *state;
	struct world_node old, new;
	struct control_spec spec;
	json_t *reservation, *limited;

	world_ready(world, &old, 2);
	world_hello(world, &old, none);
	reservation = world_reserve(world, 2);
	assert_string_equal(world_text(reservation, "state"), "pending");
	assert_string_equal(world_text(reservation, "reasons.0.reason"),
			    "KubernetesBindingUnsupported");
	world_ready(world, &new, 2);
	world_hello(world, &new, binding_only);
	world_tick(world);
	reservation = world_reservation(world, world_text(reservation, "id"));
	assert_string_equal(world_text(reservation, "allocations.0.nodeId"), new.id);
	world_call(world, control_reservation_release, world_text(reservation, "id"), NULL);

	limited = world_call(world, control_reservation_create, NULL,
			     "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":"
			     "\"gpu\",\"count\":1}],\"duration\":\"1h\",\"binding\":\"kubernetes\","
			     "\"resources\":{\"vcpu\":10,\"memoryGiB\":20}}",
			     world->tenant, world->pool);
	assert_string_equal(world_text(limited, "state"), "pending");
	assert_true(world_has(limited, "reasons.1"));
	world_hello(world, &new, NULL);
	world_tick(world);
	limited = world_reservation(world, world_text(limited, "id"));
	assert_string_equal(world_text(limited, "state"), "placed");
	assert_int_equal(world_int(limited, "resources.vcpu"), 10);
	world_take_spec(world, &new, &spec);
	assert_int_equal(spec.assignments_count, 1);
	assert_true(spec.assignments[0].limited);
	assert_int_equal(spec.assignments[0].vcpus, 10);
	assert_true(spec.assignments[0].memory_bytes == (int64_t)20 << 30);
	control_spec_deinit(&spec);
	/* Downgraded, it is sent neither. */
	world_hello(world, &new, binding_only);
	world_take_spec(world, &new, &spec);
	assert_int_equal(spec.assignments_count, 0);
	control_spec_deinit(&spec);
}

/* proves: RES-14 GW-12 */
static void test_conditions_keep_work_away(void **state)
{
	static const char *const types[] = {"ForeignGpuExposure", "KubernetesReleaseStuck",
					    "PodResourcesUnavailable",
					    "KubernetesReleasesUnreadable"};
	struct world *world = *state;
	struct world_node node;

	world_ready(world, &node, 2);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct control_condition condition = {types[i], "Reason", "", {1}};
		json_t *reservation;

		world_conditions(world, &node, &condition, 1);
		reservation = world_reserve(world, 1);
		assert_string_equal(world_text(reservation, "state"), "pending");
		assert_string_equal(world_text(reservation, "reasons.0.reason"), types[i]);
		world_call(world, control_reservation_cancel, world_text(reservation, "id"), NULL);
	}
	world_conditions(world, &node, NULL, 0);
	assert_string_equal(world_text(world_reserve(world, 1), "state"), "placed");
}

/* The outbox tells of each change, in order, to whoever asks, whichever replica made it. */
static void test_outbox_tells_every_replica(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control other;
	struct control_outbox outbox = {0};
	json_t *reservation;
	int64_t generation;
	struct error error;

	world_ready(world, &node, 2);
	world_connect(world, "replica-2", &other);
	expect_ok(control_outbox_poll(&other, -1, &outbox, &error), &error);
	assert_int_equal(outbox.count, 0);
	reservation = world_reserve(world, 1);
	int64_t after = outbox.last;

	expect_ok(control_outbox_poll(&other, after, &outbox, &error), &error);
	assert_int_equal(outbox.count, 1);
	assert_string_equal(outbox.items[0].node, node.id);
	assert_int_equal(outbox.last, outbox.items[0].seq);
	generation = outbox.items[0].generation;
	after = outbox.last;
	world_call(world, control_reservation_release, world_text(reservation, "id"), NULL);
	expect_ok(control_outbox_poll(&other, after, &outbox, &error), &error);
	assert_int_equal(outbox.count, 1);
	assert_true(outbox.items[0].generation > generation);
	expect_ok(control_outbox_poll(&other, outbox.last, &outbox, &error), &error);
	assert_int_equal(outbox.count, 0);
	control_outbox_deinit(&outbox);
	world_disconnect(&other);
}

/* A change of the pool's API is a new Spec for each of its nodes. */
static void test_policy_reaches_the_nodes(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct control_spec spec;
	int64_t before;

	world_ready(world, &node, 1);
	world_take_spec(world, &node, &spec);
	before = spec.generation;
	control_spec_deinit(&spec);
	world_call(world, control_pool_patch, world->pool,
		   "{\"policy\":{\"kubernetes\":{\"gpuApi\":\"dra\"}}}");
	world_take_spec(world, &node, &spec);
	assert_string_equal(spec.gpu_api, "dra");
	assert_true(spec.generation > before);
	control_spec_deinit(&spec);
}

/* A pool's gpuApi is what pods ask by: nobody gets, and pays for, GPUs of a node that offers them another way, or
 * whose bcd can't offer them by DRA; who sets it is told, and nothing booked is pulled away by it.
 * proves: POOL-15 DRA-2 DRA-35 RES-10 RES-51 */
static void test_gpus_that_nobody_could_use_are_not_booked(void **state)
{
	static const char *const dra[] = {"kubernetes-binding", "assignment-limits", "dra", NULL};
	static const char asks_dra[] = "{\"policy\":{\"kubernetes\":{\"gpuApi\":\"dra\"}}}";
	struct world *world = *state;
	struct world_node node;
	json_t *pool, *capacity, *reservation;
	const char *id;

	world_ready(world, &node, 2);
	reservation = world_reserve(world, 1);
	assert_string_equal(world_text(reservation, "state"), "placed");
	id = world_text(reservation, "id");
	world_refused(world, control_pool_patch, world->pool, ERROR_INVALID_STATE, id, asks_dra);
	world_call(world, control_reservation_release, id, NULL);

	pool = world_call(world, control_pool_patch, world->pool, asks_dra);
	assert_non_null(strstr(world_text(pool, "notes.0"), "no DRA driver"));
	reservation = world_reserve(world, 1);
	id = world_text(reservation, "id");
	assert_string_equal(world_text(reservation, "state"), "pending");
	assert_string_equal(world_text(reservation, "reasons.0.reason"), "DraUnsupported");
	capacity = world_call(world, control_capacity_get, NULL, NULL);
	assert_int_equal(world_int(capacity, "items.0.free"), 0);
	assert_int_equal(world_int(capacity, "items.0.unavailable"), 2);

	/* its bcd could, and is told in its config.toml not to */
	world_hello(world, &node, dra);
	world_tick(world);
	reservation = world_reservation(world, id);
	assert_string_equal(world_text(reservation, "reasons.0.reason"), "GpuApiDiffers");
	node.dra = true;
	world_inventory(world, &node);
	world_tick(world);
	assert_string_equal(world_text(world_reservation(world, id), "state"), "placed");
	world_call(world, control_reservation_release, id, NULL);
	pool = world_call(world, control_pool_patch, world->pool,
			  "{\"policy\":{\"kubernetes\":{\"gpuApi\":\"dra\"},\"placement\":"
			  "\"spread\"}}");
	assert_false(world_has(pool, "notes"));

	/* the other way about */
	world_call(world, control_pool_patch, world->pool, "{\"policy\":{}}");
	reservation = world_reserve(world, 1);
	assert_string_equal(world_text(reservation, "reasons.0.reason"), "GpuApiDiffers");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_old_bcd_never_gets_what_it_does_not_know),
		WORLD_TEST(test_conditions_keep_work_away),
		WORLD_TEST(test_outbox_tells_every_replica),
		WORLD_TEST(test_policy_reaches_the_nodes),
		WORLD_TEST(test_gpus_that_nobody_could_use_are_not_booked),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
