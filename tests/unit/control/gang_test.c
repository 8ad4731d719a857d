/* Gangs on real rows: whole or not at all, in the order they came. */
#include "unit/control/world.h"

#include "control/core/reservation.h"

#include "base/vec.h"
#include "control/core/timestamp.h"
#include "lib/seed.h"

#include <stdio.h>

#define MINUTE_MS ((int64_t)60 * 1000)
#define HOUR_MS   (60 * MINUTE_MS)

static json_t *reserve_gang(struct world *world, int nodes, int gpus, const char *duration,
			    const char *more)
{
	database_advance(1); /* the order in which they came */
	return world_call(world, control_reservation_create, NULL,
			  "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\","
			  "\"count\":%d}],\"duration\":\"%s\",\"binding\":\"kubernetes\",\"gang\":{"
			  "\"nodes\":%d%s}}",
			  world->tenant, world->pool, gpus, duration, nodes, more);
}

static json_t *reserve_for(struct world *world, int gpus, const char *duration)
{
	database_advance(1);
	return world_call(world, control_reservation_create, NULL,
			  "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\","
			  "\"count\":%d}],\"duration\":\"%s\",\"binding\":\"kubernetes\"}",
			  world->tenant, world->pool, gpus, duration);
}

static const char *state_of(struct world *world, const json_t *reservation)
{
	return world_text(world_reservation(world, world_text(reservation, "id")), "state");
}

static struct world_node *node_of(struct world_node *nodes, size_t count, const char *id)
{
	for (size_t i = 0; i < count; i++) {
		if (str_equal(nodes[i].id, id))
			return &nodes[i];
	}
	fail_msg("no node %s", id);
	return NULL;
}

/* The part that counts, by index: what failed or went back stands before or is over. */
static const json_t *part_of(const json_t *reservation, size_t index)
{
	const json_t *parts = json_object_get(reservation, "allocations");

	for (size_t i = 0; i < json_array_size(parts); i++) {
		const json_t *part = json_array_get(parts, i);
		const char *state = world_text(part, "state");

		if (!str_equal(state, "placed") && !str_equal(state, "bound"))
			continue;
		if (index-- == 0)
			return part;
	}
	return NULL;
}

static const json_t *part_on(const json_t *reservation, const char *node)
{
	for (size_t i = 0; part_of(reservation, i); i++) {
		if (str_equal(world_text(part_of(reservation, i), "nodeId"), node))
			return part_of(reservation, i);
	}
	fail_msg("no part on %s", node);
	return NULL;
}

static size_t count_parts(const json_t *reservation)
{
	size_t count = 0;

	while (part_of(reservation, count))
		count++;
	return count;
}

/* Binds part by part; what the gang shows in between. */
static void bind_all(struct world *world, struct world_node *nodes, size_t count,
		     const json_t *reservation)
{
	size_t parts = count_parts(reservation);

	for (size_t i = 0; i < parts; i++) {
		const json_t *part = part_of(reservation, i);

		assert_string_equal(state_of(world, reservation), "placed");
		world_bind(world, node_of(nodes, count, world_text(part, "nodeId")),
			   world_text(part, "id"));
	}
	assert_string_equal(state_of(world, reservation), "active");
}

static void release_all(struct world *world, struct world_node *nodes, size_t count,
			const json_t *reservation)
{
	size_t parts = count_parts(reservation);

	world_call(world, control_reservation_release, world_text(reservation, "id"), NULL);
	for (size_t i = 0; i < parts; i++) {
		const json_t *part = part_of(reservation, i);
		struct world_node *node = node_of(nodes, count, world_text(part, "nodeId"));

		world_store_spec(world, node);
		world_released(world, node, world_text(part, "id"));
	}
}

static bool count_bookings_body(struct store_connection *db, void *argument, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	int64_t *count = argument;

	if (!store_query(db, "SELECT count(*) FROM bookings", STORE_NO_PARAMS, &rows, error))
		return false;
	*count = store_get_int(&rows, 0, 0);
	return true;
}

static int64_t count_bookings(struct world *world)
{
	int64_t count = 0;
	struct error error;

	expect_ok(store_run(world->control.connection, STORE_READ, count_bookings_body, &count,
			    &error),
		  &error);
	return count;
}

