/*
 * What bcd gave up, told from inside: what it runs as nvidia-smi is this program, which has inherited
 * the confinement, tries what is refused, and prints a report of a GPU. argv: bcd, that report, the fake
 * driver's library.
 */
#include "lib/alone.h"
#include "lib/fakedriver.h"
#include "lib/folder.h"
#include "lib/test.h"
#include "sys/clock.h"
#include "sys/durable.h"
#include "text/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS   30000
#define FOUND     "BC_TEST_FOUND" /* environment of the one inside: where it writes what it found */
#define REPORT    "BC_TEST_REPORT" /* and what it prints */
#define ELSEWHERE "/var/tmp/bc-test-confined"

static const char *program, *report, *library, *self; /* set once by main */

/* --- inside --- */

/* Arguments with which none of them does anything, were it let through. */
static const struct {
	const char *name;
	long number;
	long arguments[4];
} refused[] = {
	{"mount", SYS_mount, {0}},
	{"umount2", SYS_umount2, {0}},
	{"pivot_root", SYS_pivot_root, {0}},
	{"move_mount", SYS_move_mount, {-1, 0, -1, 0}},
	{"open_tree", SYS_open_tree, {-1, 0, -1}},
	{"fsopen", SYS_fsopen, {0}},
	{"mount_setattr", SYS_mount_setattr, {-1, 0, -1}},
	{"kexec_load", SYS_kexec_load, {0, 0, 0, -1}},
	{"init_module", SYS_init_module, {0}},
	{"finit_module", SYS_finit_module, {-1}},
	{"delete_module", SYS_delete_module, {0}},
	{"bpf", SYS_bpf, {-1}},
	{"reboot", SYS_reboot, {0}},
	{"setns", SYS_setns, {-1}},
	{"unshare", SYS_unshare, {0}},
	{"clone into a namespace", SYS_clone, {CLONE_NEWUSER | CLONE_THREAD}},
	{"keyctl", SYS_keyctl, {-1}},
	{"add_key", SYS_add_key, {0}},
	{"request_key", SYS_request_key, {0}},
	{"perf_event_open", SYS_perf_event_open, {0}},
	{"swapon", SYS_swapon, {0}},
	{"swapoff", SYS_swapoff, {0}},
	{"open_by_handle_at", SYS_open_by_handle_at, {-1}},
	{"userfaultfd", SYS_userfaultfd, {-1}},
	{"io_uring_setup", SYS_io_uring_setup, {0}},
	{"settimeofday", SYS_settimeofday, {0}},
	{"sethostname", SYS_sethostname, {0, -1}},
	{"pidfd_getfd", SYS_pidfd_getfd, {-1, -1, 0}},
	{"process_vm_writev", SYS_process_vm_writev, {-1}},
	{"acct", SYS_acct, {1}},
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	{"ptrace", SYS_ptrace, {-1}},
#endif
};

static json_int_t dump_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_CORE, &limit) == 0 ? (json_int_t)limit.rlim_max : -1;
}

static json_t *found_inside(void)
{
	json_t *found = json_object();
	int fd;

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		const long *with = refused[i].arguments;

		errno = 0;
		if (syscall(refused[i].number, with[0], with[1], with[2], with[3], 0) == 0)
			errno = 0;
		tree_set(found, refused[i].name, json_integer(errno));
	}
	fd = socket(AF_VSOCK, SOCK_STREAM, 0);
	tree_set(found, "vsock", json_integer(fd < 0 ? errno : 0));
	fd = open(ELSEWHERE, O_WRONLY | O_CREAT, 0600);
	tree_set(found, "elsewhere", json_integer(fd < 0 ? errno : 0));
	unlink(ELSEWHERE);
	tree_set(found, "dumps", json_integer(dump_limit()));
	tree_set(found, "privileges", json_integer(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)));
	return found;
}

static int be_inside(void)
{
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(tree) json_t *found = found_inside();
	struct error error;

	tree_dump_pretty(&text, found);
	if (!durable_replace(getenv(FOUND), text.data, text.length, 0600, &error))
		return 1;
	buf_clear(&text);
	if (!durable_read(getenv(REPORT), (size_t)1 << 20, &text, &error))
		return 1;
	return fwrite(text.data, 1, text.length, stdout) == text.length ? 0 : 1;
}

/* --- outside --- */

