/* The real process with the fake driver. */
#include "gpu/child.h"

#include "lib/fakedriver.h"
#include "lib/folder.h"
#include "lib/test.h"
#include "sys/clock.h"

#include <signal.h>
#include <sys/stat.h>

static const char *bcd, *library;

struct world {
	void *folder; /* first: folder.h's state */
	struct loop *loop;
	struct child *child;
	struct loop_timer *patience, *tick;
	json_t *scene;
	int64_t death_ms;

	int readings, failures, stuck, xids;
	struct reading reading; /* the last */
	struct error error;     /* the last */
	struct frame_xid xid;   /* the last */

	bool (*done)(struct world *world);
	int ticks;
	struct mono last_tick;
	int64_t longest; /* between two ticks of a millisecond: the loop's turn */
};

static struct world world;

static void check(void)
{
	if (world.done(&world))
		loop_stop(world.loop);
}

static void on_reading(void *arg UNUSED, struct reading *reading)
{
	world.readings++;
	reading_deinit(&world.reading);
	world.reading = *reading;
	*reading = (struct reading){0};
	check();
}

static void on_failure(void *arg UNUSED, const struct error *error, bool stuck)
{
	world.failures++;
	world.stuck += stuck;
	world.error = *error;
	check();
}

static void on_xid(void *arg UNUSED, const struct frame_xid *xid)
{
	world.xids++;
	world.xid = *xid;
	check();
}

static void out_of_patience(void *arg UNUSED)
{
	fail_msg("still waiting: %d readings, %d failures (%s), %d xids", world.readings,
		 world.failures, world.error.what, world.xids);
}

static void on_tick(void *arg UNUSED)
{
	struct mono now = loop_now(world.loop);
	int64_t passed = mono_until(world.last_tick, now);

	if (world.ticks++ > 0 && passed > world.longest)
		world.longest = passed;
	world.last_tick = now;
	loop_timer_start(world.tick, 1);
}

static void wait_until(bool (*done)(struct world *world))
{
	world.done = done;
	if (done(&world))
		return;
	loop_timer_start(world.patience, TEST_PATIENCE_MS);
	loop_run(world.loop);
	loop_timer_stop(world.patience);
}

static int make(void **state)
{
	world = (struct world){.death_ms = CHILD_DEATH_MS};
	if (folder_make(&world.folder) < 0)
		return -1;
	*state = &world;
	setenv("FAKE_DRIVER", folder_path(&world.folder, "scene.json"), 1);
	world.loop = loop_create();
	world.patience = loop_timer_create(world.loop, out_of_patience, NULL);
	world.tick = loop_timer_create(world.loop, on_tick, NULL);
	world.scene = fakedriver_new(2);
	return 0;
}

static int drop(void **state UNUSED)
{
	child_destroy(world.child);
	loop_timer_destroy(world.patience);
	loop_timer_destroy(world.tick);
	loop_destroy(world.loop);
	reading_deinit(&world.reading);
	json_decref(world.scene);
	return folder_remove(&world.folder);
}

static const struct child_handlers handlers = {
	.on_reading = on_reading,
	.on_failure = on_failure,
	.on_xid = on_xid,
};

/* Times short enough for a test, long enough for a busy machine. */
static void start_with(const char *program, int64_t deadline_ms)
{
	struct child_options options = {
		.program = program,
		.nvml_library = library,
		.deadline_ms = deadline_ms,
		.respawn_min_ms = 20,
		.respawn_max_ms = 80,
		.death_ms = world.death_ms,
	};

	world.child = child_create(world.loop, &options, &handlers, NULL);
}

static void start(void)
{
	fakedriver_write(world.scene);
	start_with(bcd, 5000);
}

static bool has_reading(struct world *now)
{
	return now->readings > 0;
}

static bool has_failure(struct world *now)
{
	return now->failures > 0;
}

static bool is_stuck(struct world *now)
{
	return now->stuck > 0;
}

static bool has_xid(struct world *now)
{
	return now->xids > 0;
}

static void forget(void)
{
	world.readings = world.failures = world.stuck = world.xids = 0;
}

