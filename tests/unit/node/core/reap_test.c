#include "reap_scene.h"

#include "lib/enumerate.h"

#include <stdio.h>

/* proves: REL-21 REL-22 REL-23 */
static void test_asked_then_forced(void **state UNUSED)
{
	CLEANUP(reap) struct reap *reap = reap_create();
	struct reap_deletion deletion;
	struct scene scene;

	scene_of(&scene);
	assert_int_equal(decide(reap, &scene, 10000, NULL), 0);
	assert_int_equal(reap_state(reap, "u-1"), REAP_HOLDING);
	assert_int_equal(decide(reap, &scene, REAP_HOLD_MS - 1, NULL), 0);
	assert_int_equal(decide(reap, &scene, REAP_HOLD_MS, &deletion), 1);
	assert_string_equal(deletion.holder, "u-1");
	assert_string_equal(deletion.uid, "u-1");
	assert_string_equal(deletion.namespace, "ns");
	assert_string_equal(deletion.name, "web");
	assert_string_equal(deletion.allocation, "al_1");
	assert_string_equal(deletion.device, "gpu_1@al_1");
	assert_false(deletion.forced);
	assert_int_equal(decide(reap, &scene, REAP_HOLD_MS + 50, NULL), 0); /* in flight */
	reap_told(reap, "u-1", REAP_DELETED, at(30100));
	assert_int_equal(reap_state(reap, "u-1"), REAP_ASKED);
	assert_int_equal(decide(reap, &scene, 30100 + REAP_FORCE_MS - 1, NULL), 0);
	assert_int_equal(decide(reap, &scene, 30100 + REAP_FORCE_MS, &deletion), 1);
	assert_true(deletion.forced);
	assert_string_equal(deletion.uid, "u-1");
	reap_told(reap, "u-1", REAP_DELETED, at(91000));
	assert_int_equal(reap_state(reap, "u-1"), REAP_FORCED);
	assert_int_equal(decide(reap, &scene, 10000000, NULL), 0); /* it is the kubelet's now */
	scene.view.holders_count = 0;
	assert_int_equal(decide(reap, &scene, 10000001, NULL), 0);
	assert_int_equal(reap_state(reap, "u-1"), REAP_NOTHING);
}

/* What is said of when: it stands, though the clocks are read again, and an attempt fails. */
static void test_times_for_people(void **state UNUSED)
{
	CLEANUP(reap) struct reap *reap = reap_create();
	struct reap_times times;
	struct scene scene;

	scene_of(&scene);
	assert_false(reap_times(reap, "u-1", &times));
	decide(reap, &scene, 10000, NULL);
	assert_true(reap_times(reap, "u-1", &times));
	assert_int_equal(times.done.ms, 0);
	assert_int_equal(times.next.ms, WALL_START + REAP_HOLD_MS);
	decide(reap, &scene, REAP_HOLD_MS, NULL);
	assert_true(reap_times(reap, "u-1", &times)); /* in flight */
	assert_int_equal(times.next.ms, WALL_START + REAP_HOLD_MS);
	reap_told(reap, "u-1", REAP_FAILED, at(30500));
	decide(reap, &scene, 31000, NULL);
	assert_true(reap_times(reap, "u-1", &times));
	assert_int_equal(times.next.ms, WALL_START + REAP_HOLD_MS);
	decide(reap, &scene, 36000, NULL);
	reap_told(reap, "u-1", REAP_DELETED, at(36100));
	scene.view.listed = false; /* what was done is told all the same */
	decide(reap, &scene, 36200, NULL);
	scene.view.wall.ms += 3;
	reap_decide(reap, &scene.view, at(36200), &(struct reap_plan){0});
	assert_true(reap_times(reap, "u-1", &times));
	assert_int_equal(times.done.ms, WALL_START + 36100);
	assert_int_equal(times.next.ms, WALL_START + 36100 + REAP_FORCE_MS);
	scene.view.listed = true;
	decide(reap, &scene, 36100 + REAP_FORCE_MS, NULL);
	reap_told(reap, "u-1", REAP_DELETED, at(97000));
	decide(reap, &scene, 97100, NULL);
	assert_true(reap_times(reap, "u-1", &times));
	assert_int_equal(times.done.ms, WALL_START + 97000);
	assert_int_equal(times.next.ms, 0);
}

