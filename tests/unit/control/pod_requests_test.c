/* What pods ask for, of reservations as they come and go. */
#include "unit/control/gangs.h"

#include <stdio.h>

static json_t *ask(struct world *world, const json_t *reservation, const char *devices,
		   const char *class)
{
	struct control_call call = {.principal = &world->operator,
				    .id = world_text(reservation, "id"),
				    .devices = devices,
				    .class = class};
	json_t *answer = NULL;
	struct error error = {0};

	expect_ok(world_ask(world, control_reservation_pod_requests, &call, &answer, &error),
		  &error);
	return answer;
}

static void refused(struct world *world, const json_t *reservation, const char *devices,
		    const char *class, enum error_code code, const char *text)
{
	struct control_call call = {.principal = &world->operator,
				    .id = world_text(reservation, "id"),
				    .devices = devices,
				    .class = class};
	json_t *answer = NULL;
	struct error error = {0};

	expect_error(world_ask(world, control_reservation_pod_requests, &call, &answer, &error),
		     &error, code, text);
}

static const char *limit(const json_t *answer, const char *name)
{
	const json_t *limits = json_object_get(json_object_get(answer, "resources"), "limits");
	const char *amount = json_string_value(json_object_get(limits, name));

	return amount ? amount : "none";
}

/* Where somebody reads what is left of a host. proves: HOST-3 */
static void test_a_node_says_what_is_booked_of_its_host(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *seen;

	world_ready(world, &node, 8);
	node.hugepages.bytes[HUGEPAGES_1GI] = (int64_t)64 << 30;
	world_inventory(world, &node);
	seen = world_call(world, control_node_get, node.id, NULL);
	assert_int_equal(world_int(seen, "host.vcpu"), 128);
	assert_int_equal(world_int(seen, "host.memoryGiB"), 1024);
	assert_int_equal(world_int(seen, "host.hugepages1GiGiB"), 64);
	assert_false(world_has(seen, "host.hugepages2MiGiB"));
	assert_true(world_has(seen, "hostBooked.vcpu"));
	assert_int_equal(world_int(seen, "hostBooked.vcpu"), 0);
	assert_int_equal(world_int(seen, "hostBooked.memoryGiB"), 0);
	assert_int_equal(world_int(seen, "hostBooked.memoryMiB"), 0);
	world_reserve(world, 2);
	world_reserve(world, 1);
	seen = world_call(world, control_node_list, NULL, NULL);
	assert_int_equal(world_int(seen, "items.0.hostBooked.vcpu"), 48);
	assert_int_equal(world_int(seen, "items.0.hostBooked.memoryGiB"), 384);
	assert_false(world_has(seen, "items.0.hostBooked.hugepages1GiGiB"));
}

/* The node's 128 vCPUs and 1024 GiB are its 8 GPUs' in equal parts.
 * proves: HOST-6 HOST-13 */
static void test_a_share_that_nobody_asked_for(void **state)
{
	struct world *world = *state;
	struct world_node node;
	const json_t *reservation;
	json_t *answer;

	world_ready(world, &node, 8);
	reservation = world_reserve(world, 2);
	answer = ask(world, reservation, NULL, NULL);
	assert_string_equal(world_text(answer, "id"), world_text(reservation, "id"));
	assert_string_equal(limit(answer, "bcd.dev/gpu"), "2");
	assert_string_equal(limit(answer, "cpu"), "32");
	assert_string_equal(limit(answer, "memory"), "256Gi");
	json_decref(answer);
	world_bind(world, &node, world_text(reservation, "allocations.0.id"));
	answer = ask(world, reservation, "1", "gpu");
	assert_string_equal(limit(answer, "cpu"), "16");
	assert_string_equal(limit(answer, "memory"), "128Gi");
	assert_int_equal(world_int(answer, "pods"), 2);
	json_decref(answer);
	refused(world, reservation, "3", NULL, ERROR_INVALID_INPUT, "devices: is 3: 2 gpu");
	refused(world, reservation, "0", NULL, ERROR_INVALID_INPUT, "devices: is 0");
	refused(world, reservation, NULL, "vgpu", ERROR_INVALID_INPUT, "class: 'vgpu'");
	refused(world, reservation, NULL, "gpu.mig", ERROR_INVALID_INPUT, "no gpu.mig is booked");
}

/* A part that failed isn't its any more; each node's part is, in a gang.
 * proves: HOST-13 */
