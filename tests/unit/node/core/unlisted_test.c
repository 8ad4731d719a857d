#include "unlisted_pods.h"

#include "lib/enumerate.h"
#include "text/tree.h"

#include <stdio.h>

/* Every list that may come, before and after the entry was seen. proves: REL-14 HOSTED-24 */
static void test_what_a_list_says(void **state UNUSED)
{
	static const struct {
		const struct unlisted_listed *pod; /* NULL: the list is empty */
		bool absent;
	} TABLE[] = {{NULL, true},   {&OTHER, true},   {&OVER, true},
		     {&RUNS, false}, {&MIRROR, false}, {&OVER_MIRROR, true}};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		struct unlisted unlisted = {0};
		const struct unlisted_pod *pod;

		follow(&unlisted, 100, false);
		assert_false(unlisted_absent(unlisted_find(&unlisted, "uid-1")));
		assert_int_equal(state_of(&unlisted, 100), UNLISTED_UNASKED);
		if (!TABLE[i].pod || !TABLE[i].pod->over) {
			take(&unlisted, 99, TABLE[i].pod);
			assert_int_equal(state_of(&unlisted, 100), UNLISTED_UNASKED);
		}
		take(&unlisted, 100, TABLE[i].pod);
		pod = unlisted_find(&unlisted, "uid-1");
		assert_int_equal(unlisted_absent(pod), TABLE[i].absent);
		assert_int_equal(state_of(&unlisted, 100), !TABLE[i].absent ? UNLISTED_THERE
							   : TABLE[i].pod && TABLE[i].pod->over
								   ? UNLISTED_OVER
								   : UNLISTED_GRACE);
		/* and it stays so for as long as it is followed */
		follow(&unlisted, 200, false);
		assert_int_equal(unlisted_absent(unlisted_find(&unlisted, "uid-1")),
				 TABLE[i].absent);
		unlisted_follow(&unlisted, &none, &(struct unlisted_view){.counts = true}, at(300));
		assert_null(unlisted_find(&unlisted, "uid-1"));
		follow(&unlisted, 400, false);
		assert_int_equal(state_of(&unlisted, 400), UNLISTED_UNASKED);
		vec_deinit(&unlisted);
	}
}

/* How a pod may vanish, and when it is over: the times are counted from `lost` for static ones, else from when
 * nobody has it, and from the deletion where one was seen: the kubelet may not have heard of that. proves: REL-2 REL-14 HOSTED-24 */
