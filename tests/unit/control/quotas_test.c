/* Quotas: what a tenant may have at one time and in a month, told with the numbers. */
#include "unit/control/world.h"

#include "control/core/timestamp.h"
#include "lib/seed.h"

#include <pthread.h>
#include <stdio.h>

#define MINUTE_MS ((int64_t)60 * 1000)
#define HOUR_MS   (60 * MINUTE_MS)

static json_t *make_quota(struct world *world, const char *limits)
{
	return world_call(world, control_quota_create, NULL, "{\"tenantId\":\"%s\",%s}",
			  world->tenant, limits);
}

static json_t *reserve(struct world *world, const char *class, int count, const char *more)
{
	return world_call(world, control_reservation_create, NULL,
			  "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"%s\","
			  "\"count\":%d}],\"binding\":\"kubernetes\",%s}",
			  world->tenant, world->pool, class, count, more);
}

static json_t *preview(struct world *world, int count, const char *more)
{
	return world_call(world, control_capacity_preview, NULL,
			  "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\","
			  "\"count\":%d}],\"binding\":\"kubernetes\",%s}",
			  world->tenant, world->pool, count, more);
}

/* proves: ADM-3 RES-50 */
static void test_more_devices_than_the_quota_are_denied_with_the_numbers(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *quota, *answer;

	world_ready(world, &node, 8);
	quota = make_quota(world, "\"class\":\"gpu\",\"maxDevices\":4");
	assert_string_equal(world_text(reserve(world, "gpu", 3, "\"duration\":\"1h\""), "state"),
			    "placed");
	answer = preview(world, 2, "\"duration\":\"1h\"");
	assert_false(world_int(answer, "fits"));
	assert_string_equal(world_text(answer, "reasons.0.reason"), "QuotaExceeded");
	answer = reserve(world, "gpu", 2, "\"duration\":\"1h\"");
	assert_string_equal(world_text(answer, "state"), "denied");
	assert_string_equal(world_text(answer, "stateReason"), "QuotaExceeded");
	assert_string_equal(world_text(answer, "reasons.0.quotaId"), world_text(quota, "id"));
	assert_string_equal(world_text(answer, "reasons.0.unit"), "devices");
	assert_int_equal(world_int(answer, "reasons.0.limit"), 4);
	assert_int_equal(world_int(answer, "reasons.0.used"), 3);
	assert_int_equal(world_int(answer, "reasons.0.asked"), 2);
	assert_non_null(strstr(world_text(answer, "reasons.0.message"),
			       "allows 4 devices at the same time: 3 are claimed and 2 more"));
	/* One more is within; and another time is another matter. */
	assert_true(world_int(preview(world, 1, "\"duration\":\"1h\""), "fits"));
	assert_string_equal(world_text(reserve(world, "gpu", 1, "\"duration\":\"1h\""), "state"),
			    "placed");
	assert_string_equal(
		world_text(reserve(world, "gpu", 4,
				   "\"duration\":\"1h\",\"startAt\":\"2027-01-15T12:00:00Z\""),
			   "state"),
		"placed");
	quota = world_call(world, control_quota_get, world_text(quota, "id"), NULL);
	assert_int_equal(world_int(quota, "used.devices"), 4);
}

/* proves: ADM-3 */
static void test_quotas_are_of_a_class_and_of_a_pool(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *pool;

	world_join(world, &node);
	node.gpus = 4;
	node.slots = 4;
	world_hello(world, &node, NULL);
	world_inventory(world, &node);
	world_conditions(world, &node, NULL, 0);
	pool = world_call(world, control_pool_create, NULL,
			  "{\"tenantId\":\"%s\",\"siteId\":\"%s\",\"name\":\"other\",\"class\":"
			  "\"metal-host\",\"gpuModel\":\"H100\",\"policy\":{}}",
			  world->tenant, world->site);
	world_call(world, control_quota_create, NULL,
		   "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"maxDevices\":0}", world->tenant,
		   world_text(pool, "id"));
	make_quota(world, "\"class\":\"gpu\",\"maxDevices\":1");
	make_quota(world, "\"maxDevices\":5");
	/* Slots are not GPUs, but they are devices. */
	assert_string_equal(
		world_text(reserve(world, "gpu.slot", 4, "\"duration\":\"1h\""), "state"),
		"placed");
	assert_string_equal(world_text(reserve(world, "gpu", 2, "\"duration\":\"1h\""), "state"),
			    "denied");
	assert_string_equal(world_text(reserve(world, "gpu", 1, "\"duration\":\"1h\""), "state"),
			    "placed");
	assert_string_equal(
		world_text(reserve(world, "gpu.slot", 1, "\"duration\":\"1h\""), "state"),
		"denied");
	world_refused(world, control_quota_create, NULL, ERROR_CONFLICT, "already",
		      "{\"tenantId\":\"%s\",\"maxDevices\":7}", world->tenant);
}

