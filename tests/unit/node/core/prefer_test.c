#include "fixture.h"
#include "node/core/prefer.h"

#define DEVICES 6

/* Six devices: two allocations, two NUMA nodes; every subset of them is tried. */
struct world {
	struct offer offer;
	const char *ids[DEVICES];
};

static void world_init(struct world *world)
{
	static const char *const allocations[DEVICES] = {ALC_A, ALC_A, ALC_A, ALC_A, ALC_B, ALC_B};
	static const int32_t numas[DEVICES] = {0, 0, 1, 1, 0, 1};

	memset(world, 0, sizeof *world);
	world->offer.served = true;
	for (size_t i = 0; i < DEVICES; i++) {
		struct offer_device *device = vec_push(&world->offer.devices);

		snprintf(device->id, sizeof device->id, "gpu_%zu@%s", i, allocations[i]);
		str_copy(device->allocation, sizeof device->allocation, allocations[i]);
		device->numa = numas[i];
		device->health = health_good();
	}
	for (size_t i = 0; i < DEVICES; i++)
		world->ids[i] = world->offer.devices.items[i].id;
}

static size_t pick(const struct world *world, unsigned mask, const char *out[DEVICES])
{
	size_t count = 0;

	for (size_t i = 0; i < DEVICES; i++)
		if (mask >> i & 1)
			out[count++] = world->ids[i];
	return count;
}

static unsigned mask_of(const struct world *world, const char *const *ids, size_t count)
{
	unsigned mask = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < DEVICES; j++)
			if (str_equal(ids[i], world->ids[j])) {
				assert_int_equal(mask >> j & 1, 0); /* each once */
				mask |= 1u << j;
			}
	return mask;
}

static int bits(unsigned mask)
{
	return __builtin_popcount(mask);
}

#define OF_A 0x0fu
#define OF_B 0x30u

/* Every subset of available, must and size: 64 * 64 * 8 requests.
 * proves: DP-28 DP-29 DP-30 DP-49 */
static void test_every_request(void **state)
{
	struct world world;

	(void)state;
	world_init(&world);
	for (unsigned available = 0; available < 1u << DEVICES; available++)
		for (unsigned must = 0; must < 1u << DEVICES; must++)
			for (size_t size = 0; size <= DEVICES + 1; size++) {
				const char *available_ids[DEVICES], *must_ids[DEVICES],
					*out[DEVICES + 1];
				struct prefer_request request = {
					.available = available_ids, .must = must_ids, .size = size};
				unsigned chosen, forced = must & available;
				size_t count;

				request.available_count = pick(&world, available, available_ids);
				request.must_count = pick(&world, must, must_ids);
				count = prefer_decide(&request, &world.offer, out);
				chosen = mask_of(&world, out, count);
				assert_int_equal(bits(chosen), (int)count);
				assert_int_equal(chosen & ~available, 0);
				assert_int_equal(count, size < (size_t)bits(available)
								? size
								: (size_t)bits(available));
				if ((size_t)bits(forced) <= size)
					assert_int_equal(forced & ~chosen, 0);
				/* one allocation would do, so only one is used */
				if (!forced && ((size_t)bits(available & OF_A) >= size ||
						(size_t)bits(available & OF_B) >= size))
					assert_true(!(chosen & OF_A) || !(chosen & OF_B));
				if (forced && !(forced & OF_B) &&
				    (size_t)bits(available & OF_A) >= size &&
				    size >= (size_t)bits(forced))
					assert_int_equal(chosen & OF_B, 0);
			}
	vec_deinit(&world.offer.devices);
}

/* proves: DP-28 */
static void test_stays_on_the_numa_node(void **state)
{
	static const struct {
		unsigned available, must;
		size_t size;
		unsigned wanted;
	} rows[] = {
		{0x0f, 0x00, 2, 0x03}, /* two of A on node 0 */
		{0x0f, 0x04, 2, 0x0c}, /* near what must be in it */
		{0x0e, 0x00, 2, 0x0c}, /* node 1 has two, node 0 one */
		{0x3f, 0x10, 2, 0x30}, /* same allocation before same NUMA node of another */
		{0x31, 0x00, 1, 0x10}, /* B has more free */
		{0x3f, 0x00, 5, 0x1f},
	};
	struct world world;

	(void)state;
	world_init(&world);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *available[DEVICES], *must[DEVICES], *out[DEVICES];
		struct prefer_request request = {
			.available = available, .must = must, .size = rows[i].size};

		request.available_count = pick(&world, rows[i].available, available);
		request.must_count = pick(&world, rows[i].must, must);
		assert_int_equal(mask_of(&world, out, prefer_decide(&request, &world.offer, out)),
				 rows[i].wanted);
	}
	vec_deinit(&world.offer.devices);
}

/* The order that the kubelet asks in changes nothing; doubled ids count once. proves: DP-29 */
static void test_order_and_doubles(void **state)
{
	struct world world;
	const char *forward[] = {NULL, NULL, NULL, NULL}, *out[4], *again[4];
	struct prefer_request request = {.available = forward, .available_count = 4, .size = 3};

	(void)state;
	world_init(&world);
	for (size_t i = 0; i < 4; i++)
		forward[i] = world.ids[i];
	assert_int_equal(prefer_decide(&request, &world.offer, out), 3);
	for (size_t i = 0; i < 4; i++)
		forward[i] = world.ids[3 - i];
	assert_int_equal(prefer_decide(&request, &world.offer, again), 3);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(out[i], again[i]);
	for (size_t i = 0; i < 4; i++)
		forward[i] = "unknown";
	assert_int_equal(prefer_decide(&request, &world.offer, out), 1);
	vec_deinit(&world.offer.devices);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_request),
		cmocka_unit_test(test_stays_on_the_numa_node),
		cmocka_unit_test(test_order_and_doubles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
