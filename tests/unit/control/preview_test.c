/*
 * A preview and a create, asked the same of the same random pools, must say the same; and the nodes
 * that were looked at must have been enough.
 */
#include "unit/control/world.h"

#include "control/core/timestamp.h"
#include "control/placing.h"
#include "lib/seed.h"

#include <stdio.h>

#define FLEETS    40
#define ASKED     10
#define MAX_NODES 5
#define MINUTE_MS ((int64_t)60 * 1000)
#define STEP_MS   (10 * MINUTE_MS)

/* In steps. Nothing that is booked ends later than the latest start and the longest duration. */
#define STARTS  24
#define LONGEST 18

struct fleet {
	bool dra; /* its pool asks for it */
	struct world *world;
	struct seed *seed;
	struct world_node nodes[MAX_NODES];
	size_t count;
};

/* What came out, over all fleets. */
static int placed, pending, denied, later;

/* --- asking --- */

static json_t *ask(struct world *world, world_call_fn *function, const char *text)
{
	json_t *body = json_loads(text, JSON_REJECT_DUPLICATES, NULL), *answer = NULL;
	struct control_call call = {.principal = &world->operator, .body = body };
	struct error error = {0};

	if (!world_ask(world, function, &call, &answer, &error))
		fail_msg("%s: %s", text, error.what);
	json_decref(body);
	return answer;
}

/* A random request, without its times. */
static void make_request(struct fleet *fleet, char *out, size_t size)
{
	static const char *const devices[] = {
		"gpu\"", "gpu\"", "gpu.slot\"", "gpu.mig\"", "gpu.mig\",\"profile\":\"1g.10gb\"",
	};
	struct seed *seed = fleet->seed;
	char need[128], more[256] = "";

	snprintf(need, sizeof need, "{\"class\":\"%s,\"count\":%d}",
		 devices[seed_below(seed, ARRAY_SIZE(devices))],
		 1 + (int)seed_below(seed, seed_chance(seed, 15) ? 12 : 4));
	if (seed_chance(seed, 15))
		str_copy(more, sizeof more, ",\"spot\":true");
	else if (seed_chance(seed, 20))
		snprintf(more, sizeof more, ",\"gang\":{\"nodes\":%d%s}",
			 1 + (int)seed_below(seed, 3),
			 seed_chance(seed, 50) ? ",\"topology\":{\"same\":\"rack\"}" : "");
	else if (seed_chance(seed, 20))
		snprintf(more, sizeof more, ",\"resources\":{\"vcpu\":%d}",
			 1 + (int)seed_below(seed, 40));
	else if (seed_chance(seed, 15))
		snprintf(more, sizeof more, ",\"resources\":{\"hugepages2MiGiB\":%d}",
			 1 + (int)seed_below(seed, 3));
	snprintf(out, size,
		 "\"tenantId\":\"%s\",\"poolId\":\"%s\",\"binding\":\"kubernetes\",\"devices\":["
		 "%s]%s",
		 fleet->world->tenant, fleet->world->pool, need, more);
}

static void with_times(char *out, size_t size, const char *request, int64_t minutes,
		       int64_t start_ms)
{
	char start[TIMESTAMP_SIZE] = "", field[64] = "";

	if (start_ms != 0) {
		timestamp_format(start, (struct wall){start_ms});
		snprintf(field, sizeof field, ",\"startAt\":\"%s\"", start);
	}
	snprintf(out, size, "{%s,\"duration\":\"%lldm\"%s}", request, (long long)minutes, field);
}

/* --- fleets --- */

struct label {
	const char *node, *name, *value;
};

static bool label_body(struct store_connection *db, void *argument, struct error *error)
{
	const struct label *label = argument;

	return store_exec(db,
			  "INSERT INTO node_labels (node, name, value, system) VALUES ($1, $2, $3, "
			  "1)",
			  STORE_PARAMS(store_text(label->node), store_text(label->name),
				       store_text(label->value)),
			  error);
}

