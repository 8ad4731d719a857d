#include "node/core/outside.h"

#include "fixture.h"

#define READY 20000

struct world {
	struct inventory inventory;
	struct holds holds;
	struct releases releases;
	struct spec spec;
};

/* ALC_A is bound with GPU 0, ALC_B is pending with GPU 1, ALC_C is wanted with slot 0 of GPU 7. */
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
	releases_add(&world->releases, &gone.items[0], (struct wall){1}, (struct mono){1}, "b");
	holds_deinit(&gone);
	fixture_assign(fixture_assignment(&world->spec, ALC_C), &world->inventory,
		       fixture_slot(&world->inventory, 0));
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	holds_deinit(&world->holds);
	releases_deinit(&world->releases);
	spec_deinit(&world->spec);
	inventory_deinit(&world->inventory);
	free(world);
	return 0;
}

static struct outside_view view_of(struct world *world)
{
	return (struct outside_view){
		.worker = true,
		.holds_known = true,
		.live = {&world->spec, &world->holds, &world->releases},
		.answer = RELEASE_ANSWER_FREE,
		.answered = {READY},
		.marked = {5000},
		.given = {READY - RELEASE_SETTLE_MS},
		.kubelet_since = {READY - RELEASE_KUBELET_SETTLE_MS},
	};
}

static void expect_way(const struct outside_view *view, const char *who)
{
	struct outside_plan plan;

	outside_decide(view, &plan);
	if (plan.over || !strstr(plan.who, who))
		fail_msg("over: %d, '%s' is in the way, not '%s'", plan.over, plan.who, who);
}

static bool is_over(const struct outside_view *view)
{
	struct outside_plan plan;

	outside_decide(view, &plan);
	return plan.over;
}

/* proves: REL-36 REL-37 */
static void test_by_device_not_by_name(void **state)
{
	struct world *world = *state;
	struct outside_view view = view_of(world);
	struct outside_holder holder = {.who = "default/p (main)"};
	char id[HOLDS_ID_SIZE];

	assert_true(is_over(&view));
	view.holders = &holder;
	view.holder_count = 1;
	holder.id = id;
	fixture_id(id, fixture_gpu(&world->inventory, 0), ALC_A);
	assert_true(is_over(&view));
	fixture_id(id, fixture_gpu(&world->inventory, 1), ALC_B);
	assert_true(is_over(&view));
	fixture_id(id, fixture_slot(&world->inventory, 0), ALC_C);
	assert_true(is_over(&view));
	/* the same allocations, with what they had before the record was lost */
	fixture_id(id, fixture_gpu(&world->inventory, 2), ALC_A);
	expect_way(&view, "default/p (main) has gpu_");
	fixture_id(id, fixture_gpu(&world->inventory, 2), ALC_B);
	expect_way(&view, ALC_B);
	fixture_id(id, fixture_slot(&world->inventory, 1), ALC_C);
	expect_way(&view, ALC_C);
	/* told before, so free again; another's; nobody's */
	world->releases.entries.items[0].reported = true;
	fixture_id(id, fixture_gpu(&world->inventory, 1), ALC_B);
	expect_way(&view, ALC_B);
	fixture_id(id, fixture_gpu(&world->inventory, 3), "alc_01kb00000000000000000000dd");
	expect_way(&view, "00dd");
	str_copy(id, sizeof id, "odd");
	expect_way(&view, "odd");
}

/* proves: REL-39 */
static void test_whose_gpu(void **state)
{
	struct world *world = *state;
	const struct outside_live live = view_of(world).live;
	struct outside_view view = view_of(world);
	const struct inventory *inventory = &world->inventory;
	struct atom atom;

	assert_true(outside_has_gpu(&live, inventory->gpus.items[0].uuid));
	assert_true(outside_has_gpu(&live, inventory->gpus.items[1].uuid));
	assert_false(outside_has_gpu(&live, inventory->gpus.items[2].uuid));
	/* wanted isn't had: it can't be bound before the marker went */
	assert_false(outside_has_gpu(&live, inventory->gpus.items[7].uuid));
	/* a part of it is enough */
	atom = fixture_slot(inventory, 0);
	fixture_bind(&world->holds, inventory, ALC_C, &atom, 1);
	assert_true(outside_has_gpu(&live, inventory->gpus.items[7].uuid));
	view.process = "process 7 (python) of pod x";
	expect_way(&view, "process 7 (python) of pod x has a GPU open");
}

