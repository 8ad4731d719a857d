#include "converge_world.h"

#define ALC_OLD "alc_01kb00000000000000000000dd"

/* A pod has this atom by a device of that name, as far as the kubelet says. */
static void add_stray(struct world *world, struct strays *strays, struct atom atom,
		      const char *allocation)
{
	char id[HOLDS_ID_SIZE];
	const struct strays_holder holder = {id, "uid-1", "default/old (main)"};
	const struct strays_view view = {
		.holds = &world->holds,
		.releases = &world->releases,
		.inventory = &world->inventory,
		.kubelet = true,
		.answer = RELEASE_ANSWER_FREE,
		.holders = &holder,
		.holder_count = 1,
	};

	fixture_id(id, atom, allocation);
	strays_deinit(strays);
	*strays = (struct strays){0};
	strays_decide(&view, &(struct strays){0}, strays);
	world->view.strays = strays;
}

/* A pod of an earlier life of this node: of every atom that it has, and every one that is wanted.
 * proves: REL-2 REL-4 REL-27 DP-42 */
static void test_what_pods_have_is_nobody_s(void **state)
{
	struct world *world = *state;
	struct strays strays = {0};

	for (size_t i = 0; i < world->inventory.atoms.count; i++)
		for (size_t j = 0; j < world->inventory.atoms.count; j++) {
			const struct inventory_atom *has = &world->inventory.atoms.items[i];
			const struct inventory_atom *wanted = &world->inventory.atoms.items[j];
			bool meet = atom_overlap(has->atom.gpu, has->range, wanted->atom.gpu,
						 wanted->range);
			struct world pair;

			world_init(&pair);
			add_stray(&pair, &strays, has->atom, ALC_OLD);
			assign(&pair, ALC_A, wanted->atom);
			decide(&pair);
			assert_int_equal(pair.plan.binds.count, !meet);
			if (meet) {
				assert_string_equal(pair.plan.failures.items[0].reason, "overlap");
				assert_non_null(strstr(pair.plan.failures.items[0].message,
						       "default/old (main)"));
				assert_non_null(
					strstr(pair.plan.failures.items[0].message, ALC_OLD));
			}
			/* its release begins, as nobody had recorded it */
			assert_int_equal(pair.plan.adoptions.count, 1);
			assert_true(atom_equal(&pair.plan.adoptions.items[0]->atom, &has->atom));
			/* nobody may reset the GPU meanwhile */
			assert_non_null(converge_claimant(&pair.view, has->atom.gpu));
			world_deinit(&pair);
		}
	strays_deinit(&strays);
}

/* A hold that somebody removed: its pods live on, and it is bound again. proves: REL-25 */
static void test_its_own_pods_are_in_nobody_s_way(void **state)
{
	struct world *world = *state;
	struct strays strays = {0};

	add_stray(world, &strays, fixture_gpu(&world->inventory, 0), ALC_A);
	assign(world, ALC_A, fixture_gpu(&world->inventory, 0));
	assign(world, ALC_A, fixture_gpu(&world->inventory, 1));
	decide(world);
	assert_int_equal(world->plan.binds.count, 1);
	assert_int_equal(world->plan.adoptions.count, 0);
	/* with another device only what it has is claimed, and it is adopted */
	world->spec.assignments.items[0].devices.count = 0;
	fixture_assign(&world->spec.assignments.items[0], &world->inventory,
		       fixture_gpu(&world->inventory, 2));
	decide(world);
	assert_int_equal(world->plan.binds.count, 1);
	assert_int_equal(world->plan.adoptions.count, 1);
	strays_deinit(&strays);
}

/* What is bound to another can't be released under a name of before; what is pending is on record already;
 * and nothing is recorded while it may be wanted. */
static void test_what_is_adopted(void **state)
{
	struct world *world = *state;
	struct atom atom = fixture_gpu(&world->inventory, 0);
	struct strays strays = {0};

	fixture_bind(&world->holds, &world->inventory, ALC_A, &atom, 1);
	assign(world, ALC_A, atom);
	add_stray(world, &strays, atom, ALC_OLD);
	decide(world);
	assert_int_equal(world->plan.adoptions.count, 0);
	assert_non_null(converge_claimant(&world->view, atom.gpu));
	atom = fixture_gpu(&world->inventory, 1);
	add_stray(world, &strays, atom, ALC_OLD);
	decide(world);
	assert_int_equal(world->plan.adoptions.count, 1);
	world->view.spec = NULL;
	decide(world);
	assert_int_equal(world->plan.adoptions.count, 0);
	world->view.spec = &world->spec;
	world->view.releases_unreadable = true;
	decide(world);
	assert_int_equal(world->plan.adoptions.count, 0);
	world->view.releases_unreadable = false;
	world->view.inventory_unsure = true;
	decide(world);
	assert_int_equal(world->plan.adoptions.count, 0);
	strays_deinit(&strays);
}

/* Neither bound nor refused. proves: REL-14 */
static void test_nothing_is_bound_before_it_is_known_who_has_it(void **state)
{
	struct world *world = *state;
	struct strays strays = {.unknown = true};

	world->view.strays = &strays;
	assign(world, ALC_A, fixture_gpu(&world->inventory, 0));
	assign(world, ALC_B, fixture_gpu(&world->inventory, 1));
	decide(world);
	assert_int_equal(world->plan.binds.count + world->plan.failures.count, 0);
	assert_string_equal(converge_claimant(&world->view, world->inventory.gpus.items[0].uuid),
			    STRAYS_CLAIMED_BY);
	strays.unknown = false;
	*vec_push(&strays.unseen) = world->inventory.gpus.items[1].uuid;
	decide(world);
	assert_int_equal(world->plan.binds.count, 1);
	assert_string_equal(world->plan.binds.items[0].allocation, ALC_A);
	assert_int_equal(world->plan.failures.count, 0);
	strays_deinit(&strays);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_what_pods_have_is_nobody_s),
		WORLD_TEST(test_its_own_pods_are_in_nobody_s_way),
		WORLD_TEST(test_what_is_adopted),
		WORLD_TEST(test_nothing_is_bound_before_it_is_known_who_has_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
