/*
 * cdi: what a container gets for a CDI device name, as a runtime would give it.
 *
 * Reads     every *.json of the given folders; of one name in several files that of the later
 *           folder wins, and within a folder two are a conflict.
 * Source    CDI specification 0.8 (kind, devices, containerEdits).
 * Tests     tests/unit/standin/cdi_test.c
 */
#pragma once

#include "base/error.h"

#include <jansson.h>

#define CDI_MAX_FOLDERS 4
#define CDI_MAX_FILES   4096
#define CDI_MAX_SPEC    ((size_t)1 << 20)

/* Adds the edits of the named devices ("vendor/class=name") to `seen`, each file's own edits once:
 * its "env" object is overwritten, "deviceNodes" and "mounts" lists grow. NOT_FOUND names what no
 * file has; `seen` is untouched then. A folder that isn't there has no files. */
MUST_CHECK bool cdi_inject(const char *const *folders, size_t folder_count,
			   const char *const *names, size_t name_count, json_t *seen,
			   struct error *error);
