/* Whatever happens to bookings: each is billed once, never past its end, and nothing is booked twice. */
#include "unit/control/metered.h"

#include "base/vec.h"
#include "control/core/timestamp.h"
#include "lib/seed.h"

#include <stdio.h>

#define NODES       3
#define STEPS       1500
#define FLEET       1000 /* RES-43 */
#define FLEET_STEPS 1000

/* A reservation of ours. */
struct seen {
	char reservation[ID_SIZE];
	int count;
};

struct schedule {
	struct world *world;
	struct seed seed;
	struct world_node *nodes;
	size_t nodes_count;
	VEC(struct seen) reservations;
	int changed; /* made longer or shorter */
};

static struct world_node *node_of(struct schedule *schedule, const char *id)
{
	for (size_t i = 0; i < schedule->nodes_count; i++) {
		if (str_equal(schedule->nodes[i].id, id))
			return &schedule->nodes[i];
	}
	return NULL; /* it was lost */
}

static json_t *shown(struct schedule *schedule, const char *id)
{
	return ask(schedule->world, control_reservation_get, (struct control_call){.id = id});
}

static void book(struct schedule *schedule)
{
	struct world *world = schedule->world;
	struct seed *seed = &schedule->seed;
	struct seen *seen = vec_push(&schedule->reservations);
	char text[512], start[TIMESTAMP_SIZE], when[64] = "";
	bool gang = seed_chance(seed, 20);
	json_t *body, *answer;

	seen->count = 1 + (int)seed_below(seed, 3);
	timestamp_format(start, (struct wall){database_time() + 1000 +
					      (int64_t)seed_below(seed, (uint64_t)HOUR_MS)});
	if (seed_chance(seed, 30))
		snprintf(when, sizeof when, ",\"startAt\":\"%s\"", start);
	snprintf(text, sizeof text,
		 "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\",\"count\":"
		 "%d}],\"duration\":\"%dm\",\"binding\":\"kubernetes\"%s%s}",
		 world->tenant, world->pool, seen->count, 1 + (int)seed_below(seed, 90), when,
		 gang ? ",\"gang\":{\"nodes\":2}" : "");
	body = json_loads(text, 0, NULL);
	assert_non_null(body);
	answer = ask(world, control_reservation_create, (struct control_call){.body = body});
	str_copy(seen->reservation, ID_SIZE, world_text(answer, "id"));
	json_decref(answer);
	json_decref(body);
}

/* The node gets on with one of its allocations, or says things twice. */
static void node_acts(struct schedule *schedule, const json_t *allocation)
{
	struct world *world = schedule->world;
	struct world_node *node = node_of(schedule, world_text(allocation, "nodeId"));
	const char *id = world_text(allocation, "id"), *state = world_text(allocation, "state");
	struct control_spec spec;

	if (!node)
		return;
	if (seed_chance(&schedule->seed, 20)) /* it was restarted */
		world_hello(world, node, NULL);
	world_take_spec(world, node, &spec);
	if (world_spec_has(&spec, id) && seed_chance(&schedule->seed, 8))
		world_failed(world, node, id, "Random");
	else if (world_spec_has(&spec, id) || seed_chance(&schedule->seed, 20))
		world_bound(world, node, id);
	else if (str_equal(state, "releasing") && seed_chance(&schedule->seed, 60))
		world_released(world, node, id);
	else if (str_equal(state, "released"))
		world_released(world, node, id); /* said again */
	control_spec_deinit(&spec);
}

static void nodes_act(struct schedule *schedule, const struct seen *seen)
{
	json_t *reservation = shown(schedule, seen->reservation);
	json_t *allocations = json_object_get(reservation, "allocations");

	/* The last ones are those that live, if any do. */
	for (size_t i = json_array_size(allocations), acts = 0; i-- > 0 && acts < 3; acts++)
		node_acts(schedule, json_array_get(allocations, i));
	json_decref(reservation);
}

/* Longer or shorter, when that can be: a refusal is fine. */
static void change(struct schedule *schedule, const struct seen *seen)
{
	json_t *body = json_pack("{s:o}", "duration",
				 json_sprintf("%dm", 1 + (int)seed_below(&schedule->seed, 120)));
	struct control_call call = {
		.principal = &schedule->world->operator, .id = seen->reservation, .body = body};
	json_t *answer = NULL;
	struct error refused;

	if (world_ask(schedule->world, control_reservation_patch, &call, &answer, &refused))
		schedule->changed++;
	json_decref(answer);
	json_decref(body);
}

static void lose_a_node(struct schedule *schedule)
{
	size_t i = (size_t)seed_below(&schedule->seed, schedule->nodes_count);
	struct world *world = schedule->world;

	world_call(world, control_node_retire, schedule->nodes[i].id, "{\"lost\":true}");
	world_ready(world, &schedule->nodes[i], 4);
}

