/*
 * paths: which of the host's files bcd's pod is shown beside its own: the kubelet's credentials, the
 * container runtime's and NVIDIA toolkit's configuration.
 *
 * Owns      MAN-19..21, 36..38, 43..45, 64: the presets, and the places that may be
 *           named. What isn't known to hold such files is never shown.
 * Lifetimes strings live in the arena, or are constants.
 * Pure.
 * Tests     tests/unit/manifest/core/paths_test.c
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <jansson.h>

#define PATHS_MAX        8
#define PATHS_KUBECONFIG "/etc/kubernetes/kubelet.conf" /* where bcd reads it (HOSTED-9) */

/* Clean absolute paths. Of credentials: the kubeconfig as the only file, and the folders of the
 * certificates that it names. */
struct path_set {
	const char *files[PATHS_MAX], *folders[PATHS_MAX];
	size_t file_count, folder_count;
};

enum paths_kind {
	PATHS_CREDENTIALS,
	PATHS_RUNTIME,
	PATHS_TOOLKIT,
};

/* The names of a kind's presets, NULL-ended; the first is the default. */
const char *const *paths_presets(enum paths_kind kind);
struct path_set paths_preset(enum paths_kind kind, size_t index);

/* A preset's name, or an object of paths. INVALID_INPUT naming `field`, with the field in it. */
MUST_CHECK bool paths_read(const json_t *value, enum paths_kind kind, const char *field,
			   struct arena *arena, struct path_set *ret_set, struct error *error);

/* No two of them may name one path. */
MUST_CHECK bool paths_check_apart(const struct path_set *credentials,
				  const struct path_set *runtime, const struct path_set *toolkit,
				  struct error *error);
