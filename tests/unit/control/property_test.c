/*
 * A thousand random reservations over overlapping times against a model that knows only two rules:
 * no part of a GPU is booked twice at one time, and a request is refused only when it can't be met.
 */
#include "unit/control/world.h"

#include "base/vec.h"
#include "control/core/timestamp.h"
#include "lib/seed.h"

#include <pthread.h>
#include <stdio.h>

#define NODES        4
#define RESERVATIONS 1000
#define MINUTE_MS    ((int64_t)60 * 1000)
#define HORIZON_MS   (48 * 60 * MINUTE_MS)

/* What the model believes is booked: one row a device. */
struct booked {
	char reservation[ID_SIZE], gpu[40];
	int lo, hi;
	int64_t from_ms, to_ms;
};

struct model VEC_BODY(struct booked);

static bool overlaps(const struct booked *a, const char *gpu, int lo, int hi, int64_t from,
		     int64_t to)
{
	return str_equal(a->gpu, gpu) && a->lo < hi && lo < a->hi && a->from_ms < to &&
	       from < a->to_ms;
}

static bool is_free(const struct model *model, const char *gpu, int lo, int hi, int64_t from,
		    int64_t to)
{
	for (size_t i = 0; i < model->count; i++) {
		if (overlaps(&model->items[i], gpu, lo, hi, from, to))
			return false;
	}
	return true;
}

static void forget(struct model *model, const char *reservation)
{
	for (size_t i = model->count; i-- > 0;) {
		if (str_equal(model->items[i].reservation, reservation))
			vec_remove(model, i);
	}
}

/* The part of its GPU that an atom of the world's nodes takes. */
static void leaves_of(const struct world_node *node, const char *atom, int *lo, int *hi)
{
	const char *slot = strstr(atom, "/s"), *mig = strstr(atom, "/gi");

	*lo = 0;
	*hi = 1024;
	if (slot) {
		*lo = 1024 * atoi(slot + 2) / node->slots;
		*hi = 1024 * (atoi(slot + 2) + 1) / node->slots;
	} else if (mig) {
		*lo = 128 * (atoi(mig + 3) - 7);
		*hi = *lo + 128;
	}
}

/* How many devices of a class one node could give at that time. */
static int count_free(const struct model *model, const struct world_node *node, const char *class,
		      int64_t from, int64_t to)
{
	int count = 0;

	for (int gpu = 0; gpu < node->gpus; gpu++) {
		int parts = str_equal(class, "gpu")        ? 1
			    : str_equal(class, "gpu.slot") ? node->slots
							   : node->migs;

		for (int part = 0; part < parts; part++) {
			int lo = 0, hi = 1024;

			if (str_equal(class, "gpu.slot")) {
				lo = 1024 * part / node->slots;
				hi = 1024 * (part + 1) / node->slots;
			} else if (str_equal(class, "gpu.mig")) {
				lo = 128 * part;
				hi = lo + 128;
			}
			count += is_free(model, node->uuids[gpu], lo, hi, from, to);
		}
	}
	return count;
}

static const struct world_node *node_of(const struct world_node *nodes, const char *id)
{
	for (size_t i = 0; i < NODES; i++) {
		if (str_equal(nodes[i].id, id))
			return &nodes[i];
	}
	fail_msg("no node %s", id);
	return NULL;
}

/* A placed reservation: each device must be one that the model has free. */
static void take(struct model *model, const struct world_node *nodes, const json_t *reservation,
		 int64_t from, int64_t to)
{
	json_t *devices = json_object_get(
		json_array_get(json_object_get(reservation, "allocations"), 0), "devices");
	const struct world_node *node =
		node_of(nodes, world_text(reservation, "allocations.0.nodeId"));

	for (size_t i = 0; i < json_array_size(devices); i++) {
		const json_t *device = json_array_get(devices, i);
		struct booked booked = {.from_ms = from, .to_ms = to};

		str_copy(booked.reservation, ID_SIZE, world_text(reservation, "id"));
		str_copy(booked.gpu, sizeof booked.gpu, world_text(device, "gpu"));
		leaves_of(node, world_text(device, "atom"), &booked.lo, &booked.hi);
		if (!is_free(model, booked.gpu, booked.lo, booked.hi, from, to))
			fail_msg("%s was booked twice", world_text(device, "atom"));
		*vec_push(model) = booked;
	}
}

