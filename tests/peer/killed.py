"""A program that is killed in the moment when what it just wrote holds a secret, and where that is then."""

import os
import subprocess

SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int fsync(int fd)
{
	int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
	char name[64], text[4096] = "";
	const char *at = getenv("KILLED_AT");
	FILE *file;

	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	file = fopen(name, "r");
	if (file && fread(text, 1, sizeof text - 1, file) > 0 && at && strstr(text, at))
		raise(SIGKILL);
	if (file)
		fclose(file);
	return next(fd);
}
"""


def killed_at(text, folder):
    """The environment of such a program; `folder` is for what that takes."""
    library = os.path.join(folder, "killed.so")
    if not os.path.exists(library):
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, "-x", "c", "-", "-ldl"], input=SOURCE, text=True, check=True)
    return {"LD_PRELOAD": library, "KILLED_AT": text,
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}


def holders(text, folder):
    """The files in this folder that hold it."""
    found = []
    for entry in os.scandir(folder):
        if entry.is_file():
            with open(entry.path, "rb") as file:
                if text.encode() in file.read():
                    found.append(entry.name)
    return sorted(found)
