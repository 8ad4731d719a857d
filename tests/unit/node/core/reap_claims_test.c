#include "reap_scene.h"

/* Whose claim it is, only the API server knows; meanwhile nothing is forgotten.
 * proves: REL-21 DRA-32 */
static void test_a_claim_s_pods_are_asked_for(void **state UNUSED)
{
	CLEANUP(reap) struct reap *reap = reap_create();
	CLEANUP(reap_plan) struct reap_plan plan = {0};
	struct reap_deletion deletion;
	struct scene scene;
	struct mono due;

	scene_of(&scene);
	scene.holder = (struct reap_holder){"", "ns", "", "al_1", "gpu-1", "ns/gpus", false};
	scene.view.pods_known = false;
	assert_int_equal(decide(reap, &scene, 10000, NULL), 0);
	assert_int_equal(reap_state(reap, "ns/gpus"), REAP_HOLDING);
	assert_true(reap_next(reap, "ns/gpus", &due));
	assert_int_equal(due.ms, REAP_HOLD_MS);
	scene.view.wall = (struct wall){WALL_START + REAP_HOLD_MS};
	reap_decide(reap, &scene.view, at(REAP_HOLD_MS), &plan);
	assert_true(plan.need_pods);
	/* the list has come, and the shell says who names it */
	scene.holder.uid = "u-1";
	scene.view.pods_known = true;
	assert_int_equal(decide(reap, &scene, REAP_HOLD_MS + 100, &deletion), 1);
	assert_string_equal(deletion.uid, "u-1");
	reap_told(reap, "u-1", REAP_DELETED, at(REAP_HOLD_MS + 200));
	/* it has grown old: the pod is still the one that was asked to go */
	scene.holder.uid = "";
	scene.view.pods_known = false;
	assert_int_equal(decide(reap, &scene, REAP_HOLD_MS + 9000, NULL), 0);
	assert_int_equal(reap_state(reap, "ns/gpus"), REAP_ASKED);
	reap_plan_deinit(&plan);
	reap_decide(reap, &scene.view, at(REAP_HOLD_MS + 200 + REAP_FORCE_MS), &plan);
	assert_true(plan.need_pods);
	scene.holder.uid = "u-1";
	scene.view.pods_known = true;
	assert_int_equal(decide(reap, &scene, REAP_HOLD_MS + 300 + REAP_FORCE_MS, &deletion), 1);
	assert_true(deletion.forced);
	reap_told(reap, "u-1", REAP_DELETED, at(REAP_HOLD_MS + 400 + REAP_FORCE_MS));
	assert_int_equal(reap_state(reap, "ns/gpus"), REAP_FORCED);
	/* unprepared */
	scene.view.holders_count = 0;
	assert_int_equal(decide(reap, &scene, REAP_HOLD_MS + 500 + REAP_FORCE_MS, NULL), 0);
	assert_true(reap_idle(reap));
}

/* Nobody is deleted for it, and the API server isn't asked all the time. */
static void test_a_claim_that_no_pod_names(void **state UNUSED)
{
	CLEANUP(reap) struct reap *reap = reap_create();
	struct scene scene;
	struct mono due;

	scene_of(&scene);
	scene.holder = (struct reap_holder){"", "ns", "", "al_1", "gpu-1", "ns/gpus", false};
	scene.view.pods_asked = at(REAP_HOLD_MS);
	for (int64_t ms = REAP_HOLD_MS; ms < REAP_HOLD_MS + REAP_ORPHAN_MS; ms += 1000) {
		CLEANUP(reap_plan) struct reap_plan plan = {0};

		scene.view.pods_known = ms == REAP_HOLD_MS;
		reap_decide(reap, &scene.view, at(ms), &plan);
		assert_int_equal(plan.deletions.count, 0);
		assert_false(plan.need_pods);
		assert_int_equal(plan.again.ms, REAP_HOLD_MS + REAP_ORPHAN_MS);
	}
	assert_int_equal(reap_state(reap, "ns/gpus"), REAP_ORPHAN);
	assert_false(reap_next(reap, "ns/gpus", &due));
	assert_false(reap_idle(reap));
}

/* A pod that has devices by two claims is the pod of both, and stays so while one of them is left: what
 * was asked of it isn't asked anew. proves: REL-23 DRA-32 */
