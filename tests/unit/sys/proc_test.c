#include "sys/proc.h"

#include "lib/folder.h"
#include "lib/test.h"
#include "sys/durable.h"
#include "sys/net.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

static struct loop *loop;
static int exit_status;

static int make(void **state)
{
	loop = loop_create();
	exit_status = -1;
	return folder_make(state);
}

static int drop(void **state)
{
	loop_destroy(loop);
	return folder_remove(state);
}

static void on_exit_note(void *arg UNUSED, int status)
{
	exit_status = status;
}

/* Runs a shell line to its end; its output is in "<folder>/out". */
static void run_shell(void **state, char *line)
{
	char *argv[] = {"sh", "-c", line, NULL}, *env[] = {"WORD=there", NULL};
	struct proc_options options = {
		.file = "/bin/sh",
		.argv = argv,
		.env = env,
		.output_path = folder_path(state, "out"),
		.working_folder = *state,
	};
	struct proc *proc;
	struct error error;

	expect_ok(proc_start(loop, &options, on_exit_note, NULL, &proc, &error), &error);
	assert_true(proc_pid(proc) > 0);
	loop_run(loop);
}

static void expect_output(void **state, const char *wanted)
{
	CLEANUP(buf) struct buf content = {0};
	struct error error;

	expect_ok(durable_read(folder_path(state, "out"), 10000, &content, &error), &error);
	assert_string_equal(buf_text(&content), wanted);
}

static void test_output_environment_folder_and_status(void **state)
{
	char wanted[600];

	run_shell(state, "echo hello $WORD; pwd >&2; exit 3");
	assert_true(WIFEXITED(exit_status));
	assert_int_equal(WEXITSTATUS(exit_status), 3);
	snprintf(wanted, sizeof wanted, "hello there\n%s\n", (char *)*state);
	expect_output(state, wanted);
	run_shell(state, "echo more");
	snprintf(wanted, sizeof wanted, "hello there\n%s\nmore\n", (char *)*state);
	expect_output(state, wanted);
}

static void test_no_descriptor_but_three(void **state)
{
	int leaked = open("/dev/null", O_RDONLY); /* without O_CLOEXEC, as a careless library */

	/* builtins only: a fork or a glob would open some itself */
	run_shell(state, "n=0; while [ $n -lt 64 ]; do"
			 " [ ! -e /proc/$$/fd/$n ] || echo $n; n=$((n + 1)); done");
	expect_output(state, "0\n1\n2\n");
	close(leaked);
}

static void test_signals_are_default(void **state)
{
	run_shell(state, "grep -E 'SigIgn|SigBlk' /proc/$$/status | grep -vc 0000000000000000");
	expect_output(state, "0\n");
}

static void kill_it(void *arg)
{
	proc_signal(arg, SIGKILL);
}

/* As of a parent that ignores its children's ends: they would be reaped behind our back. */
static void test_an_end_is_told_whoever_started_us(void **state)
{
	signal(SIGCHLD, SIG_IGN);
	run_shell(state, "exit 5");
	assert_true(WIFEXITED(exit_status));
	assert_int_equal(WEXITSTATUS(exit_status), 5);
}

static void test_a_signal_ends_it(void **state UNUSED)
{
	char *argv[] = {"sleep", "60", NULL};
	struct proc_options options = {.file = "/bin/sleep", .argv = argv};
	struct loop_timer *timer;
	struct proc *proc;
	struct error error;

	expect_ok(proc_start(loop, &options, on_exit_note, NULL, &proc, &error), &error);
	timer = loop_timer_create(loop, kill_it, proc);
	loop_timer_start(timer, 10);
	loop_run(loop);
	assert_true(WIFSIGNALED(exit_status));
	assert_int_equal(WTERMSIG(exit_status), SIGKILL);
	loop_timer_destroy(timer);
}

