#include "gpu/smi.h"
#include "lib/folder.h"
#include "lib/test.h"
#include "sys/proc.h"

#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#define LONG_MS  20000 /* no test waits for it */
#define SHORT_MS 300   /* for what hangs */

/* gpu/smi.c is built into this test with its proc_signal() renamed to this: what is stuck in the
 * kernel survives SIGKILL. */
#undef proc_signal
void proc_signal(struct proc *proc, int signal);
static bool is_unkillable;

void test_proc_signal(struct proc *proc, int signal)
{
	if (!is_unkillable)
		proc_signal(proc, signal);
}

static struct loop *loop;
static int64_t death_ms;

/* What was heard last. */
static struct {
	struct reading reading;
	struct error error;
	int readings, failures, stuck;
} heard;

static int make(void **state)
{
	loop = loop_create();
	death_ms = SMI_TOOL_DEATH_MS;
	memset(&heard, 0, sizeof heard);
	if (folder_make(state))
		return -1;
	setenv("FAKE_DRIVER", folder_path(state, "scene.json"), 1);
	return 0;
}

static int drop(void **state)
{
	reading_deinit(&heard.reading);
	loop_destroy(loop);
	return folder_remove(state);
}

static void on_reading(void *arg UNUSED, struct reading *reading)
{
	reading_deinit(&heard.reading);
	heard.reading = *reading;
	*reading = (struct reading){0};
	heard.readings++;
	loop_stop(loop);
}

static void on_failure(void *arg UNUSED, const struct error *error, bool stuck)
{
	heard.error = *error;
	heard.failures++;
	heard.stuck += stuck;
	loop_stop(loop);
}

static struct smi_tool *make_tool(const char *program, const char *root, int64_t deadline_ms)
{
	const struct smi_tool_options options = {
		.program = program, .root = root, .deadline_ms = deadline_ms, .death_ms = death_ms};
	const struct smi_tool_handlers handlers = {on_reading, on_failure};

	return smi_tool_create(loop, &options, &handlers, NULL);
}

static void put_file(const char *path, const char *text, mode_t mode)
{
	char next[520];
	FILE *file;

	snprintf(next, sizeof next, "%s.next", path);
	file = fopen(next, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(next, mode), 0);
	assert_int_equal(rename(next, path), 0);
}

/* What the fake driver says from now on. */
static void set_scene(void **state, const char *gpus, const char *more)
{
	CLEANUP(buf) struct buf text = {0};

	buf_printf(&text, "{\"driver\": \"570.124.06\", \"gpus\": [%s]%s}", gpus, more);
	put_file(folder_path(state, "scene.json"), buf_text(&text), 0644);
}

static const char *put_script(void **state, const char *lines)
{
	const char *path = folder_path(state, "nvidia-smi");
	CLEANUP(buf) struct buf text = {0};

	buf_printf(&text, "#!/bin/sh\n%s\n", lines);
	put_file(path, buf_text(&text), 0755);
	return path;
}

static void ask(struct smi_tool *tool)
{
	smi_tool_ask(tool);
	smi_tool_ask(tool); /* while one is under way */
	loop_run(loop);
}

#define ONE_GPU                                                                                    \
	"{\"uuid\": \"GPU-5a1c0de0-0001-4000-8000-000000000001\", \"pci\": \"00000000:1B:00.0\", " \
	"\"minor\": 0, \"name\": \"NVIDIA H100 80GB HBM3\"}"
#define ONE_PART(uuid, profile, start)                                                             \
	"{\"uuid\": \"GPU-5a1c0de0-0001-4000-8000-000000000001\", \"pci\": \"00000000:1B:00.0\", " \
	"\"minor\": 0, \"name\": \"H100\", \"memory_total_bytes\": 85520809984, \"mig_mode\": 1, " \
	"\"mig\": [{\"uuid\": \"MIG-" uuid "\", \"gi\": 9, \"ci\": 0, \"profile\": \"" profile     \
	"\", \"start\": " start ", \"size\": 1, \"memory_bytes\": 10468982784}]}"

static void wait_ms(int64_t ms)
{
	struct loop_timer *timer = loop_timer_create(loop, (loop_fn *)loop_stop, loop);

	loop_timer_start(timer, ms);
	loop_run(loop);
	loop_timer_destroy(timer);
}