static void test_a_pod_of_two_claims(void **state UNUSED)
{
	CLEANUP(reap) struct reap *reap = reap_create();
	struct reap_holder holders[] = {
		{"u-1", "ns", "", "al_1", "gpu-1", "ns/one/c-1", false},
		{"u-1", "ns", "", "al_1", "gpu-2", "ns/two/c-2", false},
	};
	struct scene scene;

	scene_of(&scene);
	scene.view.holders = holders;
	scene.view.holders_count = 2;
	assert_int_equal(decide(reap, &scene, REAP_HOLD_MS, NULL), 1);
	reap_told(reap, "u-1", REAP_DELETED, at(REAP_HOLD_MS + 100));
	assert_int_equal(reap_state(reap, "ns/one/c-1"), REAP_ASKED);
	assert_int_equal(reap_state(reap, "ns/two/c-2"), REAP_ASKED);
	/* the first is unprepared while the list of pods is old */
	holders[0] = holders[1];
	holders[0].uid = "";
	scene.view.holders_count = 1;
	scene.view.pods_known = false;
	assert_int_equal(decide(reap, &scene, REAP_HOLD_MS + 9000, NULL), 0);
	assert_int_equal(reap_state(reap, "ns/one/c-1"), REAP_NOTHING);
	assert_int_equal(reap_state(reap, "ns/two/c-2"), REAP_ASKED);
}

/* The claim's pod is found to be another one: the first isn't its pod any more. */
static void test_a_claim_that_changes_hands(void **state UNUSED)
{
	CLEANUP(reap) struct reap *reap = reap_create();
	struct scene scene;

	scene_of(&scene);
	scene.holder = (struct reap_holder){"u-1", "ns", "", "al_1", "gpu-1", "ns/gpus/c-1", false};
	assert_int_equal(decide(reap, &scene, 1000, NULL), 0);
	assert_int_equal(reap_state(reap, "u-1"), REAP_HOLDING);
	scene.holder.uid = "";
	assert_int_equal(decide(reap, &scene, REAP_HOLD_MS, NULL), 0);
	assert_int_equal(reap_state(reap, "u-1"), REAP_NOTHING);
	assert_int_equal(reap_state(reap, "ns/gpus/c-1"), REAP_ORPHAN);
}

/* A list that lacks pods which couldn't be read: whose claim it is, is as it was known, and it is nobody's for that by no
 * means. proves: REL-23 DRA-32 */
static void test_a_list_that_is_partial(void **state UNUSED)
{
	CLEANUP(reap) struct reap *reap = reap_create();
	CLEANUP(reap_plan) struct reap_plan plan = {0};
	struct reap_holder holders[] = {
		{"u-1", "ns", "", "al_1", "gpu-1", "ns/gpus/c-1", false},
		{"u-2", "ns", "", "al_1", "gpu-1", "ns/gpus/c-1", false},
	};
	struct reap_pod pods[] = {{"u-1", "", "ns", "web", false, {0}, 0},
				  {"u-2", "", "ns", "two", false, {0}, 0}};
	struct reap_deletion deletion;
	struct scene scene;

	scene_of(&scene);
	scene.view.holders = holders;
	scene.view.holders_count = 2;
	scene.view.pods = pods;
	scene.view.pods_count = 2;
	assert_int_equal(decide(reap, &scene, REAP_HOLD_MS, NULL), 2);
	reap_told(reap, "u-1", REAP_DELETED, at(REAP_HOLD_MS + 100));
	reap_told(reap, "u-2", REAP_DELETED, at(REAP_HOLD_MS + 100));
	/* the second can't be read */
	scene.view.holders_count = scene.view.pods_count = 1;
	scene.view.pods_partial = true;
	assert_int_equal(decide(reap, &scene, REAP_HOLD_MS + 100 + REAP_FORCE_MS, &deletion), 1);
	assert_string_equal(deletion.uid, "u-1");
	assert_int_equal(reap_state(reap, "u-2"), REAP_ASKED);
	/* nor the first */
	holders[0].uid = "";
	scene.view.pods_count = 0;
	reap_decide(reap, &scene.view, at(REAP_HOLD_MS + 200 + REAP_FORCE_MS), &plan);
	assert_true(plan.need_pods);
	assert_int_equal(reap_state(reap, "u-2"), REAP_ASKED);
	/* nobody was known before */
	reap_plan_deinit(&plan);
	holders[0].claim = "ns/other/c-2";
	reap_decide(reap, &scene.view, at(2 * REAP_HOLD_MS + REAP_FORCE_MS), &plan);
	reap_plan_deinit(&plan);
	reap_decide(reap, &scene.view, at(3 * REAP_HOLD_MS + REAP_FORCE_MS), &plan);
	assert_true(plan.need_pods);
	assert_int_equal(reap_state(reap, "ns/other/c-2"), REAP_HOLDING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_claim_s_pods_are_asked_for),
		cmocka_unit_test(test_a_claim_that_no_pod_names),
		cmocka_unit_test(test_a_pod_of_two_claims),
		cmocka_unit_test(test_a_claim_that_changes_hands),
		cmocka_unit_test(test_a_list_that_is_partial),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