static void set_label(struct world *world, const char *node, const char *name, const char *value)
{
	struct label label = {node, name, value};
	struct error error;

	expect_ok(store_run(world->control.connection, STORE_WRITE, label_body, &label, &error),
		  &error);
}

static void make_node(struct fleet *fleet, struct world_node *node)
{
	static const char *const old[] = {"assignment-limits", NULL};
	static const char *const dra[] = {"kubernetes-binding", "assignment-limits", "dra", NULL};
	const struct control_condition exposed = {"ForeignGpuExposure", "Exposed", "", {0}};
	struct seed *seed = fleet->seed;

	world_join(fleet->world, node);
	node->gpus = 1 + (int)seed_below(seed, 6);
	node->slots = seed_chance(seed, 40) ? 4 : 0;
	node->migs = node->slots == 0 && seed_chance(seed, 60) ? 7 : 0;
	node->uncut = (unsigned)seed_below(seed, 64) & (unsigned)seed_below(seed, 64);
	node->unhealthy = seed_chance(seed, 20) ? 1u << seed_below(seed, 4) : 0;
	node->vcpus = seed_chance(seed, 30) ? 8 : 64;
	node->hugepages.bytes[HUGEPAGES_2MI] = (int64_t)seed_below(seed, 5) << 30;
	if (seed_chance(seed, 10))
		return;
	node->dra = seed_chance(seed, fleet->dra ? 80 : 5);
	world_hello(fleet->world, node,
		    seed_chance(seed, 10)                ? old
		    : node->dra && seed_chance(seed, 90) ? dra
							 : NULL);
	world_inventory(fleet->world, node);
	world_conditions(fleet->world, node, &exposed, seed_chance(seed, 10) ? 1 : 0);
	if (seed_chance(seed, 15))
		set_label(fleet->world, node->id, "bc.dev/capacity", "spot");
	if (seed_chance(seed, 80))
		set_label(fleet->world, node->id, "bc.dev/topology.rack",
			  seed_chance(seed, 50) ? "r1" : "r2");
}

/* A pool of its own for each, with bookings that are there already. */
static void make_fleet(struct fleet *fleet, int number)
{
	struct world *world = fleet->world;
	json_t *pool =
		world_call(world, control_pool_create, NULL,
			   "{\"tenantId\":\"%s\",\"siteId\":\"%s\",\"name\":\"p%d\","
			   "\"class\":\"metal-host\",\"gpuModel\":\"H100\",\"policy\":{"
			   "\"placement\":\"%s\",\"kubernetes\":{\"gpuApi\":\"%s\"}}}",
			   world->tenant, world->site, number, number % 3 ? "bin-pack" : "spread",
			   number % 4 ? "device-plugin" : "dra");
	int bookings = (int)seed_below(fleet->seed, 20);

	str_copy(world->pool, ID_SIZE, world_text(pool, "id"));
	fleet->dra = number % 4 == 0;
	fleet->count = 1 + seed_below(fleet->seed, MAX_NODES);
	for (size_t i = 0; i < fleet->count; i++)
		make_node(fleet, &fleet->nodes[i]);
	for (int i = 0; i < bookings; i++) {
		char request[1024], text[1280];
		int64_t start_ms =
			database_time() + (int64_t)seed_below(fleet->seed, STARTS) * STEP_MS;

		make_request(fleet, request, sizeof request);
		if (strstr(request, "gang"))
			continue;
		with_times(text, sizeof text, request, 10 + 10 * (int)seed_below(fleet->seed, 12),
			   seed_chance(fleet->seed, 40) ? 0 : start_ms);
		json_decref(ask(world, control_reservation_create, text));
	}
}

/* --- the same choice, by looking at few nodes and at all --- */

struct choice_work {
	const char *pool;
	const struct reserve_request *asked;
};

