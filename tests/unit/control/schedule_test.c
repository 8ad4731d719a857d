/* Random schedules of gangs and others against a model: whole or not at all, in the order they came. */
#include "unit/control/gangs.h"

#include "base/vec.h"
#include "control/core/timestamp.h"
#include "lib/seed.h"

#include <stdio.h>

#define MINUTE_MS ((int64_t)60 * 1000)

#define NODES    5
#define GPUS     2
#define ARRIVALS 6

/* What a node has, by the answers that were given. */
struct stay {
	char reservation[ID_SIZE];
	size_t node;
	int64_t from_ms, to_ms;
	int gpus;
};

struct member {
	char id[ID_SIZE];
	int nodes, gpus;
	bool rack; /* all in one */
	bool waits, was_first;
	int64_t length_ms;
	int64_t due_ms; /* of the first that waits: when it must be placed at last */
};

struct schedule {
	struct world *world;
	struct world_node nodes[NODES];
	VEC(struct stay) stays;
	VEC(struct member) members; /* in the order they came */
};

static json_t *ask(struct world *world, world_call_fn *function, const char *id, const char *text)
{
	json_t *body = text ? json_loads(text, 0, NULL) : NULL, *answer = NULL;
	struct control_call call = {.principal = &world->operator, .id = id, .body = body};
	struct error error = {0};

	if (!world_ask(world, function, &call, &answer, &error))
		fail_msg("%s: %s", text ? text : id, error.what);
	json_decref(body);
	return answer;
}

/* The most that is taken on a node at any time of a span. */
static int taken(const struct schedule *schedule, size_t node, int64_t from_ms, int64_t to_ms)
{
	int most = 0;

	for (int64_t at_ms = from_ms; at_ms < to_ms; at_ms += MINUTE_MS) {
		int now = 0;

		vec_each (&schedule->stays, const struct stay *stay)
			now += stay->node == node && stay->from_ms <= at_ms && at_ms < stay->to_ms
				       ? stay->gpus
				       : 0;
		most = now > most ? now : most;
	}
	return most;
}

/* Racks are nodes 0 to 2, and 3 and 4. */
static bool fits_at(const struct schedule *schedule, const struct member *member, int64_t at_ms)
{
	int by_rack[2] = {0};

	for (size_t i = 0; i < NODES; i++)
		by_rack[i >= 3] +=
			taken(schedule, i, at_ms, at_ms + member->length_ms) + member->gpus <= GPUS;
	if (member->rack)
		return by_rack[0] >= member->nodes || by_rack[1] >= member->nodes;
	return by_rack[0] + by_rack[1] >= member->nodes;
}

static int64_t first_fit(const struct schedule *schedule, const struct member *member,
			 int64_t from_ms)
{
	int64_t at_ms = from_ms;

	while (!fits_at(schedule, member, at_ms))
		at_ms += MINUTE_MS;
	return at_ms;
}

static void take_parts(struct schedule *schedule, const struct member *member,
		       const json_t *reservation, int64_t now_ms)
{
	const json_t *parts = json_object_get(reservation, "allocations");
	unsigned used = 0;

	assert_int_equal(json_array_size(parts), member->nodes);
	for (size_t i = 0; i < json_array_size(parts); i++) {
		struct world_node *node = node_of(schedule->nodes, NODES,
						  world_text(json_array_get(parts, i), "nodeId"));
		size_t index = (size_t)(node - schedule->nodes);

		assert_false(used >> index & 1);
		used |= 1u << index;
		assert_true(taken(schedule, index, now_ms, now_ms + member->length_ms) +
				    member->gpus <=
			    GPUS);
		*vec_push(&schedule->stays) = (struct stay){.node = index,
							    .from_ms = now_ms,
							    .to_ms = now_ms + member->length_ms,
							    .gpus = member->gpus};
	}
	if (member->rack)
		assert_true((used & 7) == 0 || (used & 24) == 0);
}