static void test_it_is_asked_and_answers(void **state)
{
	struct smi_tool *tool = make_tool(FAKE_SMI, NULL, LONG_MS);

	set_scene(state, ONE_GPU, "");
	for (int i = 1; i <= 3; i++) {
		ask(tool);
		assert_int_equal(heard.readings, i);
		assert_int_equal(heard.reading.gpus.count, 1);
		assert_int_equal(smi_tool_pid(tool), 0);
	}
	assert_int_equal(heard.failures, 0);
	smi_tool_destroy(tool);
}

/* N02: each failure is told, in one pass, and the first answer after it comes by itself. */
static void test_failures_end_by_themselves(void **state)
{
	static const struct {
		const char *more, *what;
	} rows[] = {
		{", \"init\": \"LIB_RM_VERSION_MISMATCH\"", "version mismatch"},
		{", \"init\": \"UNKNOWN\"", "Unknown Error"},
		{", \"init\": \"DRIVER_NOT_LOADED\"", "couldn't communicate"},
	};
	struct smi_tool *tool = make_tool(FAKE_SMI, NULL, LONG_MS);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		set_scene(state, ONE_GPU, rows[i].more);
		ask(tool);
		assert_int_equal(heard.failures, (int)i + 1);
		if (!strstr(heard.error.what, rows[i].what))
			fail_msg("'%s' lacks '%s'", heard.error.what, rows[i].what);
		assert_true(*heard.error.hint);
		set_scene(state, ONE_GPU, "");
		ask(tool);
		assert_int_equal(heard.readings, (int)i + 1);
	}
	assert_int_equal(heard.stuck, 0);
	smi_tool_destroy(tool);
}

/* Asks until there is an answer: the one that was killed may not be dead yet. */
static void ask_until_it_answers(struct smi_tool *tool)
{
	for (int tries = 0; heard.readings == 0 && tries < 2000; tries++) {
		smi_tool_ask(tool);
		wait_ms(5);
	}
	assert_int_equal(heard.readings, 1);
}

static void test_one_that_hangs_is_killed(void **state)
{
	struct smi_tool *tool = make_tool(FAKE_SMI, NULL, SHORT_MS);
	pid_t hung;

	set_scene(state, ONE_GPU, ", \"hang\": [\"nvmlDeviceGetPowerUsage\"]");
	smi_tool_ask(tool);
	wait_ms(20);
	hung = smi_tool_pid(tool);
	assert_true(hung > 0);
	loop_run(loop);
	assert_int_equal(heard.failures, 1);
	assert_non_null(strstr(heard.error.what, "did not answer within 300 ms"));
	assert_non_null(strstr(heard.error.hint, "driver hangs"));
	set_scene(state, ONE_GPU, "");
	ask_until_it_answers(tool);
	assert_int_equal(kill(hung, 0), -1);
	assert_int_equal(heard.stuck, 0);
	smi_tool_destroy(tool);
}

/* One that can't be killed is left alone, with no second beside it, until it ends. */
static void test_a_stuck_one_stays_alone(void **state)
{
	struct smi_tool *tool;
	pid_t stuck;

	death_ms = 100; /* for it to be over soon: nothing ends it */
	tool = make_tool(FAKE_SMI, NULL, SHORT_MS);
	set_scene(state, ONE_GPU, ", \"hang\": [\"nvmlDeviceGetName\"]");
	is_unkillable = true;
	smi_tool_ask(tool);
	loop_run(loop);
	assert_int_equal(heard.stuck, 0);
	loop_run(loop);
	assert_int_equal(heard.stuck, 1);
	assert_int_equal(heard.failures, 2);
	stuck = smi_tool_pid(tool);
	assert_true(stuck > 0);
	for (int i = 0; i < 10; i++) {
		smi_tool_ask(tool);
		wait_ms(5);
		assert_int_equal(smi_tool_pid(tool), stuck);
	}
	assert_int_equal(kill(stuck, 0), 0);
	is_unkillable = false;
	set_scene(state, ONE_GPU, "");
	ask_until_it_answers(tool);
	smi_tool_destroy(tool);
}