/* A pending one: no node could give that many, and the reasons say what was short on how many. */
static void check_refusal(const struct model *model, const struct world_node *nodes,
			  const json_t *reservation, const char *class, int count, int64_t from,
			  int64_t to)
{
	int most = 0, largest = -1;
	const json_t *reasons = json_object_get(reservation, "reasons");
	int64_t counted = 0;

	for (size_t i = 0; i < NODES; i++) {
		int here = count_free(model, &nodes[i], class, from, to);

		most = here > most ? here : most;
	}
	if (most >= count)
		fail_msg("%d %s were refused, a node has %d", count, class, most);
	assert_true(json_array_size(reasons) > 0);
	for (size_t i = 0; i < json_array_size(reasons); i++) {
		const json_t *reason = json_array_get(reasons, i);
		const char *name = world_text(reason, "reason");

		assert_true(str_equal(name, "DevicesBusy") ||
			    str_equal(name, "DeviceClassMissing"));
		counted += world_int(reason, "nodes");
		if (world_int(reason, "largest") > largest)
			largest = (int)world_int(reason, "largest");
		if (str_equal(name, "DevicesBusy"))
			assert_true(world_int(reason, "largest") <= most);
	}
	assert_int_equal(counted, NODES);
	assert_true(largest >= most);
}

static int64_t parse_ms(const char *text)
{
	struct wall time;
	struct error error;

	expect_ok(timestamp_parse(text, "time", &time, &error), &error);
	return time.ms;
}

static void make_nodes(struct world *world, struct world_node *nodes)
{
	for (size_t i = 0; i < NODES; i++) {
		world_join(world, &nodes[i]);
		nodes[i].gpus = 4 + (int)i;
		nodes[i].slots = i % 2 ? 4 : 0;
		nodes[i].migs = i % 2 ? 0 : 7;
		/* The host is never what is short here. */
		nodes[i].vcpus = 1000000;
		world_hello(world, &nodes[i], NULL);
		world_inventory(world, &nodes[i]);
		world_conditions(world, &nodes[i], NULL, 0);
	}
}

/* proves: RES-19 RES-50 */
static void test_random_reservations_never_book_twice(void **state)
{
	static const char *const classes[] = {"gpu", "gpu.mig", "gpu.slot"};
	struct world *world = *state;
	struct world_node nodes[NODES];
	struct model model = {0};
	struct seed seed;
	VEC(const char *) placed = {0};
	int refused = 0;

	seed_init(&seed);
	make_nodes(world, nodes);
	for (int i = 0; i < RESERVATIONS; i++) {
		const char *class = classes[seed_below(&seed, 3)];
		int count = 1 + (int)seed_below(&seed, seed_below(&seed, 4) ? 4 : 12);
		int64_t minutes = 30 + (int64_t)seed_below(&seed, 600);
		int64_t from = database_time() +
			       (int64_t)seed_below(&seed, HORIZON_MS / MINUTE_MS) * MINUTE_MS;
		int64_t to = from + minutes * MINUTE_MS;
		char start[TIMESTAMP_SIZE];
		json_t *reservation;

		timestamp_format(start, (struct wall){from});
		reservation = world_call(world, control_reservation_create, NULL,
					 "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{"
					 "\"class\":\"%s\",\"count\":%d}],\"duration\":\"%lldm\","
					 "\"startAt\":\"%s\",\"binding\":\"kubernetes\"}",
					 world->tenant, world->pool, class, count,
					 (long long)minutes, start);
		if (str_equal(world_text(reservation, "state"), "placed")) {
			assert_int_equal(parse_ms(world_text(reservation, "startAt")), from);
			assert_int_equal(parse_ms(world_text(reservation, "endAt")), to);
			take(&model, nodes, reservation, from, to);
			*vec_push(&placed) = world_text(reservation, "id");
		} else {
			check_refusal(&model, nodes, reservation, class, count, from, to);
			refused++;
			if (!str_equal(world_text(reservation, "state"), "denied"))
				world_call(world, control_reservation_cancel,
					   world_text(reservation, "id"), NULL);
		}
		/* Some are given back before they begin. */
		if (placed.count > 0 && seed_below(&seed, 3) == 0) {
			size_t which = (size_t)seed_below(&seed, placed.count);

			world_call(world, control_reservation_release, placed.items[which], NULL);
			forget(&model, placed.items[which]);
			vec_remove(&placed, which);
		}
	}
	print_message("%zu placed at the end, %d refused\n", placed.count, refused);
	assert_true(placed.count > 50 && refused > 50);
	vec_deinit(&placed);
	vec_deinit(&model);
}

/* --- many at once --- */

#define THREADS 4
#define EACH    25

struct racer {
	pthread_t thread;
	struct world *world;
	struct control control;
	int number, placed;
};