static void step(struct schedule *schedule)
{
	struct world *world = schedule->world;
	struct seed *seed = &schedule->seed;
	struct seen *seen =
		&schedule->reservations.items[seed_below(seed, schedule->reservations.count)];

	switch (seed_below(seed, 11)) {
	case 10:
		change(schedule, &schedule->reservations.items[schedule->reservations.count - 1]);
		break;
	case 0:
	case 1:
		book(schedule);
		break;
	case 2:
		json_decref(ask(world, control_reservation_release,
				(struct control_call){.id = seen->reservation}));
		break;
	case 3:
		world_tick(world);
		break;
	case 4:
		if (seed_chance(seed, 8))
			lose_a_node(schedule);
		break;
	case 5:
		database_advance((int64_t)seed_below(seed, (uint64_t)(20 * MINUTE_MS)));
		for (size_t i = 0; i < NODES * 10; i++)
			world_heartbeat(world,
					&schedule->nodes[seed_below(seed, schedule->nodes_count)]);
		break;
	case 6:
		database_advance((int64_t)seed_below(seed, (uint64_t)(30 * SECOND_MS)));
		break;
	default:
		/* The younger ones have more ahead. */
		for (size_t i = schedule->reservations.count;
		     i-- > 0 && i + 6 > schedule->reservations.count;) {
			if (seed_chance(seed, 50))
				nodes_act(schedule, &schedule->reservations.items[i]);
		}
		break;
	}
}

/* Finds the one row of an allocation, and takes it out of the list. */
static json_t *take_row(json_t *rows, const char *allocation)
{
	json_t *found = NULL;

	for (size_t i = json_array_size(rows); i-- > 0;) {
		json_t *row = json_array_get(rows, i);

		if (!str_equal(world_text(row, "allocationId"), allocation))
			continue;
		if (found)
			fail_msg("%s was billed twice", allocation);
		found = json_incref(row);
		json_array_remove(rows, i);
	}
	return found;
}

/* All rows, over pages. */
static json_t *all_rows(struct world *world)
{
	json_t *rows = json_array();
	char cursor[128] = "";

	for (;;) {
		json_t *page = ask(
			world, control_meter_list,
			(struct control_call){.limit = "50", .cursor = cursor[0] ? cursor : NULL});

		json_array_extend(rows, items_of(page));
		cursor[0] = '\0';
		if (world_has(page, "nextCursor"))
			str_copy(cursor, sizeof cursor, world_text(page, "nextCursor"));
		json_decref(page);
		if (!cursor[0])
			return rows;
	}
}

struct end_work {
	const char *allocation;
	int64_t end_ms;
};

static bool end_body(struct store_connection *db, void *argument, struct error *error)
{
	struct end_work *work = argument;
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db, "SELECT to_ms FROM allocations WHERE id = $1",
			 STORE_PARAMS(store_text(work->allocation)), &rows, error))
		return false;
	assert_int_equal(rows.count, 1);
	work->end_ms = store_get_int(&rows, 0, 0);
	return true;
}

/* Its own: a gang that waits again has none, or later another one. */
static int64_t end_of(struct world *world, const char *allocation)
{
	struct end_work work = {.allocation = allocation};
	struct error error;

	expect_ok(store_run(world->control.connection, STORE_READ, end_body, &work, &error),
		  &error);
	return work.end_ms;
}

static void check_allocation(struct world *world, const json_t *allocation, json_t *rows, int count)
{
	const char *id = world_text(allocation, "id"), *state = world_text(allocation, "state");
	bool closed = str_equal(state, "released") || str_equal(state, "failed");
	json_t *row = take_row(rows, id);
	int64_t seconds = 0;

	if (closed != (row != NULL))
		fail_msg("%s is %s and has %s row", id, state, row ? "a" : "no");
	if (!row)
		return;
	if (world_has(allocation, "boundAt")) {
		int64_t from = time_of(allocation, "boundAt");
		int64_t to = time_of(allocation, "releasedAt");

		if (to > end_of(world, id))
			to = end_of(world, id);
		seconds = to > from ? (to - from) / 1000 : 0;
	}
	if (world_int(row, "gpuSeconds") != seconds * count)
		fail_msg("%s: %lld GPU-seconds, not %lld", id,
			 (long long)world_int(row, "gpuSeconds"), (long long)(seconds * count));
	if (seconds > 0)
		assert_true(time_of(row, "stoppedAt") <= end_of(world, id));
	json_decref(row);
}