static const struct reading_mig *first_mig(void)
{
	assert_int_equal(heard.reading.gpus.count, 1);
	assert_int_equal(heard.reading.gpus.items[0].mig.count, 1);
	return &heard.reading.gpus.items[0].mig.items[0];
}

static void test_parts_are_complete_and_of_one_moment(void **state)
{
	struct smi_tool *tool = make_tool(FAKE_SMI, NULL, LONG_MS);

	set_scene(state, ONE_PART("a", "1g.10gb", "3"), "");
	ask(tool);
	assert_string_equal(first_mig()->uuid, "MIG-a");
	assert_string_equal(first_mig()->profile, "1g.10gb");
	assert_int_equal(first_mig()->start, 3);
	ask(tool);
	assert_string_equal(first_mig()->uuid, "MIG-a");
	/* made anew elsewhere, with the same numbers */
	set_scene(state, ONE_PART("b", "1g.10gb+me", "5"), "");
	ask(tool);
	assert_string_equal(first_mig()->uuid, "MIG-b");
	assert_string_equal(first_mig()->profile, "1g.10gb+me");
	assert_int_equal(first_mig()->start, 5);
	/* gone, and back under the old names in another place */
	set_scene(state, ONE_GPU, "");
	ask(tool);
	assert_int_equal(heard.reading.gpus.items[0].mig.count, 0);
	set_scene(state, ONE_PART("b", "1g.10gb+me", "1"), "");
	ask(tool);
	assert_int_equal(first_mig()->start, 1);
	assert_int_equal(heard.failures, 0);
	smi_tool_destroy(tool);
}

#define SCRIPT_GPU                                                                                 \
	"<nvidia_smi_log><gpu><uuid>GPU-5a1c0de0-0001-4000-8000-000000000001</uuid>"               \
	"<mig_devices><mig_device><gpu_instance_id>9</gpu_instance_id><compute_instance_id>0"      \
	"</compute_instance_id></mig_device></mig_devices></gpu></nvidia_smi_log>"

/* The driver may refuse once. */
static void test_places_are_asked_for_until_told(void **state)
{
	CLEANUP(buf) struct buf lines = {0};
	struct smi_tool *tool;

	buf_printf(
		&lines,
		"case $1 in\n-q) echo '%s';;\n"
		"-L) echo 'GPU 0: x (UUID: GPU-5a1c0de0-0001-4000-8000-000000000001)'\n"
		"echo '  MIG 1g.10gb Device 0: (UUID: MIG-a)';;\n"
		"mig) [ -e %s ] || { : >%s; exit 4; }; echo '| 0 MIG 1g.10gb 19 9 3:1 |';;\nesac",
		SCRIPT_GPU, folder_path(state, "asked"), folder_path(state, "asked"));
	tool = make_tool(put_script(state, buf_text(&lines)), NULL, LONG_MS);
	ask(tool);
	assert_string_equal(first_mig()->uuid, "MIG-a");
	assert_int_equal(first_mig()->start, -1);
	ask(tool);
	assert_int_equal(first_mig()->start, 3);
	assert_int_equal(heard.failures, 0);
	smi_tool_destroy(tool);
}

static void test_parts_that_never_rest_are_a_failure(void **state)
{
	struct smi_tool *tool = make_tool(
		put_script(state, "case $1 in -q) echo '" SCRIPT_GPU "';; -L) echo $$;; esac"),
		NULL, LONG_MS);

	ask(tool);
	assert_int_equal(heard.failures, 1);
	assert_non_null(strstr(heard.error.what, "MIG instances changed"));
	smi_tool_destroy(tool);
}

static void test_what_a_script_can_do_wrong(void **state)
{
	static const struct {
		const char *lines, *what;
		int64_t deadline_ms;
	} rows[] = {
		{"exec yes", "more than 8 MiB", LONG_MS},
		{"kill -9 $$", "killed", LONG_MS},
		{"exit 3", "status 3", LONG_MS},
		{"echo '<nvidia_smi_log>'", "no element found", LONG_MS},
		{"exec sleep 5", "did not answer", SHORT_MS},
		{"trap '' TERM; while :; do :; done", "did not answer", SHORT_MS},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct smi_tool *tool =
			make_tool(put_script(state, rows[i].lines), NULL, rows[i].deadline_ms);

		ask(tool);
		assert_int_equal(heard.failures, (int)i + 1);
		if (!strstr(heard.error.what, rows[i].what))
			fail_msg("'%s' lacks '%s'", heard.error.what, rows[i].what);
		smi_tool_destroy(tool);
	}
}

