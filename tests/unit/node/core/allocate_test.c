#include "fixture.h"
#include "node/core/allocate.h"

struct world {
	struct scenario scenario;
	struct inventory inventory;
	struct holds holds;
	struct allocate_nvidia nvidia;
	struct allocate_view view;
};

static void world_init(struct world *world)
{
	struct atom a[4], b[1];

	memset(world, 0, sizeof *world);
	fixture_scenario(&world->scenario);
	scenario_inventory(&world->scenario, 0, "test", &world->inventory);
	a[0] = fixture_gpu(&world->inventory, 0);
	a[1] = fixture_slot(&world->inventory, 0);
	a[2] = fixture_slot(&world->inventory, 1);
	a[3] = fixture_mig(&world->inventory, 1);
	b[0] = fixture_gpu(&world->inventory, 1);
	fixture_bind(&world->holds, &world->inventory, ALC_A, a, 4);
	fixture_bind(&world->holds, &world->inventory, ALC_B, b, 1);
	world->view = (struct allocate_view){.holds = &world->holds,
					     .inventory = &world->inventory,
					     .nvidia = &world->nvidia,
					     .class = ATOM_GPU};
}

static void world_deinit(struct world *world)
{
	holds_deinit(&world->holds);
	inventory_deinit(&world->inventory);
	scenario_deinit(&world->scenario);
	allocate_nvidia_deinit(&world->nvidia);
}

static const char *visible_of(const struct world *world, struct atom atom)
{
	return inventory_find_atom(&world->inventory, &atom)->visible;
}

/* proves: DP-20 DP-22 DP-23 DP-24 */
static void test_two_gpus_of_two_allocations(void **state)
{
	char one[HOLDS_ID_SIZE], two[HOLDS_ID_SIZE], wanted[256];
	const char *ids[] = {one, two};
	struct allocate_answer answer = {0};
	struct world world;
	struct error error;

	(void)state;
	world_init(&world);
	fixture_id(one, fixture_gpu(&world.inventory, 0), ALC_A);
	fixture_id(two, fixture_gpu(&world.inventory, 1), ALC_B);
	expect_ok(allocate_decide(&world.view, ids, 2, &answer, &error), &error);
	assert_int_equal(answer.cdi_names.count, 2);
	snprintf(wanted, sizeof wanted, "bcd.dev/gpu=%.*s", (int)(strchr(one, '@') - one), one);
	assert_string_equal(answer.cdi_names.items[0], wanted);
	snprintf(wanted, sizeof wanted, "%s,%s",
		 visible_of(&world, fixture_gpu(&world.inventory, 0)),
		 visible_of(&world, fixture_gpu(&world.inventory, 1)));
	assert_string_equal(buf_text(&answer.visible), wanted);
	assert_string_equal(buf_text(&answer.allocations), ALC_A "," ALC_B);
	allocate_answer_deinit(&answer);
	world_deinit(&world);
}

/* proves: DP-21 DP-53 */
static void test_slots_name_their_gpu_once(void **state)
{
	char one[HOLDS_ID_SIZE], two[HOLDS_ID_SIZE];
	const char *ids[] = {one, two};
	struct allocate_answer answer = {0};
	struct world world;
	struct error error;
	const char *gpu;
	json_t *spec;

	(void)state;
	world_init(&world);
	world.view.class = ATOM_SLOT;
	gpu = visible_of(&world, fixture_slot(&world.inventory, 0));
	spec = json_pack("{s:s, s:[{s:s}, {s:s}]}", "kind", "nvidia.com/gpu", "devices", "name",
			 "0", "name", gpu);
	expect_ok(allocate_nvidia_add(&world.nvidia, spec, &error), &error);
	allocate_nvidia_sort(&world.nvidia);
	json_decref(spec);
	fixture_id(one, fixture_slot(&world.inventory, 0), ALC_A);
	fixture_id(two, fixture_slot(&world.inventory, 1), ALC_A);
	expect_ok(allocate_decide(&world.view, ids, 2, &answer, &error), &error);
	assert_string_equal(buf_text(&answer.visible), gpu);
	assert_string_equal(buf_text(&answer.allocations), ALC_A);
	assert_int_equal(answer.cdi_names.count, 3); /* two slots, one GPU of NVIDIA's spec */
	assert_true(str_starts(answer.cdi_names.items[2], "nvidia.com/gpu=GPU-"));
	allocate_answer_deinit(&answer);
	world_deinit(&world);
}

