/* What the API server tells of pods as they change. */
#include "unlisted_pods.h"

#include <stdio.h>

static void hear(struct unlisted *unlisted, int64_t ms, const struct unlisted_listed *pod,
		 bool deleted)
{
	unlisted_hear(unlisted, &none, pod, deleted, at(ms));
}

/* An event of a pod that is known, as it changes and as it is deleted: a last word counts, that it was deleted
 * doesn't, and of others, of the lists and of who is there it says nothing. proves: REL-2 REL-14 HOSTED-24 */
static void test_what_an_event_says(void **state UNUSED)
{
	static const struct {
		const struct unlisted_listed *pod;
		bool over, is_static;
		int64_t grace_s, deletion_s; /* as it changes */
	} TABLE[] = {{&OTHER, false, false, 0, 0},          {&RUNS, false, false, 60, 0},
		     {&MIRROR, false, true, 60, 0},         {&GOES, false, false, 60, 10},
		     {&GOES_AT_ONCE, false, false, 60, 60}, {&OVER, true, false, 60, 0},
		     {&OVER_MIRROR, true, true, 60, 0}};

	for (size_t i = 0; i < 2 * ARRAY_SIZE(TABLE); i++) {
		bool deleted = i >= ARRAY_SIZE(TABLE);
		size_t row = i % ARRAY_SIZE(TABLE);
		struct unlisted unlisted = {0};
		const struct unlisted_pod *pod;

		follow(&unlisted, 100, false);
		hear(&unlisted, 200, TABLE[row].pod, deleted);
		pod = unlisted_find(&unlisted, "uid-1");
		assert_int_equal(pod->over, TABLE[row].over);
		assert_int_equal(pod->is_static, TABLE[row].is_static);
		assert_int_equal(pod->grace_s, TABLE[row].grace_s);
		assert_int_equal(pod->deletion_s, deleted ? 0 : TABLE[row].deletion_s);
		/* no list has come */
		assert_int_equal(due(&unlisted, 200), 100);
		assert_false(pod->there);
		assert_int_equal(pod->missing.ms, INT64_MAX);
		assert_int_equal(state_of(&unlisted, 200),
				 TABLE[row].over ? UNLISTED_OVER : UNLISTED_UNASKED);
		/* it is listed yet, and then it isn't */
		follow(&unlisted, 300, true);
		assert_int_equal(state_of(&unlisted, 300), UNLISTED_LISTED);
		follow(&unlisted, 400, false);
		take(&unlisted, 400, NULL);
		assert_int_equal(state_of(&unlisted, 400), TABLE[row].over && !TABLE[row].is_static
								   ? UNLISTED_OVER
								   : UNLISTED_GRACE);
		vec_deinit(&unlisted);
		vec_deinit(&none);
	}
}

/* A late event, or a list, takes back nothing that a list, or an event, has of a deletion; one with another grace
 * counts. proves: REL-14 HOSTED-24 */
static void test_a_deletion_stays(void **state UNUSED)
{
	struct unlisted unlisted = {0};
	const struct unlisted_pod *pod;

	follow(&unlisted, 1000, false);
	take(&unlisted, 1000, &GOES);
	hear(&unlisted, 2000, &RUNS, false);
	pod = unlisted_find(&unlisted, "uid-1");
	assert_int_equal(pod->deletion_s, 10);
	assert_int_equal(pod->deleted.ms, 1000);
	hear(&unlisted, 3000, &GOES, false);
	assert_int_equal(pod->deleted.ms, 1000);
	hear(&unlisted, 4000, &GOES_SOONER, false);
	assert_int_equal(pod->deletion_s, 2);
	assert_int_equal(pod->deleted.ms, 4000);
	hear(&unlisted, 5000, &GOES, true);
	assert_int_equal(pod->deletion_s, 2);
	assert_int_equal(pod->deleted.ms, 4000);
	/* asked for before, and answered after */
	unlisted_take(&unlisted, &RUNS, 1, at(3500), at(6000));
	assert_int_equal(pod->deletion_s, 2);
	assert_int_equal(pod->deleted.ms, 4000);
	vec_deinit(&unlisted);
}

#define NAMED(id, mirror, called, ...)                                                             \
	{.uid = id, .static_uid = mirror, .namespace = "ns", .name = called, __VA_ARGS__}

/* A pod that says it mirrors another one ends nothing, and takes no grace, sooner than the other would: by a list, by
 * an event, whenever it comes. proves: REL-2 REL-14 HOSTED-24 */
