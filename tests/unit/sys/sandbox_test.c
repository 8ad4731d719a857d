/* Each power is given up in a child, which says what it can still do. */
#include "sys/sandbox.h"

#include "lib/alone.h"
#include "lib/folder.h"
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BIT(capability) (UINT64_C(1) << (capability))

/* A child's exit status: 0, or the line that was wrong. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			return __LINE__ % 255 + 1;                                                 \
	} while (0)

typedef int child_fn(void *arg);

static void in_child(child_fn *fn, void *arg)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0)
		_exit(fn(arg));
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("a check of the child's failed: line %d of 255s, signal %d",
			 WEXITSTATUS(status) - 1, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

static void *nothing(void *arg)
{
	return arg;
}

static int try_calls(void *arg UNUSED)
{
	static const char *const allowed[] = {
		"clone",          "close",
		"exit",           "exit_group",
		"futex",          "getpid",
		"getuid",         "gettid",
		"kcmp",           "mmap",
		"mprotect",       "munmap",
		"rseq",           "madvise",
		"rt_sigprocmask", "rt_sigaction",
		"sched_yield",    "set_robust_list",
		"socket",         "wait4",
		"write",          "no_such_call",
		"prlimit64",      "sched_getaffinity",
		"sigaltstack",    "set_tid_address",
		"getrandom",      "brk",
		"read",
	};
	static const char *const refused[] = {"mount", "unshare", "no_such_call_either"};
	struct error error;
	pthread_t thread;
	pid_t child;
	int status;

	CHECK(sandbox_privileges(&error));
	CHECK(sandbox_calls(allowed, ARRAY_SIZE(allowed), refused, ARRAY_SIZE(refused), &error));
	/* refused: these would fail otherwise, or do nothing */
	CHECK(syscall(SYS_mount, NULL, NULL, NULL, 0, NULL) < 0 && errno == EPERM);
	CHECK(syscall(SYS_unshare, 0) < 0 && errno == EPERM);
	/* in neither list */
	CHECK(syscall(SYS_getpriority, 0, 0) < 0 && errno == ENOSYS);
	CHECK(syscall(SYS_clone3, NULL, 0) < 0 && errno == ENOSYS);
	/* into new namespaces */
	CHECK(syscall(SYS_clone, CLONE_NEWUSER, 0, 0, 0, 0) < 0 && errno == EPERM);
	CHECK(syscall(SYS_clone, CLONE_NEWNET | CLONE_NEWNS, 0, 0, 0, 0) < 0 && errno == EPERM);
	/* other families of sockets */
	CHECK(socket(AF_VSOCK, SOCK_STREAM, 0) < 0 && errno == EAFNOSUPPORT);
	CHECK(socket(AF_PACKET, SOCK_RAW, 0) < 0 && errno == EAFNOSUPPORT);
	/* and the rest goes on, in processes and threads */
	CHECK(close(socket(AF_UNIX, SOCK_STREAM, 0)) == 0);
	CHECK(pthread_create(&thread, NULL, nothing, NULL) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		_exit(syscall(SYS_unshare, 0) < 0 && errno == EPERM ? 0 : 1);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return 0;
}

/* proves: HOSTED-40 */
static void test_calls(void **state UNUSED)
{
	in_child(try_calls, NULL);
}

/* A list of /proc/self/status. */
static uint64_t status_of(const char *name)
{
	FILE *file = fopen("/proc/self/status", "r");
	unsigned long long value = 0;
	char line[256];

	while (file && fgets(line, sizeof line, file))
		if (str_starts(line, name))
			sscanf(line + strlen(name), "%llx", &value);
	if (file)
		fclose(file);
	return value;
}

static int try_capabilities(void *arg UNUSED)
{
	const uint64_t keep = BIT(CAP_DAC_OVERRIDE) | BIT(CAP_SYSLOG);
	uint64_t before = status_of("CapPrm:\t"), bounds = status_of("CapBnd:\t"), kept;
	struct error error;

	CHECK(sandbox_privileges(&error));
	CHECK(status_of("NoNewPrivs:\t") == 1);
	CHECK(sandbox_capabilities(keep, &kept, &error));
	CHECK(kept == (before & keep));
	CHECK(status_of("CapPrm:\t") == kept);
	CHECK(status_of("CapEff:\t") == kept);
	CHECK(status_of("CapInh:\t") == 0);
	CHECK(status_of("CapBnd:\t") == (before & BIT(CAP_SETPCAP) ? bounds & keep : bounds));
	/* once more, with less */
	CHECK(sandbox_capabilities(BIT(CAP_DAC_OVERRIDE), &kept, &error));
	CHECK(status_of("CapEff:\t") == (before & BIT(CAP_DAC_OVERRIDE)));
	return 0;
}

