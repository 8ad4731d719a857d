"""A folder of a file system that gives every new file to nobody, as NFS does to root: what fstat() says of its files."""

import os
import subprocess

SOURCE = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
int fstat(int fd, struct stat *out)
{
	char name[64], path[4096] = "";
	const char *squashed = getenv("SQUASHED");
	int result = (int)syscall(SYS_newfstatat, fd, "", out, AT_EMPTY_PATH);

	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	if (result == 0 && squashed && readlink(name, path, sizeof path - 1) > 0 && strstr(path, squashed))
		out->st_uid = 65534;
	return result;
}
int fstat64(int fd, struct stat64 *out) __attribute__((alias("fstat")));
"""


def squashed(within, folder):
    """The environment of a program for which `within` is such a folder; `folder` is for what that takes."""
    library = os.path.join(folder, "squashed.so")
    if not os.path.exists(library):
        subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", library, "-x", "c", "-"], input=SOURCE, text=True, check=True)
    return {"LD_PRELOAD": library, "SQUASHED": within + "/",
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
