#include "reap_scene.h"

/* Somebody has just deleted the mirror of a static pod that isn't known as one yet. proves: REL-56 */
static void test_a_mirror_that_comes_back(void **state UNUSED)
{
	CLEANUP(reap) struct reap *reap = reap_create();
	struct reap_deletion deletion;
	struct scene scene;
	struct mono due;

	scene_of(&scene);
	scene.view.pods_count = 0;
	assert_int_equal(decide(reap, &scene, REAP_HOLD_MS, NULL), 0);
	assert_int_equal(reap_state(reap, "u-1"), REAP_ABSENT);
	assert_false(reap_next(reap, "u-1", &due));
	scene.view.pods_count = 1;
	scene.pod.uid = "m-1";
	scene.pod.static_uid = "u-1";
	scene.view.pods_asked = at(REAP_HOLD_MS + REAP_ORPHAN_MS - 1);
	assert_int_equal(decide(reap, &scene, REAP_HOLD_MS + REAP_ORPHAN_MS, NULL), 0);
	scene.view.pods_asked = at(REAP_HOLD_MS + REAP_ORPHAN_MS);
	assert_int_equal(decide(reap, &scene, REAP_HOLD_MS + REAP_ORPHAN_MS, &deletion), 1);
	assert_string_equal(deletion.uid, "m-1");
	assert_string_equal(deletion.holder, "u-1");
}

/* The same UID for the kubelet, ever new ones for the API server. proves: REL-56 */
static void test_a_static_pod(void **state UNUSED)
{
	CLEANUP(reap) struct reap *reap = reap_create();
	struct reap_deletion deletion;
	struct scene scene;

	scene_of(&scene);
	scene.pod.uid = "mirror-1";
	scene.pod.static_uid = "u-1";
	assert_int_equal(decide(reap, &scene, 30000, &deletion), 1);
	assert_string_equal(deletion.uid, "mirror-1");
	assert_string_equal(deletion.holder, "u-1");
	reap_told(reap, "u-1", REAP_DELETED, at(30000));
	scene.view.pods_count = 0; /* between two mirrors */
	assert_int_equal(decide(reap, &scene, 90000, NULL), 0);
	scene.view.pods_count = 1;
	scene.pod.uid = "mirror-2";
	assert_int_equal(decide(reap, &scene, 90000 + REAP_RETRY_MS, &deletion), 1);
	assert_string_equal(deletion.uid, "mirror-2");
	assert_true(deletion.forced);
	reap_told(reap, "u-1", REAP_DELETED, at(96000));
	assert_int_equal(reap_state(reap, "u-1"), REAP_STATIC);
	scene.pod.uid = "mirror-3";
	assert_int_equal(decide(reap, &scene, 1000000, NULL), 0);
}

/* One that says it is the holder's mirror, and comes first in the list, takes nothing on itself.
 * proves: REL-21 REL-23 REL-51 */
static void test_a_mirror_that_lies(void **state UNUSED)
{
	CLEANUP(reap) struct reap *reap = reap_create();
	struct reap_pod pods[2];
	struct reap_deletion deletion;
	struct scene scene;

	scene_of(&scene);
	pods[0] = (struct reap_pod){
		.uid = "d-1", .static_uid = "u-1", .namespace = "tenant", .name = "decoy"};
	pods[1] = scene.pod;
	scene.view.pods = pods;
	scene.view.pods_count = 2;
	assert_int_equal(decide(reap, &scene, REAP_HOLD_MS, &deletion), 1);
	assert_string_equal(deletion.uid, "u-1");
	assert_string_equal(deletion.name, "web");
	reap_told(reap, "u-1", REAP_DELETED, at(REAP_HOLD_MS));
	assert_int_equal(decide(reap, &scene, REAP_HOLD_MS + REAP_FORCE_MS, &deletion), 1);
	assert_true(deletion.forced);
	assert_string_equal(deletion.uid, "u-1");
	reap_told(reap, "u-1", REAP_DELETED, at(REAP_HOLD_MS + REAP_FORCE_MS));
	assert_int_equal(reap_state(reap, "u-1"), REAP_FORCED); /* not static */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_mirror_that_comes_back),
		cmocka_unit_test(test_a_static_pod),
		cmocka_unit_test(test_a_mirror_that_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
