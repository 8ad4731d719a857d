#include "node/core/strays.h"

#include "fixture.h"

#define ALC_OLD "alc_01kb00000000000000000000dd"
#define READY   20000

struct world {
	struct inventory inventory;
	struct holds holds;
	struct releases releases;
	struct strays_holder holder;
	struct strays_process process;
	struct strays_view view;
	struct strays strays;
	char id[HOLDS_ID_SIZE];
};

/* ALC_A is bound with GPU 0, ALC_B is pending with GPU 1. */
static int setup(void **state)
{
	struct world *world = mem_alloc(sizeof *world);
	struct holds gone = {0};
	struct atom atom;

	fixture_inventory(&world->inventory);
	atom = fixture_gpu(&world->inventory, 0);
	fixture_bind(&world->holds, &world->inventory, ALC_A, &atom, 1);
	atom = fixture_gpu(&world->inventory, 1);
	fixture_bind(&gone, &world->inventory, ALC_B, &atom, 1);
	releases_add(&world->releases, &gone.items[0], (struct wall){5000}, (struct mono){1}, "b");
	holds_deinit(&gone);
	world->holder = (struct strays_holder){world->id, "uid-1", "default/p (main)"};
	world->view = (struct strays_view){
		.holds = &world->holds,
		.releases = &world->releases,
		.inventory = &world->inventory,
		.kubelet = true,
		.answer = RELEASE_ANSWER_FREE,
		.answered = {READY},
		.holders = &world->holder,
		.processes = &world->process,
		.now = {1000000},
	};
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	strays_deinit(&world->strays);
	holds_deinit(&world->holds);
	releases_deinit(&world->releases);
	inventory_deinit(&world->inventory);
	free(world);
	return 0;
}
#define WORLD_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static void decide(struct world *world)
{
	struct strays before = world->strays;

	world->strays = (struct strays){0};
	strays_decide(&world->view, &before, &world->strays);
	strays_deinit(&before);
}

/* The pod has this atom under the allocation's name. */
static void hold(struct world *world, struct atom atom, const char *allocation)
{
	fixture_id(world->id, atom, allocation);
	world->view.holder_count = 1;
	decide(world);
}

static const struct stray *find(const struct world *world, const struct inventory_atom *atom,
				const char *allocation)
{
	return strays_find(&world->strays, atom->atom.gpu, atom->range, allocation);
}

/* Of every atom that a pod of an earlier life has, and every one that is wanted: in the way exactly when they
 * meet, and never in its own pods' way. proves: REL-2 REL-4 DP-42 */
static void test_every_pair(void **state)
{
	struct world *world = *state;

	vec_each (&world->inventory.atoms, const struct inventory_atom *has) {
		hold(world, has->atom, ALC_OLD);
		assert_int_equal(world->strays.items.count, 1);
		vec_each (&world->inventory.atoms, const struct inventory_atom *wanted) {
			bool meet = atom_overlap(has->atom.gpu, has->range, wanted->atom.gpu,
						 wanted->range);
			const struct stray *stray = find(world, wanted, ALC_C);

			assert_int_equal(stray != NULL, meet);
			assert_null(find(world, wanted, ALC_OLD));
			if (!stray)
				continue;
			assert_non_null(strstr(stray->who, "default/p (main), which has gpu_"));
			assert_non_null(strstr(stray->who, ALC_OLD));
			assert_non_null(strstr(stray->who, "since 1970-01-01T00:16:40Z"));
		}
	}
}

/* By the very name only: what is bound to somebody else is a stray, too. proves: REL-27 */
static void test_what_is_bound_is_none(void **state)
{
	struct world *world = *state;
	char name[DRA_NAME_SIZE];
	struct atom gpu = fixture_gpu(&world->inventory, 0);
	struct atom other = fixture_gpu(&world->inventory, 3);

	hold(world, gpu, ALC_A);
	assert_int_equal(world->strays.items.count, 0);
	hold(world, gpu, ALC_OLD);
	assert_int_equal(world->strays.items.count, 1);
	hold(world, other, ALC_A);
	assert_int_equal(world->strays.items.count, 1);
	/* by a claim, with its tag alone, as pod-resources lists it */
	dra_name(name, &gpu, ALC_A);
	str_copy(world->id, sizeof world->id, name);
	decide(world);
	assert_int_equal(world->strays.items.count, 0);
	dra_name(name, &gpu, ALC_OLD);
	str_copy(world->id, sizeof world->id, name);
	decide(world);
	assert_int_equal(world->strays.items.count, 1);
}