static void test_what_goes_well_all_the_same(void **state)
{
	static const char *const rows[] = {
		/* more on stderr than is kept */
		"head -c 300000 /dev/zero >&2; echo '" SCRIPT_GPU "'",
		/* something that it started still holds its output */
		"sleep 3 & echo '" SCRIPT_GPU "'",
		/* its input is empty, not ours */
		"cat; echo '" SCRIPT_GPU "'",
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(buf) struct buf lines = {0};
		struct smi_tool *tool;

		buf_printf(&lines, "[ $1 = -q ] || exit 0\n%s", rows[i]);
		tool = make_tool(put_script(state, buf_text(&lines)), NULL, LONG_MS);
		ask(tool);
		assert_int_equal(heard.readings, (int)i + 1);
		smi_tool_destroy(tool);
	}
}

static void test_it_is_found_where_drivers_have_it(void **state)
{
	struct smi_tool *tool = make_tool(NULL, *state, LONG_MS);

	ask(tool);
	assert_string_equal(error_code_name(heard.error.code), "NOT_FOUND");
	assert_non_null(strstr(heard.error.hint, "nvidia_smi"));
	assert_int_equal(mkdir(folder_path(state, "opt"), 0755), 0);
	assert_int_equal(mkdir(folder_path(state, "opt/bin"), 0755), 0);
	/* below another root it runs in that root, which has no shell */
	put_file(folder_path(state, "opt/bin/nvidia-smi"), "#!/bin/sh\n", 0755);
	ask(tool);
	assert_non_null(strstr(heard.error.what, "start '/opt/bin/nvidia-smi'"));
	assert_int_equal(heard.failures, 2);
	smi_tool_destroy(tool);
	tool = make_tool("/nowhere/nvidia-smi", NULL, LONG_MS);
	ask(tool);
	assert_non_null(strstr(heard.error.what, "no program '/nowhere/nvidia-smi'"));
	smi_tool_destroy(tool);
}

static void test_it_can_be_dropped_at_any_moment(void **state)
{
	set_scene(state, ONE_GPU, ", \"hang\": [\"nvmlDeviceGetName\"]");
	for (int i = 0; i < 3; i++) {
		struct smi_tool *tool = make_tool(FAKE_SMI, NULL, LONG_MS);
		pid_t pid = 0;

		if (i > 0)
			smi_tool_ask(tool);
		if (i > 1) {
			wait_ms(20);
			pid = smi_tool_pid(tool);
			assert_true(pid > 0);
		}
		smi_tool_destroy(tool);
		if (pid)
			assert_int_equal(kill(pid, 0), -1);
	}
	assert_int_equal(heard.failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_it_is_asked_and_answers, make, drop),
		cmocka_unit_test_setup_teardown(test_failures_end_by_themselves, make, drop),
		cmocka_unit_test_setup_teardown(test_one_that_hangs_is_killed, make, drop),
		cmocka_unit_test_setup_teardown(test_a_stuck_one_stays_alone, make, drop),
		cmocka_unit_test_setup_teardown(test_parts_are_complete_and_of_one_moment, make,
						drop),
		cmocka_unit_test_setup_teardown(test_places_are_asked_for_until_told, make, drop),
		cmocka_unit_test_setup_teardown(test_parts_that_never_rest_are_a_failure, make,
						drop),
		cmocka_unit_test_setup_teardown(test_what_a_script_can_do_wrong, make, drop),
		cmocka_unit_test_setup_teardown(test_what_goes_well_all_the_same, make, drop),
		cmocka_unit_test_setup_teardown(test_it_is_found_where_drivers_have_it, make, drop),
		cmocka_unit_test_setup_teardown(test_it_can_be_dropped_at_any_moment, make, drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
