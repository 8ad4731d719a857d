#define SIM_FS_ITSELF
#include "sim/sim_fs.h"

#include "base/hash.h"
#include "sim/sim_faults.h"
#include "sim/sim_posix.h"

#include <stdarg.h>

#define FIRST_FD     1000
#define SHORT_ONE_IN 20 /* writes that do a part only */

enum kind {
	KIND_FILE,
	KIND_FOLDER,
	KIND_SOCKET,
};

struct inode {
	uint64_t number;
	enum kind kind;
	mode_t mode;
	struct buf data, synced;
	int64_t changed_ms;
	struct descriptor *locked_by;
	bool dropped; /* a sync of it failed: what was written so far gets to no disk any more */
};

struct entry {
	char *path;
	uint64_t hash; /* of the path: most have a long beginning in common */
	struct inode *inode;
};
struct entries VEC_BODY(struct entry);

/* An unsynced change of a folder: the path has this inode now; NULL: it is gone. */
struct change {
	char *path;
	struct inode *inode;
};

struct descriptor {
	bool used, written;
	struct inode *inode;
	char *path; /* as opened: a folder's sync goes by it */
	size_t at;
	struct sim_process *process;
};

struct listing {
	VEC(char *) names;
	size_t at;
	struct dirent entry;
};

static struct {
	VEC(struct inode *) inodes;
	struct entries live, durable;
	VEC(struct change) changes; /* of all folders, in order */
	VEC(struct descriptor *) descriptors;
} fs;

/* --- entries --- */

static struct entry *entry_find(struct entries *entries, const char *path)
{
	uint64_t hash = hash_text(path);
	vec_each (entries, struct entry * entry)
		if (entry->hash == hash && str_equal(entry->path, path))
			return entry;
	return NULL;
}

static struct inode *inode_at(const char *path)
{
	struct entry *entry = entry_find(&fs.live, path);
	return entry ? entry->inode : NULL;
}

static void entry_set(struct entries *entries, const char *path, struct inode *inode)
{
	struct entry *entry = entry_find(entries, path);
	if (entry && inode) {
		entry->inode = inode;
	} else if (entry) {
		free(entry->path);
		vec_remove(entries, (size_t)(entry - entries->items));
	} else if (inode) {
		*vec_push(entries) = (struct entry){mem_strdup(path), hash_text(path), inode};
	}
}

static void entries_clear(struct entries *entries)
{
	vec_each (entries, struct entry * entry)
		free(entry->path);
	vec_deinit(entries);
}

static bool is_in(const char *folder, const char *path)
{
	size_t length = str_equal(folder, "/") ? 0 : strlen(folder);
	return strncmp(path, folder, length) == 0 && path[length] == '/' && path[length + 1] &&
	       !strchr(path + length + 1, '/');
}

static void folder_of(const char *path, char out[PATH_MAX])
{
	str_copy(out, PATH_MAX, path);
	char *slash = strrchr(out, '/');
	if (slash)
		slash[slash == out] = '\0';
}

/* The path has this inode from now on, in memory; on disk after its folder's sync. */
static void change(const char *path, struct inode *inode)
{
	char folder[PATH_MAX];
	folder_of(path, folder);
	entry_set(&fs.live, path, inode);
	*vec_push(&fs.changes) = (struct change){mem_strdup(path), inode};
	sim_watch_notify(folder, strrchr(path, '/') + 1);
	sim_world_changed(folder);
}

static struct inode *inode_make(enum kind kind, mode_t mode)
{
	struct inode *inode = mem_alloc(sizeof *inode);
	*inode = (struct inode){.number = fs.inodes.count + 1,
				.kind = kind,
				.mode = mode,
				.changed_ms = sim.now_ms};
	*vec_push(&fs.inodes) = inode;
	return inode;
}

/* What is unsynced of these changes becomes durable, the first `count` of the folder's. */
static void changes_apply(const char *folder, size_t count)
{
	for (size_t i = 0; i < fs.changes.count && count > 0;) {
		struct change *one = &fs.changes.items[i];
		if (!is_in(folder, one->path)) {
			i++;
			continue;
		}
		entry_set(&fs.durable, one->path, one->inode);
		free(one->path);
		vec_remove(&fs.changes, i);
		count--;
	}
}

