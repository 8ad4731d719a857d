/*
 * folder: a temporary folder for one test, removed with everything in it.
 */
#pragma once

#include "lib/test.h"

#include <ftw.h>
#include <stdio.h>
#include <unistd.h>

static inline int folder_remove_entry(const char *path, const struct stat *stat UNUSED,
				      int kind UNUSED, struct FTW *ftw UNUSED)
{
	return remove(path);
}

static inline int folder_make(void **state)
{
	char *path = mem_strdup("/tmp/bc-test-XXXXXX");

	*state = mkdtemp(path);
	return *state ? 0 : -1;
}

static inline int folder_remove(void **state)
{
	int status = nftw(*state, folder_remove_entry, 16, FTW_DEPTH | FTW_PHYS);

	free(*state);
	return status;
}

/* The row of a test that has such a folder, as its state. */
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_make, folder_remove)

/* "<folder>/<name>" in one of four static buffers. */
static inline const char *folder_path(void **state, const char *name)
{
	static char paths[4][512];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof paths[0], "%s/%s", (const char *)*state, name);
	return path;
}