/* What was placed since is taken over; what waits holds nothing, and waits for a reason. */
static void look(struct schedule *schedule)
{
	const struct member *first = NULL;
	int64_t now_ms = database_time();

	vec_each (&schedule->members, struct member * member) {
		json_t *reservation;

		if (!member->waits)
			continue;
		reservation = ask(schedule->world, control_reservation_get, member->id, NULL);
		if (str_equal(world_text(reservation, "state"), "placed")) {
			/* GANG-10: who passes the first that waits is gone when its time comes. */
			if (first)
				assert_true(now_ms + member->length_ms <= first->due_ms);
			if (member->was_first)
				assert_true(now_ms <= member->due_ms);
			take_parts(schedule, member, reservation, now_ms);
			member->waits = false;
		} else {
			assert_string_equal(world_text(reservation, "state"), "pending");
			assert_int_equal(
				json_array_size(json_object_get(reservation, "allocations")), 0);
			if (!first && !member->was_first) {
				member->due_ms = first_fit(schedule, member, now_ms);
				member->was_first = true;
			}
			/* Nothing keeps the first one but a lack of room. */
			if (!first)
				assert_false(fits_at(schedule, member, now_ms));
			first = first ? first : member;
		}
		json_decref(reservation);
	}
}

static void arrive(struct schedule *schedule, struct seed *seed)
{
	struct member *member = vec_push(&schedule->members);
	char text[512];
	json_t *answer;

	member->nodes = 1 + (int)seed_below(seed, 4);
	member->rack = member->nodes <= 3 && seed_chance(seed, 40);
	member->gpus = 1 + (int)seed_below(seed, GPUS);
	member->length_ms = (1 + (int64_t)seed_below(seed, 9)) * MINUTE_MS;
	member->waits = true;
	snprintf(
		text, sizeof text,
		"{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\",\"count\":"
		"%d}],\"duration\":\"%lldm\",\"binding\":\"kubernetes\",\"gang\":{\"nodes\":%d%s}}",
		schedule->world->tenant, schedule->world->pool, member->gpus,
		(long long)(member->length_ms / MINUTE_MS), member->nodes,
		member->rack ? ",\"topology\":{\"same\":\"rack\"}" : "");
	answer = ask(schedule->world, control_reservation_create, NULL, text);
	str_copy(member->id, ID_SIZE, world_text(answer, "id"));
	json_decref(answer);
}

static bool anybody_waits(const struct schedule *schedule)
{
	vec_each (&schedule->members, const struct member *member) {
		if (member->waits)
			return true;
	}
	return false;
}

static bool hear_body(struct store_connection *db, void *argument, struct error *error)
{
	(void)argument;
	return store_exec(db, "UPDATE node_streams SET seen_ms = $1",
			  STORE_PARAMS(store_int(store_now(db).ms)), error);
}

/* All nodes are heard of, and a pass is made. */
static void pass_time(struct schedule *schedule, int64_t ms)
{
	struct error error;

	database_advance(ms);
	expect_ok(store_run(schedule->world->control.connection, STORE_WRITE, hear_body, NULL,
			    &error),
		  &error);
	world_tick(schedule->world);
}

static void pass_a_minute(struct schedule *schedule)
{
	pass_time(schedule, MINUTE_MS);
	look(schedule);
}

/* All stays end before the next schedule begins. */
static void run_schedule(struct schedule *schedule, struct seed *seed)
{
	int arrivals = 0, minutes = 0;

	while (arrivals < ARRIVALS || anybody_waits(schedule)) {
		if (arrivals < ARRIVALS && seed_chance(seed, 60)) {
			arrive(schedule, seed);
			arrivals++;
			look(schedule);
		}
		pass_a_minute(schedule);
		assert_true(++minutes < ARRIVALS * 20);
	}
	vec_clear(&schedule->members);
	vec_clear(&schedule->stays);
	pass_time(schedule, 10 * MINUTE_MS);
	assert_int_equal(count_bookings(schedule->world), 0);
}

/* proves: GANG-1 GANG-2 GANG-4 GANG-10 */
static void test_random_schedules_keep_to_the_order_and_to_whole_gangs(void **state)
{
	struct schedule schedule = {.world = *state};
	bool full = getenv("BC_TEST_FULL") && *getenv("BC_TEST_FULL");
	int count = full ? 500 : database_is_postgres() ? 60 : 200;
	struct seed seed;

	seed_init(&seed);
	for (size_t i = 0; i < NODES; i++) {
		world_ready(schedule.world, &schedule.nodes[i], GPUS);
		set_rack(schedule.world, &schedule.nodes[i], i < 3 ? "r1" : "r2");
	}
	for (int i = 0; i < count; i++)
		run_schedule(&schedule, &seed);
	vec_deinit(&schedule.members);
	vec_deinit(&schedule.stays);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_random_schedules_keep_to_the_order_and_to_whole_gangs),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