/* proves: REL-40 REL-41 */
static void test_doubt_is_held(void **state)
{
	struct world *world = *state;
	struct outside_view view = view_of(world);

	view.holds_known = false;
	expect_way(&view, "can't be read");
	view = view_of(world);
	view.inventory_unsure = true;
	expect_way(&view, "GPUs");
	view = view_of(world);
	view.process_error = "open '/proc/1/fd'";
	expect_way(&view, "open '/proc/1/fd'");
	for (int answer = 0; answer < RELEASE_ANSWER_FREE; answer++) {
		view = view_of(world);
		view.answer = (enum release_answer)answer;
		expect_way(&view, "the kubelet");
	}
	/* an answer of too early a question */
	for (int which = 0; which < 3; which++) {
		struct mono *times[] = {&view.marked, &view.given, &view.kubelet_since};
		static const int64_t late[] = {READY, READY - RELEASE_SETTLE_MS,
					       READY - RELEASE_KUBELET_SETTLE_MS};

		view = view_of(world);
		times[which]->ms = late[which];
		assert_true(is_over(&view));
		times[which]->ms++;
		expect_way(&view, "to be asked");
	}
	/* never a worker: not held, whoever doesn't answer */
	view.worker = false;
	view.answer = RELEASE_ANSWER_FAILED;
	assert_true(is_over(&view));
	view.holds_known = false;
	assert_false(is_over(&view));
}

/* Whom the record would have named may run unseen. proves: REL-40 HOSTED-24 */
static void test_without_sight_of_processes(void **state)
{
	struct outside_view view = view_of(*state);

	view.blind = true;
	expect_way(&view, "may run, for up to an hour");
	view.answered.ms = view.marked.ms + OUTSIDE_UNSEEN_MS - 1;
	expect_way(&view, "may run, for up to an hour");
	view.answered.ms++;
	assert_true(is_over(&view));
	view.answer = RELEASE_ANSWER_FAILED;
	expect_way(&view, "the kubelet doesn't say");
	view.worker = false;
	assert_true(is_over(&view));
}

/* A claim's device is known by its tag, with or without its allocation's name. proves: REL-38 */
static void test_claimed_devices(void **state)
{
	struct world *world = *state;
	struct outside_view view = view_of(world);
	char name[DRA_NAME_SIZE], id[HOLDS_ID_SIZE];
	struct outside_holder holder = {.id = id, .who = "claim ns/gpus"};
	static const struct {
		size_t gpu;
		const char *allocation;
		bool live;
	} ROWS[] = {
		{0, ALC_A, true},  {1, ALC_B, true},  {0, ALC_B, false},
		{1, ALC_A, false}, {2, ALC_A, false}, {0, "alc_01kb00000000000000000000dd", false},
	};

	view.holders = &holder;
	view.holder_count = 1;
	for (size_t i = 0; i < ARRAY_SIZE(ROWS); i++) {
		struct atom atom = fixture_gpu(&world->inventory, ROWS[i].gpu);

		dra_name(name, &atom, ROWS[i].allocation);
		str_copy(id, sizeof id, name);
		assert_int_equal(is_over(&view), ROWS[i].live);
		snprintf(id, sizeof id, "%s@%s", name, ROWS[i].allocation);
		assert_int_equal(is_over(&view), ROWS[i].live);
	}
	expect_way(&view, "claim ns/gpus has gpu-");
}

/* proves: REL-9 REL-40 */
static void test_a_record_that_can_not_be_read(void **state)
{
	struct outside_view view = view_of(*state);

	view.record_error = "read 'prepared.json': no";
	expect_way(&view, "the record of prepared claims can't be read: read 'prepared.json': no");
	view.worker = false;
	assert_true(is_over(&view));
}

int main(void)
{
#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_WORLD(test_by_device_not_by_name),
		WITH_WORLD(test_whose_gpu),
		WITH_WORLD(test_doubt_is_held),
		WITH_WORLD(test_without_sight_of_processes),
		WITH_WORLD(test_claimed_devices),
		WITH_WORLD(test_a_record_that_can_not_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