/* proves: ADM-3 */
static void test_hours_of_each_month_count_what_was_used_and_what_is_claimed(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *quota, *reservation, *answer;
	const char *allocation;

	world_ready(world, &node, 8);
	quota = make_quota(world, "\"gpuHoursPerMonth\":10");
	reservation = reserve(world, "gpu", 2, "\"duration\":\"3h\"");
	allocation = world_text(reservation, "allocations.0.id");
	world_bind(world, &node, allocation);
	answer = reserve(world, "gpu", 5, "\"duration\":\"1h\"");
	assert_string_equal(world_text(answer, "state"), "denied");
	assert_string_equal(world_text(answer, "reasons.0.unit"), "gpuSeconds");
	assert_int_equal(world_int(answer, "reasons.0.used"), 6 * 3600);
	assert_int_equal(world_int(answer, "reasons.0.asked"), 5 * 3600);
	assert_non_null(strstr(world_text(answer, "reasons.0.message"),
			       "allows 10 GPU-hours in 2027-01: 6.0 are used or claimed and 5.0"));
	/* Given back after one hour, two hours of two GPUs are free again: once. */
	database_advance(HOUR_MS);
	world_heartbeat(world, &node);
	world_call(world, control_reservation_release, world_text(reservation, "id"), NULL);
	world_store_spec(world, &node);
	world_released(world, &node, allocation);
	world_released(world, &node, allocation);
	quota = world_call(world, control_quota_get, world_text(quota, "id"), NULL);
	assert_int_equal(world_int(quota, "used.gpuSeconds"), 2 * 3600);
	assert_int_equal(world_int(quota, "used.devices"), 0);
	assert_string_equal(world_text(reserve(world, "gpu", 9, "\"duration\":\"1h\""), "state"),
			    "denied");
	assert_string_equal(world_text(reserve(world, "gpu", 8, "\"duration\":\"1h\""), "state"),
			    "placed");
	/* The next month is its own; what crosses into it counts in both. */
	assert_string_equal(
		world_text(reserve(world, "gpu", 1,
				   "\"duration\":\"1h\",\"startAt\":\"2027-01-31T20:00:00Z\""),
			   "state"),
		"denied");
	assert_string_equal(
		world_text(reserve(world, "gpu", 2,
				   "\"duration\":\"5h\",\"startAt\":\"2027-02-01T00:00:00Z\""),
			   "state"),
		"placed");
	answer = reserve(world, "gpu", 1,
			 "\"duration\":\"11h\",\"startAt\":\"2027-02-28T23:00:00Z\"");
	assert_string_equal(world_text(answer, "state"), "denied");
	assert_non_null(strstr(world_text(answer, "reasons.0.message"), "2027-02"));
}

/* proves: ADM-3 */
static void test_quota_comes_back_once_when_a_node_is_lost(void **state)
{
	struct world *world = *state;
	struct world_node node, other;
	json_t *quota, *reservation;

	world_ready(world, &node, 2);
	quota = make_quota(world, "\"maxDevices\":2");
	reservation = reserve(world, "gpu", 2, "\"duration\":\"1h\"");
	world_bind(world, &node, world_text(reservation, "allocations.0.id"));
	database_advance(10 * MINUTE_MS);
	world_call(world, control_node_retire, node.id, "{\"lost\":true}");
	world_call(world, control_node_retire, node.id, "{\"lost\":true}");
	quota = world_call(world, control_quota_get, world_text(quota, "id"), NULL);
	assert_int_equal(world_int(quota, "used.devices"), 0);
	assert_int_equal(world_int(quota, "used.gpuSeconds"), 2 * 600);
	world_ready(world, &other, 4);
	assert_string_equal(world_text(reserve(world, "gpu", 3, "\"duration\":\"1h\""), "state"),
			    "denied");
	assert_string_equal(world_text(reserve(world, "gpu", 2, "\"duration\":\"1h\""), "state"),
			    "placed");
}

/* What waits has its claim, so that it is placed in its time; and never more than the quota is
 * placed. proves: ADM-3 */