struct label {
	const char *node, *name, *value;
	int64_t system;
};

static bool label_body(struct store_connection *db, void *argument, struct error *error)
{
	const struct label *label = argument;

	return store_exec(db,
			  "INSERT INTO node_labels (node, name, value, system) VALUES ($1, $2, $3, "
			  "$4)",
			  STORE_PARAMS(store_text(label->node), store_text(label->name),
				       store_text(label->value), store_int(label->system)),
			  error);
}

static void set_label(struct world *world, const char *node, const char *name, const char *value,
		      bool by_system)
{
	struct label label = {node, name, value, by_system};
	struct error error;

	expect_ok(store_run(world->control.connection, STORE_WRITE, label_body, &label, &error),
		  &error);
}

static void set_rack(struct world *world, const struct world_node *node, const char *rack)
{
	set_label(world, node->id, "bc.dev/topology.rack", rack, false);
}

/* --- two gangs on four nodes --- */

/* proves: GANG-1 GANG-2 GANG-3 GANG-8 GANG-10 */
static void test_of_two_gangs_one_runs_and_one_waits_holding_nothing(void **state)
{
	struct world *world = *state;
	struct world_node nodes[4];
	json_t *first, *second, *preview, *longer, *brief;

	for (size_t i = 0; i < 4; i++)
		world_ready(world, &nodes[i], 8);
	first = reserve_gang(world, 3, 8, "2h", "");
	assert_string_equal(world_text(first, "state"), "placed");
	assert_int_equal(world_int(first, "gang.nodes"), 3);
	assert_int_equal(count_parts(first), 3);
	bind_all(world, nodes, 4, first);
	second = reserve_gang(world, 3, 8, "1h", "");
	assert_string_equal(world_text(second, "state"), "pending");
	assert_int_equal(json_array_size(json_object_get(second, "allocations")), 0);
	assert_int_equal(count_bookings(world), 24);
	/* The fourth node is for who is gone when the first gang ends, and for nobody else. */
	preview =
		world_call(world, control_capacity_preview, NULL,
			   "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":"
			   "\"gpu\",\"count\":8}],\"duration\":\"3h\",\"binding\":\"kubernetes\"}",
			   world->tenant, world->pool);
	assert_false(world_int(preview, "fits"));
	assert_string_equal(world_text(preview, "state"), "pending");
	/* When the second gang has what it waits for, a node is left over. */
	assert_string_equal(world_text(preview, "firstFitAt"), world_text(first, "endAt"));
	longer = reserve_for(world, 8, "3h");
	assert_string_equal(world_text(longer, "state"), "pending");
	for (size_t i = 0; i < 2; i++)
		if (str_equal(world_text(json_array_get(json_object_get(longer, "reasons"), i),
					 "reason"),
			      "WaitingGang"))
			break;
		else
			assert_true(i == 0);
	brief = reserve_for(world, 8, "1h");
	assert_string_equal(world_text(brief, "state"), "placed");
	/* The first one is given back: the second runs, whole, and the one behind it waits on. */
	release_all(world, nodes, 4, first);
	world_tick(world);
	second = world_reservation(world, world_text(second, "id"));
	assert_string_equal(world_text(second, "state"), "placed");
	assert_int_equal(count_parts(second), 3);
	assert_string_equal(state_of(world, longer), "pending");
	bind_all(world, nodes, 4, second);
	release_all(world, nodes, 4, second);
	assert_string_equal(state_of(world, second), "released");
	world_tick(world);
	assert_string_equal(state_of(world, longer), "placed");
}

