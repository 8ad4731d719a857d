/*
 * staticpod: which file a static pod comes from.
 *
 * Why       a static pod can't be ended through the API: who reads that it is in the way wants to know
 *           which file to remove (REL-56).
 * Format    the kubelet's config.yaml (KubeletConfiguration v1beta1) has staticPodPath; a manifest is
 *           a v1.Pod in YAML or JSON, whose mirror is called "<name>-<node>" in its namespace.
 * Errors    None: what can't be read names no file, and the pod is told without one.
 * Pure.
 * Tests     tests/unit/node/core/staticpod_test.c, fuzz/staticpod_fuzz.c
 */
#pragma once

#include "base/buf.h"

#define STATICPOD_MAX_FILE ((size_t)256 << 10)
#define STATICPOD_MAX_PATH 1024

/* staticPodPath, absolute; false: none. */
bool staticpod_folder(const char *config, size_t length, char ret_path[STATICPOD_MAX_PATH]);
/* Is this the manifest of the static pod whose mirror has this name on this node? Text without the pod's
 * name isn't parsed. */
bool staticpod_is_of(const char *text, size_t length, const char *node, const char *namespace,
		     const char *mirror);
