/*
 * conditions: what is wrong with this node, for the control plane and for people.
 *
 * Owns      GW-8..14, 28, 29: the types, reasons and texts; REL-19, 20, 29, 35, 53.
 * Always the full set. `since` is when a type was first there without a gap.
 * Pure.
 * Tests     tests/unit/node/core/conditions_test.c
 */
#pragma once

#include "base/vec.h"
#include "node/core/release.h"

#define CONDITIONS_TYPE_SIZE    64
#define CONDITIONS_MESSAGE_SIZE 1025

#define CONDITION_RELEASE_STUCK       "KubernetesReleaseStuck"
#define CONDITION_POD_RESOURCES       "PodResourcesUnavailable"
#define CONDITION_API                 "KubernetesApiUnavailable"
#define CONDITION_RELEASES_UNREADABLE "KubernetesReleasesUnreadable"
#define CONDITION_HOLDS_UNREADABLE    "HoldsUnreadable"
#define CONDITION_SPEC_UNREADABLE     "SpecUnreadable"
#define CONDITION_GPUS_UNREADABLE     "GpusUnreadable"
#define CONDITION_HEALTH_UNREADABLE   "GpuHealthUnreadable"
#define CONDITION_GPU_UNIDENTIFIED    "GpuUnidentified"
#define CONDITION_KERNEL_LOG          "KernelLogUnreadable"
#define CONDITION_HOST_UNITS          "HostUnsupported"

/* pod-resources counts as unavailable after so many failures in a row, or so long. */
#define CONDITIONS_POD_FAILURES 3
#define CONDITIONS_POD_MS       15000

struct condition {
	char type[CONDITIONS_TYPE_SIZE];
	char reason[CONDITIONS_TYPE_SIZE];
	char message[CONDITIONS_MESSAGE_SIZE];
	struct wall since;
};
/* Sorted by type; `{0}` is "all is well". */
struct conditions VEC_BODY(struct condition);

struct conditions_view {
	const struct release_entry *const *stuck; /* pending for too long */
	const char *const *stuck_by; /* for each who holds it and what comes next; NULL: unknown */
	size_t stuck_count;
	bool holds_devices;     /* devices are bound for Kubernetes, or wait for their release */
	uint32_t pod_failures;  /* of pod-resources, in a row */
	int64_t pod_failing_ms; /* since the first of them */
	const char *pod_error;
	const char *api_error; /* of the API server, while a pod is to be deleted; else NULL */
	const char *releases_marker; /* path, while the marker is there; else NULL */
	const char *releases_way;    /* who or what keeps the marker there; NULL or "": not known */
	const char *holds_error;     /* NULL: readable */
	const char *spec_error;      /* NULL: readable */
	const char *gpus_error;      /* NULL: readable */
	const char *gpus_next;       /* what to do about it; NULL nothing to say */
	const char *gpu_strangers;   /* GPUs without a UUID, by place and why; NULL: none */
	const char *health_marker;   /* path, while the marker is there; else NULL */
	const char *kernel_log_error; /* NULL: followed, or need not be */
	bool host_units;              /* false: another party configures the host */
};

/* `before` is the last answer, for `since`. `*ret_conditions` must be empty. */
void conditions_decide(const struct conditions_view *view, const struct conditions *before,
		       struct wall now, struct conditions *ret_conditions);
/* The same conditions, whatever their times? */
bool conditions_equal(const struct conditions *a, const struct conditions *b);
const struct condition *conditions_find(const struct conditions *conditions, const char *type);