/* To force it ends nothing there, and takes away what tells that it runs. proves: REL-2 REL-14 */
static void test_not_forced_while_the_kubelet_does_not_list_it(void **state UNUSED)
{
	const int64_t listed_ms = 10 * REAP_FORCE_MS;
	CLEANUP(reap) struct reap *reap = reap_create();
	struct reap_deletion deletion;
	struct reap_holder both[2];
	struct reap_times times;
	struct scene scene;
	struct mono due;

	scene_of(&scene);
	scene.holder.unlisted = true;
	assert_int_equal(decide(reap, &scene, REAP_HOLD_MS, &deletion), 1);
	assert_false(deletion.forced);
	reap_told(reap, "u-1", REAP_DELETED, at(REAP_HOLD_MS));
	assert_int_equal(decide(reap, &scene, REAP_HOLD_MS + REAP_FORCE_MS, NULL), 0);
	assert_false(reap_next(reap, "u-1", &due));
	assert_int_equal(decide(reap, &scene, listed_ms, NULL), 0);
	assert_true(reap_times(reap, "u-1", &times));
	assert_int_equal(times.done.ms, WALL_START + REAP_HOLD_MS);
	assert_int_equal(times.next.ms, 0);
	assert_true(times.unlisted);
	assert_int_equal(reap_state(reap, "u-1"), REAP_ASKED);
	/* One device that is listed is enough, whichever comes first. */
	both[0] = both[1] = scene.holder;
	both[1].unlisted = false;
	scene.view.holders = both;
	scene.view.holders_count = 2;
	assert_int_equal(decide(reap, &scene, listed_ms + 1, NULL), 0);
	assert_true(reap_times(reap, "u-1", &times));
	assert_false(times.unlisted);
	assert_true(reap_next(reap, "u-1", &due));
	assert_int_equal(due.ms, listed_ms + REAP_FORCE_MS);
	both[0].unlisted = false;
	both[1].unlisted = true;
	assert_int_equal(decide(reap, &scene, listed_ms + REAP_FORCE_MS - 1, NULL), 0);
	assert_int_equal(decide(reap, &scene, listed_ms + REAP_FORCE_MS, &deletion), 1);
	assert_true(deletion.forced);
}

/* Nor after a restart of bcd, which finds that it was asked to go. */
static void test_not_forced_after_a_restart(void **state UNUSED)
{
	CLEANUP(reap) struct reap *reap = reap_create();
	CLEANUP(reap_plan) struct reap_plan plan = {0};
	struct scene scene;

	scene_of(&scene);
	scene.holder.unlisted = true;
	scene.pod.deleting = true;
	scene.pod.grace_s = REAP_GRACE_S;
	scene.pod.deletion.ms = WALL_START + REAP_HOLD_MS + 1000 * REAP_GRACE_S;
	scene.view.wall = (struct wall){WALL_START + 3 * REAP_FORCE_MS};
	reap_decide(reap, &scene.view, at(3 * REAP_FORCE_MS), &plan);
	assert_int_equal(plan.deletions.count, 0);
	assert_int_equal(plan.again.ms, INT64_MAX);
	assert_int_equal(reap_state(reap, "u-1"), REAP_ASKED);
}

static void test_when_to_decide_again(void **state UNUSED)
{
	CLEANUP(reap) struct reap *reap = reap_create();
	struct reap_plan plan;
	struct scene scene;

	scene_of(&scene);
	reap_decide(reap, &scene.view, at(100), &plan);
	assert_int_equal(plan.again.ms, REAP_HOLD_MS);
	reap_plan_deinit(&plan);
	scene.view.pods_known = false; /* nobody is asked about pods before somebody is due */
	reap_decide(reap, &scene.view, at(200), &plan);
	assert_false(plan.need_pods);
	reap_decide(reap, &scene.view, at(REAP_HOLD_MS), &plan);
	assert_true(plan.need_pods);
	assert_int_equal(plan.deletions.count, 0);
	assert_int_equal(plan.again.ms, INT64_MAX);
	scene.view.holders_count = 0;
	reap_decide(reap, &scene.view, at(REAP_HOLD_MS), &plan);
	assert_int_equal(plan.again.ms, INT64_MAX);
	assert_false(plan.need_pods);
}