static void test_how_pods_vanish(void **state UNUSED)
{
	static const struct {
		const struct unlisted_listed *seen, *then; /* at 1000, and at 5000; NULL: none */
		int64_t lost, missing;                     /* when kubelet and API server lack it */
		int64_t over;
	} TABLE[] = {
		/* deleted by force, the kubelet knows at once, or is the first to know */
		{&RUNS, NULL, 6000, 6000, 6000 + END_MS},
		{&RUNS, NULL, 6000, 9000, 9000 + END_MS},
		{&RUNS, NULL, 9000, 6000, 9000 + END_MS},
		/* a static pod's manifest is removed; its mirror stays until it is over, or is deleted */
		{&MIRROR, NULL, 6000, 6000, 6000 + END_MS},
		{&MIRROR, NULL, 6000, 6000 + GRACE_MS / 2, 6000 + END_MS},
		{&MIRROR, NULL, 6000, 6000 + 2 * END_MS, 6000 + 2 * END_MS},
		/* deleted with a grace, and by force while that runs; one that was shortened; none is the spec's */
		{&RUNS, &GOES, 6000, 6000, 6000 + END_MS},
		{&GOES, &GOES_SOONER, 6000, 6000, 6000 + END_MS},
		{&GOES, &GOES_AT_ONCE, 6000, 6000, 6000 + END_MS},
		/* with a longer one than its spec has, which counts from when it was first seen */
		{&RUNS, &GOES_LATER, 6000, 6000, 5000 + 90000 + UNLISTED_MARGIN_MS},
		{&GOES_LATER, &GOES_LATER, 6000, 6000, 1000 + 90000 + UNLISTED_MARGIN_MS},
		/* it outlived the grace of its deletion: the kubelet hadn't heard, or couldn't */
		{&RUNS, &GOES, 90000, 90000, 90000 + END_MS},
		{&RUNS, &GOES_LATER, 190000, 190000, 190000 + END_MS},
		/* no list ever had it */
		{NULL, NULL, 6000, 6000, 6000 + UNLISTED_UNKNOWN_S * 1000 + UNLISTED_MARGIN_MS},
	};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		int64_t lost = TABLE[i].lost, missing = TABLE[i].missing, over = TABLE[i].over;
		const struct unlisted_listed *last = TABLE[i].then ? TABLE[i].then : TABLE[i].seen;
		struct unlisted unlisted = {0};

		follow(&unlisted, 1000, true);
		take(&unlisted, 1000, TABLE[i].seen);
		if (TABLE[i].then)
			take(&unlisted, 5000, TABLE[i].then);
		assert_int_equal(state_of(&unlisted, 5000), UNLISTED_LISTED);
		if (lost <= missing) {
			follow(&unlisted, lost, false);
			if (last)
				take(&unlisted, missing - 1, last);
			take(&unlisted, missing, NULL);
		} else {
			take(&unlisted, missing, NULL);
			follow(&unlisted, lost, false);
		}
		follow(&unlisted, over - 1, false);
		if (over > missing)
			assert_int_equal(state_of(&unlisted, over - 1), UNLISTED_GRACE);
		assert_int_equal(end_of(&unlisted, over).state, UNLISTED_OVER);
		assert_true(end_of(&unlisted, over).until.ms <= over);
		vec_deinit(&unlisted);
	}
}

/* Whatever else is so: who is listed, or not asked about, or had by the API server, isn't over, however late. */
static void test_every_view(void **state UNUSED)
{
	static const int64_t TIMES[] = {0, 5000, 50000, INT64_MAX};
	struct mono late = at((int64_t)1 << 45);
	struct enumerate all = {0};

	while (enumerate_next(&all)) {
		struct unlisted_pod pod = {.grace_s = (int64_t)enumerate_pick(&all, 2)};
		struct mono kubelet = at(TIMES[enumerate_pick(&all, 3)]);
		struct unlisted_end end;
		bool must;

		pod.is_static = enumerate_pick(&all, 2);
		pod.deletion_s = (int64_t)enumerate_pick(&all, 2);
		pod.deleted = at(TIMES[enumerate_pick(&all, 3)]);
		pod.lost = at(TIMES[enumerate_pick(&all, 4)]);
		pod.missing = at(TIMES[enumerate_pick(&all, 4)]);
		pod.listed = enumerate_pick(&all, 2);
		pod.there = enumerate_pick(&all, 2);
		pod.asked = at(enumerate_pick(&all, 2) ? 0 : -1);
		end = unlisted_end(&pod, kubelet, late);
		must = pod.listed || pod.there || pod.asked.ms < 0 || pod.missing.ms == INT64_MAX ||
		       (pod.is_static && pod.lost.ms == INT64_MAX);
		assert_int_equal(end.state == UNLISTED_OVER, !must);
		if (end.until.ms != INT64_MAX)
			assert_true(end.until.ms >= kubelet.ms + UNLISTED_KUBELET_MS);
		/* what was missed is never over before its margin */
		if (!must && !pod.is_static && pod.deletion_s == 0)
			assert_int_equal(unlisted_end(&pod, kubelet,
						      mono_after(pod.missing, UNLISTED_MARGIN_MS))
						 .state,
					 UNLISTED_GRACE);
	}
}

/* A kubelet that just started lists nobody: that means nothing, and what the API server has it kills anew, with
 * the whole grace. */