static void *race(void *argument)
{
	struct racer *racer = argument;
	struct world *world = racer->world;

	for (int i = 0; i < EACH; i++) {
		char text[512], start[TIMESTAMP_SIZE];
		json_t *body, *answer = NULL;
		struct error error;
		struct control_call call = {.principal = &world->operator};

		timestamp_format(start,
				 (struct wall){DATABASE_EPOCH_MS + (i % 5) * 60 * MINUTE_MS});
		snprintf(text, sizeof text,
			 "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\","
			 "\"count\":3}],\"duration\":\"90m\",\"startAt\":\"%s\",\"binding\":"
			 "\"kubernetes\"}",
			 world->tenant, world->pool, start);
		body = json_loads(text, 0, NULL);
		call.body = body;
		if (!control_reservation_create(&racer->control, &call, &answer, &error)) {
			fprintf(stderr, "%s\n", error.what);
			return racer;
		}
		racer->placed +=
			str_equal(json_string_value(json_object_get(answer, "state")), "placed");
		json_decref(answer);
		json_decref(body);
	}
	return NULL;
}

struct overlap_work {
	int64_t overlaps, rows;
};

static bool overlap_body(struct store_connection *db, void *argument, struct error *error)
{
	struct overlap_work *work = argument;
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(
		    db,
		    "SELECT (SELECT count(*) FROM bookings a JOIN bookings b ON a.gpu = b.gpu "
		    "AND a.allocation < b.allocation AND a.leaf_lo < b.leaf_hi AND b.leaf_lo < "
		    "a.leaf_hi AND a.from_ms < b.to_ms AND b.from_ms < a.to_ms), "
		    "(SELECT count(*) FROM bookings)",
		    STORE_NO_PARAMS, &rows, error))
		return false;
	work->overlaps = store_get_int(&rows, 0, 0);
	work->rows = store_get_int(&rows, 0, 1);
	return true;
}

static void test_racing_workers_never_book_twice(void **state)
{
	struct world *world = *state;
	struct world_node nodes[NODES];
	struct racer racers[THREADS];
	struct overlap_work work;
	int placed = 0;
	struct error error;

	make_nodes(world, nodes);
	for (int i = 0; i < THREADS; i++) {
		char replica[16];

		snprintf(replica, sizeof replica, "worker-%d", i);
		racers[i] = (struct racer){.world = world, .number = i};
		world_connect(world, replica, &racers[i].control);
		pthread_create(&racers[i].thread, NULL, race, &racers[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		void *failed;

		pthread_join(racers[i].thread, &failed);
		assert_null(failed);
		placed += racers[i].placed;
		world_disconnect(&racers[i].control);
	}
	expect_ok(store_run(world->control.connection, STORE_READ, overlap_body, &work, &error),
		  &error);
	assert_int_equal(work.overlaps, 0);
	assert_int_equal(work.rows, 3 * placed);
	/* 4, 5, 6 and 7 GPUs: six at a time, and 90 minutes block two of the five hours. */
	assert_true(placed >= 12);
}

/* SQL that goes around every rule is refused all the same: tests/unit/store has the table. */
static bool steal_body(struct store_connection *db, void *argument, struct error *error)
{
	(void)argument;
	return store_exec(db,
			  "INSERT INTO allocations (id, reservation, node, state, from_ms, to_ms, "
			  "vcpus, memory_bytes, limited, lost_reason, end_reason, created_ms) "
			  "SELECT 'alc_thief', reservation, node, state, from_ms, to_ms, vcpus, "
			  "memory_bytes, limited, lost_reason, end_reason, created_ms "
			  "FROM allocations",
			  STORE_NO_PARAMS, error) &&
	       store_exec(db,
			  "INSERT INTO bookings SELECT 'alc_thief', gpu, leaf_lo + 1, leaf_hi - 1, "
			  "from_ms + 1, to_ms - 1, held FROM bookings",
			  STORE_NO_PARAMS, error);
}

static void test_direct_sql_cannot_book_twice(void **state)
{
	struct world *world = *state;
	struct world_node node;
	struct error error;

	world_ready(world, &node, 1);
	assert_string_equal(world_text(world_reserve(world, 1), "state"), "placed");
	expect_error(store_run(world->control.connection, STORE_WRITE, steal_body, NULL, &error),
		     &error, ERROR_CONFLICT, "bookings_no_overlap");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_random_reservations_never_book_twice),
		WORLD_TEST(test_racing_workers_never_book_twice),
		WORLD_TEST(test_direct_sql_cannot_book_twice),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