/* proves: GANG-9 */
static void test_a_gang_ends_as_one(void **state)
{
	struct world *world = *state;
	struct world_node nodes[3];
	json_t *gang, *now;

	for (size_t i = 0; i < 3; i++)
		world_ready(world, &nodes[i], 8);
	gang = reserve_gang(world, 3, 4, "1h", "");
	bind_all(world, nodes, 3, gang);
	database_advance(HOUR_MS);
	for (size_t i = 0; i < 3; i++)
		world_heartbeat(world, &nodes[i]);
	world_tick(world);
	now = world_reservation(world, world_text(gang, "id"));
	assert_string_equal(world_text(now, "state"), "released");
	assert_string_equal(world_text(now, "conditions.0.type"), "DevicesHeld");
	for (size_t i = 0; i < 3; i++) {
		world_store_spec(world, &nodes[i]);
		now = world_reservation(world, world_text(gang, "id"));
		assert_string_equal(world_text(now, "conditions.0.type"), "DevicesHeld");
		world_released(world, &nodes[i], world_text(part_on(gang, nodes[i].id), "id"));
	}
	now = world_reservation(world, world_text(gang, "id"));
	assert_int_equal(json_array_size(json_object_get(now, "conditions")), 0);
	assert_int_equal(count_bookings(world), 0);
}

/* --- parts that fail --- */

/* proves: GANG-4 GANG-9 GANG-11 RES-16 */
static void test_a_part_that_fails_is_placed_again_with_the_rest(void **state)
{
	struct world *world = *state;
	struct world_node nodes[6];
	json_t *gang, *now;
	struct world_node *failing;
	const char *lost;

	/* Racks of three; the last node says nothing of its rack. */
	for (size_t i = 0; i < 6; i++) {
		world_ready(world, &nodes[i], 8);
		if (i < 5)
			set_rack(world, &nodes[i], i < 3 ? "r1" : "r2");
	}
	world_refused(world, control_reservation_create, NULL, ERROR_INVALID_INPUT, "same",
		      "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\","
		      "\"count\":1}],\"duration\":\"1h\",\"binding\":\"kubernetes\",\"gang\":{"
		      "\"nodes\":2,\"topology\":{\"same\":\"row\"}}}",
		      world->tenant, world->pool);
	/* The smaller rack has two, so it is taken; a third part makes it the larger one. */
	gang = reserve_gang(world, 2, 8, "1h", ",\"topology\":{\"same\":\"rack\"}");
	assert_string_equal(world_text(gang, "gang.topology.same"), "rack");
	for (size_t i = 0; i < 2; i++)
		assert_true(node_of(nodes, 6, world_text(part_of(gang, i), "nodeId")) >= &nodes[3]);
	world_call(world, control_reservation_release, world_text(gang, "id"), NULL);
	database_advance(1);
	world_call(
		world, control_reservation_create, NULL,
		"{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\",\"count\""
		":8}],\"duration\":\"1h\",\"binding\":\"kubernetes\",\"gang\":{\"nodes\":2,"
		"\"topology\":{\"same\":\"rack\"}}}",
		world->tenant, world->pool);
	gang = reserve_gang(world, 2, 8, "1h", ",\"topology\":{\"same\":\"rack\"}");
	assert_string_equal(world_text(gang, "state"), "placed");
	/* The third node of the rack takes over from one that fails. */
	failing = node_of(nodes, 6, world_text(part_of(gang, 0), "nodeId"));
	assert_true(failing < &nodes[3]);
	lost = world_text(part_of(gang, 0), "id");
	world_store_spec(world, failing);
	world_failed(world, failing, lost, "resources-exhausted");
	now = world_reservation(world, world_text(gang, "id"));
	assert_string_equal(world_text(now, "state"), "placed");
	assert_int_equal(count_parts(now), 2);
	for (size_t i = 0; i < 2; i++) {
		const struct world_node *node =
			node_of(nodes, 6, world_text(part_of(now, i), "nodeId"));

		assert_true(node < &nodes[3] && node != failing);
	}
	/* The next failure leaves too few of the rack: all of it waits, and holds nothing. */
	failing = node_of(nodes, 6, world_text(part_of(now, 0), "nodeId"));
	world_store_spec(world, failing);
	world_failed(world, failing, world_text(part_of(now, 0), "id"), "resources-exhausted");
	gang = world_reservation(world, world_text(gang, "id"));
	assert_string_equal(world_text(gang, "state"), "pending");
	assert_int_equal(count_parts(gang), 0);
	assert_false(world_has(gang, "endAt"));
	for (size_t i = 0; i < 3; i++) {
		struct control_spec spec;

		world_take_spec(world, &nodes[i], &spec);
		assert_int_equal(spec.assignments_count, 0);
		control_spec_deinit(&spec);
	}
}

