#include "sys/durable.h"

#include "sys/random.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_STEP  16384
#define MAX_TIDIED 10000 /* entries of a folder; a larger one is no place of ours */

static void fd_cleanup(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/* The path's folder: "." for a bare name, "/" for the root's entries. Heap; the caller's. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = mem_strdup(path);

	if (!slash)
		return free(folder), mem_strdup(".");
	folder[slash == path ? 1 : slash - path] = '\0';
	return folder;
}

/* What was renamed, made or removed in a folder is there after a power cut once this returns. */
static bool sync_folder(const char *folder, struct error *error)
{
	CLEANUP(fd) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return error_os(error, "open folder '%s'", folder);
	if (fsync(fd) < 0)
		return error_os(error, "sync folder '%s'", folder);
	return true;
}

static bool sync_folder_of(const char *path, struct error *error)
{
	CLEANUP(free) char *folder = folder_of(path);

	return sync_folder(folder, error);
}

/* --- reading --- */

static const char *kind_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return "a folder";
	case S_IFIFO:
		return "a fifo";
	case S_IFSOCK:
		return "a socket";
	case S_IFCHR:
	case S_IFBLK:
		return "a device";
	default:
		return "something else";
	}
}

static bool too_large(const char *path, size_t max_size, struct error *error)
{
	return error_set(error, ERROR_RESOURCES_EXHAUSTED, "read '%s': larger than %zu bytes", path,
			 max_size);
}

static bool read_all(int fd, const char *path, size_t max_size, struct buf *content,
		     struct error *error)
{
	uint8_t step[READ_STEP];

	for (;;) {
		ssize_t got = read(fd, step, sizeof step);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_os(error, "read '%s'", path);
		if (got == 0)
			return true;
		buf_add(content, step, (size_t)got);
		if (content->length > max_size) /* it grew since fstat */
			return too_large(path, max_size, error);
	}
}

/* Who else may read a file. */
enum privacy {
	PRIVACY_NONE,    /* anybody */
	PRIVACY_HIDDEN,  /* a group */
	PRIVACY_PRIVATE, /* nobody but its owner */
	PRIVACY_OWN,     /* and that is us */
};

static bool check_owner(const char *path, const struct stat *stat, struct error *error)
{
	return stat->st_uid == geteuid() ||
	       error_set(error, ERROR_FORBIDDEN, "'%s' belongs to another user (uid %u)", path,
			 (unsigned)stat->st_uid);
}

static bool check_privacy(const char *path, const struct stat *stat, enum privacy privacy,
			  struct error *error)
{
	unsigned mode = stat->st_mode & 07777;

	switch (privacy) {
	case PRIVACY_NONE:
		return true;
	case PRIVACY_HIDDEN:
		if ((mode & S_IROTH) == 0)
			return true;
		error_set(error, ERROR_FORBIDDEN, "everybody may read '%s' (mode %04o)", path,
			  mode);
		return error_hint(error, "chmod 600 it, or 640 for a group, and replace what it "
					 "holds if others could have read it.");
	case PRIVACY_OWN:
		if (!check_owner(path, stat, error))
			return false;
		break;
	case PRIVACY_PRIVATE:
		break;
	}
	if ((mode & 077) == 0)
		return true;
	error_set(error, ERROR_FORBIDDEN, "others may read '%s' (mode %04o)", path, mode);
	return error_hint(error,
			  "Make it private (chmod 600 '%s'), and replace what it holds if others "
			  "could have read it.",
			  path);
}

static bool read_file(const char *path, size_t max_size, enum privacy privacy,
		      struct buf *ret_content, struct error *error)
{
	/* O_NONBLOCK: opening a fifo must not wait for its writer. */
	CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	CLEANUP(buf) struct buf content = {0};
	struct stat stat;

	if (fd < 0 && errno == ENXIO)
		return error_set(error, ERROR_INVALID_STATE, "read '%s': not a file but a socket",
				 path);
	if (fd < 0)
		return error_os(error, "open '%s'", path);
	if (fstat(fd, &stat) < 0)
		return error_os(error, "stat '%s'", path);
	if (!S_ISREG(stat.st_mode))
		return error_set(error, ERROR_INVALID_STATE, "read '%s': not a file but %s", path,
				 kind_of(stat.st_mode));
	if (!check_privacy(path, &stat, privacy, error))
		return false;
	if ((uint64_t)stat.st_size > max_size)
		return too_large(path, max_size, error);
	if (!read_all(fd, path, max_size, &content, error))
		return false;
	buf_deinit(ret_content);
	*ret_content = content;
	content = (struct buf){0};
	return true;
}