static void test_what_waits_keeps_its_claim(void **state)
{
	struct world *world = *state;
	struct world_node node;
	json_t *waiting, *answer, *quota;

	quota = make_quota(world, "\"maxDevices\":3");
	waiting = reserve(world, "gpu", 2, "\"duration\":\"1h\"");
	assert_string_equal(world_text(waiting, "state"), "pending");
	database_advance(1);
	assert_string_equal(world_text(reserve(world, "gpu", 2, "\"duration\":\"1h\""), "state"),
			    "denied");
	answer = reserve(world, "gpu", 2,
			 "\"duration\":\"1h\",\"startAt\":\"2027-01-15T10:00:00Z\"");
	assert_string_equal(world_text(answer, "state"), "pending");
	/* They come to overlap: the second one has to wait for its turn. */
	database_set_time(DATABASE_EPOCH_MS + 2 * HOUR_MS);
	world_ready(world, &node, 8);
	world_tick(world);
	assert_string_equal(
		world_text(world_reservation(world, world_text(waiting, "id")), "state"), "placed");
	answer = world_reservation(world, world_text(answer, "id"));
	assert_string_equal(world_text(answer, "state"), "pending");
	assert_string_equal(world_text(answer, "reasons.0.reason"), "QuotaExceeded");
	/* A quota that is raised lets it go on. */
	world_call(world, control_quota_patch, world_text(quota, "id"), "{\"maxDevices\":4}");
	world_tick(world);
	answer = world_reservation(world, world_text(answer, "id"));
	assert_string_equal(world_text(answer, "state"), "placed");
}

/* proves: ADM-3 POOL-4 POOL-5 */
static void test_quotas_are_the_operators_to_change(void **state)
{
	struct world *world = *state;
	struct control_principal owner = world_principal(world, world->tenant, "owner"), other;
	json_t *quota, *tenant, *answer;
	struct control_call call = {.principal = &owner};
	struct error error;

	quota = make_quota(world, "\"maxDevices\":3,\"idempotencyKey\":\"q\"");
	assert_string_equal(
		world_text(make_quota(world, "\"maxDevices\":3,\"idempotencyKey\":\"q\""), "id"),
		world_text(quota, "id"));
	assert_false(world_has(quota, "poolId"));
	assert_false(world_has(quota, "gpuHoursPerMonth"));
	call.id = world_text(quota, "id");
	expect_error(world_ask(world, control_quota_delete, &call, &answer, &error), &error,
		     ERROR_FORBIDDEN, "compute:quotas:delete");
	expect_ok(world_ask(world, control_quota_get, &call, &answer, &error), &error);
	json_decref(answer);
	tenant = world_call(world, control_tenant_create, NULL, "{\"name\":\"other\"}");
	other = world_principal(world, world_text(tenant, "id"), "owner");
	call.principal = &other;
	expect_error(world_ask(world, control_quota_get, &call, &answer, &error), &error,
		     ERROR_NOT_FOUND, "quota");
	expect_ok(world_ask(world, control_quota_list, &call, &answer, &error), &error);
	assert_int_equal(json_array_size(json_object_get(answer, "items")), 0);
	json_decref(answer);
	world_refused(world, control_quota_create, NULL, ERROR_INVALID_INPUT, "maxDevices",
		      "{\"tenantId\":\"%s\"}", world->tenant);
	world_refused(world, control_quota_create, NULL, ERROR_NOT_FOUND, "pool",
		      "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"maxDevices\":1}",
		      world_text(tenant, "id"), world->pool);
	/* One that is only tried stays. */
	call = (struct control_call){
		.principal = &world->operator, .id = world_text(quota, "id"), .dry_run = "true"};
	expect_ok(world_ask(world, control_quota_delete, &call, &answer, &error), &error);
	assert_string_equal(world_text(answer, "id"), world_text(quota, "id"));
	json_decref(answer);
	world_call(world, control_quota_get, world_text(quota, "id"), NULL);
	world_call(world, control_quota_delete, world_text(quota, "id"), NULL);
	world_refused(world, control_quota_get, world_text(quota, "id"), ERROR_NOT_FOUND, "quota",
		      NULL);
}

/* --- at once --- */

#define THREADS 4
#define EACH    10
#define LIMIT   7

struct racer {
	pthread_t thread;
	struct world *world;
	struct control control;
	const char *failed;
	int placed;
};