/* --- life --- */

void sim_fs_begin(void)
{
	struct inode *root = inode_make(KIND_FOLDER, 0755);
	entry_set(&fs.live, "/", root);
	entry_set(&fs.durable, "/", root);
}

void sim_fs_end(void)
{
	entries_clear(&fs.live);
	entries_clear(&fs.durable);
	vec_each (&fs.inodes, struct inode * *inode) {
		buf_deinit(&(*inode)->data);
		buf_deinit(&(*inode)->synced);
		free(*inode);
	}
	vec_deinit(&fs.inodes);
	vec_each (&fs.changes, struct change * one)
		free(one->path);
	vec_deinit(&fs.changes);
	vec_each (&fs.descriptors, struct descriptor * *descriptor) {
		free((*descriptor)->path);
		free(*descriptor);
	}
	vec_deinit(&fs.descriptors);
}

static void descriptor_free(struct descriptor *descriptor)
{
	if (descriptor->inode->locked_by == descriptor)
		descriptor->inode->locked_by = NULL;
	free(TAKE(descriptor->path));
	descriptor->used = false;
}

void sim_fs_process_died(struct sim_process *process)
{
	vec_each (&fs.descriptors, struct descriptor * *descriptor)
		if ((*descriptor)->used && (*descriptor)->process == process)
			descriptor_free(*descriptor);
}

static size_t changes_in(const char *folder)
{
	size_t count = 0;
	vec_each (&fs.changes, struct change * one)
		count += is_in(folder, one->path);
	return count;
}

static void tear(struct inode *inode)
{
	if (inode->kind != KIND_FILE ||
	    (inode->data.length == inode->synced.length &&
	     memcmp(buf_text(&inode->data), buf_text(&inode->synced), inode->data.length) == 0))
		return;
	switch (sim_below(3)) {
	case 0: /* all of it got there */
		break;
	case 1: /* nothing did */
		buf_clear(&inode->data);
		buf_add(&inode->data, inode->synced.data, inode->synced.length);
		break;
	case 2: /* a part did */
		inode->data.length = sim_below(inode->data.length + 1);
		break;
	}
	buf_clear(&inode->synced);
	buf_add(&inode->synced, inode->data.data, inode->data.length);
}

void sim_fs_power_cut(void)
{
	while (fs.changes.count > 0) {
		char folder[PATH_MAX];
		folder_of(fs.changes.items[0].path, folder);
		size_t count = changes_in(folder), kept = sim_below(count + 1);
		changes_apply(folder, kept);
		for (size_t i = fs.changes.count; i-- > 0;) {
			if (!is_in(folder, fs.changes.items[i].path))
				continue;
			free(fs.changes.items[i].path);
			vec_remove(&fs.changes, i);
		}
		sim_trace("power cut: %s keeps %zu of %zu changes", folder, kept, count);
	}
	entries_clear(&fs.live);
	vec_each (&fs.durable, struct entry * entry)
		*vec_push(&fs.live) =
			(struct entry){mem_strdup(entry->path), entry->hash, entry->inode};
	vec_each (&fs.live, struct entry * entry)
		tear(entry->inode);
}

/* --- sockets, and the world's look --- */

bool sim_fs_socket_make(const char *path, uint64_t *ret_inode)
{
	if (inode_at(path))
		return false;
	if (sim_crash_point("bind", path))
		return true;
	struct inode *inode = inode_make(KIND_SOCKET, 0600);
	change(path, inode);
	*ret_inode = inode->number;
	return true;
}

void sim_fs_socket_remove(const char *path, uint64_t number)
{
	struct inode *inode = inode_at(path);
	if (inode && inode->number == number && sim_effective())
		change(path, NULL);
}

uint64_t sim_fs_socket(const char *path)
{
	struct inode *inode = inode_at(path);
	return inode && inode->kind == KIND_SOCKET ? inode->number : 0;
}

bool sim_fs_exists(const char *path)
{
	return inode_at(path) != NULL;
}

