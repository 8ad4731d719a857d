#include "session_world.h"

#include <pthread.h>

static const char *newest;
static pthread_t cutter; /* 0: none */
static volatile bool stop_cutting;

static void expect_mig(size_t i, int32_t gi, int32_t ci, const char *profile, int32_t start,
		       int32_t size)
{
	const struct reading_mig *mig;

	assert_true(i < world.reading.gpus.items[0].mig.count);
	mig = &world.reading.gpus.items[0].mig.items[i];
	assert_int_equal(mig->gi, gi);
	assert_int_equal(mig->ci, ci);
	assert_string_equal(mig->profile, profile);
	assert_int_equal(mig->start, start);
	assert_int_equal(mig->size, size);
}

static json_t *instance(int number, int gi, int ci, const char *profile, int start, int size,
			int64_t mib)
{
	char uuid[64];

	snprintf(uuid, sizeof uuid, "MIG-00000000-0000-4000-8000-%012x", (unsigned)number);
	return json_pack("{s:s, s:i, s:i, s:s*, s:i, s:i, s:I}", "uuid", uuid, "gi", gi, "ci", ci,
			 "profile", profile, "start", start, "size", size, "memory_bytes",
			 (json_int_t)(mib << 20));
}

static void set_mig(json_t *list)
{
	set(0, "mig_mode", json_integer(1));
	set(0, "mig", list);
}

static void test_instances_and_their_places(void **state UNUSED)
{
	set_mig(json_pack("[o, o, o, o]", instance(1, 2, 0, "3g.40gb", 4, 4, 40448),
			  instance(2, 9, 0, "1g.10gb", 0, 1, 9984),
			  instance(3, 7, 0, "1g.20gb", 2, 2, 20096),
			  instance(4, 8, 0, "1g.10gb+me", 1, 1, 9984)));
	open_driver(newest);
	read_scene();
	assert_true(world.reading.gpus.items[0].mig_enabled);
	assert_int_equal(world.reading.gpus.items[0].mig.count, 4);
	expect_mig(0, 2, 0, "3g.40gb", 4, 4);
	expect_mig(1, 9, 0, "1g.10gb", 0, 1);
	expect_mig(2, 7, 0, "1g.20gb", 2, 2);
	expect_mig(3, 8, 0, "1g.10gb+me", 1, 1);
	assert_string_equal(world.reading.gpus.items[0].mig.items[0].uuid,
			    "MIG-00000000-0000-4000-8000-000000000001");
	assert_int_equal(world.reading.gpus.items[0].mig.items[0].memory_bytes, 40448ll << 20);
	assert_false(world.reading.gpus.items[1].mig_enabled);
}

/* Three compute instances share one GPU instance, and its place. */
static void test_compute_instances_share(void **state UNUSED)
{
	json_t *list = json_array();

	for (int i = 0; i < 3; i++)
		json_array_append_new(list, instance(i, 2, i, "1c.3g.40gb", 4, 4, 40448));
	json_array_append_new(list, instance(3, 3, 0, "2g.20gb", 0, 2, 20096));
	set_mig(list);
	open_driver(newest);
	read_scene();
	assert_int_equal(world.reading.gpus.items[0].mig.count, 4);
	for (int i = 0; i < 3; i++)
		expect_mig((size_t)i, 2, i, "1c.3g.40gb", 4, 4);
	expect_mig(3, 3, 0, "2g.20gb", 0, 2);
}

static void test_gpus_of_other_slices(void **state UNUSED)
{
	/* an A30 has four */
	set(0, "memory_total_bytes", json_integer(24062ll << 20));
	set(0, "mig_slices", json_integer(4));
	set_mig(json_pack("[o, o]", instance(1, 3, 0, "1g.6gb", 3, 1, 5952),
			  instance(2, 1, 0, "2g.12gb", 0, 2, 11968)));
	open_driver(newest);
	read_scene();
	expect_mig(0, 3, 0, "1g.6gb", 6, 2);
	expect_mig(1, 1, 0, "2g.12gb", 0, 4);
	/* and some have twelve */
	set(0, "memory_total_bytes", json_integer(97887ll << 20));
	set_mig(json_pack("[o]", instance(1, 3, 0, "1g.24gb", 9, 3, 24320)));
	read_scene();
	expect_mig(0, 3, 0, "1g.24gb", 6, 2);
}