static void test_false_mirrors(void **state UNUSED)
{
	static const char OURS[] = "0b6ed7a0-52a5-4c3b-9e5c-3a8a6b2f0c11", /* the API server's */
		STATIC[] = "0b6ed7a052a54c3b9e5c3a8a6b2f0c11";             /* the kubelet's */
	static const struct {
		struct unlisted_listed real, fake;
		const char *called; /* by the kubelet; NULL: it doesn't list it */
		bool is_static;
	} TABLE[] = {
		{NAMED(OURS, "", "web", .grace_s = 3600),
		 NAMED("f", OURS, "x", .grace_s = 1, .over = true), "web", false},
		{NAMED(OURS, "", "web", .grace_s = 3600),
		 NAMED("f", OURS, "x", .grace_s = 1, .over = true), NULL, false},
		{NAMED("m", STATIC, "web-n1", .grace_s = 3600),
		 NAMED("f", STATIC, "x", .grace_s = 1, .over = true), "web-n1", true},
		{NAMED("m", STATIC, "web-n1", .grace_s = 3600),
		 NAMED("f", STATIC, "x", .grace_s = 1), NULL, true},
	};

	for (size_t i = 0; i < 3 * ARRAY_SIZE(TABLE); i++) {
		const struct unlisted_listed *fake = &TABLE[i / 3].fake,
					     both[] = {*fake, TABLE[i / 3].real, *fake};
		const char *uid = TABLE[i / 3].is_static ? STATIC : OURS;
		struct unlisted_seen seen = {.uid = uid,
					     .namespace = "ns",
					     .name = TABLE[i / 3].called,
					     .listed = TABLE[i / 3].called,
					     .waited = true};
		struct unlisted unlisted = {0};
		const struct unlisted_pod *pod;

		hear(&unlisted, 500, fake, false);
		follow_one(&unlisted, 1000, &seen, NULL, true);
		if (i % 3 == 0)
			hear(&unlisted, 1000, fake, false);
		unlisted_take(&unlisted, both, 3, at(1000), at(1000));
		seen.listed = false;
		seen.name = NULL;
		follow_one(&unlisted, 2000, &seen, NULL, true);
		take(&unlisted, 2000, i % 3 == 1 ? fake : NULL);
		if (i % 3 == 2) {
			hear(&unlisted, 2100, fake, false);
			hear(&unlisted, 2200, fake, true);
		}
		pod = unlisted_find(&unlisted, uid);
		assert_int_equal(pod->is_static, TABLE[i / 3].is_static);
		assert_int_equal(pod->grace_s, 3600);
		assert_int_equal(unlisted_end(pod, at(-1000000), at(3000)).state,
				 i % 3 == 1 && i / 3 == 3 ? UNLISTED_THERE : UNLISTED_GRACE);
		assert_int_equal(unlisted_end(pod, at(-1000000), at(2000 + 3600000)).state,
				 i % 3 == 1 && i / 3 == 3 ? UNLISTED_THERE : UNLISTED_GRACE);
		vec_deinit(&unlisted);
		vec_deinit(&none);
	}
}

/* A static pod's UID comes again, and its mirror says so before any list of the kubelet's does. Nobody else's life
 * begins again. */
static void test_a_static_pod_runs_again(void **state UNUSED)
{
	struct unlisted unlisted = {0};

	follow(&unlisted, 1000, false);
	take(&unlisted, 1000, &MIRROR);
	hear(&unlisted, 2000, &OVER_MIRROR, true);
	assert_int_equal(state_of(&unlisted, 2000), UNLISTED_OVER);
	hear(&unlisted, 3000, &MIRROR, true);
	assert_int_equal(state_of(&unlisted, 3000), UNLISTED_OVER);
	hear(&unlisted, 4000, &MIRROR, false);
	assert_int_equal(state_of(&unlisted, 4000), UNLISTED_THERE);
	vec_deinit(&unlisted);
	follow(&unlisted, 1000, false);
	hear(&unlisted, 2000, &OVER, false);
	hear(&unlisted, 3000, &RUNS, false);
	assert_int_equal(state_of(&unlisted, 3000), UNLISTED_OVER);
	vec_deinit(&unlisted);
}

/* Who came and went before bcd knew of him has his word, and his grace; a static one's may be of an earlier life, or
 * anybody's.
 * proves: REL-2 REL-14 HOSTED-24 */
static void test_words_of_who_isnt_known(void **state UNUSED)
{
	static const struct unlisted_listed *const WORDS[] = {&RUNS, &GOES, &OVER, &MIRROR,
							      &OVER_MIRROR};

	for (size_t i = 0; i < ARRAY_SIZE(WORDS); i++) {
		bool is_static = *WORDS[i]->static_uid, over = WORDS[i]->over && !is_static;
		int64_t end_ms =
			is_static ? UNLISTED_UNKNOWN_S * 1000 + UNLISTED_MARGIN_MS : END_MS;
		struct unlisted unlisted = {0};
		const struct unlisted_pod *pod;

		hear(&unlisted, 1000, &OTHER, false);
		hear(&unlisted, 1000, WORDS[i], false);
		hear(&unlisted, 2000, WORDS[i], true);
		assert_int_equal(unlisted.count, 0);
		assert_int_equal(none.count, is_static ? 1 : 2);
		follow(&unlisted, 3000, false);
		pod = unlisted_find(&unlisted, "uid-1");
		assert_int_equal(pod->over, over);
		assert_false(pod->is_static);
		assert_int_equal(pod->grace_s, is_static ? 0 : 60);
		assert_int_equal(pod->deletion_s, WORDS[i]->deleting ? 10 : 0);
		assert_int_equal(pod->first.ms, 3000);
		assert_int_equal(none.count, 1); /* uid-2's */
		assert_int_equal(state_of(&unlisted, 3000),
				 over ? UNLISTED_OVER : UNLISTED_UNASKED);
		/* and it isn't one that nobody ever had */
		take(&unlisted, 3000, NULL);
		if (!over && !WORDS[i]->deleting)
			assert_int_equal(end_of(&unlisted, 3000).until.ms, 3000 + end_ms);
		vec_deinit(&unlisted);
		vec_deinit(&none);
	}
}