/* Every combination of what is known: a deletion has a ground, a listing, and the holder's UID.
 * proves: REL-25 REL-27 REL-28 REL-51 */
static void test_every_ground(void **state UNUSED)
{
	static const char *const BOUND[] = {"al_1"};
	struct enumerate all = {0};

	while (enumerate_next(&all)) {
		CLEANUP(reap) struct reap *reap = reap_create();
		struct reap_deletion deletion;
		struct scene scene;
		bool listed = enumerate_pick(&all, 2), pending = enumerate_pick(&all, 2);
		bool bound_known = enumerate_pick(&all, 2), bound = enumerate_pick(&all, 2);
		unsigned pods = enumerate_pick(&all, 4), named = enumerate_pick(&all, 2);
		bool ground = pending || (bound_known && !bound);
		size_t count;

		scene_of(&scene);
		scene.view.listed = listed;
		scene.view.releases_count = pending;
		scene.view.bound_known = bound_known;
		scene.view.bound = BOUND;
		scene.view.bound_count = bound_known && bound;
		if (!named)
			scene.holder.uid = "";
		scene.view.pods_known = pods > 0;
		if (pods == 1)
			scene.view.pods_count = 0;
		if (pods == 2)
			scene.pod.uid = "u-2"; /* a newcomer of the same name */
		decide(reap, &scene, 0, NULL);
		count = decide(reap, &scene, REAP_HOLD_MS, &deletion);
		assert_int_equal(count, listed && ground && named && pods == 3);
		if (count)
			assert_string_equal(deletion.uid, "u-1");
		if (listed && ground && named && (pods == 1 || pods == 2))
			assert_int_equal(reap_state(reap, "u-1"), REAP_ABSENT);
		assert_int_equal(reap_state(reap, ""),
				 listed && ground && !named ? REAP_NAMELESS : REAP_NOTHING);
	}
	assert_int_equal(all.rounds, 128);
}

static void test_what_is_bound_nowhere_has_its_time_from_now(void **state UNUSED)
{
	CLEANUP(reap) struct reap *reap = reap_create();
	struct scene scene;

	scene_of(&scene);
	scene.view.releases_count = 0;
	assert_int_equal(decide(reap, &scene, 500000, NULL), 0);
	assert_int_equal(decide(reap, &scene, 500000 + REAP_HOLD_MS - 1, NULL), 0);
	assert_int_equal(decide(reap, &scene, 500000 + REAP_HOLD_MS, NULL), 1);
}

/* proves: REL-25 */
static void test_bound_again_is_let_be(void **state UNUSED)
{
	static const char *const BOUND[] = {"al_1"};
	CLEANUP(reap) struct reap *reap = reap_create();
	struct scene scene;

	scene_of(&scene);
	decide(reap, &scene, 29000, NULL);
	scene.view.releases_count = 0;
	scene.view.bound = BOUND;
	scene.view.bound_count = 1;
	assert_int_equal(decide(reap, &scene, 60000, NULL), 0);
	assert_int_equal(reap_state(reap, "u-1"), REAP_NOTHING);
}

/* proves: REL-51 */
static void test_failures_come_again_and_the_gone_do_not(void **state UNUSED)
{
	CLEANUP(reap) struct reap *reap = reap_create();
	struct scene scene;

	scene_of(&scene);
	assert_int_equal(decide(reap, &scene, 30000, NULL), 1);
	reap_told(reap, "u-1", REAP_FAILED, at(31000));
	assert_int_equal(decide(reap, &scene, 31000 + REAP_RETRY_MS - 1, NULL), 0);
	assert_int_equal(decide(reap, &scene, 31000 + REAP_RETRY_MS, NULL), 1);
	reap_told(reap, "u-1", REAP_GONE, at(37000));
	assert_int_equal(reap_state(reap, "u-1"), REAP_ABSENT);
	assert_int_equal(decide(reap, &scene, 1000000, NULL), 0);
	reap_told(reap, "u-1", REAP_DELETED, at(1000000)); /* twice, or late: nothing */
	reap_told(reap, "nobody", REAP_DELETED, at(1000000));
	assert_int_equal(reap_state(reap, "u-1"), REAP_ABSENT);
}

