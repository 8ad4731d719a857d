#include "fixture.h"

struct world {
	struct scenario scenario;
	struct inventory inventory;
	struct holds holds;
	struct offers before, now;
	struct offer_view view;
};

static void world_init(struct world *world)
{
	struct atom atoms[3];

	memset(world, 0, sizeof *world);
	fixture_scenario(&world->scenario);
	scenario_inventory(&world->scenario, 0, "test", &world->inventory);
	atoms[0] = fixture_gpu(&world->inventory, 0);
	atoms[1] = fixture_gpu(&world->inventory, 5);
	atoms[2] = fixture_mig(&world->inventory, 2);
	fixture_bind(&world->holds, &world->inventory, ALC_A, atoms, 3);
	world->view = (struct offer_view){.holds = &world->holds,
					  .inventory = &world->inventory,
					  .before = &world->before,
					  .enabled = true};
}

static void decide(struct world *world)
{
	offers_deinit(&world->before);
	world->before = world->now;
	memset(&world->now, 0, sizeof world->now);
	offer_decide(&world->view, &world->now);
}

static void reread(struct world *world)
{
	inventory_deinit(&world->inventory);
	memset(&world->inventory, 0, sizeof world->inventory);
	scenario_inventory(&world->scenario, 0, "test", &world->inventory);
}

static void world_deinit(struct world *world)
{
	offers_deinit(&world->before);
	offers_deinit(&world->now);
	holds_deinit(&world->holds);
	inventory_deinit(&world->inventory);
	scenario_deinit(&world->scenario);
}

static const struct offer_device *find(struct world *world, struct atom atom)
{
	char id[HOLDS_ID_SIZE];

	fixture_id(id, atom, ALC_A);
	return offer_find(&world->now.classes[atom.class], id);
}

/* proves: DP-4 DP-5 DP-7 DP-9 */
static void test_exactly_the_holds(void **state)
{
	struct world world;

	(void)state;
	world_init(&world);
	decide(&world);
	assert_int_equal(world.now.classes[ATOM_GPU].devices.count, 2);
	assert_int_equal(world.now.classes[ATOM_MIG].devices.count, 1);
	assert_int_equal(find(&world, fixture_gpu(&world.inventory, 0))->numa, 0);
	assert_int_equal(find(&world, fixture_gpu(&world.inventory, 5))->numa, 1);
	assert_int_equal(find(&world, fixture_mig(&world.inventory, 2))->numa, 1);
	assert_true(find(&world, fixture_gpu(&world.inventory, 0))->health.healthy);
	assert_null(find(&world, fixture_gpu(&world.inventory, 1)));
	/* proves: DP-48: never offered, so not served */
	assert_false(world.now.classes[ATOM_SLOT].served);
	world_deinit(&world);
}

/* proves: DP-10 DP-13 DP-14 */
static void test_health_goes_and_comes_back(void **state)
{
	struct world world;
	struct error error;

	(void)state;
	world_init(&world);
	expect_ok(scenario_set(&world.scenario.gpus.items[0], "xid=79", 1, &error), &error);
	reread(&world);
	decide(&world);
	assert_string_equal(find(&world, fixture_gpu(&world.inventory, 0))->health.cause,
			    "XID 79: fell off the bus");
	assert_true(find(&world, fixture_gpu(&world.inventory, 5))->health.healthy);
	assert_int_equal(offer_healthy_count(&world.now.classes[ATOM_GPU]), 1);
	expect_ok(scenario_set(&world.scenario.gpus.items[0], "xid=none", 1, &error), &error);
	reread(&world);
	decide(&world);
	assert_true(find(&world, fixture_gpu(&world.inventory, 0))->health.healthy);
	world_deinit(&world);
}

/* proves: DP-51 */
static void test_replaced_instance_is_not_the_bound_one(void **state)
{
	struct world world;
	struct error error;
	struct atom bound;

	(void)state;
	world_init(&world);
	bound = fixture_mig(&world.inventory, 2);
	expect_ok(scenario_set(&world.scenario.gpus.items[6], "mig=3g.40gb@0,1g.10gb@4", 8, &error),
		  &error);
	reread(&world);
	decide(&world);
	assert_non_null(strstr(find(&world, bound)->health.cause, "AtomReplaced"));
	expect_ok(scenario_set(&world.scenario.gpus.items[6], "mig=none", 8, &error), &error);
	reread(&world);
	decide(&world);
	assert_non_null(strstr(find(&world, bound)->health.cause, "gone"));
	world_deinit(&world);
}

/* Whoever waits for the kubelet to write its checkpoint has nothing bound after a restart, and needs a plugin all
 * the same. proves: REL-18 */
static void test_an_awaited_list(void **state)
{
	struct world world;

	(void)state;
	world_init(&world);
	holds_deinit(&world.holds);
	memset(&world.holds, 0, sizeof world.holds);
	decide(&world);
	assert_false(world.now.classes[ATOM_GPU].served);
	world.view.list_awaited = true;
	decide(&world);
	assert_true(world.now.classes[ATOM_GPU].served);
	assert_int_equal(world.now.classes[ATOM_GPU].devices.count, 0);
	assert_false(world.now.classes[ATOM_MIG].served);
	world.view.enabled = false;
	decide(&world);
	assert_false(world.now.classes[ATOM_GPU].served);
	world_deinit(&world);
}

/* proves: DP-48 */
static void test_an_empty_list_keeps_its_plugin(void **state)
{
	struct world world;

	(void)state;
	world_init(&world);
	decide(&world);
	holds_deinit(&world.holds);
	memset(&world.holds, 0, sizeof world.holds);
	decide(&world);
	assert_true(world.now.classes[ATOM_GPU].served);
	assert_int_equal(world.now.classes[ATOM_GPU].devices.count, 0);
	assert_true(world.now.classes[ATOM_MIG].served);
	/* proves: DP-38: another API takes all of them away */
	world.view.enabled = false;
	decide(&world);
	assert_false(world.now.classes[ATOM_GPU].served);
	world_deinit(&world);
}

/* proves: DP-56 */
static void test_unreadable_holds_are_not_released_holds(void **state)
{
	struct world world;

	(void)state;
	world_init(&world);
	decide(&world);
	world.view.holds = NULL;
	world.view.holds_error = "bcd.dev-x.json: line 3";
	decide(&world);
	assert_int_equal(world.now.classes[ATOM_GPU].devices.count, 2);
	assert_int_equal(offer_healthy_count(&world.now.classes[ATOM_GPU]), 0);
	decide(&world); /* and again: the list doesn't wear out */
	assert_int_equal(world.now.classes[ATOM_GPU].devices.count, 2);
	world.view.holds = &world.holds;
	decide(&world);
	assert_int_equal(offer_healthy_count(&world.now.classes[ATOM_GPU]), 2);
	world_deinit(&world);
}

/* proves: DP-33 */
static void test_same_holds_same_list(void **state)
{
	struct world world;

	(void)state;
	world_init(&world);
	decide(&world);
	decide(&world);
	for (size_t i = 0; i < ATOM_CLASSES; i++)
		assert_true(offer_equal(&world.before.classes[i], &world.now.classes[i]));
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exactly_the_holds),
		cmocka_unit_test(test_an_awaited_list),
		cmocka_unit_test(test_health_goes_and_comes_back),
		cmocka_unit_test(test_replaced_instance_is_not_the_bound_one),
		cmocka_unit_test(test_an_empty_list_keeps_its_plugin),
		cmocka_unit_test(test_unreadable_holds_are_not_released_holds),
		cmocka_unit_test(test_same_holds_same_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