static void test_of_a_gang_after_a_node_refused_it(void **state)
{
	struct world *world = *state;
	struct world_node nodes[3], *failing;
	const json_t *reservation;
	json_t *answer;
	char path[32];
	int part = 0;

	world_ready(world, &nodes[0], 8);
	world_ready(world, &nodes[1], 8);
	world_ready(world, &nodes[2], 8);
	/* It lost half of its processors. */
	nodes[2].vcpus = 64;
	world_inventory(world, &nodes[2]);
	reservation = reserve_gang(world, 2, 4, "1h", "");
	if (str_equal(world_text(reservation, "allocations.0.nodeId"), nodes[2].id))
		part = 1;
	snprintf(path, sizeof path, "allocations.%d.nodeId", part);
	failing = node_of(nodes, 3, world_text(reservation, path));
	snprintf(path, sizeof path, "allocations.%d.id", part);
	world_store_spec(world, failing);
	world_failed(world, failing, world_text(reservation, path), "resources-exhausted");
	assert_true(world_has(world_reservation(world, world_text(reservation, "id")),
			      "allocations.2"));
	answer = ask(world, reservation, "2", NULL);
	assert_int_equal(world_int(answer, "pods"), 4);
	assert_string_equal(limit(answer, "bcd.dev/gpu"), "2");
	assert_string_equal(limit(answer, "cpu"), "16");
	json_decref(answer);
}

/* proves: HOST-13 */
static void test_before_and_after(void **state)
{
	struct world *world = *state;
	struct world_node node;
	const json_t *first, *waiting;

	world_ready(world, &node, 2);
	first = world_reserve(world, 2);
	waiting = world_reserve(world, 1);
	refused(world, waiting, NULL, NULL, ERROR_INVALID_STATE, "is pending");
	world_call(world, control_reservation_release, world_text(first, "id"), NULL);
	refused(world, first, NULL, NULL, ERROR_INVALID_STATE, "is released");
}

/* Booked like the rest of the host, by size, and only where the node's inventory has them.
 * proves: RES-13 RES-51 HOST-3 HOST-13 */
static void test_huge_pages_are_booked_and_asked_for(void **state)
{
	static const char body[] = "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":"
				   "\"gpu\",\"count\":2}],\"duration\":\"1h\",\"binding\":"
				   "\"kubernetes\",\"resources\":{\"hugepages1GiGiB\":%d}}";
	struct world *world = *state;
	struct control_spec spec;
	struct world_node node;
	json_t *first, *second, *answer;

	world_ready(world, &node, 8);
	first = world_call(world, control_reservation_create, NULL, body, world->tenant,
			   world->pool, 6);
	assert_string_equal(world_text(first, "state"), "denied");
	node.hugepages.bytes[HUGEPAGES_1GI] = (int64_t)8 << 30;
	world_inventory(world, &node);
	first = world_call(world, control_reservation_create, NULL, body, world->tenant,
			   world->pool, 6);
	assert_string_equal(world_text(first, "state"), "placed");
	assert_int_equal(world_int(first, "resources.hugepages1GiGiB"), 6);
	assert_int_equal(world_int(first, "resources.vcpu"), 32);
	world_take_spec(world, &node, &spec);
	assert_int_equal(spec.assignments_count, 1);
	assert_true(spec.assignments[0].limited);
	assert_true(spec.assignments[0].hugepages.bytes[HUGEPAGES_1GI] == (int64_t)6 << 30);
	assert_int_equal(spec.assignments[0].vcpus, 32);
	control_spec_deinit(&spec);
	second = world_call(world, control_reservation_create, NULL, body, world->tenant,
			    world->pool, 3);
	assert_string_equal(world_text(second, "state"), "pending");
	assert_string_equal(world_text(second, "reasons.0.reason"), "HostHugepagesShort");
	answer = ask(world, first, "1", NULL);
	assert_string_equal(limit(answer, "hugepages-1Gi"), "3Gi");
	assert_string_equal(limit(answer, "hugepages-2Mi"), "none");
	json_decref(answer);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_a_node_says_what_is_booked_of_its_host),
		WORLD_TEST(test_a_share_that_nobody_asked_for),
		WORLD_TEST(test_of_a_gang_after_a_node_refused_it),
		WORLD_TEST(test_before_and_after),
		WORLD_TEST(test_huge_pages_are_booked_and_asked_for),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