static void test_a_failed_start_says_why(void **state)
{
	char *argv[] = {"x", NULL};
	struct proc_options options = {.file = "/nowhere/x", .argv = argv};
	struct proc *proc = NULL;
	struct error error;

	expect_error(proc_start(loop, &options, on_exit_note, NULL, &proc, &error), &error,
		     ERROR_NOT_FOUND, "start '/nowhere/x'");
	options.file = "/etc/passwd";
	expect_error(proc_start(loop, &options, on_exit_note, NULL, &proc, &error), &error,
		     ERROR_FORBIDDEN, "start '/etc/passwd'");
	options.file = "/bin/true";
	options.working_folder = "/nowhere";
	expect_error(proc_start(loop, &options, on_exit_note, NULL, &proc, &error), &error,
		     ERROR_NOT_FOUND, "start '/bin/true'");
	options.output_path = folder_path(state, "absent/out");
	expect_error(proc_start(loop, &options, on_exit_note, NULL, &proc, &error), &error,
		     ERROR_NOT_FOUND, "absent/out");
	assert_null(proc);
}

/* --- standard streams as sockets of the loop --- */

struct stream {
	struct buf text;
	bool closed;
};

static void on_stream(void *arg, const uint8_t *data, size_t length)
{
	struct stream *stream = arg;

	buf_add(&stream->text, data, length);
}

static void on_stream_close(void *arg, const struct error *error UNUSED)
{
	struct stream *stream = arg;

	stream->closed = true;
}

static const struct net_handlers stream_handlers = {on_stream, NULL, on_stream_close};