bool durable_read(const char *path, size_t max_size, struct buf *ret_content, struct error *error)
{
	return read_file(path, max_size, PRIVACY_NONE, ret_content, error);
}

static bool is_passing(int os)
{
	return os == EIO || os == EMFILE || os == ENFILE || os == ENOMEM;
}

bool durable_read_record(const char *path, size_t max_size, struct buf *ret_content,
			 struct error *error)
{
	for (int i = 0; i < DURABLE_TRIES; i++)
		if (durable_read(path, max_size, ret_content, error))
			return true;
		else if (!is_passing(error->os))
			return false;
	return false;
}

bool durable_read_hidden(const char *path, size_t max_size, struct buf *ret_content,
			 struct error *error)
{
	return read_file(path, max_size, PRIVACY_HIDDEN, ret_content, error);
}

bool durable_read_private(const char *path, size_t max_size, struct buf *ret_content,
			  struct error *error)
{
	return read_file(path, max_size, PRIVACY_PRIVATE, ret_content, error);
}

bool durable_read_own(const char *path, size_t max_size, struct buf *ret_content,
		      struct error *error)
{
	return read_file(path, max_size, PRIVACY_OWN, ret_content, error);
}

/* --- writing --- */

static bool write_all(int fd, const uint8_t *data, size_t length)
{
	while (length > 0) {
		ssize_t put = write(fd, data, length);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return false;
		data += put;
		length -= (size_t)put;
	}
	return true;
}

/* A name beside the target that nobody else uses; starts with a dot, so readers of *.json skip it.
 */
#define TEMPORARY_PREFIX ".tmp-"
#define TEMPORARY_DIGITS 16

static char *temporary_beside(const char *path)
{
	CLEANUP(free) char *folder = folder_of(path);
	CLEANUP(buf) struct buf name = {0};
	uint64_t random;

	random_bytes(&random, sizeof random);
	buf_printf(&name, "%s/" TEMPORARY_PREFIX "%0*llx", folder, TEMPORARY_DIGITS,
		   (unsigned long long)random);
	return buf_take_text(&name);
}

static bool is_temporary(const char *name)
{
	const char *digits = name + strlen(TEMPORARY_PREFIX);

	return str_starts(name, TEMPORARY_PREFIX) && strlen(digits) == TEMPORARY_DIGITS &&
	       strspn(digits, "0123456789abcdef") == TEMPORARY_DIGITS;
}

/* Leaves nothing behind when it fails. */
static bool write_temporary(const char *temporary, const void *data, size_t length, mode_t mode)
{
	int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	bool ok;
	int os;

	if (fd < 0)
		return false;
	ok = write_all(fd, data, length) && fchmod(fd, mode) == 0 && fsync(fd) == 0;
	os = errno;
	if (close(fd) < 0 && ok) {
		ok = false;
		os = errno;
	}
	if (!ok)
		unlink(temporary);
	errno = os;
	return ok;
}

bool durable_replace(const char *path, const void *data, size_t length, mode_t mode,
		     struct error *error)
{
	CLEANUP(free) char *temporary = temporary_beside(path);

	if (!write_temporary(temporary, data, length, mode))
		return error_os(error, "write '%s'", path);
	if (rename(temporary, path) < 0) {
		error_os(error, "replace '%s'", path);
		unlink(temporary);
		return false;
	}
	return sync_folder_of(path, error);
}

bool durable_create(const char *path, const void *data, size_t length, mode_t mode,
		    struct error *error)
{
	CLEANUP(free) char *temporary = temporary_beside(path);
	bool ok;

	if (!write_temporary(temporary, data, length, mode))
		return error_os(error, "write '%s'", path);
	/* A link, unlike a rename, never takes the place of what is there. */
	ok = link(temporary, path) == 0;
	if (!ok && errno == EEXIST)
		error_set(error, ERROR_CONFLICT, "create '%s': it exists already", path);
	else if (!ok)
		error_os(error, "create '%s'", path);
	unlink(temporary);
	return ok && sync_folder_of(path, error);
}

