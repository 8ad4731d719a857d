#include "converge_world.h"

static void test_binds_what_is_wanted(void **state)
{
	struct world *world = *state;

	assign(world, ALC_A, fixture_gpu(&world->inventory, 0));
	assign(world, ALC_A, fixture_gpu(&world->inventory, 3));
	assign(world, ALC_B, fixture_mig(&world->inventory, 1));
	assign(world, ALC_C, fixture_slot(&world->inventory, 1));
	decide(world);
	assert_int_equal(world->plan.binds.count, 3);
	assert_int_equal(world->plan.failures.count, 0);
	assert_int_equal(world->plan.binds.items[0].devices.count, 2);
	assert_int_equal(world->plan.binds.items[0].common.count, 3);
	/* bound already: nothing to do */
	world->holds = world->plan.binds;
	memset(&world->plan.binds, 0, sizeof world->plan.binds);
	decide(world);
	assert_int_equal(world->plan.binds.count + world->plan.releases.count +
				 world->plan.failures.count,
			 0);
}

/* proves: REL-1 */
static void test_releases_what_is_not_wanted(void **state)
{
	struct world *world = *state;
	struct atom atom = fixture_gpu(&world->inventory, 0);

	fixture_bind(&world->holds, &world->inventory, ALC_A, &atom, 1);
	assign(world, ALC_B, fixture_gpu(&world->inventory, 1));
	decide(world);
	assert_int_equal(world->plan.releases.count, 1);
	assert_string_equal(world->plan.releases.items[0]->allocation, ALC_A);
	/* without a Spec, or without the holds, nothing is decided */
	world->view.spec = NULL;
	decide(world);
	assert_int_equal(world->plan.releases.count + world->plan.binds.count, 0);
	world->view.spec = &world->spec;
	world->view.holds = NULL;
	decide(world);
	assert_int_equal(world->plan.releases.count + world->plan.binds.count, 0);
}

/* Of every pair of atoms: bound one, wanted the other. Refused exactly when they meet.
 * proves: REL-4 */
static void test_no_part_twice(void **state)
{
	struct world *world = *state;

	for (size_t i = 0; i < world->inventory.atoms.count; i++)
		for (size_t j = 0; j < world->inventory.atoms.count; j++) {
			const struct inventory_atom *a = &world->inventory.atoms.items[i];
			const struct inventory_atom *b = &world->inventory.atoms.items[j];
			bool meet = atom_overlap(a->atom.gpu, a->range, b->atom.gpu, b->range);
			struct world pair;

			world_init(&pair);
			fixture_bind(&pair.holds, &pair.inventory, ALC_A, &a->atom, 1);
			assign(&pair, ALC_A, a->atom);
			assign(&pair, ALC_B, b->atom);
			decide(&pair);
			assert_int_equal(pair.plan.binds.count, !meet);
			if (meet) {
				assert_string_equal(pair.plan.failures.items[0].reason, "overlap");
				assert_non_null(strstr(pair.plan.failures.items[0].message, ALC_A));
			}
			/* the same when the first is only pending its release */
			releases_add(&pair.releases, &pair.holds.items[0], (struct wall){0},
				     (struct mono){0}, "b");
			holds_deinit(&pair.holds);
			memset(&pair.holds, 0, sizeof pair.holds);
			str_copy(pair.spec.assignments.items[0].failed, SPEC_REASON_SIZE, "gone");
			decide(&pair);
			assert_int_equal(pair.plan.binds.count, !meet);
			/* reported: free for others */
			pair.releases.entries.items[0].reported = true;
			decide(&pair);
			assert_int_equal(pair.plan.binds.count, 1);
			world_deinit(&pair);
		}
}

/* Two assignments of one Spec for one GPU: the first gets it. */
static void test_one_of_two(void **state)
{
	struct world *world = *state;

	assign(world, ALC_A, fixture_slot(&world->inventory, 1));
	assign(world, ALC_B, fixture_gpu(&world->inventory, 7));
	decide(world);
	assert_int_equal(world->plan.binds.count, 1);
	assert_string_equal(world->plan.failures.items[0].allocation, ALC_B);
}

