/* durable's reading: files whole and within bounds, and whether they, or folders, may be trusted: whose they are and who else
 * may read them. */
#include "sys/durable.h"

#include "sys/durable_privacy.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_STEP 16384

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
	if (!privacy_check("read", path, &stat, privacy, error))
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

bool durable_is_passing(const struct error *error)
{
	return error->os == EIO || error->os == EMFILE || error->os == ENFILE ||
	       error->os == ENOMEM;
}

/* Nothing was found under this name. Is that so, or is it a link to nowhere, or not to be told? */
static bool confirm_absence(const char *path, struct error *error)
{
	struct stat now;

	if (lstat(path, &now) == 0)
		return !S_ISLNK(now.st_mode) ||
		       error_set(error, ERROR_INVALID_STATE, "'%s' is a link to nowhere", path);
	return errno == ENOENT || errno == ENOTDIR || error_os(error, "stat '%s'", path);
}

static bool read_record(const char *path, size_t max_size, enum privacy privacy,
			struct buf *ret_content, struct error *error)
{
	for (int i = 0; i < DURABLE_TRIES; i++)
		if (read_file(path, max_size, privacy, ret_content, error))
			return true;
		else if (error->code == ERROR_NOT_FOUND && confirm_absence(path, error))
			return false;
		else if (!durable_is_passing(error))
			break;
	return false;
}

bool durable_read_record(const char *path, size_t max_size, struct buf *ret_content,
			 struct error *error)
{
	return read_record(path, max_size, PRIVACY_NONE, ret_content, error);
}

bool durable_read_own_record(const char *path, size_t max_size, struct buf *ret_content,
			     struct error *error)
{
	return read_record(path, max_size, PRIVACY_OWN, ret_content, error);
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
	return privacy_check_owner(path, &stat, error) &&
	       ((stat.st_mode & 077) == 0 ||
		error_set(error, ERROR_FORBIDDEN, "'%s' can be entered by others (mode %04o)", path,
			  (unsigned)(stat.st_mode & 07777)));
}

bool durable_check_ours(const char *path, struct error *error)
{
	struct stat found;

	if (stat(path, &found) < 0)
		return errno == ENOENT || error_os(error, "look at '%s'", path);
	return privacy_check_owner(path, &found, error) ||
	       error_hint(error, "Run it as that user (runuser -u NAME -- ...): what another one "
				 "makes there, it can't read.");
}
