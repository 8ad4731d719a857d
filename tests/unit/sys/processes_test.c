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

static enum processes_interest everybody(void *arg UNUSED, const char *cgroup UNUSED,
					 size_t length UNUSED)
{
	return PROCESSES_DEVICES;
}

static enum processes_interest nobody(void *arg UNUSED, const char *cgroup UNUSED,
				      size_t length UNUSED)
{
	return PROCESSES_NONE;
}

/* Whoever is in this cgroup. */
static enum processes_interest living(void *arg, const char *cgroup, size_t length UNUSED)
{
	return str_equal(cgroup, arg) ? PROCESSES_LIFE : PROCESSES_DEVICES;
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
	expect_ok(processes_find(*state, everybody, NULL, devices, DEVICES, &found, &error),
		  &error);
	assert_int_equal(found.count, DEVICES);
	vec_each (&found, const struct process_open *open) {
		assert_int_equal(open->pid, pid);
		assert_true(*open->command);
		assert_true(*open->cgroup);
		seen[open->device] = true;
	}
	assert_true(seen[OPEN] && seen[MAPPED] && seen[OF_A_THREAD]);
	processes_deinit(&found);
	expect_ok(processes_find(*state, nobody, NULL, devices, DEVICES, &found, &error), &error);
	assert_int_equal(found.count, 0);
	/* it ends: no error, and nobody */
	end(pid);
	expect_ok(processes_find(*state, everybody, NULL, devices, DEVICES, &found, &error),
		  &error);
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
	expect_ok(processes_find(*state, everybody, NULL, devices, DEVICES, &found, &error),
		  &error);
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
	expect_error(processes_find(folder_path(state, "no"), everybody, NULL, devices, DEVICES,
				    &found, &error),
		     &error, ERROR_NOT_FOUND, "open folder");
	expect_error(processes_find(*state, everybody, NULL, devices, DEVICES, &found, &error),
		     &error, ERROR_NOT_FOUND, "self/cgroup");
	write_own(state, "0::/me\n");
	expect_ok(durable_make_folder(folder_path(state, "77"), 0700, &error), &error);
	expect_ok(durable_replace(folder_path(state, "77/cgroup"), "0::/x\n", 6, 0600, &error),
		  &error);
	expect_ok(durable_replace(folder_path(state, "77/fd"), "", 0, 0600, &error), &error);
	assert_false(processes_find(*state, everybody, NULL, devices, DEVICES, &found, &error));
	assert_non_null(strstr(error.what, "/77/fd"));
}

static void put_process(void **state, const char *pid, const char *cgroup)
{
	char name[64];
	struct error error;

	snprintf(name, sizeof name, "%s/fd", pid);
	expect_ok(durable_make_folder(folder_path(state, name), 0700, &error), &error);
	snprintf(name, sizeof name, "%s/map_files", pid);
	expect_ok(durable_make_folder(folder_path(state, name), 0700, &error), &error);
	snprintf(name, sizeof name, "%s/task", pid);
	expect_ok(durable_make_folder(folder_path(state, name), 0700, &error), &error);
	snprintf(name, sizeof name, "%s/cgroup", pid);
	expect_ok(durable_replace(folder_path(state, name), cgroup, strlen(cgroup), 0600, &error),
		  &error);
}

/* Who has none of the devices, and is asked about all the same: once for its cgroup.  proves: REL-12 */
static void test_who_just_lives(void **state)
{
	static const char cgroup[] = "0::/kubepods/pod1/main\n";
	struct machine_device devices[DEVICES];
	struct processes found = {0};
	struct error error;

	devices_read(devices);
	write_own(state, "0::/me\n");
	put_process(state, "77", cgroup);
	put_process(state, "78", cgroup);
	put_process(state, "79", "0::/kubepods/pod2/main\n");
	expect_ok(processes_find(*state, living, (void *)cgroup, devices, DEVICES, &found, &error),
		  &error);
	assert_int_equal(found.count, 1);
	assert_int_equal(found.items[0].device, PROCESSES_NO_DEVICE);
	assert_in_range(found.items[0].pid, 77, 78);
	assert_string_equal(found.items[0].cgroup, cgroup);
	processes_deinit(&found);
	/* that needs no device at all */
	expect_ok(processes_find(*state, living, (void *)cgroup, NULL, 0, &found, &error), &error);
	assert_int_equal(found.count, 1);
	processes_deinit(&found);
	/* and one that has a device is told of for both */
	assert_int_equal(symlink(paths[OPEN], folder_path(state, "77/fd/3")), 0);
	expect_ok(processes_find(*state, living, (void *)cgroup, devices, DEVICES, &found, &error),
		  &error);
	assert_int_equal(found.count, 2);
	processes_deinit(&found);
}