static void test_failures_have_reasons(void **state)
{
	struct world *world = *state;
	struct atom gone = {.class = ATOM_GPU};

	assign(world, ALC_A, gone);
	world->view.inventory_unsure = true; /* its driver may still tell of it */
	decide(world);
	assert_int_equal(world->plan.failures.count + world->plan.binds.count, 0);
	world->view.inventory_unsure = false;
	expect_failure(world, "unknown-device");
	str_copy(world->spec.assignments.items[0].failed, SPEC_REASON_SIZE, "unknown-device");
	for (int again = 0; again < 2; again++) { /* said once for this generation */
		world->view.again = again;
		decide(world);
		assert_int_equal(world->plan.failures.count, 0);
	}
	world_deinit(world);

	world_init(world);
	assign(world, ALC_A, fixture_mig(&world->inventory, 1));
	str_copy(world->spec.assignments.items[0].devices.items[0].visible, ATOM_VISIBLE_SIZE,
		 "MIG-x");
	expect_failure(world, "atom-replaced");
	assert_non_null(strstr(world->plan.failures.items[0].message, "AtomReplaced"));
	world_deinit(world);

	world_init(world);
	assign(world, ALC_A, fixture_gpu(&world->inventory, 0));
	world->view.releases_unreadable = true;
	expect_failure(world, "overlap");
	/* proves: REL-33 */
	assert_non_null(strstr(world->plan.failures.items[0].message,
			       "(pending Kubernetes releases that could not be read)"));
	world_deinit(world);

	world_init(world);
	assign(world, ALC_A, fixture_gpu(&world->inventory, 0));
	str_copy(world->spec.assignments.items[0].problem, SPEC_PROBLEM_SIZE, "it names no device");
	expect_failure(world, "invalid-assignment");
}

/* Whatever was in the way: once it has gone it is bound, if it is wanted then. Another reason is told.
 * proves: RES-30 */
static void test_what_failed_is_bound_when_nothing_is_in_its_way(void **state)
{
	enum {
		RELEASE,
		MARKER,
		GONE,
		REPLACED,
		SHORT,
		WAYS
	};
	static const char *const reasons[WAYS] = {"overlap", "overlap", "unknown-device",
						  "atom-replaced", "resources-exhausted"};
	struct world *world = *state;

	for (int way = 0; way < WAYS; way++) {
		struct atom atom = fixture_gpu(&world->inventory, 0);
		struct spec_assignment *wanted;
		struct hold old = {0};

		assign(world, ALC_B, atom);
		wanted = &world->spec.assignments.items[0];
		str_copy(wanted->failed, SPEC_REASON_SIZE, reasons[way]);
		wanted->share.vcpus = 4;
		if (way == RELEASE) {
			fixture_bind(&world->holds, &world->inventory, ALC_A, &atom, 1);
			old = world->holds.items[0];
			world->holds.count = 0;
			releases_add(&world->releases, &old, (struct wall){1}, (struct mono){1},
				     "boot");
			hold_deinit(&old);
		}
		world->view.releases_unreadable = way == MARKER;
		world->view.inventory =
			way == GONE ? &(const struct inventory){0} : &world->inventory;
		if (way == REPLACED)
			str_copy(wanted->devices.items[0].visible, ATOM_VISIBLE_SIZE, "GPU-x");
		world->view.host.vcpus = way == SHORT ? 3 : 8;
		world->view.again = true;
		decide(world); /* it is still there */
		assert_int_equal(world->plan.failures.count + world->plan.binds.count, 0);
		world->view.inventory = &world->inventory;
		world->view.releases_unreadable = false;
		world->view.host.vcpus = 8;
		if (way == RELEASE)
			world->releases.entries.items[0].reported = true;
		if (way == REPLACED)
			str_copy(wanted->devices.items[0].visible, ATOM_VISIBLE_SIZE,
				 inventory_find_atom(&world->inventory, &atom)->visible);
		world->view.again = false;
		decide(world); /* the control plane may be withdrawing it */
		assert_int_equal(world->plan.failures.count + world->plan.binds.count, 0);
		world->view.again = true;
		decide(world);
		assert_int_equal(world->plan.binds.count, 1);
		world->view.host.vcpus = 1;
		str_copy(wanted->failed, SPEC_REASON_SIZE, "overlap");
		expect_failure(world, "resources-exhausted");
		world_deinit(world);
		world_init(world);
	}
}

