#include "sys/processes.h"

#include "base/buf.h"
#include "sys/clock.h"
#include "sys/fd.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_TEXT    65536
#define PATH_SIZE   64
#define TARGET_SIZE 8

struct scan {
	const char *proc;
	processes_wanted_fn *wanted;
	void *arg;
	const struct machine_device *devices;
	size_t count;
	struct processes *found;
	struct buf own; /* cgroup */
	struct mono until;
};

/* The one that is looked at. */
struct subject {
	const char *pid; /* as text */
	int folder;
	struct buf cgroup;
};

void processes_deinit(struct processes *processes)
{
	vec_each (processes, struct process_open * open)
		free(open->cgroup);
	vec_deinit(processes);
}

static void folder_cleanup(DIR **folder)
{
	if (*folder)
		closedir(*folder);
}

/* It ended, or what was there a moment ago is closed. */
static bool is_gone(void)
{
	return errno == ENOENT || errno == ESRCH;
}

static bool read_text(int folder, const char *name, struct buf *text)
{
	CLEANUP(fd) int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
	uint8_t step[1024];
	ssize_t got;

	buf_clear(text);
	if (fd < 0)
		return false;
	while ((got = read(fd, step, sizeof step)) > 0) {
		buf_add(text, step, (size_t)got);
		if (text->length > MAX_TEXT) {
			errno = EFBIG;
			return false;
		}
	}
	return got == 0;
}

static bool same_text(const struct buf *a, const struct buf *b)
{
	return a->length == b->length && memcmp(buf_text(a), buf_text(b), a->length) == 0;
}

/* --- one process --- */

/* Is it told already, or as good as that? `*ret_same`: how many there are of its kind. */
static bool is_told(const struct scan *scan, const struct subject *subject, int32_t pid,
		    size_t device, size_t *ret_same)
{
	*ret_same = 0;
	vec_each (scan->found, const struct process_open *before) {
		if (before->device != device)
			continue;
		if (device == PROCESSES_NO_DEVICE
			    ? str_equal(before->cgroup, buf_text(&subject->cgroup))
			    : before->pid == pid)
			return true;
		++*ret_same;
	}
	return device != PROCESSES_NO_DEVICE && *ret_same >= PROCESSES_DEVICE_MAX;
}

static bool add(struct scan *scan, const struct subject *subject, size_t device,
		struct error *error)
{
	int32_t pid = (int32_t)strtol(subject->pid, NULL, 10);
	CLEANUP(buf) struct buf command = {0};
	struct process_open *open;
	size_t same;

	if (is_told(scan, subject, pid, device, &same))
		return true;
	if (device == PROCESSES_NO_DEVICE && same == PROCESSES_LIFE_MAX)
		return error_set(error, ERROR_RESOURCES_EXHAUSTED,
				 "look at '%s': more than %d cgroups are asked about", scan->proc,
				 PROCESSES_LIFE_MAX);
	open = vec_push(scan->found);
	open->pid = pid;
	open->device = device;
	open->cgroup = mem_strdup(buf_text(&subject->cgroup));
	if (read_text(subject->folder, "comm", &command)) /* else it is on its way out */
		snprintf(open->command, sizeof open->command, "%.*s",
			 (int)strcspn(buf_text(&command), "\n"), buf_text(&command));
	return true;
}

/* What a link of procfs stands for, without asking a file system that is on another machine. */
static bool look_at_link(struct scan *scan, const struct subject *subject, int folder,
			 const char *name, struct error *error)
{
	char target[TARGET_SIZE];
	struct statx what;

	/* Not a file: socket:[…], pipe:[…], anon_inode:…. */
	if (readlinkat(folder, name, target, sizeof target) > 0 && target[0] != '/')
		return true;
	if (statx(folder, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &what) < 0)
		return is_gone() ||
		       error_os(error, "look at file %s of process %s", name, subject->pid);
	for (size_t i = 0; i < scan->count; i++) {
		const struct machine_device *device = &scan->devices[i];

		if (device->major == what.stx_rdev_major && device->minor == what.stx_rdev_minor &&
		    (device->type == 'c' ? S_ISCHR(what.stx_mode) : S_ISBLK(what.stx_mode)) &&
		    !add(scan, subject, i, error))
			return false;
	}
	return true;
}

static bool in_time(const struct scan *scan, struct error *error)
{
	return mono_until(clock_mono(), scan->until) > 0 ||
	       error_set(error, ERROR_UNAVAILABLE, "looking at '%s' takes longer than %d s",
			 scan->proc, PROCESSES_MS / 1000);
}