static void write_config(void **state, bool confined, const char *source)
{
	const char *folder = *state;
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	buf_printf(
		&text,
		"[paths]\ndata = '%s/data'\nrun = '%s/run'\nkubelet = '%s/kubelet'\n"
		"cdi = '%s/cdi'\nrun_cdi = '%s/run-cdi'\n"
		"[host]\nunits = false\nconfine = %s\n[gpu]\nsource = '%s'\nnvml_library = '%s'\n"
		"nvidia_smi = '%s/nvidia-smi'\nkernel_log = ''\n"
		"[kubernetes]\nnode_name = 'n1'\nkubeconfig = ''\n",
		folder, folder, folder, folder, folder, confined ? "true" : "false", source,
		library, folder);
	expect_ok(durable_replace(folder_path(state, "config.toml"), text.data, text.length, 0600,
				  &error),
		  &error);
	expect_ok(durable_make_folder(folder_path(state, "cdi"), 0700, &error), &error);
	assert_int_equal(symlink(self, folder_path(state, "nvidia-smi")), 0);
	assert_int_equal(setenv(FOUND, folder_path(state, "found.json"), 1), 0);
	assert_int_equal(setenv(REPORT, report, 1), 0);
}

static int become_bcd(void *arg)
{
	void **state = arg;

	if (freopen(folder_path(state, "log"), "a", stderr))
		execl(program, program, "--config", folder_path(state, "config.toml"), "node",
		      (char *)NULL);
	return 127;
}

/* As in a pod without the host's PID namespace: the first process of its own. */
static pid_t start(void **state, bool as_pod)
{
	pid_t test = getpid(), child;

	if (as_pod)
		return alone_start(become_bcd, state);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != test
			      ? 1
			      : become_bcd(state));
	return child;
}

static json_t *status_of(void **state)
{
	CLEANUP(buf) struct buf text = {0};
	char command[1024], part[4096];
	json_t *status = NULL;
	struct error error;
	size_t length;
	FILE *pipe;

	snprintf(command, sizeof command, "'%s' --config '%s' status -o json 2>/dev/null", program,
		 folder_path(state, "config.toml"));
	pipe = popen(command, "r"); /* a test's own fixed words */
	assert_non_null(pipe);
	while ((length = fread(part, 1, sizeof part, pipe)) > 0)
		buf_add(&text, part, length);
	if (WEXITSTATUS(pclose(pipe)) != 0)
		return NULL;
	expect_ok(tree_parse(text.data, text.length, (size_t)1 << 20, "status", &status, &error),
		  &error);
	return status;
}

/* What it says once it has read the GPU, so that the one inside has run. */
static json_t *status_with_gpu(void **state)
{
	struct mono until = mono_after(clock_mono(), WAIT_MS);

	while (mono_until(clock_mono(), until) > 0) {
		json_t *status = status_of(state);

		if (json_array_size(json_object_get(status, "devices")) > 0)
			return status;
		json_decref(status);
		usleep(50000);
	}
	fail_msg("no GPU was read; see the log");
	return NULL;
}

static json_t *read_found(void **state)
{
	CLEANUP(buf) struct buf text = {0};
	json_t *found = NULL;
	struct error error;

	expect_ok(durable_read(folder_path(state, "found.json"), (size_t)1 << 20, &text, &error),
		  &error);
	expect_ok(tree_parse(text.data, text.length, (size_t)1 << 20, "found", &found, &error),
		  &error);
	return found;
}

/* A bcd that has read its GPUs: what it says of itself, and what the one inside found. */
struct run {
	pid_t child;
	json_t *status, *found;
	const json_t *confinement; /* of the status */
};

static struct run begin(void **state, bool confined, const char *source, bool as_pod)
{
	struct run run = {0};

	write_config(state, confined, source);
	run.child = start(state, as_pod);
	run.status = status_with_gpu(state);
	run.confinement = json_object_get(run.status, "confinement");
	if (str_equal(source, "nvidia-smi"))
		run.found = read_found(state);
	return run;
}

static void end(struct run *run)
{
	int ended;

	json_decref(run->status);
	json_decref(run->found);
	assert_int_equal(kill(run->child, SIGKILL), 0); /* and the one that it waits for with it */
	assert_int_equal(waitpid(run->child, &ended, 0), run->child);
}