/* bcd was restarted after it had asked at `asked`; when does it force? */
static int64_t forced_at(int64_t asked, int64_t grace_s, int64_t wall_jump, bool this_boot)
{
	CLEANUP(reap) struct reap *reap = reap_create();
	struct reap_deletion deletion;
	struct scene scene;

	scene_of(&scene);
	if (!this_boot)
		scene.release.since.ms -= 3600000;
	scene.pod.deleting = true;
	scene.pod.grace_s = grace_s;
	scene.pod.deletion = (struct wall){WALL_START + asked + grace_s * 1000};
	for (int64_t now = asked + 20000; now < asked + 200000; now += 500) {
		CLEANUP(reap_plan) struct reap_plan plan = {0};

		scene.view.wall = (struct wall){WALL_START + now + wall_jump};
		reap_decide(reap, &scene.view, at(now), &plan);
		if (plan.deletions.count == 0)
			continue;
		deletion = plan.deletions.items[0];
		if (deletion.forced)
			return now - asked;
		reap_told(reap, "u-1", REAP_DELETED, at(now));
	}
	return -1;
}

/* proves: REL-49 */
static void test_a_restart_keeps_the_forced_step_s_time(void **state UNUSED)
{
	/* Seen again 20 s after it asked. */
	assert_int_equal(forced_at(40000, REAP_GRACE_S, 0, true), REAP_FORCE_MS);
	/* Not believed: the wall clock jumped, or the boot is another one: from the first sight. */
	assert_int_equal(forced_at(40000, REAP_GRACE_S, 86400000, true), 20000 + REAP_FORCE_MS);
	assert_int_equal(forced_at(40000, REAP_GRACE_S, -86400000, true), 20000 + REAP_FORCE_MS);
	assert_int_equal(forced_at(40000, REAP_GRACE_S, 0, false), 20000 + REAP_FORCE_MS);
	/* Somebody else's deletion before ours was due counts from when ours would have been. */
	assert_int_equal(forced_at(0, 5, 0, true), REAP_HOLD_MS + REAP_FORCE_MS);
	/* One with more grace than ours isn't ours: it is asked, and a minute later forced. */
	assert_int_equal(forced_at(40000, 3600, 0, true), 20000 + REAP_FORCE_MS);
}

/* 100 pods at once: never more than the rate, never more than the places, all of them in the end.
 * proves: REL-50 */
static void test_rate(void **state UNUSED)
{
	enum {
		PODS = 100
	};
	CLEANUP(reap) struct reap *reap = reap_create();
	struct reap_holder holders[PODS];
	struct reap_pod pods[PODS];
	struct {
		int64_t begun, ends;
		char uid[16];
	} flights[PODS];
	char uids[PODS][16];
	size_t begun = 0, ended = 0;
	struct scene scene;

	scene_of(&scene);
	for (size_t i = 0; i < PODS; i++) {
		snprintf(uids[i], sizeof uids[i], "u-%zu", i);
		holders[i] = (struct reap_holder){uids[i], "ns", uids[i], "al_1", "d", NULL, false};
		pods[i] = (struct reap_pod){
			.uid = uids[i], .static_uid = "", .namespace = "ns", .name = uids[i]};
	}
	scene.view.holders = holders;
	scene.view.pods = pods;
	scene.view.holders_count = scene.view.pods_count = PODS;
	for (int64_t now = REAP_HOLD_MS; ended < PODS && now < REAP_HOLD_MS + 59000; now += 50) {
		CLEANUP(reap_plan) struct reap_plan plan = {0};

		reap_decide(reap, &scene.view, at(now), &plan);
		for (size_t i = 0; i < plan.deletions.count; i++) {
			flights[begun].begun = now;
			flights[begun].ends = now + 3000;
			memcpy(flights[begun].uid, plan.deletions.items[i].holder, 16);
			if (begun >= REAP_PER_S)
				assert_true(now - flights[begun - REAP_PER_S].begun >= 1000);
			begun++;
		}
		assert_true(begun - ended <= REAP_IN_FLIGHT);
		while (ended < begun && flights[ended].ends <= now)
			reap_told(reap, flights[ended++].uid, REAP_DELETED, at(now));
	}
	assert_int_equal(begun, PODS);
	assert_int_equal(ended, PODS);
}