static size_t count_fds(void)
{
	size_t count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void talk_to_a_shell(void)
{
	char *argv[] = {"sh", "-c", "read word; echo \"<$word>\"; echo no >&2; exit 4", NULL};
	struct net_conn *in, *out, *err;
	struct proc_options options = {.file = "/bin/sh",
				       .argv = argv,
				       .ret_stdin = &in,
				       .ret_stdout = &out,
				       .ret_stderr = &err};
	struct stream streams[3] = {0};
	struct proc *proc;
	struct error error;

	expect_ok(proc_start(loop, &options, on_exit_note, NULL, &proc, &error), &error);
	net_start(in, &stream_handlers, &streams[0]);
	net_start(out, &stream_handlers, &streams[1]);
	net_start(err, &stream_handlers, &streams[2]);
	net_write(in, "word\n", 5);
	loop_run(loop); /* until nothing is left: each stream ended, and the process */
	assert_int_equal(WEXITSTATUS(exit_status), 4);
	assert_string_equal(buf_text(&streams[1].text), "<word>\n");
	assert_string_equal(buf_text(&streams[2].text), "no\n");
	for (int i = 0; i < 3; i++) {
		assert_true(streams[i].closed);
		buf_deinit(&streams[i].text);
	}
}

static void test_its_streams_are_the_loops(void **state UNUSED)
{
	size_t fds;

	talk_to_a_shell(); /* a loop keeps one descriptor from its first stream on */
	fds = count_fds();
	talk_to_a_shell();
	assert_int_equal(count_fds(), fds);
}

static void test_a_failed_start_leaves_no_stream(void **state UNUSED)
{
	char *argv[] = {"x", NULL};
	struct net_conn *in = NULL, *out = NULL;
	struct proc_options options = {
		.file = "/nowhere/x", .argv = argv, .ret_stdin = &in, .ret_stdout = &out};
	size_t fds = count_fds();
	struct proc *proc = NULL;
	struct error error;

	expect_error(proc_start(loop, &options, on_exit_note, NULL, &proc, &error), &error,
		     ERROR_NOT_FOUND, "start '/nowhere/x'");
	assert_null(in);
	assert_null(out);
	assert_int_equal(count_fds(), fds);
}

/* In a root folder of its own there is no shell; who may not change it gets no child either. */
static void test_its_root_is_another(void **state)
{
	char *argv[] = {"sh", NULL};
	struct proc_options options = {.file = "/bin/sh", .argv = argv, .root = *state};
	struct proc *proc = NULL;
	struct error error;

	if (proc_start(loop, &options, on_exit_note, NULL, &proc, &error))
		fail_msg("it started");
	assert_non_null(strstr(error.what, "start '/bin/sh'"));
	options.root = "/";
	if (geteuid() == 0) {
		expect_ok(proc_start(loop, &options, on_exit_note, NULL, &proc, &error), &error);
		loop_run(loop);
		assert_int_equal(WEXITSTATUS(exit_status), 0);
	}
}

/* A parent that starts a child, tells its pid, and is killed. */
static NORETURN void doomed_parent(int tell)
{
	char *argv[] = {"sleep", "60", NULL};
	struct proc_options options = {.file = "/bin/sleep", .argv = argv};
	struct loop *own = loop_create();
	struct proc *proc;
	struct error error;
	pid_t pid;

	if (!proc_start(own, &options, on_exit_note, NULL, &proc, &error))
		_exit(1);
	pid = proc_pid(proc);
	if (write(tell, &pid, sizeof pid) != sizeof pid)
		_exit(1);
	raise(SIGKILL);
	_exit(1);
}

static bool is_running(pid_t pid)
{
	char path[64], text[256] = "", *end;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return false;
	if (read(fd, text, sizeof text - 1) < 0)
		text[0] = '\0';
	close(fd);
	end = strrchr(text, ')');
	return end && end[2] != 'Z';
}

static void expect_end(pid_t pid)
{
	for (int i = 0; i < TEST_PATIENCE_MS / 10 && is_running(pid); i++)
		usleep(10000);
	assert_false(is_running(pid));
}

static void test_a_child_dies_with_its_parent(void **state UNUSED)
{
	int tell[2];
	pid_t parent, child;

	assert_int_equal(pipe(tell), 0);
	parent = fork();
	if (parent == 0)
		doomed_parent(tell[1]);
	assert_int_equal(read(tell[0], &child, sizeof child), sizeof child);
	waitpid(parent, NULL, 0);
	expect_end(child);
	close(tell[0]);
	close(tell[1]);
}

static void test_dropped_is_ended(void **state UNUSED)
{
	char *argv[] = {"sleep", "60", NULL};
	struct proc_options options = {.file = "/bin/sleep", .argv = argv};
	struct proc *proc;
	struct error error;
	pid_t pid;

	expect_ok(proc_start(loop, &options, on_exit_note, NULL, &proc, &error), &error);
	pid = proc_pid(proc);
	proc_drop(proc);
	assert_int_equal(kill(pid, 0), -1); /* waited for, too */
	proc_drop(NULL);
	loop_run(loop);
	assert_int_equal(exit_status, -1);
}

/* A shell that waits for a child of its own, whose pid is returned. */
static pid_t start_parent(void **state, struct proc **ret_proc)
{
	char *argv[] = {"sh", "-c", "sleep 60 & echo $!; wait", NULL};
	struct proc_options options = {
		.file = "/bin/sh", .argv = argv, .output_path = folder_path(state, "out")};
	struct buf text = {0};
	struct error error;
	long child;

	expect_ok(proc_start(loop, &options, on_exit_note, NULL, ret_proc, &error), &error);
	while (text.length == 0 || text.data[text.length - 1] != '\n') {
		usleep(1000);
		expect_ok(durable_read(folder_path(state, "out"), 100, &text, &error), &error);
	}
	child = strtol(buf_text(&text), NULL, 10);
	buf_deinit(&text);
	assert_true(child > 0 && is_running((pid_t)child));
	return (pid_t)child;
}

/* As nvidia-smi's helpers, when it hangs. */
static void test_what_it_started_ends_with_it(void **state)
{
	struct proc *proc;
	pid_t child = start_parent(state, &proc);

	proc_drop(proc);
	expect_end(child);
	assert_int_equal(unlink(folder_path(state, "out")), 0);
	child = start_parent(state, &proc);
	proc_signal(proc, SIGKILL);
	loop_run(loop);
	assert_true(WIFSIGNALED(exit_status));
	expect_end(child);
}

#define PROC_TEST(test) cmocka_unit_test_setup_teardown(test, make, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PROC_TEST(test_output_environment_folder_and_status),
		PROC_TEST(test_no_descriptor_but_three),
		PROC_TEST(test_signals_are_default),
		PROC_TEST(test_an_end_is_told_whoever_started_us),
		PROC_TEST(test_a_signal_ends_it),
		PROC_TEST(test_a_failed_start_says_why),
		PROC_TEST(test_dropped_is_ended),
		PROC_TEST(test_what_it_started_ends_with_it),
		PROC_TEST(test_its_streams_are_the_loops),
		PROC_TEST(test_a_failed_start_leaves_no_stream),
		PROC_TEST(test_its_root_is_another),
		PROC_TEST(test_a_child_dies_with_its_parent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
