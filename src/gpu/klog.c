#include "gpu/klog.h"

#include "base/buf.h"
#include "sys/durable.h"
#include "sys/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Then others have their turn. */
#define READS_A_WAKE   512
#define BYTES_A_WAKE   ((size_t)256 << 10)
#define WAKES_AT_START 64

struct klog {
	struct loop *loop;
	char *path, *folder, *name;
	uint64_t after, last;
	const struct klog_handlers *handlers;
	void *arg;

	int fd; /* -1: not open */
	struct loop_poll *poll;
	struct loop_timer *more; /* of a file: there is more to read than was read at once */
	struct watch *watch;     /* of the folder: a file tells nobody that it grew */
	bool regular;
	struct durable_stamp opened;
	struct buf rest; /* of a record that isn't whole yet: files and fifos */
	bool skipping;   /* the rest of a line that is too long for a record */
	struct error error;
};

static void close_log(struct klog *log)
{
	loop_poll_destroy(TAKE(log->poll));
	loop_timer_stop(log->more);
	watch_destroy(TAKE(log->watch));
	if (log->fd >= 0)
		close(log->fd);
	log->fd = -1;
	log->skipping = false;
	buf_clear(&log->rest);
}

static void take_record(struct klog *log, const char *record, size_t length)
{
	struct klog_event event;

	if (!klog_parse(record, length, &event))
		return;
	if (event.sequence > log->last)
		log->last = event.sequence;
	if (event.kind == KLOG_NOTHING)
		return;
	if (log->after == 0 || event.sequence > log->after)
		log->handlers->on_event(log->arg, &event);
}

/* /dev/kmsg gives one record with each read, files and fifos what there is. */
static void take_bytes(struct klog *log, const char *bytes, size_t length)
{
	const char *start, *end;
	size_t left;

	buf_add(&log->rest, bytes, length);
	start = (const char *)log->rest.data;
	left = log->rest.length;
	while ((end = memchr(start, '\n', left))) {
		if (!log->skipping)
			take_record(log, start, (size_t)(end - start));
		log->skipping = false;
		left -= (size_t)(end + 1 - start);
		start = end + 1;
	}
	buf_drop_front(&log->rest, log->rest.length - left);
	if (log->rest.length > KLOG_RECORD_SIZE) {
		log->skipping = true;
		buf_clear(&log->rest);
	}
}

static void failed(struct klog *log, const char *what)
{
	error_os(&log->error, "%s '%s'", what, log->path);
	if (log->error.os == EACCES || log->error.os == EPERM)
		error_hint(&log->error, "bcd needs root or CAP_SYSLOG for the kernel's log.");
	close_log(log);
}

/* What there is, but not for ever; true when all of it was read. */
static bool drain(struct klog *log)
{
	char bytes[KLOG_RECORD_SIZE];
	size_t total = 0;

	for (int i = 0; i < READS_A_WAKE && total < BYTES_A_WAKE; i++) {
		ssize_t got = read(log->fd, bytes, sizeof bytes);

		if (got > 0) {
			take_bytes(log, bytes, (size_t)got);
			total += (size_t)got;
		} else if (got == 0 || errno == EAGAIN) {
			return true;
		} else if (errno == EPIPE) {
			log->handlers->on_lost(log->arg);
		} else if (errno != EINTR && errno != EINVAL) { /* EINVAL: one that is too long */
			failed(log, "read");
			return true;
		}
	}
	return false;
}

static void on_readable(void *arg, int events UNUSED)
{
	(void)drain(arg); /* the rest wakes us again */
}

/* A file doesn't. (A timer that starts itself for now has its next turn before anybody else.) */
static void read_on(void *arg)
{
	struct klog *log = arg;

	if (log->fd >= 0 && !drain(log) && log->regular)
		loop_timer_start(log->more, 1);
}

/* Another file of the name, or the same one cut short. */
static bool is_another(const struct klog *log)
{
	struct durable_stamp now = durable_stamp(log->path);

	return !now.exists || now.device != log->opened.device || now.inode != log->opened.inode ||
	       (log->regular && (off_t)now.size < lseek(log->fd, 0, SEEK_CUR));
}

static void on_watch(void *arg, const char *name)
{
	struct klog *log = arg;

	if (!name) {
		watch_destroy(TAKE(log->watch));
		return;
	}
	if (!*name || str_equal(name, log->name))
		klog_look(log);
}

static bool open_log(struct klog *log)
{
	struct error ignored; /* then it is looked at with each klog_look() */
	struct stat info;

	log->fd = open(log->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (log->fd < 0 || fstat(log->fd, &info) < 0) {
		failed(log, "open");
		return false;
	}
	if (S_ISFIFO(info.st_mode)) { /* ours too to write, so that it never ends */
		close(log->fd);
		log->fd = open(log->path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		if (log->fd < 0) {
			failed(log, "open");
			return false;
		}
	}
	log->opened = (struct durable_stamp){.device = info.st_dev, .inode = info.st_ino};
	log->regular = S_ISREG(info.st_mode);
	log->error = (struct error){0};
	if (log->last > log->after) /* opened again: it begins with what was read */
		log->after = log->last;
	if (!log->regular)
		log->poll = loop_poll_create(log->loop, log->fd, LOOP_READABLE, on_readable, log);
	else if (!watch_create(log->loop, log->folder, on_watch, log, &log->watch, &ignored))
		log->watch = NULL;
	return true;
}

void klog_look(struct klog *log)
{
	if (log->fd >= 0 && is_another(log)) {
		if (log->regular)
			log->after = log->last = 0; /* it counts anew */
		close_log(log);
	}
	if (log->fd < 0 && !open_log(log))
		return;
	read_on(log);
}

struct klog *klog_create(struct loop *loop, const char *path, uint64_t after,
			 const struct klog_handlers *handlers, void *arg)
{
	struct klog *log = mem_alloc(sizeof *log);
	const char *slash = strrchr(path, '/');

	assert(slash);
	log->loop = loop;
	log->path = mem_strdup(path);
	log->folder = mem_strdup(path);
	log->folder[slash == path ? 1 : slash - path] = '\0';
	log->name = mem_strdup(slash + 1);
	log->after = after;
	log->handlers = handlers;
	log->arg = arg;
	log->fd = -1;
	log->more = loop_timer_create(loop, read_on, log);
	klog_look(log);
	for (int i = 0; i < WAKES_AT_START && log->fd >= 0 && !drain(log); i++)
		;
	return log;
}

void klog_destroy(struct klog *log)
{
	if (!log)
		return;
	close_log(log);
	loop_timer_destroy(log->more);
	buf_deinit(&log->rest);
	free(log->path);
	free(log->folder);
	free(log->name);
	free(log);
}

const struct error *klog_error(const struct klog *log)
{
	return log->error.code == ERROR_NONE ? NULL : &log->error;
}
