/* A procfs of our own making, with a real process in it. */
#include "sys/processes.h"

#include "lib/folder.h"
#include "lib/test.h"
#include "sys/durable.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	OPEN,
	MAPPED,
	OF_A_THREAD,
	DEVICES
};

static const char *const paths[DEVICES] = {"/dev/full", "/dev/zero", "/dev/random"};

static bool everybody(const char *cgroup UNUSED, size_t length UNUSED)
{
	return true;
}

static bool nobody(const char *cgroup UNUSED, size_t length UNUSED)
{
	return false;
}

static void devices_read(struct machine_device devices[DEVICES])
{
	for (size_t i = 0; i < DEVICES; i++)
		assert_true(machine_device(paths[i], &devices[i]));
}

static void write_own(void **state, const char *cgroup)
{
	struct error error;

	expect_ok(durable_make_folder(folder_path(state, "self"), 0700, &error), &error);
	expect_ok(durable_replace(folder_path(state, "self/cgroup"), cgroup, strlen(cgroup), 0600,
				  &error),
		  &error);
}

/* --- the process --- */

static void *thread(void *ready)
{
	if (unshare(CLONE_FILES) == 0 && open(paths[OF_A_THREAD], O_RDONLY) >= 0)
		(void)!write(*(int *)ready, "t", 1);
	pause();
	return NULL;
}

/* One device open, one mapped and closed, one in a thread's own table. */
static void child(int ready)
{
	pthread_t other;
	int fd;

	if (open(paths[OPEN], O_RDWR) < 0 || (fd = open(paths[MAPPED], O_RDWR)) < 0 ||
	    mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		_exit(1);
	close(fd);
	if (pthread_create(&other, NULL, thread, &ready) == 0)
		pause();
	_exit(1);
}

static pid_t start(void **state)
{
	char name[32], target[32], byte;
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0)
		child(ends[1]);
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	snprintf(name, sizeof name, "%d", (int)pid);
	snprintf(target, sizeof target, "/proc/%d", (int)pid);
	assert_int_equal(symlink(target, folder_path(state, name)), 0);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* --- tests --- */

/* proves: REL-10 */
static void test_open_mapped_and_in_a_thread(void **state)
{
	struct machine_device devices[DEVICES];
	struct processes found = {0};
	bool seen[DEVICES] = {0};
	struct error error;
	pid_t pid = start(state);

	devices_read(devices);
	write_own(state, "0::/me\n");
	expect_ok(processes_find(*state, everybody, devices, DEVICES, &found, &error), &error);
	assert_int_equal(found.count, DEVICES);
	vec_each (&found, const struct process_open *open) {
		assert_int_equal(open->pid, pid);
		assert_true(*open->command);
		assert_true(*open->cgroup);
		seen[open->device] = true;
	}
	assert_true(seen[OPEN] && seen[MAPPED] && seen[OF_A_THREAD]);
	processes_deinit(&found);
	expect_ok(processes_find(*state, nobody, devices, DEVICES, &found, &error), &error);
	assert_int_equal(found.count, 0);
	/* it ends: no error, and nobody */
	end(pid);
	expect_ok(processes_find(*state, everybody, devices, DEVICES, &found, &error), &error);
	assert_int_equal(found.count, 0);
}

/* Our own children act for us. */
static void test_own_cgroup_is_left_out(void **state)
{
	struct machine_device devices[DEVICES];
	CLEANUP(buf) struct buf own = {0};
	struct processes found = {0};
	struct error error;
	pid_t pid = start(state);

	devices_read(devices);
	expect_ok(durable_read("/proc/self/cgroup", 65536, &own, &error), &error);
	write_own(state, buf_text(&own));
	expect_ok(processes_find(*state, everybody, devices, DEVICES, &found, &error), &error);
	assert_int_equal(found.count, 0);
	end(pid);
}

/* What can't be looked at isn't empty. proves: REL-14 */
static void test_what_cannot_be_seen_is_an_error(void **state)
{
	struct machine_device devices[DEVICES];
	struct processes found = {0};
	struct error error;

	devices_read(devices);
	expect_error(processes_find(folder_path(state, "no"), everybody, devices, DEVICES, &found,
				    &error),
		     &error, ERROR_NOT_FOUND, "open folder");
	expect_error(processes_find(*state, everybody, devices, DEVICES, &found, &error), &error,
		     ERROR_NOT_FOUND, "self/cgroup");
	write_own(state, "0::/me\n");
	expect_ok(durable_make_folder(folder_path(state, "77"), 0700, &error), &error);
	expect_ok(durable_replace(folder_path(state, "77/cgroup"), "0::/x\n", 6, 0600, &error),
		  &error);
	expect_ok(durable_replace(folder_path(state, "77/fd"), "", 0, 0600, &error), &error);
	assert_false(processes_find(*state, everybody, devices, DEVICES, &found, &error));
	assert_non_null(strstr(error.what, "/77/fd"));
}

int main(void)
{
#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_make, folder_remove)
	const struct CMUnitTest tests[] = {
		WITH_FOLDER(test_open_mapped_and_in_a_thread),
		WITH_FOLDER(test_own_cgroup_is_left_out),
		WITH_FOLDER(test_what_cannot_be_seen_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
