/* What is wanted, bound and pending on the fixture's machine, and what converge decides of it (header only). */
#pragma once

#include "fixture.h"

struct world {
	struct inventory inventory;
	struct spec spec;
	struct holds holds;
	struct releases releases;
	struct converge_view view;
	struct converge_plan plan;
};

static inline void world_init(struct world *world)
{
	memset(world, 0, sizeof *world);
	fixture_inventory(&world->inventory);
	world->view = (struct converge_view){.spec = &world->spec,
					     .holds = &world->holds,
					     .releases = &world->releases,
					     .inventory = &world->inventory};
}

static inline void decide(struct world *world)
{
	converge_plan_deinit(&world->plan);
	memset(&world->plan, 0, sizeof world->plan);
	converge_decide(&world->view, &world->plan);
}

static inline void world_deinit(struct world *world)
{
	converge_plan_deinit(&world->plan);
	releases_deinit(&world->releases);
	holds_deinit(&world->holds);
	spec_deinit(&world->spec);
	inventory_deinit(&world->inventory);
}

static inline int setup(void **state)
{
	struct world *world = mem_alloc(sizeof *world);

	world_init(world);
	*state = world;
	return 0;
}

static inline int teardown(void **state)
{
	world_deinit(*state);
	free(*state);
	return 0;
}

#define WORLD_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static inline void assign(struct world *world, const char *allocation, struct atom atom)
{
	struct spec_assignment *assignment = spec_find(&world->spec, allocation);

	if (!assignment)
		assignment = fixture_assignment(&world->spec, allocation);
	fixture_assign(assignment, &world->inventory, atom);
}

static inline void expect_failure(struct world *world, const char *reason)
{
	decide(world);
	assert_int_equal(world->plan.binds.count, 0);
	assert_int_equal(world->plan.failures.count, 1);
	assert_string_equal(world->plan.failures.items[0].reason, reason);
}