/* proves: REL-34 */
static void test_live_holds_outlive_the_marker(void **state)
{
	struct world *world = *state;
	struct atom atom = fixture_gpu(&world->inventory, 0);

	fixture_bind(&world->holds, &world->inventory, ALC_A, &atom, 1);
	assign(world, ALC_A, atom);
	world->view.releases_unreadable = true;
	decide(world);
	assert_int_equal(world->plan.releases.count + world->plan.failures.count, 0);
}

/* Bound again with other devices its entry would go, and with it the claim on what pods hold. */
static void test_bound_again_with_the_same_devices(void **state)
{
	struct world *world = *state;
	struct atom atom = fixture_gpu(&world->inventory, 0);

	fixture_bind(&world->holds, &world->inventory, ALC_A, &atom, 1);
	releases_add(&world->releases, &world->holds.items[0], (struct wall){0}, (struct mono){0},
		     "b");
	holds_deinit(&world->holds);
	memset(&world->holds, 0, sizeof world->holds);
	assign(world, ALC_A, fixture_gpu(&world->inventory, 1));
	decide(world);
	assert_int_equal(world->plan.binds.count, 0);
	assert_string_equal(world->plan.failures.items[0].reason, "devices-changed");
	world->spec.assignments.items[0].devices.items[0].atom = atom;
	str_copy(world->spec.assignments.items[0].devices.items[0].visible, ATOM_VISIBLE_SIZE,
		 world->releases.entries.items[0].devices.items[0].visible);
	decide(world);
	assert_int_equal(world->plan.binds.count, 1);
}

/* What the record can't take stays bound. */
static void test_the_record_has_an_end(void **state)
{
	struct world *world = *state;
	struct atom atom = fixture_gpu(&world->inventory, 0);

	fixture_bind(&world->holds, &world->inventory, ALC_A, &atom, 1);
	for (int i = 0; i < RELEASES_MAX; i++) {
		struct release_entry *entry = vec_push(&world->releases.entries);

		snprintf(entry->allocation, sizeof entry->allocation, "alc_%026d", i);
	}
	decide(world);
	assert_int_equal(world->plan.releases.count, 0);
	releases_remove(&world->releases, world->releases.entries.items[0].allocation);
	decide(world);
	assert_int_equal(world->plan.releases.count, 1);
}

/* A record that couldn't be read again would claim the whole node: what doesn't fit stays bound, and
 * what is only named as withdrawn is named again.
 * proves: REL-46 */
static void test_the_record_stays_readable(void **state)
{
	struct world *world = *state;
	struct releases back = {0};
	struct buf text = {0};
	struct error error;
	size_t released, named;

	for (int i = 0; i < 8; i++)
		fixture_large_hold(&world->holds, i, HOLDS_MAX_DEVICES);
	decide(world);
	released = world->plan.releases.count;
	assert_in_range(released, 2, 7);
	for (size_t i = 0; i < released; i++)
		releases_add(&world->releases, world->plan.releases.items[i],
			     (struct wall){4102444800000}, (struct mono){INT64_MAX}, "boot");
	for (int i = 0; i < SPEC_MAX_WITHDRAWN; i++)
		snprintf(vec_push(&world->spec.withdrawn)->allocation, ID_SIZE, "alc_%026d",
			 1000 + i);
	named = releases_add_withdrawn(&world->releases, &world->spec, &world->holds,
				       (struct wall){4102444800000}, (struct mono){INT64_MAX},
				       "ffffffff-ffff-ffff-ffff-ffffffffffff")
			? world->releases.entries.count - released
			: 0;
	assert_in_range(named, 1, SPEC_MAX_WITHDRAWN - 1);
	releases_format(&world->releases, &text);
	assert_in_range(text.length, RELEASES_MAX_FILE * 9 / 10, RELEASES_MAX_FILE);
	expect_ok(releases_parse(buf_text(&text), text.length, &back, &error), &error);
	releases_deinit(&back);
	buf_deinit(&text);
	decide(world); /* what is recorded already needs no room */
	assert_int_equal(world->plan.releases.count, released);
}