/* proves: GANG-5 GANG-9 */
static void test_a_running_gang_that_loses_a_node_is_degraded_as_a_whole(void **state)
{
	struct world *world = *state;
	struct world_node nodes[4];
	json_t *gang, *now;
	struct world_node *gone;
	int64_t events;

	for (size_t i = 0; i < 4; i++)
		world_ready(world, &nodes[i], 8);
	gang = reserve_gang(world, 3, 8, "1h", "");
	bind_all(world, nodes, 4, gang);
	/* A binding that a node can't keep: nothing is taken, nothing is put in its place. */
	gone = node_of(nodes, 4, world_text(part_of(gang, 0), "nodeId"));
	world_failed(world, gone, world_text(part_of(gang, 0), "id"), "atom-lost");
	now = world_reservation(world, world_text(gang, "id"));
	assert_string_equal(world_text(now, "state"), "active");
	assert_string_equal(world_text(now, "conditions.0.reason"), "BindingLost");
	assert_int_equal(count_parts(now), 3);
	events = world_count_events(world, "reservation.state.changed", world_text(gang, "id"));
	world_call(world, control_node_retire, gone->id, "{\"lost\":true}");
	now = world_reservation(world, world_text(gang, "id"));
	assert_string_equal(world_text(now, "state"), "active");
	assert_string_equal(world_text(now, "conditions.0.reason"), "BindingLost");
	assert_string_equal(world_text(now, "conditions.0.causes.0.node"), gone->id);
	assert_int_equal(count_parts(now), 2);
	assert_int_equal(
		world_count_events(world, "reservation.state.changed", world_text(gang, "id")),
		events + 1);
	/* The last one gone, it has failed. */
	for (size_t i = 1; i < 3; i++)
		world_call(world, control_node_retire, world_text(part_of(gang, i), "nodeId"),
			   "{\"lost\":true}");
	assert_string_equal(state_of(world, gang), "failed");
	assert_int_equal(count_bookings(world), 0);
}

/* Before it ran, a lost node is one that failed: the gang goes elsewhere, whole. */
static void test_a_gang_that_is_half_bound_when_a_node_is_lost_is_placed_again(void **state)
{
	struct world *world = *state;
	struct world_node nodes[3];
	json_t *gang, *now;
	const char *bound;
	struct world_node *lost, *other;

	for (size_t i = 0; i < 3; i++)
		world_ready(world, &nodes[i], 8);
	gang = reserve_gang(world, 3, 8, "1h", "");
	lost = node_of(nodes, 3, world_text(part_of(gang, 0), "nodeId"));
	other = node_of(nodes, 3, world_text(part_of(gang, 1), "nodeId"));
	world_bind(world, lost, world_text(part_of(gang, 0), "id"));
	bound = world_text(part_of(gang, 1), "id");
	world_bind(world, other, bound);
	world_call(world, control_node_retire, lost->id, "{\"lost\":true}");
	now = world_reservation(world, world_text(gang, "id"));
	assert_string_equal(world_text(now, "state"), "pending");
	assert_int_equal(count_parts(now), 0);
	/* What was bound goes back when its node says so, and that moves the gang no further. */
	world_store_spec(world, other);
	world_released(world, other, bound);
	assert_string_equal(state_of(world, gang), "pending");
	assert_int_equal(count_bookings(world), 0);
	world_ready(world, lost, 8);
	database_advance(10 * MINUTE_MS);
	for (size_t i = 0; i < 3; i++)
		world_heartbeat(world, &nodes[i]);
	world_tick(world);
	now = world_reservation(world, world_text(gang, "id"));
	assert_string_equal(world_text(now, "state"), "placed");
	bind_all(world, nodes, 3, now);
}

/* --- spot --- */

