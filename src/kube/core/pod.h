/*
 * pod: what bcd must know of a pod that the API server lists.
 *
 * Static    pods are known to the API server by a mirror, another object with another UID. The
 *           kubelet calls them by the UID that the mirror's annotation has, and takes them from a
 *           source ("file", "http"): deleting the mirror ends nothing.
 * Lifetimes texts are borrowed from the tree; none is NULL.
 * Errors    INVALID_INPUT naming the field.
 * Pure.
 * Source    v1.Pod, Kubernetes 1.20 to 1.37; kubernetes.io/config.mirror and config.source.
 * Tests     tests/unit/kube/core/pod_test.c, fuzz/kubepod_fuzz.c
 */
#pragma once

#include "base/error.h"

#include <jansson.h>

struct kube_pod {
	const char *uid, *namespace, *name;
	const char *static_uid, *static_source; /* of a mirror; else "" */
	const char *finalizer;                  /* the first that keeps it from going; "" none */
	bool deleting;
	struct wall deletion; /* when the grace is over */
	int64_t grace_s;
};

MUST_CHECK bool kube_pod_read(const json_t *pod, struct kube_pod *ret_pod, struct error *error);