const struct buf *sim_fs_content(const char *path)
{
	struct inode *inode = inode_at(path);
	return inode && inode->kind == KIND_FILE ? &inode->data : NULL;
}

void sim_fs_put(const char *path, const char *text)
{
	char folder[PATH_MAX];
	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		str_copy(folder, (size_t)(slash - path) + 1, path);
		if (!inode_at(folder))
			change(folder, inode_make(KIND_FOLDER, 0755));
	}
	struct inode *inode = inode_make(KIND_FILE, 0600);
	buf_add_text(&inode->data, text);
	change(path, inode);
}

void sim_fs_sync(void)
{
	while (fs.changes.count > 0) {
		char folder[PATH_MAX];
		folder_of(fs.changes.items[0].path, folder);
		changes_apply(folder, SIZE_MAX);
	}
	vec_each (&fs.inodes, struct inode * *inode) {
		buf_clear(&(*inode)->synced);
		buf_add(&(*inode)->synced, (*inode)->data.data, (*inode)->data.length);
	}
}

/* --- the calls --- */

static int fail(int number)
{
	errno = number;
	return -1;
}

/* Is this effect to fail? Then errno says how. */
static bool fails(enum sim_effect effect, const char *path)
{
	int error = sim_fault(effect, path);

	if (error)
		errno = error;
	return error;
}

/* May hang here first, while its process dies. */
static bool dies_at(const char *what, const char *path)
{
	sim_hang_at(path);
	return sim_crash_point(what, path);
}

static struct descriptor *descriptor_get(int fd)
{
	size_t index = (size_t)(fd - FIRST_FD);
	assert(fd >= FIRST_FD && index < fs.descriptors.count);
	struct descriptor *descriptor = fs.descriptors.items[index];
	/* A zombie may still close what was taken from it. */
	return descriptor->used ? descriptor : NULL;
}

static int descriptor_make(const char *path, struct inode *inode)
{
	size_t index = 0;
	while (index < fs.descriptors.count && fs.descriptors.items[index]->used)
		index++;
	if (index == fs.descriptors.count)
		*vec_push(&fs.descriptors) = mem_alloc(sizeof(struct descriptor));
	*fs.descriptors.items[index] = (struct descriptor){
		.used = true, .inode = inode, .path = mem_strdup(path), .process = sim.current};
	return FIRST_FD + (int)index;
}

static bool folder_is_there(const char *path)
{
	char folder[PATH_MAX];
	folder_of(path, folder);
	struct inode *inode = inode_at(folder);
	return inode && inode->kind == KIND_FOLDER;
}

int sim_open(const char *path, int flags, ...)
{
	if (flags & O_CREAT)
		sim_hang_at(path);
	struct inode *inode = inode_at(path);
	if (!sim_effective())
		return fail(EIO);
	if (fails(flags & O_CREAT ? SIM_CREATE : SIM_OPEN, path))
		return -1;
	if (inode && (flags & O_EXCL))
		return fail(EEXIST);
	if (inode && inode->kind == KIND_SOCKET)
		return fail(ENXIO);
	if (inode && (flags & O_DIRECTORY) && inode->kind != KIND_FOLDER)
		return fail(ENOTDIR);
	if (!inode && (!(flags & O_CREAT) || !folder_is_there(path)))
		return fail(ENOENT);
	if (!inode) {
		if (sim_crash_point("create", path))
			return fail(EIO);
		inode = inode_make(KIND_FILE, 0600);
		change(path, inode);
	}
	return descriptor_make(path, inode);
}

int sim_close(int fd)
{
	struct descriptor *descriptor = descriptor_get(fd);
	if (!descriptor)
		return 0;
	bool failed = descriptor->written && fails(SIM_CLOSE, descriptor->path);
	descriptor_free(descriptor);
	return failed ? -1 : 0;
}

ssize_t sim_pread(int fd, void *out, size_t length, off_t at)
{
	struct descriptor *descriptor = descriptor_get(fd);
	if (!descriptor)
		return fail(EIO);
	if (fails(SIM_READ, descriptor->path))
		return -1;
	struct buf *data = &descriptor->inode->data;
	if ((size_t)at >= data->length)
		return 0;
	if (length > data->length - (size_t)at)
		length = data->length - (size_t)at;
	memcpy(out, data->data + at, length);
	return (ssize_t)length;
}