/* proves: RES-41 RES-42 */
static void test_spot_nodes_take_spot_reservations_only(void **state)
{
	struct world *world = *state;
	struct world_node node, fake;
	json_t *waiting, *spot;

	world_ready(world, &node, 8);
	set_label(world, node.id, "bc.dev/capacity", "spot", true);
	waiting = reserve_for(world, 1, "1h");
	/* No node of the pool could ever take it. */
	assert_string_equal(world_text(waiting, "state"), "denied");
	assert_string_equal(world_text(waiting, "reasons.0.reason"), "SpotOnly");
	spot = world_call(world, control_reservation_create, NULL,
			  "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\","
			  "\"count\":1}],\"duration\":\"1h\",\"binding\":\"kubernetes\",\"spot\":"
			  "true}",
			  world->tenant, world->pool);
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

/* --- what is over --- */

static bool break_body(struct store_connection *db, void *argument, struct error *error)
{
	return store_exec(db, "UPDATE reservations SET state = 'failed' WHERE id = $1",
			  STORE_PARAMS(store_text(argument)), error);
}

/* However it came to be: parts of a reservation that is over are given back.
 * proves: RES-33 */
static void test_nothing_goes_on_for_a_reservation_that_is_over(void **state)
{
	struct world *world = *state;
	struct world_node nodes[2];
	struct error error;
	json_t *gang;

	for (size_t i = 0; i < 2; i++)
		world_ready(world, &nodes[i], 8);
	gang = reserve_gang(world, 2, 8, "1h", "");
	bind_all(world, nodes, 2, gang);
	expect_ok(store_run(world->control.connection, STORE_WRITE, break_body,
			    (void *)world_text(gang, "id"), &error),
		  &error);
	world_tick(world);
	assert_int_equal(count_bookings(world), 16);
	for (size_t i = 0; i < 2; i++) {
		world_store_spec(world, &nodes[i]);
		world_released(world, &nodes[i], world_text(part_on(gang, nodes[i].id), "id"));
	}
	assert_int_equal(count_bookings(world), 0);
	assert_string_equal(state_of(world, gang), "failed");
}

/* --- random schedules --- */

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

/* A node that failed one that came later is none the worse for the gang that waits for it.
 * proves: GANG-10 */
static void test_what_a_later_one_was_refused_still_waits_for_the_gang(void **state)
{
	struct world *world = *state;
	struct world_node nodes[2];
	struct world_node *first;
	json_t *running[2], *gang, *later;

	for (size_t i = 0; i < 2; i++)
		world_ready(world, &nodes[i], 1);
	for (size_t i = 0; i < 2; i++)
		running[i] = reserve_for(world, 1, "10h");
	first = node_of(nodes, 2, world_text(running[0], "allocations.0.nodeId"));
	gang = reserve_gang(world, 2, 1, "1h", "");
	database_advance(1);
	world_call(world, control_reservation_release, world_text(running[0], "id"), NULL);
	later = reserve_for(world, 1, "30m");
	assert_string_equal(world_text(later, "allocations.0.nodeId"), first->id);
	world_store_spec(world, first);
	world_failed(world, first, world_text(later, "allocations.0.id"), "overlap");
	/* The gang could have both nodes as soon as the device has rested. */
	world_call(world, control_reservation_release, world_text(running[1], "id"), NULL);
	world_tick(world);
	assert_string_equal(state_of(world, later), "pending");
	database_advance(ALLOCATION_REST_MS);
	for (size_t i = 0; i < 2; i++)
		world_heartbeat(world, &nodes[i]);
	world_tick(world);
	assert_string_equal(state_of(world, gang), "placed");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_of_two_gangs_one_runs_and_one_waits_holding_nothing),
		WORLD_TEST(test_a_gang_ends_as_one),
		WORLD_TEST(test_a_part_that_fails_is_placed_again_with_the_rest),
		WORLD_TEST(test_a_running_gang_that_loses_a_node_is_degraded_as_a_whole),
		WORLD_TEST(test_a_gang_that_is_half_bound_when_a_node_is_lost_is_placed_again),
		WORLD_TEST(test_spot_nodes_take_spot_reservations_only),
		WORLD_TEST(test_a_label_with_a_capability_s_name_is_no_capability),
		WORLD_TEST(test_nothing_goes_on_for_a_reservation_that_is_over),
		WORLD_TEST(test_random_schedules_keep_to_the_order_and_to_whole_gangs),
		WORLD_TEST(test_what_a_later_one_was_refused_still_waits_for_the_gang),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