/* So many, and for so long: the oldest go. A UID that is longer than a kubelet's is nobody's. */
static void test_words_are_bounded(void **state UNUSED)
{
	char uid[GIVEN_UID_SIZE + 1];
	struct unlisted_listed pod = OVER;
	struct unlisted unlisted = {0};
	const int64_t last = 100 + UNLISTED_WORDS;

	pod.uid = uid;
	for (int64_t i = 0; i <= UNLISTED_WORDS; i++) {
		snprintf(uid, sizeof uid, "uid-%lld", (long long)i);
		hear(&unlisted, 100 + i, &pod, false);
	}
	assert_int_equal(none.count, UNLISTED_WORDS);
	assert_null(unlisted_find(&none, "uid-0"));
	assert_non_null(unlisted_find(&none, "uid-1"));
	/* what is said again is young again */
	hear(&unlisted, last, &OVER, false);
	hear(&unlisted, 102 + UNLISTED_WORDS_MS, &OTHER, false);
	assert_non_null(unlisted_find(&none, "uid-1"));
	assert_non_null(unlisted_find(&none, "uid-2"));
	assert_null(unlisted_find(&none, "uid-0"));
	assert_int_equal(none.count, UNLISTED_WORDS);
	hear(&unlisted, 103 + UNLISTED_WORDS_MS, &OTHER, false);
	assert_null(unlisted_find(&none, "uid-3"));
	follow(&unlisted, last + UNLISTED_WORDS_MS, false);
	assert_false(unlisted_find(&unlisted, "uid-1")->over);
	assert_int_equal(none.count, 1); /* uid-2's */
	memset(uid, 'x', sizeof uid - 1);
	uid[sizeof uid - 1] = '\0';
	hear(&unlisted, last + UNLISTED_WORDS_MS, &pod, false);
	assert_int_equal(none.count, 1);
	vec_deinit(&unlisted);
	vec_deinit(&none);
}

/* A manifest may give a UID of the API server's form: its mirror, which has the kubelet's name for it, can only lengthen
 * what is waited for. proves: REL-2 REL-14 HOSTED-24 */
static void test_a_mirror_of_such_a_uid(void **state UNUSED)
{
	static const char UUID[] = "0b6ed7a0-52a5-4c3b-9e5c-3a8a6b2f0c11";
	static const int64_t GRACES[] = {30, 7200};

	for (size_t i = 0; i < ARRAY_SIZE(GRACES); i++) {
		const struct unlisted_listed mirror =
			NAMED("m", UUID, "web-n1", .grace_s = GRACES[i]);
		struct unlisted_seen seen = {.uid = UUID,
					     .namespace = "ns",
					     .name = "web-n1",
					     .listed = true,
					     .waited = true};
		struct unlisted unlisted = {0};
		const struct unlisted_pod *pod;
		struct unlisted_end end;

		follow_one(&unlisted, 1000, &seen, NULL, true);
		take(&unlisted, 1000, &mirror);
		seen.listed = false;
		seen.name = NULL;
		follow_one(&unlisted, 2000, &seen, NULL, true);
		take(&unlisted, 2000, &mirror);
		pod = unlisted_find(&unlisted, UUID);
		assert_int_equal(unlisted_end(pod, at(-1000000), at(9000000)).state,
				 UNLISTED_THERE);
		take(&unlisted, 3000, NULL);
		end = unlisted_end(pod, at(-1000000), at(4000));
		assert_int_equal(end.state, UNLISTED_GRACE);
		assert_int_equal(end.until.ms, 3000 + UNLISTED_MARGIN_MS +
						       1000 * (GRACES[i] > UNLISTED_UNKNOWN_S
								       ? GRACES[i]
								       : UNLISTED_UNKNOWN_S));
		vec_deinit(&unlisted);
		vec_deinit(&none);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_an_event_says),
		cmocka_unit_test(test_a_deletion_stays),
		cmocka_unit_test(test_false_mirrors),
		cmocka_unit_test(test_a_mirror_of_such_a_uid),
		cmocka_unit_test(test_a_static_pod_runs_again),
		cmocka_unit_test(test_words_of_who_isnt_known),
		cmocka_unit_test(test_words_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