static void write_cgroup(void **state, const char *name, const char *cgroup)
{
	char path[64];
	FILE *file;

	/* not durably: there are many, and disks that are slow */
	assert_int_equal(mkdir(folder_path(state, name), 0700), 0);
	snprintf(path, sizeof path, "%s/cgroup", name);
	file = fopen(folder_path(state, path), "w");
	assert_non_null(file);
	assert_true(fputs(cgroup, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* A process that has one device open; many may be one. */
static void write_process(void **state, const char *name, const char *device)
{
	static const char *const FOLDERS[] = {"fd", "map_files", "task"};
	char path[64];
	struct error error;

	write_cgroup(state, name, "0::/pod\n");
	for (size_t i = 0; i < ARRAY_SIZE(FOLDERS); i++) {
		snprintf(path, sizeof path, "%s/%s", name, FOLDERS[i]);
		expect_ok(durable_make_folder(folder_path(state, path), 0700, &error), &error);
	}
	snprintf(path, sizeof path, "%s/fd/3", name);
	assert_int_equal(symlink(device, folder_path(state, path)), 0);
}

/* However many have one device open, who has another one is told. proves: REL-10 REL-14 */
static void test_many_of_one_device(void **state)
{
	struct machine_device devices[DEVICES];
	size_t count[DEVICES] = {0};
	struct processes found = {0};
	struct error error;
	char name[16];

	devices_read(devices);
	write_own(state, "0::/me\n");
	write_process(state, "template", paths[OPEN]);
	write_process(state, "7", paths[MAPPED]);
	for (int i = 1000; i < 1000 + 2 * PROCESSES_DEVICE_MAX; i++) {
		snprintf(name, sizeof name, "%d", i);
		assert_int_equal(symlink("template", folder_path(state, name)), 0);
	}
	expect_ok(processes_find(*state, everybody, NULL, devices, DEVICES, &found, &error),
		  &error);
	vec_each (&found, const struct process_open *open)
		count[open->device]++;
	assert_int_equal(count[OPEN], PROCESSES_DEVICE_MAX);
	assert_int_equal(count[MAPPED], 1);
	processes_deinit(&found);
}

static enum processes_interest all_live(void *arg UNUSED, const char *cgroup UNUSED,
					size_t length UNUSED)
{
	return PROCESSES_LIFE;
}

/* As many cgroups as are told, and one more: never "it isn't there". proves: REL-14 */
static void test_too_many_that_live(void **state)
{
	struct processes found = {0};
	struct error error;
	char name[16], cgroup[32];

	write_own(state, "0::/me\n");
	for (int i = 0; i <= PROCESSES_LIFE_MAX; i++) {
		if (i == PROCESSES_LIFE_MAX) {
			expect_ok(processes_find(*state, all_live, NULL, NULL, 0, &found, &error),
				  &error);
			assert_int_equal(found.count, PROCESSES_LIFE_MAX);
			processes_deinit(&found);
		}
		snprintf(name, sizeof name, "%d", 1000 + i);
		snprintf(cgroup, sizeof cgroup, "0::/pod%d\n", i);
		write_cgroup(state, name, cgroup);
	}
	found = (struct processes){0};
	expect_error(processes_find(*state, all_live, NULL, NULL, 0, &found, &error), &error,
		     ERROR_RESOURCES_EXHAUSTED, "more than");
	assert_int_equal(found.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FOLDER(test_who_just_lives),
		IN_FOLDER(test_many_of_one_device),
		IN_FOLDER(test_too_many_that_live),
		IN_FOLDER(test_open_mapped_and_in_a_thread),
		IN_FOLDER(test_own_cgroup_is_left_out),
		IN_FOLDER(test_what_cannot_be_seen_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
