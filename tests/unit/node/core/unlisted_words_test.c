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

/* A late event takes back nothing that a list, or an event, has of a deletion; one with another grace counts.
 * proves: REL-14 HOSTED-24 */
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
	vec_deinit(&unlisted);
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

/* Who came and went before bcd knew of him has his word, and his grace; a static one's word may be of an earlier life.
 * proves: REL-2 REL-14 HOSTED-24 */
static void test_words_of_who_isnt_known(void **state UNUSED)
{
	static const struct unlisted_listed *const WORDS[] = {&RUNS, &GOES, &OVER, &MIRROR,
							      &OVER_MIRROR};

	for (size_t i = 0; i < ARRAY_SIZE(WORDS); i++) {
		bool is_static = *WORDS[i]->static_uid, over = WORDS[i]->over && !is_static;
		struct unlisted unlisted = {0};
		const struct unlisted_pod *pod;

		hear(&unlisted, 1000, &OTHER, false);
		hear(&unlisted, 1000, WORDS[i], false);
		hear(&unlisted, 2000, WORDS[i], true);
		assert_int_equal(unlisted.count, 0);
		assert_int_equal(none.count, 2);
		follow(&unlisted, 3000, false);
		pod = unlisted_find(&unlisted, "uid-1");
		assert_int_equal(pod->over, over);
		assert_int_equal(pod->is_static, is_static);
		assert_int_equal(pod->grace_s, 60);
		assert_int_equal(pod->deletion_s, WORDS[i]->deleting ? 10 : 0);
		assert_int_equal(pod->first.ms, 3000);
		assert_int_equal(none.count, 1); /* uid-2's */
		assert_int_equal(state_of(&unlisted, 3000),
				 over ? UNLISTED_OVER : UNLISTED_UNASKED);
		/* and it isn't one that no list ever had */
		take(&unlisted, 3000, NULL);
		if (!over && !WORDS[i]->deleting)
			assert_int_equal(end_of(&unlisted, 3000).until.ms, 3000 + END_MS);
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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_an_event_says),
		cmocka_unit_test(test_a_deletion_stays),
		cmocka_unit_test(test_a_static_pod_runs_again),
		cmocka_unit_test(test_words_of_who_isnt_known),
		cmocka_unit_test(test_words_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