/* proves: DP-25 DP-26 DP-27 DP-50 */
static void test_refusals_name_the_device(void **state)
{
	char good[HOLDS_ID_SIZE], stale[HOLDS_ID_SIZE], slot[HOLDS_ID_SIZE];
	const char *ids[2] = {good};
	struct allocate_answer answer = {0};
	struct world world;
	struct error error;

	(void)state;
	world_init(&world);
	fixture_id(good, fixture_gpu(&world.inventory, 0), ALC_A);
	fixture_id(stale, fixture_gpu(&world.inventory, 1), ALC_C); /* of another allocation */
	fixture_id(slot, fixture_slot(&world.inventory, 0), ALC_A);
	ids[1] = stale;
	expect_error(allocate_decide(&world.view, ids, 2, &answer, &error), &error,
		     ERROR_INVALID_STATE, "isn't bound");
	assert_non_null(strstr(error.what, stale));
	ids[1] = "nonsense";
	expect_error(allocate_decide(&world.view, ids, 2, &answer, &error), &error,
		     ERROR_INVALID_STATE, "nonsense");
	ids[1] = slot;
	expect_error(allocate_decide(&world.view, ids, 2, &answer, &error), &error,
		     ERROR_INVALID_INPUT, "isn't of class gpu");
	ids[1] = good;
	expect_error(allocate_decide(&world.view, ids, 2, &answer, &error), &error,
		     ERROR_INVALID_INPUT, "asked for twice");
	expect_ok(scenario_set(&world.scenario.gpus.items[0], "ecc=1", 1, &error), &error);
	inventory_deinit(&world.inventory);
	memset(&world.inventory, 0, sizeof world.inventory);
	scenario_inventory(&world.scenario, 0, "test", &world.inventory);
	expect_error(allocate_decide(&world.view, ids, 1, &answer, &error), &error,
		     ERROR_INVALID_STATE, "uncorrectable ECC");
	world_deinit(&world);
}

static void test_other_vendors_specs_add_nothing(void **state)
{
	struct allocate_nvidia nvidia = {0};
	struct error error;
	json_t *spec =
		json_pack("{s:s, s:[{s:s}]}", "kind", "example.com/net", "devices", "name", "0");

	(void)state;
	expect_ok(allocate_nvidia_add(&nvidia, spec, &error), &error);
	assert_int_equal(nvidia.count, 0);
	json_decref(spec);
	spec = json_array();
	assert_false(allocate_nvidia_add(&nvidia, spec, &error));
	json_decref(spec);
	allocate_nvidia_deinit(&nvidia);
}

/* Bound, and yet in somebody's hands by another name: of a slot the slot alone. proves: DP-42 REL-4 */
static void test_what_another_pod_has_is_refused(void **state)
{
	char one[HOLDS_ID_SIZE], old[HOLDS_ID_SIZE];
	const char *ids[] = {one};
	const struct strays_holder holder = {old, "uid-1", "default/old (main)"};
	const struct releases none = {0};
	struct allocate_answer answer = {0};
	struct strays strays = {0};
	struct strays_view view;
	struct world world;
	struct error error;

	(void)state;
	world_init(&world);
	view = (struct strays_view){.holds = &world.holds,
				    .releases = &none,
				    .inventory = &world.inventory,
				    .holders = &holder,
				    .holder_count = 1};
	world.view.class = ATOM_SLOT;
	world.view.strays = &strays;
	fixture_id(old, fixture_slot(&world.inventory, 1), ALC_C);
	strays_decide(&view, &(struct strays){0}, &strays);
	fixture_id(one, fixture_slot(&world.inventory, 0), ALC_A);
	expect_ok(allocate_decide(&world.view, ids, 1, &answer, &error), &error);
	allocate_answer_deinit(&answer);
	fixture_id(one, fixture_slot(&world.inventory, 1), ALC_A);
	assert_false(allocate_decide(&world.view, ids, 1, &answer, &error));
	assert_int_equal(error.code, ERROR_INVALID_STATE);
	assert_non_null(strstr(error.what, "is held by default/old (main)"));
	assert_non_null(strstr(error.what, ALC_C));
	strays_deinit(&strays);
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_gpus_of_two_allocations),
		cmocka_unit_test(test_slots_name_their_gpu_once),
		cmocka_unit_test(test_refusals_name_the_device),
		cmocka_unit_test(test_what_another_pod_has_is_refused),
		cmocka_unit_test(test_other_vendors_specs_add_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