static void test_a_profile_without_a_name(void **state UNUSED)
{
	set_mig(json_pack("[o]", instance(1, 9, 0, NULL, 0, 1, 9984)));
	open_driver(newest);
	read_scene();
	expect_mig(0, 9, 0, "1g.10gb", 0, 1);
}

static void test_no_right_to_see_places(void **state UNUSED)
{
	json_t *one = instance(1, 9, 0, "1g.10gb", 0, 1, 9984);

	json_object_set_new(one, "start", json_string("NO_PERMISSION"));
	set_mig(json_pack("[o]", one));
	open_driver(newest);
	read_scene();
	expect_mig(0, 9, 0, "1g.10gb", -1, 0);
	assert_false(*world.reading.gpus.items[0].error);
}

static void test_enabled_without_instances(void **state UNUSED)
{
	set_mig(json_array());
	open_driver(newest);
	read_scene();
	assert_true(world.reading.gpus.items[0].mig_enabled);
	assert_int_equal(world.reading.gpus.items[0].mig.count, 0);
	set(0, "mig_mode", json_integer(0));
	set(0, "mig_pending", json_integer(1)); /* after the next reset */
	assert_false(read_scene()->gpus.items[0].mig_enabled);
}

/* Gone while looked at, and of two moments at once: what is whole is taken. */
static void test_instances_that_go(void **state UNUSED)
{
	json_t *gone = instance(1, 9, 0, "1g.10gb", 0, 1, 9984);

	json_object_set_new(gone, "calls", json_string("NOT_FOUND"));
	set_mig(json_pack("[o, o, o, o]", gone, instance(2, 2, 0, "3g.40gb", 4, 4, 40448),
			  instance(3, 1, 0, "4g.40gb", 3, 4, 40448),
			  instance(4, 8, 0, "1g.10gb", 1, 1, 9984)));
	open_driver(newest);
	read_scene();
	assert_int_equal(world.reading.gpus.items[0].mig.count, 2);
	expect_mig(0, 2, 0, "3g.40gb", 4, 4);
	expect_mig(1, 8, 0, "1g.10gb", 1, 1);
	assert_false(world.reading.gpus.items[0].lost || *world.reading.gpus.items[0].error);
}

/* Seven small ones, two large ones, in turn. */
static void *cut_again_and_again(void *arg UNUSED)
{
	json_t *scenes[2];

	for (int i = 0; i < 2; i++) {
		scenes[i] = fakedriver_new(1);
		json_object_set_new(fakedriver_gpu(scenes[i], 0), "mig_mode", json_integer(1));
	}
	fakedriver_split(fakedriver_gpu(scenes[0], 0), 7);
	json_object_set_new(fakedriver_gpu(scenes[1], 0), "mig",
			    json_pack("[o, o]", instance(11, 1, 0, "4g.40gb", 0, 4, 40448),
				      instance(12, 2, 0, "3g.40gb", 4, 4, 40448)));
	for (unsigned i = 0; !stop_cutting; i++)
		fakedriver_write(scenes[i % 2]);
	json_decref(scenes[0]);
	json_decref(scenes[1]);
	return NULL;
}

static void end_cutter(void)
{
	stop_cutting = true;
	if (cutter)
		pthread_join(cutter, NULL);
	cutter = 0;
}

static int end_cutter_and_drop(void **state)
{
	end_cutter();
	return drop(state);
}

static void test_cut_while_it_is_read(void **state UNUSED)
{
	json_array_remove(json_object_get(world.scene, "gpus"), 1);
	open_driver(newest);
	stop_cutting = false;
	assert_int_equal(pthread_create(&cutter, NULL, cut_again_and_again, NULL), 0);
	for (int i = 0; i < 300; i++) {
		struct error error;

		reading_deinit(&world.reading);
		expect_ok(session_read(&world.session, &world.reading, &error), &error);
		vec_each (&world.reading.gpus, const struct reading_gpu *gpu) {
			assert_string_equal(gpu->error, "");
			expect_consistent(gpu);
		}
	}
	end_cutter();
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, make, end_cutter_and_drop)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		ROW(test_instances_and_their_places), ROW(test_compute_instances_share),
		ROW(test_gpus_of_other_slices),       ROW(test_a_profile_without_a_name),
		ROW(test_no_right_to_see_places),     ROW(test_enabled_without_instances),
		ROW(test_instances_that_go),          ROW(test_cut_while_it_is_read),
	};

	assert(argc == 3);
	newest = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