bool durable_check_writable(const char *path, struct error *error)
{
	CLEANUP(free) char *folder = folder_of(path);
	struct stat st;

	if (access(folder, W_OK | X_OK) != 0)
		return error_os(error, "write '%s'", path);
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return error_set(error, ERROR_INVALID_STATE, "write '%s': it is a folder", path);
	return true;
}

bool durable_remove(const char *path, struct error *error)
{
	CLEANUP(free) char *folder = folder_of(path);

	if (unlink(path) == 0)
		return sync_folder(folder, error);
	if (errno != ENOENT)
		return error_os(error, "remove '%s'", path);
	/* Absent may mean: removed just before a crash and not synced. */
	return sync_folder(folder, error) || error->code == ERROR_NOT_FOUND;
}

bool durable_rename(const char *from, const char *to, struct error *error)
{
	CLEANUP(free) char *from_folder = folder_of(from);
	CLEANUP(free) char *to_folder = folder_of(to);

	if (rename(from, to) < 0)
		return error_os(error, "rename '%s' to '%s'", from, to);
	return sync_folder(to_folder, error) &&
	       (str_equal(from_folder, to_folder) || sync_folder(from_folder, error));
}

bool durable_exchange(const char *a, const char *b, struct error *error)
{
	if (renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) < 0)
		return error_os(error, "exchange '%s' and '%s'", a, b);
	return sync_folder_of(a, error) && sync_folder_of(b, error);
}

static bool make_one_folder(const char *path, mode_t mode, struct error *error)
{
	struct stat stat_now;

	if (mkdir(path, mode) == 0) {
		if (chmod(path, mode) < 0) /* whatever the umask is */
			return error_os(error, "make folder '%s'", path);
		return sync_folder_of(path, error);
	}
	if (errno != EEXIST)
		return error_os(error, "make folder '%s'", path);
	if (stat(path, &stat_now) < 0)
		return error_os(error, "stat '%s'", path);
	if (!S_ISDIR(stat_now.st_mode))
		return error_set(error, ERROR_INVALID_STATE,
				 "make folder '%s': '%s' is there and is no folder", path, path);
	return true;
}