/* An instance that isn't there any more may be anywhere on its GPU; what can't be read, anywhere. */
static void test_what_can_not_be_told_is_in_the_way(void **state)
{
	struct world *world = *state;
	const struct inventory *inventory = &world->inventory;
	struct atom gone = fixture_mig(inventory, 9), gpu = fixture_gpu(inventory, 5),
		    mig = fixture_mig(inventory, 1);

	hold(world, gone, ALC_OLD);
	assert_non_null(find(world, inventory_find_atom(inventory, &mig), ALC_C));
	assert_null(find(world, inventory_find_atom(inventory, &gpu), ALC_C));
	str_copy(world->id, sizeof world->id, "odd@" ALC_OLD);
	decide(world);
	assert_true(world->strays.items.items[0].anything);
	assert_non_null(find(world, inventory_find_atom(inventory, &gpu), ALC_C));
	assert_non_null(find(world, inventory_find_atom(inventory, &gpu), ALC_OLD));
}

/* A process of a pod that the kubelet says nothing of; not where something is bound or pending, whose own it
 * may be. proves: REL-10 REL-11 REL-12 */
static void test_processes(void **state)
{
	struct world *world = *state;
	const struct inventory *inventory = &world->inventory;
	struct atom gpu;

	world->view.process_count = 1;
	for (size_t k = 0; k < 6; k++) {
		gpu = fixture_gpu(inventory, k);
		world->process = (struct strays_process){gpu.gpu, 77, "uid-1",
							 "process 77 (python) of pod uid-1"};
		decide(world);
		assert_int_equal(world->strays.items.count, k >= 2);
	}
	assert_non_null(strstr(find(world, inventory_find_atom(inventory, &gpu), ALC_C)->who,
			       "process 77"));
	assert_non_null(find(world, inventory_find_atom(inventory, &gpu), ""));
	/* its pod is listed with that GPU: whose it is says the list */
	hold(world, gpu, ALC_OLD);
	assert_int_equal(world->strays.items.count, 1);
	assert_null(find(world, inventory_find_atom(inventory, &gpu), ALC_OLD));
	world->holder.uid = "uid-2";
	decide(world);
	assert_int_equal(world->strays.items.count, 2);
	world->holder.uid = ""; /* not in the checkpoint yet */
	decide(world);
	assert_int_equal(world->strays.items.count, 1);
}

/* As long as it is there, and for what is pending since it was recorded. */
static void test_since_when(void **state)
{
	struct world *world = *state;

	hold(world, fixture_gpu(&world->inventory, 3), ALC_OLD);
	world->view.now.ms = 2000000;
	decide(world);
	assert_int_equal(world->strays.items.items[0].since.ms, 1000000);
	world->view.holder_count = 0;
	decide(world);
	world->view.holder_count = 1;
	decide(world);
	assert_int_equal(world->strays.items.items[0].since.ms, 2000000);
	hold(world, fixture_gpu(&world->inventory, 1), ALC_B);
	assert_int_equal(world->strays.items.items[0].since.ms, 5000);
}

/* Every kind of answer, at every time, with and without a kubelet.
 * proves: REL-9 REL-14 REL-16 REL-17 */
static void test_when_it_is_known(void **state)
{
	struct world *world = *state;
	struct strays_gpu gpu = {.gpu = world->inventory.gpus.items[3].uuid};

	world->view.gpus = &gpu;
	world->view.gpu_count = 1;
	for (int answer = RELEASE_ANSWER_NONE; answer <= RELEASE_ANSWER_FREE; answer++)
		for (int bits = 0; bits < 32; bits++) {
			bool kubelet = bits & 1, unread = bits & 2, looked = bits & 4,
			     gave = bits & 8, early = bits & 16;
			bool whole = answer == RELEASE_ANSWER_FREE && !unread && !(gave && early);

			world->view.answer = (enum release_answer)answer;
			world->view.kubelet = kubelet;
			world->view.record_unread = unread;
			world->view.given.ms = !gave ? 0 : READY - RELEASE_SETTLE_MS + early;
			gpu.looked = looked;
			decide(world);
			assert_int_equal(world->strays.unknown, kubelet && !whole);
			assert_int_equal(strays_known(&world->strays, gpu.gpu),
					 !kubelet || (whole && looked));
			assert_int_equal(
				strays_known(&world->strays, world->inventory.gpus.items[4].uuid),
				!kubelet || whole);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_every_pair),
		WORLD_TEST(test_what_is_bound_is_none),
		WORLD_TEST(test_what_can_not_be_told_is_in_the_way),
		WORLD_TEST(test_processes),
		WORLD_TEST(test_since_when),
		WORLD_TEST(test_when_it_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