static json_int_t number(const json_t *found, const char *name)
{
	return json_integer_value(json_object_get(found, name));
}

static bool lists(const json_t *array, const char *word)
{
	const json_t *one;
	size_t i;

	json_array_foreach(array, i, one)
	{
		const char *text = json_is_string(one)
					   ? json_string_value(one)
					   : json_string_value(json_object_get(one, "what"));

		if (text && str_equal(text, word))
			return true;
	}
	return false;
}

static void expect_refusals(const json_t *found)
{
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if (number(found, refused[i].name) != EPERM)
			fail_msg("%s: errno %lld, not EPERM", refused[i].name,
				 (long long)number(found, refused[i].name));
	assert_int_equal(number(found, "vsock"), EAFNOSUPPORT);
	assert_int_equal(number(found, "privileges"), 1);
	assert_in_range(number(found, "dumps"), 0, 1);
}

static bool kernel_confines_files(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, 1) > 0;
}

/* One line of it. */
static void expect_the_log_says_it(void **state)
{
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	expect_ok(durable_read(folder_path(state, "log"), (size_t)1 << 20, &text, &error), &error);
	assert_non_null(strstr(buf_text(&text), "\"event\":\"confined\""));
	assert_non_null(strstr(buf_text(&text), "privileges, capabilities, calls, dumps"));
	assert_non_null(strstr(buf_text(&text), "\"not\":\"files: "));
}

/* A bcd that works, and can't take its machine over, nor reboot it.  proves: HOSTED-28 HOSTED-40 */
static void test_refused_from_inside(void **state)
{
	static const char *const words[] = {"privileges", "capabilities", "calls", "dumps"};
	struct run run = begin(state, true, "nvidia-smi", false);

	expect_refusals(run.found);
	assert_int_equal(number(run.found, "elsewhere"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		assert_true(lists(json_object_get(run.confinement, "done"), words[i]));
	assert_true(lists(json_object_get(run.confinement, "missing"), "files"));
	expect_the_log_says_it(state);
	end(&run);
}

/* A pod's, which also writes nowhere else.  proves: HOSTED-40 */
static void test_refused_in_a_pod(void **state)
{
	struct run run = begin(state, true, "nvidia-smi", true);

	expect_refusals(run.found);
	if (kernel_confines_files()) {
		assert_true(lists(json_object_get(run.confinement, "done"), "files"));
		assert_int_equal(number(run.found, "elsewhere"), EACCES);
	} else {
		assert_true(lists(json_object_get(run.confinement, "missing"), "files"));
	}
	assert_false(lists(json_object_get(run.confinement, "capabilities"), "sys_ptrace"));
	end(&run);
}

/* The child for NVML works with what is left.  proves: HOSTED-40 */
static void test_nvml_in_a_pod(void **state)
{
	json_t *scene = fakedriver_new(2);
	struct run run;

	assert_int_equal(setenv("FAKE_DRIVER", folder_path(state, "scene.json"), 1), 0);
	fakedriver_write(scene);
	json_decref(scene);
	run = begin(state, true, "nvml", true);
	assert_string_equal(json_string_value(json_object_get(run.status, "gpuSource")), "nvml");
	assert_int_equal(json_array_size(json_object_get(run.status, "devices")), 2);
	end(&run);
}

/* proves: HOSTED-40 */
static void test_off(void **state)
{
	struct run run = begin(state, false, "nvidia-smi", false);

	assert_int_equal(number(run.found, "unshare"), 0);
	assert_int_equal(json_array_size(json_object_get(run.confinement, "done")), 0);
	assert_int_equal(json_array_size(json_object_get(run.confinement, "missing")), 5);
	assert_int_equal(number(run.found, "dumps"), dump_limit());
	end(&run);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		IN_FOLDER(test_refused_from_inside),
		IN_FOLDER(test_refused_in_a_pod),
		IN_FOLDER(test_nvml_in_a_pod),
		IN_FOLDER(test_off),
	};
	static char path[4096], whole[PATH_MAX]; /* Meson names it from the build folder */

	if (getenv(FOUND))
		return be_inside();
	assert(argc == 4);
	program = argv[1];
	report = argv[2];
	library = realpath(argv[3], whole);
	if (!library || readlink("/proc/self/exe", path, sizeof path - 1) < 0)
		return 1;
	self = path;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