bool durable_make_folder(const char *path, mode_t mode, struct error *error)
{
	CLEANUP(free) char *part = mem_strdup(path);

	for (char *slash = strchr(part + (*part == '/'), '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (*part && !make_one_folder(part, mode, error))
			return false;
		*slash = '/';
	}
	return make_one_folder(path, mode, error);
}

bool durable_is_own_folder(const char *path)
{
	struct stat stat;

	return lstat(path, &stat) == 0 && S_ISDIR(stat.st_mode) && stat.st_uid == geteuid();
}

bool durable_check_own_folder(const char *path, struct error *error)
{
	struct stat stat;

	if (lstat(path, &stat) < 0)
		return error_os(error, "open '%s'", path);
	if (!S_ISDIR(stat.st_mode))
		return error_set(error, ERROR_INVALID_INPUT, "'%s' is not a folder", path);
	return check_owner(path, &stat, error) &&
	       ((stat.st_mode & 077) == 0 ||
		error_set(error, ERROR_FORBIDDEN, "'%s' can be entered by others (mode %04o)", path,
			  (unsigned)(stat.st_mode & 07777)));
}

/* --- listing --- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool list_entries(DIR *stream, const char *folder, size_t max_count,
			 struct durable_names *names, struct error *error)
{
	size_t room = 0;

	for (;;) {
		struct dirent *entry;

		errno = 0;
		entry = readdir(stream);
		if (!entry)
			return errno == 0 || error_os(error, "list folder '%s'", folder);
		if (str_equal(entry->d_name, ".") || str_equal(entry->d_name, ".."))
			continue;
		if (names->count == max_count)
			return error_set(error, ERROR_RESOURCES_EXHAUSTED,
					 "list folder '%s': more than %zu entries", folder,
					 max_count);
		if (names->count == room) {
			room = room ? room * 2 : 16;
			names->names = mem_resize(names->names, room, sizeof *names->names);
		}
		names->names[names->count++] = mem_strdup(entry->d_name);
	}
}

bool durable_list(const char *folder, size_t max_count, struct durable_names *ret_names,
		  struct error *error)
{
	struct durable_names names = {0};
	DIR *stream = opendir(folder);
	bool ok;

	if (!stream)
		return error_os(error, "open folder '%s'", folder);
	ok = list_entries(stream, folder, max_count, &names, error);
	closedir(stream);
	if (!ok) {
		durable_names_deinit(&names);
		return false;
	}
	if (names.count > 1)
		qsort(names.names, names.count, sizeof *names.names, compare_names);
	*ret_names = names;
	return true;
}

void durable_tidy(const char *path, struct wall now)
{
	CLEANUP(free) char *folder = folder_of(path);
	struct durable_names names = {0};
	struct error ignored;

	if (!durable_list(folder, MAX_TIDIED, &names, &ignored))
		return;
	for (size_t i = 0; i < names.count; i++) {
		CLEANUP(buf) struct buf file = {0};
		struct stat info;

		if (!is_temporary(names.names[i]))
			continue;
		buf_printf(&file, "%s/%s", folder, names.names[i]);
		if (lstat(buf_text(&file), &info) == 0 && S_ISREG(info.st_mode) &&
		    now.ms - (int64_t)info.st_mtim.tv_sec * 1000 >= DURABLE_LEFT_MS)
			unlink(buf_text(&file));
	}
	durable_names_deinit(&names);
}

void durable_names_deinit(struct durable_names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->count; i++)
		free(names->names[i]);
	free(names->names);
	*names = (struct durable_names){0};
}

/* --- locks --- */

struct durable_lock {
	int fd;
};

static bool lock_is_held(int fd, const char *path, struct error *error)
{
	char pid[16];
	ssize_t length = pread(fd, pid, sizeof pid - 1, 0);

	error_set(error, ERROR_CONFLICT, "lock '%s': somebody else holds it", path);
	pid[length > 0 ? length : 0] = '\0';
	pid[strspn(pid, "0123456789")] = '\0';
	if (pid[0])
		error_hint(error, "Process %s holds it: end that one first.", pid);
	return false;
}

bool durable_lock_take(const char *path, struct durable_lock **ret_lock, struct error *error)
{
	CLEANUP(fd) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct durable_lock *lock;

	if (fd < 0)
		return error_os(error, "open '%s'", path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? lock_is_held(fd, path, error)
					    : error_os(error, "lock '%s'", path);
	/* The pid is for people only; the lock itself is the kernel's. */
	if (ftruncate(fd, 0) < 0 || dprintf(fd, "%d\n", (int)getpid()) < 0)
		return error_os(error, "write '%s'", path);
	lock = mem_alloc(sizeof *lock);
	lock->fd = fd;
	fd = -1;
	*ret_lock = lock;
	return true;
}

bool durable_lock_folder(const char *path, struct durable_lock **ret_lock, struct error *error)
{
	CLEANUP(fd) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct durable_lock *lock;

	if (fd < 0)
		return error_os(error, "open folder '%s'", path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK
			       ? error_set(error, ERROR_CONFLICT,
					   "lock folder '%s': somebody else holds it", path)
			       : error_os(error, "lock folder '%s'", path);
	lock = mem_alloc(sizeof *lock);
	lock->fd = fd;
	fd = -1;
	*ret_lock = lock;
	return true;
}

void durable_lock_destroy(struct durable_lock *lock)
{
	if (!lock)
		return;
	close(lock->fd); /* the file stays: removing it would let two hold "the" lock */
	free(lock);
}

/* --- stamps --- */

static int64_t nanoseconds(struct timespec time)
{
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

struct durable_stamp durable_stamp(const char *path)
{
	struct stat now;

	if (stat(path, &now) < 0)
		return (struct durable_stamp){0};
	return (struct durable_stamp){
		.exists = true,
		.device = now.st_dev,
		.inode = now.st_ino,
		.size = (uint64_t)now.st_size,
		.mtime_ns = nanoseconds(now.st_mtim),
		.ctime_ns = nanoseconds(now.st_ctim),
	};
}

bool durable_absent(const char *path)
{
	struct stat now;

	return lstat(path, &now) < 0 && (errno == ENOENT || errno == ENOTDIR);
}

bool durable_stamp_equal(struct durable_stamp a, struct durable_stamp b)
{
	return a.exists == b.exists && a.device == b.device && a.inode == b.inode &&
	       a.size == b.size && a.mtime_ns == b.mtime_ns && a.ctime_ns == b.ctime_ns;
}