static void test_reads_at_once_and_when_asked(void **state UNUSED)
{
	start();
	wait_until(has_reading);
	assert_int_equal(world.reading.gpus.count, 2);
	assert_string_equal(world.reading.gpus.items[1].pci, "0000:11:00.0");
	json_object_set_new(fakedriver_gpu(world.scene, 1), "remap_pending", json_integer(1));
	fakedriver_write(world.scene);
	forget();
	child_ask(world.child);
	child_ask(world.child); /* one question is enough */
	wait_until(has_reading);
	assert_int_equal(world.reading.gpus.items[1].row_remap, HEALTH_REMAP_PENDING);
	assert_int_equal(world.failures, 0);
}

static void test_xids_come_by_themselves(void **state UNUSED)
{
	start();
	wait_until(has_reading);
	fakedriver_event("94 00000000:11:00.0 9 0");
	wait_until(has_xid);
	assert_int_equal(world.xid.xid, 94);
	assert_string_equal(world.xid.pci, "0000:11:00.0");
	assert_true(world.xid.has_uuid);
	assert_memory_equal(&world.xid.uuid, &world.reading.gpus.items[1].uuid, ATOM_UUID_BYTES);
	assert_int_equal(world.xid.gi, 9);
	assert_int_equal(world.xid.ci, 0);
	forget();
	fakedriver_event("79 0:10:0");
	wait_until(has_xid);
	assert_int_equal(world.xid.xid, 79);
	assert_int_equal(world.xid.gi, -1);
}

/* A wait that fails is a reason to look, and doesn't end the events. */
static void test_events_that_fail_make_it_look(void **state UNUSED)
{
	start();
	wait_until(has_reading);
	forget();
	fakedriver_event("error GPU_IS_LOST");
	wait_until(has_reading);
	fakedriver_event("79 00000000:10:00.0"); /* of the pause: lost, as with the driver itself */
	assert_int_equal(world.failures, 0);
}

static void hang(const char *function, bool unkillable)
{
	json_object_set_new(world.scene, "hang", json_pack("[s]", function));
	json_object_set_new(world.scene, "unkillable", json_boolean(unkillable));
	fakedriver_write(world.scene);
}

static void hang_no_more(void)
{
	json_object_del(world.scene, "hang");
	fakedriver_write(world.scene);
}

static void test_one_that_hangs_is_killed_and_comes_back(void **state UNUSED)
{
	static const char *const functions[] = {"nvmlInit_v2", "nvmlDeviceGetCount_v2",
						"nvmlDeviceGetPowerUsage"};

	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		int64_t asked;

		hang(functions[i], false);
		start_with(bcd, 1000);
		loop_timer_start(world.tick, 1);
		asked = clock_us();
		wait_until(has_failure);
		assert_true(clock_us() - asked < 8000000);
		assert_int_equal(world.readings, 0);
		assert_int_equal(world.stuck, 0);
		assert_non_null(strstr(world.error.what, "did not answer within 1000 ms"));
		hang_no_more();
		wait_until(has_reading);
		loop_timer_stop(world.tick);
		/* bcd keeps its turn meanwhile: one that waited would have missed all of it */
		assert_true(world.ticks > 20);
		assert_true(world.longest < 1000);
		child_destroy(world.child);
		world.child = NULL;
		world.ticks = 0;
		forget();
	}
}

static bool has_rested(struct world *now)
{
	return now->ticks > 400;
}

static void on_rest(void *arg)
{
	on_tick(arg);
	check();
}

/* Nothing starts beside a process that can't be killed; its end is the way back. */
static void test_no_second_process_beside_a_stuck_one(void **state UNUSED)
{
	struct loop_timer *rest;
	pid_t pid;

	fakedriver_write(world.scene);
	world.death_ms = 100; /* for it to be over soon: nothing ends it */
	start_with(bcd, 200);
	wait_until(has_reading);
	pid = child_pid(world.child);
	forget();
	hang("nvmlDeviceGetPowerUsage", true);
	child_ask(world.child);
	wait_until(is_stuck);
	assert_int_equal(world.failures, 2); /* no answer; can't be killed */
	assert_non_null(strstr(world.error.what, "hangs in the kernel"));
	rest = world.tick;
	world.tick = loop_timer_create(world.loop, on_rest, NULL);
	forget();
	child_ask(world.child);
	loop_timer_start(world.tick, 1);
	wait_until(has_rested); /* many times the longest wait before another start */
	loop_timer_destroy(rest);
	loop_timer_stop(world.tick);
	assert_int_equal(child_pid(world.child), pid);
	assert_int_equal(world.failures, 0);
	hang_no_more();
	wait_until(has_reading);
	assert_int_not_equal(child_pid(world.child), pid);
	/* it was told before; of a busy machine's new process a deadline may be missed */
	assert_int_equal(world.stuck, 0);
}