static void test_another_kubelet(void **state UNUSED)
{
	const struct unlisted_seen seen = {.uid = "uid-1", .waited = true};
	struct unlisted unlisted = {0};
	const struct unlisted_pod *pod;

	follow_one(&unlisted, 1000, &seen, NULL, false);
	take(&unlisted, 1000, NULL);
	assert_int_equal(unlisted_find(&unlisted, "uid-1")->missing.ms, INT64_MAX);
	take(&unlisted, 2000, &GOES_LATER);
	follow(&unlisted, 8000, false);
	take(&unlisted, 8000, NULL);
	pod = unlisted_find(&unlisted, "uid-1");
	assert_int_equal(unlisted_end(pod, at(0), at(0)).until.ms,
			 2000 + 90000 + UNLISTED_MARGIN_MS);
	assert_int_equal(unlisted_end(pod, at(7000), at(0)).until.ms,
			 7000 + 90000 + UNLISTED_MARGIN_MS);
	/* bcd itself was away: this kubelet may have counted since before */
	assert_int_equal(unlisted_end(pod, at(9000), at(0)).until.ms,
			 9000 + 90000 + UNLISTED_MARGIN_MS);
	/* one that hasn't heard ends nobody */
	assert_int_equal(unlisted_end(pod, UNLISTED_NEVER, at((int64_t)1 << 45)).state,
			 UNLISTED_GRACE);
	assert_int_equal(unlisted_end(pod, UNLISTED_NEVER, at(0)).until.ms, INT64_MAX);
	vec_deinit(&unlisted);
}

/* One UID comes again: a static pod's, which the kubelet lists. */
static void test_a_uid_that_comes_again(void **state UNUSED)
{
	struct unlisted unlisted = {0};

	follow(&unlisted, 1000, false);
	take(&unlisted, 1000, &OVER_MIRROR);
	assert_int_equal(state_of(&unlisted, 1000), UNLISTED_OVER);
	follow(&unlisted, 2000, true);
	assert_int_equal(state_of(&unlisted, 2000), UNLISTED_LISTED);
	take(&unlisted, 2000, &MIRROR);
	follow(&unlisted, 3000, false);
	assert_int_equal(state_of(&unlisted, 3000), UNLISTED_THERE);
	assert_int_equal(end_of(&unlisted, 3000).until.ms, 3000 + END_MS);
	vec_deinit(&unlisted);
}

#define WITH_NAME {.uid = "uid-1", .namespace = "ns", .name = "web", .listed = true, .waited = true}

/* A pod whose checkpoint was lost is listed without its devices: it isn't lost, nor over by time. A static one's
 * mirror is away for a second when somebody deletes it. proves: REL-2 REL-14 HOSTED-24 */
static void test_listed_without_a_device(void **state UNUSED)
{
	static const struct unlisted_listed *const LISTS[] = {&RUNS, &MIRROR};
	const struct unlisted_seen with = WITH_NAME, without = {.uid = "uid-1", .waited = true};
	const int64_t late = 1000000;

	for (size_t i = 0; i < ARRAY_SIZE(LISTS); i++) {
		struct unlisted unlisted = {0};

		follow_one(&unlisted, 1000, &with, "ns/web", true);
		take(&unlisted, 1000, LISTS[i]);
		follow_one(&unlisted, 2000, &without, "ns/web", true);
		assert_int_equal(unlisted_find(&unlisted, "uid-1")->lost.ms, INT64_MAX);
		follow_one(&unlisted, late, &without, "ns/web", true);
		take(&unlisted, late, NULL);
		assert_int_equal(state_of(&unlisted, late), UNLISTED_LISTED);
		assert_int_equal(due(&unlisted, late), late + UNLISTED_ASK_MS);
		/* it is counted from when the kubelet really lacks it */
		follow_one(&unlisted, late + 1000, &without, "ns/web-0", true);
		assert_int_equal(state_of(&unlisted, late + 1000), UNLISTED_GRACE);
		assert_int_equal(end_of(&unlisted, late + 1000).until.ms, late + 1000 + END_MS);
		/* it shows again without a device: a static one runs, what was counted is void */
		follow_one(&unlisted, late + 2000, &without, "ns/web", true);
		assert_int_equal(unlisted_find(&unlisted, "uid-1")->missing.ms, INT64_MAX);
		vec_deinit(&unlisted);
	}
}