ssize_t sim_read(int fd, void *out, size_t length)
{
	struct descriptor *descriptor = descriptor_get(fd);
	ssize_t got = descriptor ? sim_pread(fd, out, length, (off_t)descriptor->at) : fail(EIO);
	if (got > 0)
		descriptor->at += (size_t)got;
	return got;
}

ssize_t sim_write(int fd, const void *data, size_t length)
{
	struct descriptor *descriptor = descriptor_get(fd);
	if (!descriptor || dies_at("write", descriptor->path))
		return fail(EIO);
	descriptor->written = true;
	int error = sim_fault(SIM_WRITE, descriptor->path);
	if (error && error != SIM_FAULT_SHORT)
		return fail(error);
	if (error || sim_chance(SHORT_ONE_IN))
		length = 1 + sim_below(length);
	buf_add(&descriptor->inode->data, data, length);
	descriptor->inode->changed_ms = sim.now_ms;
	return (ssize_t)length;
}

int sim_dprintf(int fd, const char *format, ...)
{
	char text[256];
	va_list args;
	va_start(args, format);
	int length = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return (int)sim_write(fd, text, (size_t)length);
}

int sim_ftruncate(int fd, off_t length)
{
	struct descriptor *descriptor = descriptor_get(fd);
	if (!descriptor || !sim_effective())
		return fail(EIO);
	assert((size_t)length <= descriptor->inode->data.length);
	descriptor->inode->data.length = (size_t)length;
	return 0;
}

int sim_fsync(int fd)
{
	struct descriptor *descriptor = descriptor_get(fd);
	if (!descriptor || dies_at("fsync", descriptor->path))
		return fail(EIO);
	struct inode *inode = descriptor->inode;
	if (fails(SIM_FSYNC, descriptor->path)) {
		inode->dropped = inode->kind == KIND_FILE;
		return -1;
	}
	if (inode->dropped) /* as Linux has it: told once, and forgotten */
		return 0;
	if (inode->kind == KIND_FOLDER) {
		changes_apply(descriptor->path, SIZE_MAX);
		return 0;
	}
	buf_clear(&inode->synced);
	buf_add(&inode->synced, inode->data.data, inode->data.length);
	return 0;
}

int sim_fchmod(int fd, mode_t mode)
{
	struct descriptor *descriptor = descriptor_get(fd);
	if (!descriptor)
		return fail(EIO);
	if (fails(SIM_CHMOD, descriptor->path))
		return -1;
	descriptor->inode->mode = mode;
	return 0;
}

int sim_flock(int fd, int operation UNUSED)
{
	struct descriptor *descriptor = descriptor_get(fd);
	if (!descriptor)
		return fail(EIO);
	if (descriptor->inode->locked_by && descriptor->inode->locked_by != descriptor)
		return fail(EWOULDBLOCK);
	descriptor->inode->locked_by = descriptor;
	return 0;
}

static int inode_stat(const struct inode *inode, struct stat *out)
{
	static const mode_t kinds[] = {S_IFREG, S_IFDIR, S_IFSOCK};
	struct timespec changed = {inode->changed_ms / 1000, inode->changed_ms % 1000 * 1000000};
	*out = (struct stat){.st_dev = 1,
			     .st_ino = inode->number,
			     .st_mode = inode->mode | kinds[inode->kind],
			     .st_size = (off_t)inode->data.length,
			     .st_mtim = changed,
			     .st_ctim = changed};
	return 0;
}

int sim_fstat(int fd, struct stat *out)
{
	struct descriptor *descriptor = descriptor_get(fd);
	return descriptor ? inode_stat(descriptor->inode, out) : fail(EIO);
}

int sim_stat(const char *path, struct stat *out)
{
	struct inode *inode = inode_at(path);
	if (fails(SIM_STAT, path))
		return -1;
	return inode ? inode_stat(inode, out) : fail(ENOENT);
}