static void test_killed_at_any_time(void **state UNUSED)
{
	start();
	for (int i = 0; i < 20; i++) {
		wait_until(has_reading);
		if (i % 2)
			child_ask(world.child);
		usleep((useconds_t)(i * 200));
		forget();
		assert_int_equal(kill(child_pid(world.child), SIGKILL), 0);
		wait_until(has_failure);
		assert_non_null(strstr(world.error.what, "signal 9"));
		world.readings = 0;
	}
	wait_until(has_reading);
	assert_int_equal(world.stuck, 0);
}

static void test_a_driver_that_fails_is_tried_again(void **state UNUSED)
{
	static const struct {
		const char *init, *what;
	} cases[] = {
		{"LIB_RM_VERSION_MISMATCH", "driver and library are of different versions"},
		{"DRIVER_NOT_LOADED", "the driver is not loaded"},
		{"NO_PERMISSION", "no permission"},
		{"UNKNOWN", "unknown error"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		json_object_set_new(world.scene, "init", json_string(cases[i].init));
		start();
		wait_until(has_failure);
		assert_int_equal(world.error.code, ERROR_UNAVAILABLE);
		assert_non_null(strstr(world.error.what, cases[i].what));
		json_object_del(world.scene, "init");
		fakedriver_write(world.scene);
		wait_until(has_reading);
		child_destroy(world.child);
		world.child = NULL;
		forget();
	}
}

static void test_a_driver_loaded_anew_gets_a_new_process(void **state UNUSED)
{
	pid_t pid;

	start();
	wait_until(has_reading);
	pid = child_pid(world.child);
	forget();
	json_object_set_new(world.scene, "generation", json_integer(1));
	json_object_set_new(world.scene, "driver", json_string("580.65.06"));
	fakedriver_write(world.scene);
	child_ask(world.child);
	wait_until(has_failure);
	assert_non_null(strstr(world.error.what, "the driver was loaded anew"));
	wait_until(has_reading);
	assert_string_equal(world.reading.driver, "580.65.06");
	assert_int_not_equal(child_pid(world.child), pid);
}

static void test_no_library_is_told_apart(void **state UNUSED)
{
	const char *own = library;

	library = "/nowhere/libnvidia-ml.so.1";
	start();
	wait_until(has_failure);
	assert_int_equal(world.error.code, ERROR_NOT_FOUND);
	child_destroy(world.child);
	library = bcd; /* a file that is no library */
	forget();
	start();
	wait_until(has_failure);
	assert_int_equal(world.error.code, ERROR_UNAVAILABLE);
	library = own;
}

/* A program that says what it likes. */
static void start_script(const char *lines)
{
	const char *path = folder_path(&world.folder, "script");
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fprintf(file, "#!/bin/sh\n%s\n", lines);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, 0700), 0);
	start_with(path, 1000);
}