/* Some kubelets list who is over, and a name may be another's by now. proves: HOSTED-24 */
static void test_a_name_alone(void **state UNUSED)
{
	static const struct unlisted_listed NEWCOMER = IS("uid-9", ""),
					    NEW_MIRROR = IS("uid-9", "uid-8");
	const struct unlisted_seen with = WITH_NAME, without = {.uid = "uid-1", .waited = true};
	struct unlisted unlisted = {0};

	follow_one(&unlisted, 1000, &with, "ns/web", true);
	take(&unlisted, 1000, &RUNS);
	take(&unlisted, 2000, &OVER);
	follow_one(&unlisted, 3000, &without, "ns/web", true);
	assert_int_equal(state_of(&unlisted, 3000), UNLISTED_OVER);
	/* a static one's last word, by a mirror that stays */
	unlisted_follow(&unlisted, &none, &(struct unlisted_view){.counts = true}, at(4000));
	follow_one(&unlisted, 4000, &with, "ns/web", true);
	take(&unlisted, 5000, &OVER_MIRROR);
	follow_one(&unlisted, 5000, &without, "ns/web", true);
	assert_int_equal(state_of(&unlisted, 5000), UNLISTED_OVER);
	vec_deinit(&unlisted);
	for (int mirror = 0; mirror < 2; mirror++) {
		follow_one(&unlisted, 1000, &with, "ns/web", true);
		take(&unlisted, 1000, &RUNS);
		take(&unlisted, 2000, mirror ? &NEW_MIRROR : &NEWCOMER);
		follow_one(&unlisted, 3000, &without, "ns/web", true);
		assert_int_equal(unlisted_find(&unlisted, "uid-1")->lost.ms, 3000);
		assert_int_equal(end_of(&unlisted, 3000).until.ms, 3000 + END_MS);
		vec_deinit(&unlisted);
	}
}

/* A name that was cut is there if any begins so. */
static void test_long_names(void **state UNUSED)
{
	char name[200] = "", full[208];
	struct unlisted_seen seen = {.uid = "uid-1", .namespace = "ns", .name = name};
	struct unlisted unlisted = {0};

	memset(name, 'x', sizeof name - 1);
	snprintf(full, sizeof full, "ns/%s", name);
	follow_one(&unlisted, 1000, &seen, full, true);
	assert_true(unlisted_find(&unlisted, "uid-1")->named);
	full[UNLISTED_NAME_SIZE - 2] = 'y';
	follow_one(&unlisted, 2000, &seen, full, true);
	assert_false(unlisted_find(&unlisted, "uid-1")->named);
	vec_deinit(&unlisted);
}

/* Only what the API server alone can have told it of. proves: REL-14 HOSTED-24 */
static void test_who_has_heard(void **state UNUSED)
{
	char *texts[] = {"ns/other", "ns/web", "ns/zoo", "ns/a"};
	struct unlisted_names names = {.items = texts, .count = ARRAY_SIZE(texts)};

	unlisted_names_sort(&names);
	assert_true(unlisted_heard(&names, &RUNS, 1));
	assert_false(unlisted_heard(&names, &MIRROR, 1));
	assert_false(unlisted_heard(&names, NULL, 0));
	names.count = 2; /* ns/a and ns/other */
	assert_false(unlisted_heard(&names, &RUNS, 1));
	names.count = 0;
	assert_false(unlisted_heard(&names, &RUNS, 1));
}

/* A listing that was asked for before the last word takes nothing back of a pod that has but one life. */
static void test_a_last_word_stays(void **state UNUSED)
{
	struct unlisted unlisted = {0};

	follow(&unlisted, 1000, true);
	take(&unlisted, 1000, &RUNS);
	take(&unlisted, 2000, &OVER);
	follow(&unlisted, 2100, true);
	assert_int_equal(state_of(&unlisted, 2100), UNLISTED_LISTED);
	take(&unlisted, 2200, NULL);
	follow(&unlisted, 2300, false);
	assert_int_equal(state_of(&unlisted, 2300), UNLISTED_OVER);
	vec_deinit(&unlisted);
}

