#include "sys/durable.h"

#include "sys/durable_privacy.h"
#include "sys/fd.h"
#include "sys/random.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_ASIDE   1000  /* names that are tried: one for each second from now */
#define MAX_AT_ONCE 4096  /* bytes that one write changes whole */
#define MAX_TIDIED  10000 /* entries of a folder; a larger one is no place of ours */

static bool is_absence(int os)
{
	return os == ENOENT || os == ENOTDIR;
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

bool durable_sync_folder(const char *folder, struct error *error)
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

	return durable_sync_folder(folder, error);
}

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

/* Its maker is told that it isn't there; of what somebody put in its place that is none of our business. */
static void take_back(const char *path, const struct stat *made)
{
	struct stat now;

	if (lstat(path, &now) == 0 && now.st_dev == made->st_dev && now.st_ino == made->st_ino)
		unlink(path);
}

bool durable_create(const char *path, const void *data, size_t length, mode_t mode,
		    struct error *error)
{
	CLEANUP(free) char *temporary = temporary_beside(path);
	struct stat made;
	bool ok;

	if (!write_temporary(temporary, data, length, mode))
		return error_os(error, "write '%s'", path);
	/* A link, unlike a rename, never takes the place of what is there. */
	ok = lstat(temporary, &made) == 0 && link(temporary, path) == 0;
	if (!ok && errno == EEXIST)
		error_set(error, ERROR_CONFLICT, "create '%s': it exists already", path);
	else if (!ok)
		error_os(error, "create '%s'", path);
	unlink(temporary);
	if (ok && !sync_folder_of(path, error)) {
		take_back(path, &made);
		return false;
	}
	return ok;
}

/* Why it can't be opened: what it is says more than the kernel's word for that. */
static bool refuse_to_open(const char *path, struct error *error)
{
	int os = errno;
	struct stat now;

	if (lstat(path, &now) == 0 && !privacy_check("write", path, &now, PRIVACY_ALONE, error))
		return false;
	errno = os;
	return error_os(error, "write '%s'", path);
}

bool durable_overwrite_text(const char *path, const void *text, size_t length, struct error *error)
{
	CLEANUP(fd) int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	CLEANUP(buf) struct buf whole = {0};
	struct stat now;
	bool ok;

	if (fd < 0)
		return refuse_to_open(path, error);
	if (fstat(fd, &now) < 0)
		return error_os(error, "write '%s'", path);
	if (!privacy_check("write", path, &now, PRIVACY_ALONE, error))
		return false;
	/* One write, so that nobody finds half of it. */
	buf_add(&whole, text, length);
	while ((off_t)whole.length < now.st_size)
		buf_add_char(&whole, '\n');
	ok = write_all(fd, whole.data, whole.length) && fsync(fd) == 0 &&
	     (whole.length == length || (ftruncate(fd, (off_t)length) == 0 && fsync(fd) == 0));
	if (!ok)
		error_os(error, "write '%s'", path);
	buf_wipe(&whole);
	return ok;
}

