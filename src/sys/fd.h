/*
 * fd: what the files of this room share about descriptors, and about what is no file; nobody else includes it.
 */
#pragma once

#include <sys/stat.h>
#include <unistd.h>

/* CLEANUP(fd): closes it unless it is negative. */
static inline void fd_cleanup(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/* What is there in place of a regular file, such as "a folder". */
static inline const char *fd_kind(mode_t mode)
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
	case S_IFLNK:
		return "a link";
	default:
		return "something else";
	}
}