int sim_chmod(const char *path, mode_t mode)
{
	struct inode *inode = inode_at(path);
	if (!inode || !sim_effective())
		return fail(ENOENT);
	if (fails(SIM_CHMOD, path))
		return -1;
	inode->mode = mode;
	return 0;
}

int sim_mkdir(const char *path, mode_t mode)
{
	if (inode_at(path))
		return fail(EEXIST);
	if (!folder_is_there(path))
		return fail(ENOENT);
	if (sim_crash_point("mkdir", path))
		return fail(EIO);
	if (fails(SIM_MKDIR, path))
		return -1;
	change(path, inode_make(KIND_FOLDER, mode));
	return 0;
}

int sim_unlink(const char *path)
{
	sim_hang_at(path);
	struct inode *inode = inode_at(path);
	if (!inode)
		return fail(ENOENT);
	if (inode->kind == KIND_FOLDER)
		return fail(EISDIR);
	if (sim_crash_point("unlink", path))
		return fail(EIO);
	if (fails(SIM_UNLINK, path))
		return -1;
	change(path, NULL);
	return 0;
}

int sim_link(const char *from, const char *to)
{
	struct inode *inode = inode_at(from);
	if (!inode)
		return fail(ENOENT);
	if (inode_at(to))
		return fail(EEXIST);
	if (sim_crash_point("link", to))
		return fail(EIO);
	if (fails(SIM_LINK, to))
		return -1;
	change(to, inode);
	return 0;
}

static void move_below(char **path, const char *from, const char *to)
{
	size_t length = strlen(from);
	if (strncmp(*path, from, length) != 0 || (*path)[length] != '/')
		return;
	CLEANUP(free) char *old = *path;
	CLEANUP(buf) struct buf moved = {0};
	buf_printf(&moved, "%s%s", to, old + length);
	*path = buf_take_text(&moved);
}

static void entry_move(struct entry *entry, const char *from, const char *to)
{
	move_below(&entry->path, from, to);
	entry->hash = hash_text(entry->path);
}

/* What is in a folder goes with it: it is the folder's, not the path's. */
static void folder_move(const char *from, const char *to)
{
	vec_each (&fs.live, struct entry * entry)
		entry_move(entry, from, to);
	vec_each (&fs.durable, struct entry * entry)
		entry_move(entry, from, to);
	vec_each (&fs.changes, struct change * one)
		move_below(&one->path, from, to);
}

int sim_rename(const char *from, const char *to)
{
	sim_hang_at(to);
	struct inode *inode = inode_at(from);
	if (!inode || !folder_is_there(to))
		return fail(ENOENT);
	if (sim_crash_point("rename", to))
		return fail(EIO);
	if (fails(SIM_RENAME, to))
		return -1;
	change(to, inode);
	change(from, NULL);
	if (inode->kind == KIND_FOLDER)
		folder_move(from, to);
	return 0;
}

DIR *sim_opendir(const char *path)
{
	struct inode *inode = inode_at(path);
	if (fails(SIM_LIST, path))
		return NULL;
	if (!inode || inode->kind != KIND_FOLDER) {
		errno = inode ? ENOTDIR : ENOENT;
		return NULL;
	}
	struct listing *listing = mem_alloc(sizeof *listing);
	vec_each (&fs.live, struct entry * entry)
		if (is_in(path, entry->path))
			*vec_push(&listing->names) = mem_strdup(strrchr(entry->path, '/') + 1);
	return (DIR *)listing;
}

struct dirent *sim_readdir(DIR *stream)
{
	struct listing *listing = (struct listing *)stream;
	if (listing->at == listing->names.count)
		return NULL;
	str_copy(listing->entry.d_name, sizeof listing->entry.d_name,
		 listing->names.items[listing->at++]);
	return &listing->entry;
}

int sim_closedir(DIR *stream)
{
	struct listing *listing = (struct listing *)stream;
	vec_each (&listing->names, char **name)
		free(*name);
	vec_deinit(&listing->names);
	free(listing);
	return 0;
}

/* It stands in locks: one that told of the real process would differ from run to run. */
pid_t sim_getpid(void)
{
	return sim.current ? (pid_t)(1000 + sim.current->life) : 1;
}