static void test_what_is_no_answer_is_a_failure(void **state UNUSED)
{
	static const struct {
		const char *script, *what;
	} cases[] = {
		{"printf '\\377\\377\\377\\377' >&0; exec sleep 9", "more than 1048576"},
		{"printf '\\000\\000\\000\\004null' >&0; exec sleep 9", "understand"},
		{"printf '\\000\\000\\000\\002[]' >&0; exec sleep 9", "no object"},
		{"printf '\\000\\000\\000\\002{}' >&0; exec sleep 9", "of no kind"},
		{"printf '\\000\\000\\000\\020{\"reading\":null} ' >&0; exec sleep 9",
		 "understand"},
		{"printf '\\000\\000\\000\\016{\"reading\":{}}' >&0; exec sleep 9", "gpus"},
		{"printf '\\000\\000\\000\\012{\"xid\":{}}' >&0; exec sleep 9", "xid"},
		{"printf '\\000\\000\\000\\013{\"error\":1}' >&0; exec sleep 9", "error"},
		{"printf '\\000\\000\\000\\377{\"reading\":{' >&0; exit 7", "status 7"},
		{"printf '\\000\\000\\000\\043{\"error\":\"no\",\"code\":\"UNAVAILABLE\"}' >&0; "
		 "exec sleep 9",
		 "no"}, /* and doesn't end by itself */
		{"printf '\\000\\000\\000\\027{\"error\":\"\",\"code\":\"X\"}' >&0; exec sleep 9",
		 "must say why"},
		{"exec 0>&-; exec sleep 9", "signal 9"},
		{"printf '\\000\\000' >&0; kill -SEGV $$", "signal 11"},
		{"sleep 1 & exit 5", "status 5"}, /* the socket stays open elsewhere */
		{"exec sleep 9", "did not answer"},
		{"while printf '\\000\\000\\000\\015{\"look\":\"no\"}' >&0; do :; done",
		 "did not answer"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		start_script(cases[i].script);
		wait_until(has_failure);
		if (!strstr(world.error.what, cases[i].what))
			fail_msg("%s: '%s' lacks '%s'", cases[i].script, world.error.what,
				 cases[i].what);
		assert_int_equal(world.error.code, ERROR_UNAVAILABLE);
		assert_int_equal(world.readings, 0);
		child_destroy(world.child);
		world.child = NULL;
		forget();
	}
}

static bool has_failed_six_times(struct world *now)
{
	return now->failures == 6;
}

static void test_waits_longer_after_each_failure(void **state UNUSED)
{
	int64_t began = clock_us();

	start_with("/bin/false", 300);
	wait_until(has_failed_six_times);
	/* 20 + 40 + 80 + 80 + 80 */
	assert_true(clock_us() - began >= 300000);
	child_destroy(world.child);
	forget();
	start_with("/nowhere/bcd", 300);
	wait_until(has_failure);
	assert_non_null(strstr(world.error.what, "start '/nowhere/bcd'"));
}

/* 16 GPUs with 7 instances each: the largest machine; nothing of NVML is ours. */
static void test_the_largest_machine(void **state UNUSED)
{
	char text[4096];
	FILE *maps;

	json_decref(world.scene);
	world.scene = fakedriver_new(16);
	for (size_t i = 0; i < 16; i++)
		fakedriver_split(fakedriver_gpu(world.scene, i), 7);
	start();
	wait_until(has_reading);
	assert_int_equal(world.reading.gpus.count, 16);
	vec_each (&world.reading.gpus, struct reading_gpu * gpu)
		assert_int_equal(gpu->mig.count, 7);
	maps = fopen("/proc/self/maps", "re");
	assert_non_null(maps);
	while (fgets(text, sizeof text, maps))
		assert_null(strstr(text, "libnvidia-ml"));
	fclose(maps);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_reads_at_once_and_when_asked, make, drop),
		cmocka_unit_test_setup_teardown(test_xids_come_by_themselves, make, drop),
		cmocka_unit_test_setup_teardown(test_events_that_fail_make_it_look, make, drop),
		cmocka_unit_test_setup_teardown(test_one_that_hangs_is_killed_and_comes_back, make,
						drop),
		cmocka_unit_test_setup_teardown(test_no_second_process_beside_a_stuck_one, make,
						drop),
		cmocka_unit_test_setup_teardown(test_killed_at_any_time, make, drop),
		cmocka_unit_test_setup_teardown(test_a_driver_that_fails_is_tried_again, make,
						drop),
		cmocka_unit_test_setup_teardown(test_a_driver_loaded_anew_gets_a_new_process, make,
						drop),
		cmocka_unit_test_setup_teardown(test_no_library_is_told_apart, make, drop),
		cmocka_unit_test_setup_teardown(test_what_is_no_answer_is_a_failure, make, drop),
		cmocka_unit_test_setup_teardown(test_waits_longer_after_each_failure, make, drop),
		cmocka_unit_test_setup_teardown(test_the_largest_machine, make, drop),
	};

	assert(argc == 3);
	bcd = argv[1];
	library = argv[2];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
