/* When kubelet and API server are asked, and how closely. */
#include "unlisted_pods.h"

#include "lib/enumerate.h"

/* One that the API server keeps on having is asked for closely about its end, and not for ever. */
static void test_closely_for_a_while(void **state UNUSED)
{
	struct unlisted_pod pod = {.first = at(0),
				   .asked = at(100000),
				   .lost = at(1000),
				   .until = at(50000),
				   .there = true,
				   .waited = true};

	assert_int_equal(unlisted_due(&pod, LISTS_ALONE, at(2000)).ms, 100000 + UNLISTED_CLOSE_MS);
	assert_int_equal(unlisted_due(&pod, LISTS_ALONE, at(20000)).ms, 100000 + UNLISTED_LATER_MS);
	assert_int_equal(unlisted_due(&pod, LISTS_ALONE, at(50000)).ms, 100000 + UNLISTED_CLOSE_MS);
	assert_int_equal(unlisted_due(&pod, LISTS_ALONE, at(50000 + UNLISTED_CLOSE_FOR_MS)).ms,
			 100000 + UNLISTED_LATER_MS);
	pod.waited = false;
	assert_int_equal(unlisted_due(&pod, LISTS_ALONE, at(90000)).ms, 100000 + UNLISTED_ASK_MS);
}

/* The kubelet is asked closely only for somebody who is awaited. */
static void test_who_is_closing(void **state UNUSED)
{
	struct enumerate all = {0};

	while (enumerate_next(&all)) {
		struct unlisted_pod pod = {.first = at(0), .asked = at(1000), .there = true};

		pod.listed = enumerate_pick(&all, 2);
		pod.waited = enumerate_pick(&all, 2);
		pod.deletion_s = (int64_t)enumerate_pick(&all, 2);
		pod.lost = pod.listed ? UNLISTED_NEVER : at(1000);
		pod.until = UNLISTED_NEVER;
		pod.over = enumerate_pick(&all, 2);
		assert_int_equal(unlisted_is_closing(&pod, false),
				 pod.listed && (pod.waited || pod.deletion_s > 0));
		/* where events tell, once it is over by its word, and no list need catch that */
		assert_int_equal(unlisted_is_closing(&pod, true),
				 unlisted_is_closing(&pod, false) && pod.over);
		if (!pod.listed)
			assert_int_equal(unlisted_due(&pod, WITH_EVENTS, at(1000)).ms,
					 1000 + (pod.waited ? UNLISTED_LATER_MS : UNLISTED_ASK_MS));
		if (!pod.listed)
			assert_int_equal(unlisted_due(&pod, LISTS_ALONE, at(1000)).ms,
					 1000 + (pod.waited || pod.deletion_s > 0
							 ? UNLISTED_CLOSE_MS
							 : UNLISTED_ASK_MS));
	}
}

/* One that came after the list was asked for waits for the next one; one that is ending is looked at closely
 * while somebody waits; one of which nothing more can be learnt isn't asked about. */
static void test_when_a_list_is_due(void **state UNUSED)
{
	const struct unlisted_seen unwaited = {.uid = "uid-1", .listed = true},
				   bound = {.uid = "uid-1"};
	struct unlisted unlisted = {0};

	follow(&unlisted, 300, true);
	take(&unlisted, 400, &GOES);
	assert_int_equal(due(&unlisted, 400), 400 + UNLISTED_ASK_MS);
	vec_deinit(&unlisted);
	follow_one(&unlisted, 100, &unwaited, NULL, true);
	assert_int_equal(due(&unlisted, 100), 100);
	take(&unlisted, 99, NULL);
	assert_int_equal(due(&unlisted, 100), 100);
	take(&unlisted, 150, NULL); /* its grace isn't known yet */
	assert_int_equal(due(&unlisted, 150), 150 + UNLISTED_ASK_MS);
	take(&unlisted, 200, &RUNS);
	assert_int_equal(due(&unlisted, 200), INT64_MAX);
	follow(&unlisted, 300, true);
	assert_int_equal(due(&unlisted, 300), 200 + UNLISTED_ASK_MS);
	take(&unlisted, 500, &RUNS);
	follow(&unlisted, 600, false);
	assert_int_equal(due(&unlisted, 600), 500 + UNLISTED_CLOSE_MS);
	assert_int_equal(due(&unlisted, 600 + UNLISTED_CLOSE_FOR_MS), 500 + UNLISTED_LATER_MS);
	follow_one(&unlisted, 700, &bound, NULL, true);
	assert_int_equal(due(&unlisted, 700), 500 + UNLISTED_ASK_MS); /* nobody waits */
	follow(&unlisted, 700, false);
	unlisted_find(&unlisted, "uid-1")->until = at(600 + END_MS);
	assert_int_equal(due(&unlisted, 600 + GRACE_MS), 500 + UNLISTED_CLOSE_MS);
	take(&unlisted, 800, NULL);
	assert_int_equal(due(&unlisted, 800), INT64_MAX);
	/* but for the kubelet, which isn't known to have heard of its pods */
	assert_int_equal(unlisted_due(unlisted_find(&unlisted, "uid-1"),
				      (struct unlisted_asking){0}, at(800))
				 .ms,
			 800 + UNLISTED_ASK_MS);
	vec_deinit(&unlisted);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_closely_for_a_while),
		cmocka_unit_test(test_who_is_closing),
		cmocka_unit_test(test_when_a_list_is_due),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