static void *race(void *argument)
{
	struct racer *racer = argument;
	struct world *world = racer->world;

	for (int i = 0; i < EACH && !racer->failed; i++) {
		char text[512];
		json_t *body, *answer = NULL;
		struct error error;
		struct control_call call = {.principal = &world->operator};

		snprintf(text, sizeof text,
			 "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\","
			 "\"count\":1}],\"duration\":\"1h\",\"binding\":\"kubernetes\"}",
			 world->tenant, world->pool);
		body = json_loads(text, 0, NULL);
		call.body = body;
		if (control_reservation_create(&racer->control, &call, &answer, &error))
			racer->placed += str_equal(
				json_string_value(json_object_get(answer, "state")), "placed");
		else
			racer->failed = "create";
		json_decref(answer);
		json_decref(body);
	}
	return NULL;
}

/* Of many at once, exactly as many as the quota allows get through. proves: ADM-3 */
static void test_many_at_once_get_exactly_the_quota(void **state)
{
	struct world *world = *state;
	struct world_node nodes[2];
	struct racer racers[THREADS];
	int placed = 0;

	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
		world_ready(world, &nodes[i], 8);
	make_quota(world, "\"class\":\"gpu\",\"maxDevices\":7");
	for (int i = 0; i < THREADS; i++) {
		char replica[16];

		snprintf(replica, sizeof replica, "worker-%d", i);
		racers[i] = (struct racer){.world = world};
		world_connect(world, replica, &racers[i].control);
		pthread_create(&racers[i].thread, NULL, race, &racers[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(racers[i].thread, NULL);
		assert_null(racers[i].failed);
		placed += racers[i].placed;
		world_disconnect(&racers[i].control);
	}
	assert_int_equal(placed, LIMIT);
}

/* Months that are over are what they were: an extension is judged by what it adds, wherever that is.
 * proves: ADM-3 */
static void test_an_extension_is_judged_by_what_it_adds(void **state)
{
	struct world *world = *state;
	struct world_node node;
	const char *quota, *id;

	world_ready(world, &node, 1);
	quota = world_text(make_quota(world, "\"gpuHoursPerMonth\":1000"), "id");
	/* 400 hours of it lie in January, 80 in February. */
	id = world_text(reserve(world, "gpu", 1, "\"duration\":\"480h\""), "id");
	world_bind(world, &node, world_text(world_reservation(world, id), "allocations.0.id"));
	database_advance(18 * 24 * HOUR_MS);
	world_heartbeat(world, &node);
	world_call(world, control_quota_patch, quota, "{\"gpuHoursPerMonth\":100}");
	world_refused(world, control_reservation_patch, id, ERROR_RESOURCES_EXHAUSTED,
		      "allows 100 GPU-hours in 2027-02: 80.0 are used or claimed and 21.0 more",
		      "{\"duration\":\"501h\"}");
	world_call(world, control_reservation_patch, id, "{\"duration\":\"500h\"}");
}

/* What was accepted isn't lost by asking for more.
 * proves: ADM-3 */
static void test_a_change_over_the_quota_leaves_it_waiting(void **state)
{
	struct world *world = *state;
	struct world_node node;
	const char *id;

	world_ready(world, &node, 1);
	make_quota(world, "\"gpuHoursPerMonth\":20");
	reserve(world, "gpu", 1, "\"duration\":\"5h\"");
	id = world_text(reserve(world, "gpu", 1, "\"duration\":\"5h\""), "id");
	world_refused(world, control_reservation_patch, id, ERROR_RESOURCES_EXHAUSTED,
		      "5.0 are used or claimed and 16.0 more", "{\"duration\":\"16h\"}");
	assert_string_equal(world_text(world_reservation(world, id), "state"), "pending");
	world_call(world, control_reservation_patch, id, "{\"duration\":\"15h\"}");
	assert_string_equal(world_text(world_reservation(world, id), "state"), "pending");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_more_devices_than_the_quota_are_denied_with_the_numbers),
		WORLD_TEST(test_quotas_are_of_a_class_and_of_a_pool),
		WORLD_TEST(test_hours_of_each_month_count_what_was_used_and_what_is_claimed),
		WORLD_TEST(test_quota_comes_back_once_when_a_node_is_lost),
		WORLD_TEST(test_what_waits_keeps_its_claim),
		WORLD_TEST(test_quotas_are_the_operators_to_change),
		WORLD_TEST(test_many_at_once_get_exactly_the_quota),
		WORLD_TEST(test_an_extension_is_judged_by_what_it_adds),
		WORLD_TEST(test_a_change_over_the_quota_leaves_it_waiting),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