static void check_same(const struct placement_answer *few, const struct placement_answer *all)
{
	assert_int_equal(few->members_count, all->members_count);
	for (size_t i = 0; i < few->members_count; i++) {
		const struct placement_member *a = &few->members[i], *b = &all->members[i];

		assert_string_equal(a->node->id, b->node->id);
		assert_int_equal(a->atoms_count, b->atoms_count);
		for (size_t j = 0; j < a->atoms_count; j++)
			assert_string_equal(a->node->atoms[a->atoms[j]].atom,
					    b->node->atoms[b->atoms[j]].atom);
		assert_int_equal(a->vcpus, b->vcpus);
	}
}

/* Also why it doesn't fit, and when it would. */
static void check_explained(const struct placing_choice *few, const struct placing_choice *all)
{
	CLEANUP(json_ref) json_t *why = placing_reasons(&few->answer);
	CLEANUP(json_ref) json_t *all_why = placing_reasons(&all->answer);

	check_same(&few->answer, &all->answer);
	if (few->answer.members_count > 0)
		return;
	assert_true(json_equal(why, all_why));
	assert_int_equal(few->answer.never, all->answer.never);
	assert_int_equal(few->first_fit_ms, all->first_fit_ms);
}

static bool choice_body(struct store_connection *db, void *argument, struct error *error)
{
	const struct choice_work *work = argument;
	const struct reserve_request *asked = work->asked;
	CLEANUP(placing_choice) struct placing_choice few = {0};
	CLEANUP(placing_choice) struct placing_choice told = {0};
	CLEANUP(placing_choice) struct placing_choice all = {0};
	CLEANUP(pool) struct pool pool = {0};
	const struct placing_turn last = {0};
	int64_t from_ms = asked->start_ms ? asked->start_ms : store_now(db).ms;
	struct placement_request request = {.needs = asked->needs,
					    .needs_count = asked->needs_count,
					    .from_ms = from_ms,
					    .to_ms = from_ms + asked->duration_ms,
					    .limited = asked->limited,
					    .vcpus = asked->vcpus,
					    .memory_bytes = asked->memory_bytes,
					    .hugepages = asked->hugepages,
					    .spot = asked->spot,
					    .nodes = asked->gang_nodes,
					    .same = asked->gang_same};

	if (!pool_load(db, work->pool, &pool, error) ||
	    !placing_choose(db, &pool, &last, &request, PLACING_FITS, &few, error) ||
	    !placing_choose(db, &pool, &last, &request, PLACING_TIMES, &told, error) ||
	    !placing_choose_among_all(db, &pool, &last, &request, &all, error))
		return false;
	check_same(&few.answer, &all.answer);
	check_explained(&told, &all);
	return true;
}

static void check_choice(struct fleet *fleet, const char *text)
{
	json_t *body = json_loads(text, 0, NULL);
	struct reserve_request asked;
	struct choice_work work = {fleet->world->pool, &asked};
	struct error error;

	expect_ok(reserve_request_parse(body, true, (struct wall){database_time()}, &asked, &error),
		  &error);
	expect_ok(
		store_run(fleet->world->control.connection, STORE_READ, choice_body, &work, &error),
		&error);
	json_decref(body);
}

/* --- the same answer, as a preview and as a create --- */

static void check_placed(const json_t *preview, const json_t *reservation)
{
	const json_t *nodes = json_object_get(preview, "nodes");
	const json_t *allocations = json_object_get(reservation, "allocations");

	assert_int_equal(json_array_size(nodes), json_array_size(allocations));
	for (size_t i = 0; i < json_array_size(nodes); i++) {
		const json_t *node = json_array_get(nodes, i), *allocation = NULL;

		for (size_t j = 0; j < json_array_size(allocations) && !allocation; j++) {
			allocation = json_array_get(allocations, j);
			if (!str_equal(world_text(allocation, "nodeId"), world_text(node, "id")))
				allocation = NULL;
		}
		assert_non_null(allocation);
		assert_true(json_equal(json_object_get(allocation, "devices"),
				       json_object_get(node, "devices")));
	}
}

