/*
 * pod: what bcd must know of a pod that the API server lists.
 *
 * Static    pods are known to the API server by a mirror, another object with another UID. The
 *           kubelet calls them by the UID that the mirror's annotation has, and takes them from a
 *           source ("file", "http"): deleting the mirror ends nothing. Anybody may write such an
 *           annotation; one counts only where the pod's own Node controls it.
 * Lifetimes texts are borrowed from the tree; none is NULL.
 * Errors    INVALID_INPUT naming the field, of what the API server itself writes. What whoever made the pod
 *           may write (annotations, owners, finalizers, a grace) can't make it unreadable: it is
 *           passed over where it isn't in the form that it should have.
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
	/* Its phase is final (Succeeded, Failed), set by the kubelet as far as can be told, and no container runs
	 * by its status. */
	bool over;
	bool deleting;
	struct wall deletion; /* when the grace is over */
	int64_t grace_s;      /* the deletion's */
	int64_t termination_s; /* the spec's terminationGracePeriodSeconds, or what the API server takes without */
};

/* Does the pod name the ResourceClaim of its namespace: in its spec, by a template, or for extended
 * resources (status)? What isn't in the form that Kubernetes writes names none. */
bool kube_pod_has_claim(const json_t *pod, const char *claim);

MUST_CHECK bool kube_pod_read(const json_t *pod, struct kube_pod *ret_pod, struct error *error);