/* What the hold of an allocation would name now; "" nothing. */
static const char *moved_to(struct world *world, const char *allocation)
{
	const struct hold *hold = holds_find(&world->plan.moves, allocation);

	assert_non_null(hold);
	return hold->devices.items[0].nodes.count ? hold->devices.items[0].nodes.items[0].path : "";
}

/* A number is somebody else's after a GPU went, or a boot: no file may name what is another
 * allocation's by now. proves: DP-50 DP-51 DP-55 */
static void test_device_nodes_that_are_others_now(void **state)
{
	struct world *world = *state;
	struct atom one = fixture_gpu(&world->inventory, 1),
		    two = fixture_gpu(&world->inventory, 2);
	struct atom part = fixture_mig(&world->inventory, 1);
	char visible[ATOM_VISIBLE_SIZE];
	struct inventory_atom *now;

	fixture_bind(&world->holds, &world->inventory, ALC_A, &one, 1);
	fixture_bind(&world->holds, &world->inventory, ALC_B, &two, 1);
	fixture_bind(&world->holds, &world->inventory, ALC_C, &part, 1);
	assign(world, ALC_A, one);
	assign(world, ALC_B, two);
	assign(world, ALC_C, part);
	decide(world);
	assert_int_equal(world->plan.moves.count, 0);
	/* GPU 1 is gone, and GPU 2 moved up; the part is another one */
	world->inventory.gpus.items[1].minor = -1;
	world->inventory.gpus.items[2].minor = 1;
	now = (struct inventory_atom *)inventory_find_atom(&world->inventory, &part);
	str_copy(visible, sizeof visible, now->visible);
	str_copy(now->visible, sizeof now->visible, "MIG-another");
	assert_string_equal(
		offer_health(&world->inventory, &world->holds.items[1].devices.items[0]).cause,
		"moved: its device node is another one now");
	world->view.inventory_unsure = true;
	decide(world);
	assert_int_equal(world->plan.moves.count, 0);
	world->view.inventory_unsure = false;
	for (int known = 1; known >= 0; known--) { /* with a Spec and without */
		world->view.spec = known ? &world->spec : NULL;
		decide(world);
		assert_int_equal(world->plan.moves.count, 3);
		assert_string_equal(moved_to(world, ALC_A), "");
		assert_string_equal(moved_to(world, ALC_B), "/dev/nvidia1");
		assert_string_equal(moved_to(world, ALC_C), "");
		assert_int_equal(world->plan.moves.items[1].common.count, 3);
	}
	/* written: there is nothing more to do, until it is back where it was */
	holds_deinit(&world->holds);
	world->holds = world->plan.moves;
	memset(&world->plan.moves, 0, sizeof world->plan.moves);
	decide(world);
	assert_int_equal(world->plan.moves.count, 0);
	assert_true(
		offer_health(&world->inventory, &world->holds.items[1].devices.items[0]).healthy);
	str_copy(now->visible, sizeof now->visible, visible);
	decide(world);
	assert_int_equal(world->plan.moves.count, 1);
	assert_int_equal(world->plan.moves.items[0].devices.items[0].nodes.count, 3);
	/* what is being released is not written again */
	world->view.spec = &world->spec;
	spec_deinit(&world->spec);
	world->spec = (struct spec){0};
	decide(world);
	assert_int_equal(world->plan.releases.count, 3);
	assert_int_equal(world->plan.moves.count, 0);
	world->view.spec = NULL;
	releases_add(&world->releases, &world->holds.items[2], (struct wall){0}, (struct mono){0},
		     "boot");
	decide(world);
	assert_int_equal(world->plan.moves.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_binds_what_is_wanted),
		WORLD_TEST(test_releases_what_is_not_wanted),
		WORLD_TEST(test_no_part_twice),
		WORLD_TEST(test_one_of_two),
		WORLD_TEST(test_failures_have_reasons),
		WORLD_TEST(test_what_failed_is_bound_when_nothing_is_in_its_way),
		WORLD_TEST(test_live_holds_outlive_the_marker),
		WORLD_TEST(test_bound_again_with_the_same_devices),
		WORLD_TEST(test_device_nodes_that_are_others_now),
		WORLD_TEST(test_the_record_has_an_end),
		WORLD_TEST(test_the_record_stays_readable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
