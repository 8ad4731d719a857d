/*
 * hang: a disk that doesn't answer: fsync() of what has this in its path waits until it is let go. For one file of a
 * test; workers call it, never the loop. And one that a test looks at, or lets fail, at each fsync().
 */
#pragma once

#include "lib/test.h"

#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *_Atomic hang_at; /* NULL: nothing hangs */
static _Atomic int hanging;         /* so many calls wait */
static _Atomic int hang_ends;       /* an errno: what was let go fails; 0: it is done */

/* What is about to be synced, a file or a folder; an errno: that fails. */
typedef int hang_look_fn(const char *path);
static hang_look_fn *hang_look; /* NULL: nobody looks */

int fsync(int fd);

int fsync(int fd)
{
	char link[64], path[512] = "";
	const char *at;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	if (readlink(link, path, sizeof path - 1) < 0)
		path[0] = '\0';
	if (hang_look && (errno = hang_look(path)) != 0)
		return -1;
	if (!(at = hang_at) || !strstr(path, at))
		return (int)syscall(SYS_fsync, fd);
	hanging++;
	while ((at = hang_at) && strstr(path, at))
		usleep(1000);
	hanging--;
	errno = hang_ends;
	return errno ? -1 : (int)syscall(SYS_fsync, fd);
}