static void test_several_devices_are_one_pod(void **state UNUSED)
{
	static const char *const BOUND[] = {"al_2"};
	CLEANUP(reap) struct reap *reap = reap_create();
	const struct reap_holder holders[] = {
		{"u-1", "ns", "web", "al_2", "gpu_2@al_2", NULL, false}, /* its own */
		{"u-1", "ns", "web", "al_1", "gpu_1@al_1", NULL, false},
		{"u-1", "ns", "web", "al_1", "gpu_3@al_1", NULL, false},
		{"u-2", "ns", "other", "al_2", "gpu_2@al_2", NULL, false},
	};
	struct reap_deletion deletion;
	struct scene scene;

	scene_of(&scene);
	scene.view.holders = holders;
	scene.view.holders_count = ARRAY_SIZE(holders);
	scene.view.bound = BOUND;
	scene.view.bound_count = 1;
	assert_int_equal(decide(reap, &scene, 30000, &deletion), 1);
	assert_string_equal(deletion.holder, "u-1");
	assert_string_equal(deletion.device, "gpu_1@al_1");
	assert_int_equal(reap_state(reap, "u-2"), REAP_NOTHING);
}

static void test_one_that_lets_go_while_it_is_deleted(void **state UNUSED)
{
	CLEANUP(reap) struct reap *reap = reap_create();
	struct scene scene;

	scene_of(&scene);
	assert_int_equal(decide(reap, &scene, 30000, NULL), 1);
	scene.view.holders_count = 0;
	assert_int_equal(decide(reap, &scene, 31000, NULL), 0);
	reap_told(reap, "u-1", REAP_DELETED, at(32000));
	assert_int_equal(decide(reap, &scene, 200000, NULL), 0);
	assert_int_equal(reap_state(reap, "u-1"), REAP_NOTHING);
}

/* A list of pods that is older than the first sight of a holder doesn't tell that it is absent. */
static void test_a_list_from_before_the_holder(void **state UNUSED)
{
	CLEANUP(reap) struct reap *reap = reap_create();
	struct reap_plan plan;
	struct scene scene;

	scene_of(&scene);
	scene.view.listed_at = at(500);
	scene.view.pods_asked = at(499);
	scene.view.pods_count = 0;
	reap_decide(reap, &scene.view, at(REAP_HOLD_MS), &plan);
	assert_true(plan.need_pods);
	assert_int_equal(reap_state(reap, "u-1"), REAP_HOLDING);
	reap_plan_deinit(&plan);
	scene.view.listed_at = at(2000); /* seen again later: the list is as good as before */
	scene.view.pods_asked = at(500);
	reap_decide(reap, &scene.view, at(REAP_HOLD_MS), &plan);
	assert_false(plan.need_pods);
	assert_int_equal(reap_state(reap, "u-1"), REAP_ABSENT);
	reap_plan_deinit(&plan);
}

/* When a pod is deleted next, for people. */
static void test_what_comes_next(void **state UNUSED)
{
	CLEANUP(reap) struct reap *reap = reap_create();
	struct scene scene;
	struct mono due;

	assert_true(reap_idle(reap));
	assert_false(reap_next(reap, "u-1", &due));
	scene_of(&scene);
	decide(reap, &scene, 10, NULL);
	assert_false(reap_idle(reap));
	assert_true(reap_next(reap, "u-1", &due));
	assert_int_equal(due.ms, REAP_HOLD_MS);
	decide(reap, &scene, REAP_HOLD_MS, NULL);
	assert_false(reap_next(reap, "u-1", &due)); /* it is being deleted */
	reap_told(reap, "u-1", REAP_DELETED, at(31000));
	assert_true(reap_next(reap, "u-1", &due));
	assert_int_equal(due.ms, 31000 + REAP_FORCE_MS);
}