/* A folder of links, "fd" or "map_files". */
static bool look_at_links(struct scan *scan, const struct subject *subject, const char *name,
			  struct error *error)
{
	int fd = openat(subject->folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(folder) DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (fd < 0)
		return is_gone() ||
		       error_os(error, "open '%s/%s/%s'", scan->proc, subject->pid, name);
	for (errno = 0; (entry = readdir(folder)); errno = 0)
		if (entry->d_name[0] != '.' &&
		    (!look_at_link(scan, subject, fd, entry->d_name, error) ||
		     !in_time(scan, error)))
			return false;
	return errno == 0 || is_gone() ||
	       error_os(error, "list '%s/%s/%s'", scan->proc, subject->pid, name);
}

/* Have both tasks one table of descriptors? When that can't be told: no. */
static bool same_files(const char *pid, const char *tid)
{
	return syscall(SYS_kcmp, strtol(pid, NULL, 10), strtol(tid, NULL, 10), KCMP_FILES, 0, 0) ==
	       0;
}

static bool look_at_threads(struct scan *scan, const struct subject *subject, struct error *error)
{
	int fd = openat(subject->folder, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(folder) DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	char path[PATH_SIZE];

	if (fd < 0)
		return is_gone() || error_os(error, "open '%s/%s/task'", scan->proc, subject->pid);
	for (errno = 0; (entry = readdir(folder)); errno = 0) {
		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    str_equal(entry->d_name, subject->pid) ||
		    same_files(subject->pid, entry->d_name))
			continue;
		snprintf(path, sizeof path, "task/%.20s/fd", entry->d_name);
		if (!look_at_links(scan, subject, path, error) || !in_time(scan, error))
			return false;
	}
	return errno == 0 || is_gone() ||
	       error_os(error, "list '%s/%s/task'", scan->proc, subject->pid);
}

static bool look_at_devices(struct scan *scan, const struct subject *subject, struct error *error)
{
	return scan->count == 0 || (look_at_links(scan, subject, "fd", error) &&
				    look_at_links(scan, subject, "map_files", error) &&
				    look_at_threads(scan, subject, error));
}

static bool look_at_process(struct scan *scan, int proc, const char *pid, struct error *error)
{
	CLEANUP(fd) int folder = openat(proc, pid, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct subject subject = {.pid = pid, .folder = folder};
	enum processes_interest interest;
	bool good;

	if (folder < 0)
		return is_gone() || error_os(error, "open '%s/%s'", scan->proc, pid);
	good = read_text(folder, "cgroup", &subject.cgroup) || is_gone();
	if (!good) {
		error_os(error, "read '%s/%s/cgroup'", scan->proc, pid);
	} else if (!same_text(&subject.cgroup, &scan->own)) {
		interest =
			scan->wanted(scan->arg, buf_text(&subject.cgroup), subject.cgroup.length);
		good = interest != PROCESSES_LIFE ||
		       add(scan, &subject, PROCESSES_NO_DEVICE, error);
		good = good &&
		       (interest == PROCESSES_NONE || look_at_devices(scan, &subject, error));
	}
	buf_deinit(&subject.cgroup);
	return good;
}

/* --- all of them --- */

static bool look_at_all(struct scan *scan, DIR *proc, struct error *error)
{
	const struct dirent *entry;

	if (!read_text(dirfd(proc), "self/cgroup", &scan->own))
		return error_os(error, "read '%s/self/cgroup'", scan->proc);
	for (errno = 0; (entry = readdir(proc)); errno = 0)
		if (isdigit((unsigned char)entry->d_name[0]) &&
		    (!look_at_process(scan, dirfd(proc), entry->d_name, error) ||
		     !in_time(scan, error)))
			return false;
	return errno == 0 || error_os(error, "list '%s'", scan->proc);
}

bool processes_find(const char *proc, processes_wanted_fn *wanted, void *arg,
		    const struct machine_device *devices, size_t count,
		    struct processes *ret_processes, struct error *error)
{
	CLEANUP(folder) DIR *folder = opendir(proc);
	CLEANUP(processes) struct processes found = {0};
	struct scan scan = {.proc = proc,
			    .wanted = wanted,
			    .arg = arg,
			    .devices = devices,
			    .count = count,
			    .found = &found,
			    .until = mono_after(clock_mono(), PROCESSES_MS)};
	bool good;

	if (!folder)
		return error_os(error, "open folder '%s'", proc);
	good = look_at_all(&scan, folder, error);
	buf_deinit(&scan.own);
	if (!good)
		return false;
	*ret_processes = found;
	found = (struct processes){0};
	return true;
}
