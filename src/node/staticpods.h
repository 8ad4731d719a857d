/*
 * staticpods: finds the file of a static pod among those that the kubelet is configured to run.
 *
 * Bounds    STATICPODS_MAX files of STATICPOD_MAX_FILE, and STATICPODS_MAX_BYTES of all together: beyond
 *           them a pod is told without its file.
 * Threads   any; reads files.
 * Tests     tests/unit/node/staticpods_test.c
 */
#pragma once

#include "node/core/staticpod.h"

#define STATICPODS_MAX       256
#define STATICPODS_MAX_BYTES ((size_t)1 << 20)

struct staticpods_question {
	const char *root;    /* where the host's "/" is */
	const char *kubelet; /* the kubelet's folder, with its config.yaml */
	const char *node, *namespace, *mirror;
};
/* The path as the host has it; false: not found. */
bool staticpods_find(const struct staticpods_question *question, char ret_path[STATICPOD_MAX_PATH]);