/* What is found in `file` is told of `path`, whose place it takes. */
static bool check_fillable(const char *file, const char *path, struct error *error)
{
	CLEANUP(fd) int fd = open(file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat now;

	if (fd < 0 && str_equal(file, path))
		return refuse_to_open(path, error);
	if (fd < 0 || fstat(fd, &now) < 0)
		return error_os(error, "write '%s'", path);
	return privacy_check("write", path, &now, PRIVACY_ALONE, error);
}

bool durable_check_fillable(const char *path, struct error *error)
{
	return check_fillable(path, path, error);
}

/* In a folder such as /tmp what is somebody else's can't be replaced. */
static bool check_movable(const char *path, const struct stat *now, struct error *error)
{
	CLEANUP(free) char *folder = folder_of(path);
	struct stat around;

	if (stat(folder, &around) < 0)
		return error_os(error, "write '%s'", path);
	return !(around.st_mode & S_ISVTX) || geteuid() == 0 || around.st_uid == geteuid() ||
	       privacy_check_owner(path, now, error);
}

/* A file that goes to the path's place once it is filled; until then what is there stays. */
static bool make_beside(const char *path, const struct stat *old, struct durable_place *place,
			struct error *error)
{
	if (!check_movable(path, old, error))
		return false;
	place->beside = temporary_beside(path);
	if (write_temporary(place->beside, "", 0, 0600))
		return check_fillable(place->beside, path, error);
	error_os(error, "write '%s'", path);
	free(place->beside);
	place->beside = NULL;
	return false;
}

static bool make_place(const char *path, bool replace, struct durable_place *place,
		       struct error *error)
{
	struct error ignored; /* then it goes */
	struct stat now;

	if (!replace || lstat(path, &now) < 0) {
		if (!durable_create(path, "", 0, 0600, error))
			return false;
		place->made = lstat(path, &now) == 0;
		place->device = now.st_dev;
		place->inode = now.st_ino;
		return place->made ? check_fillable(path, path, error)
				   : error_os(error, "write '%s'", path);
	}
	/* What is ours alone and no longer than what is written at once keeps its old text until the new one is there. */
	if (now.st_size <= MAX_AT_ONCE &&
	    privacy_check("write", path, &now, PRIVACY_ALONE, &ignored))
		return check_fillable(path, path, error);
	return make_beside(path, &now, place, error);
}

bool durable_place_make(const char *path, bool replace, struct durable_place *ret_place,
			struct error *error)
{
	struct durable_place place = {.path = mem_strdup(path)};

	if (!make_place(path, replace, &place, error)) {
		durable_place_give_up(&place);
		return false;
	}
	*ret_place = place;
	return true;
}

/* What is there goes, and what comes is the place's own. */
static bool move_beside(struct durable_place *place, struct error *error)
{
	struct stat now;

	if (lstat(place->beside, &now) < 0 || rename(place->beside, place->path) < 0)
		return error_os(error, "replace '%s'", place->path);
	free(place->beside);
	place->beside = NULL;
	place->made = true;
	place->device = now.st_dev;
	place->inode = now.st_ino;
	return sync_folder_of(place->path, error);
}

bool durable_place_fill(struct durable_place *place, const void *text, size_t length,
			struct error *error)
{
	if ((place->beside && !move_beside(place, error)) ||
	    !durable_overwrite_text(place->path, text, length, error)) {
		durable_place_give_up(place);
		return false;
	}
	free(place->path);
	*place = (struct durable_place){0};
	return true;
}

void durable_place_give_up(struct durable_place *place)
{
	const struct stat made = {.st_dev = place->device, .st_ino = place->inode};
	struct error ignored; /* it is empty, and may be left */

	if (place->beside)
		unlink(place->beside);
	if (place->made) {
		take_back(place->path, &made);
		(void)!sync_folder_of(place->path, &ignored);
	}
	free(place->beside);
	free(place->path);
	*place = (struct durable_place){0};
}

bool durable_check_writable(const char *path, struct error *error)
{
	CLEANUP(free) char *folder = folder_of(path);
	struct stat st;

	if (access(folder, W_OK | X_OK) != 0)
		return error_os(error, "write '%s'", path);
	if (stat(path, &st) < 0)
		return is_absence(errno) || error_os(error, "write '%s'", path);
	if (S_ISDIR(st.st_mode))
		return error_set(error, ERROR_INVALID_STATE, "write '%s': it is a folder", path);
	return true;
}

bool durable_remove(const char *path, struct error *error)
{
	CLEANUP(free) char *folder = folder_of(path);

	if (unlink(path) == 0)
		return durable_sync_folder(folder, error);
	if (errno != ENOENT)
		return error_os(error, "remove '%s'", path);
	/* Absent may mean: removed just before a crash and not synced. */
	return durable_sync_folder(folder, error) || error->code == ERROR_NOT_FOUND;
}

bool durable_rename(const char *from, const char *to, struct error *error)
{
	CLEANUP(free) char *from_folder = folder_of(from);
	CLEANUP(free) char *to_folder = folder_of(to);

	if (rename(from, to) < 0)
		return error_os(error, "rename '%s' to '%s'", from, to);
	return durable_sync_folder(to_folder, error) &&
	       (str_equal(from_folder, to_folder) || durable_sync_folder(from_folder, error));
}

/* A name that nothing has: what was kept before stays. */
static bool name_aside(const char *path, struct wall now, struct buf *ret_name, struct error *error)
{
	for (int64_t i = 0; i < MAX_ASIDE; i++) {
		buf_clear(ret_name);
		buf_printf(ret_name, "%s.unreadable-%lld", path, (long long)(now.ms / 1000 + i));
		if (durable_absent(buf_text(ret_name)))
			return true;
	}
	error_set(error, ERROR_RESOURCES_EXHAUSTED,
		  "keep '%s': the next %d names for it are taken, the last by '%s'", path,
		  MAX_ASIDE, buf_text(ret_name));
	return error_hint(error,
			  "Look at the files '%s.unreadable-*', move them elsewhere, and "
			  "set the clock if it is wrong.",
			  path);
}

static void tell_name(struct buf *name, struct buf *ret_name)
{
	buf_deinit(ret_name);
	*ret_name = *name;
	*name = (struct buf){0};
}

bool durable_set_aside(const char *path, struct wall now, struct buf *ret_aside,
		       struct error *error)
{
	CLEANUP(buf) struct buf aside = {0};

	if (!name_aside(path, now, &aside, error) || !durable_rename(path, buf_text(&aside), error))
		return false;
	tell_name(&aside, ret_aside);
	return true;
}

/* A folder, or a file system without links: moved, as above. */
static bool keep_as(const char *path, const char *kept, struct error *error)
{
	if (link(path, kept) == 0)
		return sync_folder_of(path, error);
	return errno == EPERM ? durable_rename(path, kept, error)
			      : error_os(error, "keep '%s' as '%s'", path, kept);
}

bool durable_keep(const char *path, struct wall now, struct buf *ret_kept, struct error *error)
{
	CLEANUP(buf) struct buf kept = {0};

	if (!name_aside(path, now, &kept, error) || !keep_as(path, buf_text(&kept), error))
		return false;
	tell_name(&kept, ret_kept);
	return true;
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

bool durable_make_new_folder(const char *path, mode_t mode, struct error *error)
{
	if (mkdir(path, mode) < 0)
		return errno == EEXIST ? error_set(error, ERROR_CONFLICT,
						   "make folder '%s': it exists already", path)
				       : error_os(error, "make folder '%s'", path);
	if (chmod(path, mode) < 0) /* whatever the umask is */
		error_os(error, "make folder '%s'", path);
	else if (sync_folder_of(path, error))
		return true;
	rmdir(path);
	return false;
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

/* Also where it was written before the clock was set back. */
static bool is_left(int64_t written_ms, struct wall now)
{
	return now.ms - written_ms >= DURABLE_LEFT_MS || written_ms - now.ms >= DURABLE_LEFT_MS;
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
		    is_left((int64_t)info.st_mtim.tv_sec * 1000, now))
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

/* --- stamps --- */

static int64_t nanoseconds(struct timespec time)
{
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

struct durable_stamp durable_stamp(const char *path)
{
	struct stat now;

	if (stat(path, &now) < 0)
		return (struct durable_stamp){.os = is_absence(errno) ? 0 : errno};
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

	return lstat(path, &now) < 0 && is_absence(errno);
}

bool durable_stamp_equal(struct durable_stamp a, struct durable_stamp b)
{
	return a.exists == b.exists && a.os == b.os && a.device == b.device && a.inode == b.inode &&
	       a.size == b.size && a.mtime_ns == b.mtime_ns && a.ctime_ns == b.ctime_ns;
}