static void test_many(void **state UNUSED)
{
	static const struct unlisted_seen SEEN[] = {{.uid = "b"},
						    {.uid = "a", .waited = true},
						    {.uid = "c", .waited = true},
						    {.uid = "a", .listed = true},
						    {.uid = "b", .given = true}};
	const struct unlisted_names names = {0};
	static const struct unlisted_listed LISTED[] = {IS("x", "c"), IS("a", ""), IS("b", "")};
	struct unlisted unlisted = {0};

	unlisted_follow(&unlisted, &none,
			&(struct unlisted_view){SEEN, ARRAY_SIZE(SEEN), &names, true}, at(1));
	assert_int_equal(unlisted.count, 3);
	assert_true(unlisted_find(&unlisted, "a")->listed);
	assert_true(unlisted_find(&unlisted, "a")->waited);
	assert_false(unlisted_find(&unlisted, "b")->waited);
	assert_true(unlisted_find(&unlisted, "b")->given);
	assert_false(unlisted_find(&unlisted, "c")->given);
	unlisted_take(&unlisted, LISTED, ARRAY_SIZE(LISTED) - 1, at(1), at(1));
	assert_true(unlisted_find(&unlisted, "a")->there);
	assert_true(unlisted_find(&unlisted, "c")->is_static);
	assert_string_equal(unlisted_find(&unlisted, "c")->name, "ns/web");
	assert_true(unlisted_absent(unlisted_find(&unlisted, "b")));
	assert_null(unlisted_find(&unlisted, "x")); /* nobody asked for it */
	vec_deinit(&unlisted);
}

/* A restart forgets who was asked, not since when it waits; and knows nothing of what it is told twice.
 * proves: REL-46 */
static void test_the_record(void **state UNUSED)
{
	struct unlisted unlisted = {0}, again = {0};
	struct unlisted_pod back;
	const struct unlisted_pod *pod;
	struct error error;

	follow(&unlisted, 1000, true);
	take(&unlisted, 1000, &GOES);
	follow(&unlisted, 2000, false);
	take(&unlisted, 3000, NULL);
	pod = unlisted_find(&unlisted, "uid-1");
	for (int round = 0; round < 2; round++) {
		CLEANUP(tree) json_t *row = json_object();

		unlisted_set(row, pod);
		expect_ok(unlisted_parse(row, "users[0]", &back, &error), &error);
		assert_true(unlisted_same_row(pod, &back));
		json_object_set_new(row, "missingMs", json_integer(-1));
		expect_error(unlisted_parse(row, "users[0]", &back, &error), &error,
			     ERROR_INVALID_INPUT, "missingMs");
		unlisted_set(row, pod);
		expect_ok(unlisted_parse(row, "users[0]", &back, &error), &error);
	}
	str_copy(back.uid, sizeof back.uid, "uid-2");
	unlisted_add(&again, &back, at(4000));
	unlisted_add(&again, pod, at(4000));
	back.over = true;
	unlisted_add(&again, &back, at(4000));
	assert_int_equal(again.count, 2);
	assert_false(unlisted_find(&again, "uid-2")->over);
	follow(&again, 4000, false);
	assert_int_equal(state_of(&again, 4000), UNLISTED_UNASKED);
	take(&again, 4000, NULL);
	assert_int_equal(end_of(&again, 4000).until.ms, end_of(&unlisted, 4000).until.ms);
	assert_int_equal(unlisted_find(&again, "uid-1")->missing.ms, 3000);
	vec_deinit(&unlisted);
	vec_deinit(&again);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_a_list_says),
		cmocka_unit_test(test_how_pods_vanish),
		cmocka_unit_test(test_every_view),
		cmocka_unit_test(test_another_kubelet),
		cmocka_unit_test(test_a_uid_that_comes_again),
		cmocka_unit_test(test_listed_without_a_device),
		cmocka_unit_test(test_a_name_alone),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_who_has_heard),
		cmocka_unit_test(test_a_last_word_stays),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_the_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
