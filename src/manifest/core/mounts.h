/*
 * mounts: exactly which of the host's paths bcd's container is given, and how.
 *
 * Owns      MAN-47..57, 60. Never /var/lib/kubelet itself, never /etc/kubernetes (HOSTED-5).
 * Pure.
 * Tests     tests/unit/manifest/core/mounts_test.c
 */
#pragma once

#include "base/vec.h"
#include "manifest/core/settings.h"

#define MOUNTS_STATE        "state" /* names of volumes that the join container has too */
#define MOUNTS_STATE_FOLDER "/var/lib/bcd"

struct mount {
	const char *volume; /* its name in the pod */
	const char *host_path;
	const char *type; /* of hostPath: "File", "Directory", "DirectoryOrCreate" */
	const char *path; /* in the container */
	bool read_only;
};
struct mounts VEC_BODY(struct mount);

/* Of the settings, in the order of the manifest. Texts are constants, the settings', or in the arena.
 * Release with vec_deinit(). */
void mounts_of(const struct settings *settings, struct arena *arena, struct mounts *ret_mounts);
