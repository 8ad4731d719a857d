/*
 * objects: the Kubernetes objects of one deployment, as JSON trees.
 *
 * Owns      what the pod is allowed and given (HOSTED-1..7, 9, 10, 12..14, 21, 31..33) and what the
 *           cluster's admin is told in the DaemonSet's annotation (MAN-61).
 * Source    Kubernetes API reference: core/v1, apps/v1; Pod Security Standards.
 * Pure.
 * Tests     tests/unit/manifest/core/objects_test.c; a real API server: tests/peer/manifest
 */
#pragma once

#include "manifest/core/settings.h"

#define OBJECTS_PROGRAM     "/usr/bin/bcd" /* in the image */
#define OBJECTS_TOKEN_PATH  "/var/run/secrets/bcd.dev/join"
#define OBJECTS_HASH_SIZE   65 /* hex, and NUL */
#define OBJECTS_MANAGED_BY  "better-compute"
#define OBJECTS_TOKEN_LABEL "bcd.dev/join-token" /* annotation of the Secret: the token's id */

/* Namespace (unless it is not to be made), ConfigMap, DaemonSet: a new array. `config` is
 * nodeconfig_write()'s text and `config_sha256` its hash in hex. */
json_t *objects_make(const struct settings *settings, const char *config,
		     const char *config_sha256);

/* The Secret of a join token: a new object. */
json_t *objects_secret(const struct settings *settings, const char *token_id, const char *token);

/* What must be so in the cluster for GPUs to be isolated, and what to do about tokens and Pod
 * Security: NULL-ended sentences. */
extern const char *const OBJECTS_REQUIREMENTS[];
