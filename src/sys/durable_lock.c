/* durable's locks: the kernel's, on a file or a folder, until the process ends. */
#include "sys/durable.h"

#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Whose lock would be nobody's, or another's. */
static bool is_no_file(const char *path, struct error *error)
{
	struct stat now;

	if (lstat(path, &now) < 0 || S_ISREG(now.st_mode))
		return false;
	error_set(error, ERROR_INVALID_STATE, "lock '%s': not a file but %s", path,
		  fd_kind(now.st_mode));
	error_hint(error, "Move it away: a lock is an empty file, made where there is none.");
	return true;
}

bool durable_lock_take(const char *path, struct durable_lock **ret_lock, struct error *error)
{
	const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	CLEANUP(fd) int fd = open(path, flags, 0600);
	struct durable_lock *lock;
	int os = errno;

	if (is_no_file(path, error))
		return false;
	errno = os;
	if (fd < 0)
		return error_os(error, "open '%s'", path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? lock_is_held(fd, path, error)
					    : error_os(error, "lock '%s'", path);
	/* The pid is for people only, and a full disk has no room for it; the lock itself is the kernel's. */
	if (ftruncate(fd, 0) == 0)
		(void)dprintf(fd, "%d\n", (int)getpid());
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
