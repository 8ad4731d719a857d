#include "sys/watch.h"

#include <errno.h>
#include <sys/inotify.h>
#include <unistd.h>

#define WATCH_EVENTS                                                                               \
	(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE | IN_DELETE_SELF |   \
	 IN_MOVE_SELF | IN_ONLYDIR)
#define WATCH_GONE (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED)

/* Its own inotify descriptor: folders don't share a queue that can overflow. */
struct watch {
	int fd;
	struct loop_poll *poll;
	watch_fn *fn;
	void *arg;
	bool handing_out, destroyed; /* destroyed from inside fn: freed when fn has returned */
};

static void hand_out(struct watch *watch, const char *events, size_t length)
{
	watch->handing_out = true;
	for (size_t at = 0; at < length && !watch->destroyed;) {
		const struct inotify_event *event = (const void *)(events + at);

		at += sizeof *event + event->len;
		if (event->mask & WATCH_GONE) {
			loop_poll_set(watch->poll, 0);
			watch->fn(watch->arg, NULL);
			break;
		}
		watch->fn(watch->arg, event->len ? event->name : "");
	}
	watch->handing_out = false;
	if (watch->destroyed)
		free(watch);
}

static void on_events(void *arg, int ready UNUSED)
{
	struct watch *watch = arg;
	char events[8192] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t length = read(watch->fd, events, sizeof events);

	if (length > 0)
		hand_out(watch, events, (size_t)length);
}

bool watch_create(struct loop *loop, const char *folder, watch_fn *fn, void *arg,
		  struct watch **ret_watch, struct error *error)
{
	struct watch *watch;
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	if (fd < 0)
		return error_os(error, "watch '%s'", folder);
	if (inotify_add_watch(fd, folder, WATCH_EVENTS) < 0) {
		error_os(error, "watch '%s'", folder);
		if (error->os == ENOSPC)
			error_hint(error, "Raise fs.inotify.max_user_watches.");
		close(fd);
		return false;
	}
	watch = mem_alloc(sizeof *watch);
	*watch = (struct watch){.fd = fd, .fn = fn, .arg = arg};
	watch->poll = loop_poll_create(loop, fd, LOOP_READABLE, on_events, watch);
	*ret_watch = watch;
	return true;
}

void watch_destroy(struct watch *watch)
{
	if (!watch)
		return;
	loop_poll_destroy(watch->poll);
	close(watch->fd);
	watch->destroyed = true;
	if (!watch->handing_out)
		free(watch);
}