/* The first of the moments at which anything begins or ends from which it fits, tried one by one.
 * 0: none. */
static int64_t model_first_fit(struct fleet *fleet, const char *request, int64_t minutes)
{
	int64_t now_ms = database_time();

	for (int64_t at_ms = now_ms; at_ms <= now_ms + (STARTS + LONGEST) * STEP_MS;
	     at_ms += STEP_MS) {
		char text[1280];
		json_t *preview;
		bool fits;

		with_times(text, sizeof text, request, minutes, at_ms);
		preview = ask(fleet->world, control_capacity_preview, text);
		fits = world_int(preview, "fits");
		json_decref(preview);
		if (fits)
			return at_ms;
	}
	return 0;
}

static int64_t parse_ms(const char *text)
{
	struct wall time;
	struct error error;

	expect_ok(timestamp_parse(text, "time", &time, &error), &error);
	return time.ms;
}

static void check_one(struct fleet *fleet, bool first_fit)
{
	char request[1024], text[1280];
	int64_t minutes = 10 + 10 * (int64_t)seed_below(fleet->seed, LONGEST);
	int64_t start_ms =
		seed_chance(fleet->seed, 60)
			? 0
			: database_time() + (int64_t)seed_below(fleet->seed, STARTS) * STEP_MS;
	json_t *preview, *reservation;
	const char *state;

	make_request(fleet, request, sizeof request);
	with_times(text, sizeof text, request, minutes, start_ms);
	check_choice(fleet, text);
	preview = ask(fleet->world, control_capacity_preview, text);
	if (first_fit && start_ms == 0 && !world_int(preview, "fits")) {
		int64_t expected_ms = model_first_fit(fleet, request, minutes);

		assert_int_equal(world_has(preview, "firstFitAt"), expected_ms != 0);
		if (expected_ms != 0)
			assert_int_equal(parse_ms(world_text(preview, "firstFitAt")), expected_ms);
		later += expected_ms != 0;
	}
	reservation = ask(fleet->world, control_reservation_create, text);
	state = world_text(reservation, "state");
	assert_string_equal(state, world_text(preview, "state"));
	assert_int_equal(world_int(preview, "fits"), str_equal(state, "placed"));
	if (str_equal(state, "placed")) {
		check_placed(preview, reservation);
		placed++;
	} else {
		assert_true(json_equal(json_object_get(preview, "reasons"),
				       json_object_get(reservation, "reasons")));
		denied += str_equal(state, "denied");
		pending += str_equal(state, "pending");
		/* What waits as a gang would change what the next one is told. */
		if (str_equal(state, "pending"))
			world_call(fleet->world, control_reservation_cancel,
				   world_text(reservation, "id"), NULL);
	}
	json_decref(preview);
	json_decref(reservation);
}

/* proves: RES-10 RES-42 RES-50 RES-51 RES-52 OBS-13 */
static void test_preview_and_create_say_the_same_of_random_pools(void **state)
{
	struct world *world = *state;
	struct seed seed;
	struct fleet fleet = {.world = world, .seed = &seed};

	seed_init(&seed);
	for (int i = 0; i < FLEETS; i++) {
		make_fleet(&fleet, i);
		for (int j = 0; j < ASKED; j++)
			check_one(&fleet, j % 3 == 0);
		/* Some of what was booked has begun, and some is over, for the next look. */
		if (i % 2)
			continue;
		database_advance(3 * STEP_MS);
		for (size_t j = 0; j < fleet.count; j++)
			if (fleet.nodes[j].epoch)
				world_heartbeat(world, &fleet.nodes[j]);
		if (i % 4)
			world_tick(world);
		for (int j = 0; j < ASKED; j++)
			check_one(&fleet, i % 4 != 0 && j % 3 == 0);
	}
	print_message("%d placed, %d pending, %d denied, %d fit later\n", placed, pending, denied,
		      later);
	assert_true(placed > 50 && pending > 50 && denied > 20 && later > 10);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_preview_and_create_say_the_same_of_random_pools),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