/* Every closed allocation has its row, with the right seconds; nothing else has one. */
static void check_rows(struct schedule *schedule)
{
	json_t *rows = all_rows(schedule->world);

	vec_each (&schedule->reservations, struct seen * seen) {
		json_t *reservation = shown(schedule, seen->reservation);
		json_t *allocations = json_object_get(reservation, "allocations");

		for (size_t i = 0; i < json_array_size(allocations); i++)
			check_allocation(schedule->world, json_array_get(allocations, i), rows,
					 seen->count);
		json_decref(reservation);
	}
	assert_int_equal(json_array_size(rows), 0);
	json_decref(rows);
}

static int64_t usage_between(struct world *world, int64_t from_ms, int64_t to_ms)
{
	char from[TIMESTAMP_SIZE], to[TIMESTAMP_SIZE];
	json_t *usage;
	int64_t seconds = 0;

	timestamp_format(from, (struct wall){from_ms});
	timestamp_format(to, (struct wall){to_ms});
	usage = ask(world, control_usage_get, (struct control_call){.from = from, .to = to});
	for (size_t i = 0; i < json_array_size(items_of(usage)); i++)
		seconds += world_int(json_array_get(items_of(usage), i), "gpuSeconds");
	json_decref(usage);
	return seconds;
}

/* Windows that are cut anywhere add up to the whole. */
static void check_usage(struct schedule *schedule)
{
	int64_t at = DATABASE_EPOCH_MS - 1, sum = 0;
	int64_t end = database_time() + 1000;

	while (at < end) {
		int64_t next =
			at + 1 + (int64_t)seed_below(&schedule->seed, (uint64_t)(20 * HOUR_MS));

		sum += usage_between(schedule->world, at, next);
		at = next;
	}
	assert_int_equal(sum, usage_between(schedule->world, DATABASE_EPOCH_MS - 1, at));
}

/* --- nothing twice --- */

struct overlap_work {
	int64_t overlaps;
};

static bool overlap_body(struct store_connection *db, void *argument, struct error *error)
{
	struct overlap_work *work = argument;
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db,
			 "SELECT count(*) FROM bookings a JOIN bookings b ON a.gpu = b.gpu AND "
			 "a.allocation < b.allocation AND a.leaf_lo < b.leaf_hi AND b.leaf_lo < "
			 "a.leaf_hi AND (a.held = 1 OR b.from_ms < a.to_ms) AND (b.held = 1 OR "
			 "a.from_ms < b.to_ms)",
			 STORE_NO_PARAMS, &rows, error))
		return false;
	work->overlaps = store_get_int(&rows, 0, 0);
	return true;
}

static void check_bookings(struct schedule *schedule)
{
	struct overlap_work work;
	struct error error;

	expect_ok(store_run(schedule->world->control.connection, STORE_READ, overlap_body, &work,
			    &error),
		  &error);
	assert_int_equal(work.overlaps, 0);
}

static void run_schedule(struct world *world, size_t nodes, int steps, int check_every)
{
	struct schedule *schedule = mem_alloc(sizeof *schedule);
	json_t *rows;
	int64_t billed = 0;

	schedule->world = world;
	schedule->nodes = mem_alloc(nodes * sizeof *schedule->nodes);
	schedule->nodes_count = nodes;
	seed_init(&schedule->seed);
	for (size_t i = 0; i < nodes; i++)
		world_ready(world, &schedule->nodes[i], 4);
	book(schedule);
	for (int i = 0; i < steps; i++) {
		step(schedule);
		if (i % check_every != 0)
			continue;
		check_rows(schedule);
		check_bookings(schedule);
	}
	check_rows(schedule);
	check_bookings(schedule);
	check_usage(schedule);
	rows = all_rows(world);
	for (size_t i = 0; i < json_array_size(rows); i++)
		billed += world_int(json_array_get(rows, i), "gpuSeconds") > 0;
	print_message("%zu rows, %lld that cost something, %d changes\n", json_array_size(rows),
		      (long long)billed, schedule->changed);
	assert_true(billed > 2);
	json_decref(rows);
	vec_deinit(&schedule->reservations);
	free(schedule->nodes);
	free(schedule);
}

/* proves: RES-20 RES-27 RES-53 */
static void test_any_schedule_is_billed_once_and_never_past_the_end(void **state)
{
	run_schedule(*state, NODES, STEPS, 50);
}

/* proves: RES-43 */
static void test_a_fleet_is_never_booked_twice_nor_billed_past_an_end(void **state)
{
	run_schedule(*state, FLEET, FLEET_STEPS, 500);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_any_schedule_is_billed_once_and_never_past_the_end),
		WORLD_TEST(test_a_fleet_is_never_booked_twice_nor_billed_past_an_end),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
