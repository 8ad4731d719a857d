#include "converge_world.h"

/* proves: HOST-3 HOST-4 HOST-12 */
static void test_the_host_has_an_end(void **state)
{
	struct world *world = *state;
	struct atom atom;

	world->view.host = (struct admission_share){.vcpus = 8, .memory_bytes = 100};
	atom = fixture_gpu(&world->inventory, 0);
	fixture_bind(&world->holds, &world->inventory, ALC_A, &atom, 1);
	world->holds.items[0].share.vcpus = 4;
	world->holds.items[0].share.memory_bytes = 60;
	assign(world, ALC_A, atom);
	assign(world, ALC_B, fixture_gpu(&world->inventory, 1));
	world->spec.assignments.items[1].share.vcpus = 4;
	world->spec.assignments.items[1].share.memory_bytes = 40;
	decide(world);
	assert_int_equal(world->plan.binds.count, 1);
	world->spec.assignments.items[1].share.vcpus = 5;
	expect_failure(world, "resources-exhausted");
	world->spec.assignments.items[1].share.vcpus = 4;
	world->spec.assignments.items[1].share.memory_bytes = 41;
	expect_failure(world, "resources-exhausted");
}

/* What waits for its release still has its part of the host: its pods may still use it.
 * proves: HOST-3 */
static void test_a_pending_release_has_its_part(void **state)
{
	struct world *world = *state;
	struct hold released = {.share = {.vcpus = 6, .hugepages = {{4 << 20, 0}}}};
	struct spec_assignment *wanted;

	world->view.host = (struct admission_share){8, 100, {{4 << 20, 0}}};
	str_copy(released.allocation, sizeof released.allocation, ALC_C);
	releases_add(&world->releases, &released, (struct wall){1}, (struct mono){1}, "boot");
	assign(world, ALC_B, fixture_gpu(&world->inventory, 1));
	wanted = &world->spec.assignments.items[0];
	wanted->share.vcpus = 2;
	decide(world);
	assert_int_equal(world->plan.binds.count, 1);
	wanted->share.vcpus = 3;
	expect_failure(world, "resources-exhausted");
	assert_string_equal(world->plan.failures.items[0].message,
			    "vCPU short by 1: 3 asked for, 6 of 8 are booked");
	wanted->share = (struct admission_share){.hugepages = {{2 << 20, 0}}};
	expect_failure(world, "resources-exhausted");
	/* Reported, it has nothing any more. */
	world->releases.entries.items[0].reported = true;
	decide(world);
	assert_int_equal(world->plan.binds.count, 1);
	/* Bound again under its own name it has its part once. */
	world->releases.entries.items[0].reported = false;
	str_copy(wanted->allocation, sizeof wanted->allocation, ALC_C);
	wanted->share = released.share;
	decide(world);
	assert_int_equal(world->plan.binds.count, 1);
}

/* A machine that came back smaller keeps what is bound and takes nothing more.
 * proves: HOST-3 */
static void test_a_smaller_machine_drops_nothing(void **state)
{
	struct world *world = *state;
	struct atom atom = fixture_gpu(&world->inventory, 0);
	struct admission_share booked;
	CLEANUP(buf) struct buf why = {0};

	fixture_bind(&world->holds, &world->inventory, ALC_A, &atom, 1);
	world->holds.items[0].share.vcpus = 8;
	assign(world, ALC_A, atom);
	assign(world, ALC_B, fixture_gpu(&world->inventory, 1));
	world->spec.assignments.items[1].share.vcpus = 1;
	world->view.host = (struct admission_share){.vcpus = 6, .memory_bytes = 1};
	decide(world);
	assert_int_equal(world->plan.releases.count, 0);
	assert_int_equal(world->plan.failures.count, 1);
	assert_string_equal(world->plan.failures.items[0].allocation, ALC_B);
	booked = converge_booked(&world->holds, &world->releases, "");
	assert_true(admission_overbooked(&world->view.host, &booked, &why));
	assert_string_equal(buf_text(&why), "vCPU short by 2: 8 booked, 6 there");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_the_host_has_an_end),
		WORLD_TEST(test_a_pending_release_has_its_part),
		WORLD_TEST(test_a_smaller_machine_drops_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