/* The wall clock goes a day on or back between any two looks: nobody is asked or forced sooner for it, and nobody
 * later. proves: REL-49 */
static void test_the_wall_clock_jumps(void **state UNUSED)
{
	static const int64_t DAY_MS = 86400000;
	const int64_t forced = REAP_HOLD_MS + 100 + REAP_FORCE_MS;
	const int64_t looks[] = {1000, REAP_HOLD_MS - 1, REAP_HOLD_MS, forced - 1, forced};

	for (int jumps = 0; jumps < 243; jumps++) { /* at each look: none, on, back */
		CLEANUP(reap) struct reap *reap = reap_create();
		int64_t wall = WALL_START, jump = jumps;
		struct scene scene;

		scene_of(&scene);
		for (size_t i = 0; i < ARRAY_SIZE(looks); i++, jump /= 3) {
			CLEANUP(reap_plan) struct reap_plan plan = {0};
			bool due = i == 2 || i == 4;

			wall += jump % 3 == 1 ? DAY_MS : jump % 3 == 2 ? -DAY_MS : 0;
			scene.view.wall = (struct wall){wall + looks[i]};
			reap_decide(reap, &scene.view, at(looks[i]), &plan);
			assert_int_equal(plan.deletions.count, due);
			if (!due)
				continue;
			assert_int_equal(plan.deletions.items[0].forced, i == 4);
			reap_told(reap, "u-1", REAP_DELETED, at(looks[i] + 100));
		}
	}
}

static void test_names(void **state UNUSED)
{
	for (int i = REAP_NOTHING; i <= REAP_NAMELESS; i++)
		assert_true(strlen(reap_state_name((enum reap_state)i)) > 3);
}

/* A list that lacks pods which couldn't be read: who isn't in it may be one of them. proves: REL-21 */
static void test_a_list_that_is_partial(void **state UNUSED)
{
	CLEANUP(reap) struct reap *reap = reap_create();
	CLEANUP(reap_plan) struct reap_plan plan = {0};
	struct scene scene;

	scene_of(&scene);
	scene.view.pods_partial = true;
	scene.view.pods_count = 0;
	scene.view.wall = (struct wall){WALL_START + REAP_HOLD_MS};
	reap_decide(reap, &scene.view, at(REAP_HOLD_MS), &plan);
	assert_int_equal(plan.deletions.count, 0);
	assert_true(plan.need_pods);
	assert_int_equal(reap_state(reap, "u-1"), REAP_HOLDING);
	/* and who is in it is ended like others */
	scene.view.pods_count = 1;
	assert_int_equal(decide(reap, &scene, REAP_HOLD_MS + 1, NULL), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_asked_then_forced),
		cmocka_unit_test(test_a_list_that_is_partial),
		cmocka_unit_test(test_times_for_people),
		cmocka_unit_test(test_not_forced_while_the_kubelet_does_not_list_it),
		cmocka_unit_test(test_not_forced_after_a_restart),
		cmocka_unit_test(test_when_to_decide_again),
		cmocka_unit_test(test_every_ground),
		cmocka_unit_test(test_what_is_bound_nowhere_has_its_time_from_now),
		cmocka_unit_test(test_bound_again_is_let_be),
		cmocka_unit_test(test_failures_come_again_and_the_gone_do_not),
		cmocka_unit_test(test_a_restart_keeps_the_forced_step_s_time),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_several_devices_are_one_pod),
		cmocka_unit_test(test_one_that_lets_go_while_it_is_deleted),
		cmocka_unit_test(test_a_list_from_before_the_holder),
		cmocka_unit_test(test_what_comes_next),
		cmocka_unit_test(test_the_wall_clock_jumps),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