/* proves: HOSTED-40 */
static void test_capabilities(void **state UNUSED)
{
	assert_true(sandbox_last_capability() >= CAP_AUDIT_READ);
	in_child(try_capabilities, NULL);
}

static bool can_write(const char *folder, const char *name)
{
	char path[1024];
	int fd;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	if (fd < 0)
		return false;
	close(fd);
	return unlink(path) == 0;
}

struct places {
	char inside[512], coming[1024], outside[512], file[1024];
};

static int try_files(void *arg)
{
	const struct places *places = arg;
	const char *const folders[] = {places->coming, "/nonexistent/at/all", NULL};
	struct error error;

	CHECK(sandbox_privileges(&error));
	CHECK(sandbox_files(folders, &error));
	/* of a folder that isn't there yet, the one above it */
	CHECK(mkdir(places->coming, 0700) == 0);
	CHECK(can_write(places->coming, "one"));
	CHECK(can_write(places->inside, "one"));
	CHECK(!can_write(places->outside, "one") && errno == EACCES);
	CHECK(open(places->file, O_WRONLY) < 0 && errno == EACCES);
	CHECK(unlink(places->file) < 0 && errno == EACCES);
	CHECK(open(places->file, O_RDONLY) >= 0); /* reading is as before */
	CHECK(open("/proc/self/oom_score_adj", O_WRONLY) < 0 && errno == EACCES);
	return 0;
}

static long landlock_version(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

/* proves: HOSTED-40 */
static void test_files(void **state)
{
	struct places places;
	struct error error;
	FILE *file;

	if (landlock_version() < 1) { /* then it says so, and nothing else happens */
		const char *const none[] = {NULL};

		expect_error(sandbox_files(none, &error), &error, ERROR_UNAVAILABLE, "landlock");
		return;
	}
	snprintf(places.inside, sizeof places.inside, "%s/inside", (char *)*state);
	snprintf(places.outside, sizeof places.outside, "%s/outside", (char *)*state);
	snprintf(places.coming, sizeof places.coming, "%s/coming", places.inside);
	snprintf(places.file, sizeof places.file, "%s/file", places.outside);
	assert_int_equal(mkdir(places.inside, 0700), 0);
	assert_int_equal(mkdir(places.outside, 0700), 0);
	file = fopen(places.file, "w");
	assert_non_null(file);
	fclose(file);
	in_child(try_files, &places);
}

/* A crash leaves nothing, where the limit was as high as it goes. */
static int try_dumps(void *arg)
{
	struct rlimit limit;
	struct error error;
	pid_t child;
	int status;

	CHECK(getrlimit(RLIMIT_CORE, &limit) == 0);
	limit.rlim_cur = limit.rlim_max;
	CHECK(setrlimit(RLIMIT_CORE, &limit) == 0);
	CHECK(chdir(arg) == 0);
	CHECK(sandbox_dumps(&error));
	CHECK(getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max <= 1);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		signal(SIGABRT, SIG_DFL);
		abort();
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFSIGNALED(status) && !WCOREDUMP(status));
	CHECK(sandbox_dumps(&error)); /* again, as below one that did it */
	return 0;
}

/* proves: HOSTED-40 */
static void test_dumps(void **state)
{
	in_child(try_dumps, *state);
}

static int try_first(void *arg UNUSED)
{
	return !sandbox_is_first();
}

static int try_not_first(void *arg UNUSED)
{
	return sandbox_is_first();
}

static void test_first(void **state UNUSED)
{
	pid_t child = alone_start(try_first, NULL);
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	in_child(try_not_first, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls), cmocka_unit_test(test_capabilities),
		IN_FOLDER(test_files),        IN_FOLDER(test_dumps),
		cmocka_unit_test(test_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
