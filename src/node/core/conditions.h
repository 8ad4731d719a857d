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

#define CONDITION_RELEASE_PENDING     "KubernetesReleasePending"
#define CONDITION_RELEASE_STUCK       "KubernetesReleaseStuck"
#define CONDITION_POD_RESOURCES       "PodResourcesUnavailable"
#define CONDITION_PROCESSES           "PodProcessesUnavailable"
#define CONDITION_PLUGINS             "DevicePluginUnavailable"
#define CONDITION_GPU_OPEN            "KubernetesGpuOpen"
#define CONDITION_API                 "KubernetesApiUnavailable"
#define CONDITION_NODE_UNKNOWN        "KubernetesNodeUnknown"
#define CONDITION_NOT_SERVED          "KubernetesBindingUnsupported"
#define CONDITION_EXPOSURE            "ForeignGpuExposure"
#define CONDITION_RELEASES_UNREADABLE "KubernetesReleasesUnreadable"
#define CONDITION_CLAIMS_UNREADABLE   "PreparedClaimsUnreadable"
#define CONDITION_RECORDS_UNWRITABLE  "RecordsUnwritable"
#define CONDITION_REPORTS_UNREADABLE  "ReportsUnreadable"
#define CONDITION_HOLDS_UNREADABLE    "HoldsUnreadable"
#define CONDITION_SPEC_UNREADABLE     "SpecUnreadable"
#define CONDITION_GPUS_UNREADABLE     "GpusUnreadable"
#define CONDITION_HEALTH_UNREADABLE   "GpuHealthUnreadable"
#define CONDITION_GPU_UNIDENTIFIED    "GpuUnidentified"
#define CONDITION_KERNEL_LOG          "KernelLogUnreadable"
#define CONDITION_HOST_SHORT          "HostResourcesShort"
#define CONDITION_GPU_API             "GpuApiUnsupported"
#define CONDITION_HOST_UNITS          "HostUnsupported"

/* All that a node may have, one after the other; NULL past the last. The control plane knows each
 * (control/core/node_conditions.c). */
const char *conditions_type(size_t index);

/* pod-resources counts as unavailable after so many failures in a row, or so long; so long processes and plugins. */
#define CONDITIONS_POD_FAILURES 3
#define CONDITIONS_POD_MS       15000
#define CONDITIONS_WRITE_MS     3000 /* of writes that fail: the next try may be better */

struct condition {
	char type[CONDITIONS_TYPE_SIZE];
	char reason[CONDITIONS_TYPE_SIZE];
	char message[CONDITIONS_MESSAGE_SIZE];
	struct wall since;
};
/* Sorted by type; `{0}` is "all is well". */
struct conditions VEC_BODY(struct condition);

/* Releases, and for each what it waits for: who holds its devices and what comes next, or why that
 * isn't known. */
struct conditions_releases {
	const struct release_entry *const *entries;
	const char *const *why;
	const bool *named; /* `why` names devices: those that are held, of all; NULL: none does */
	size_t count;
};

struct conditions_view {
	struct conditions_releases pending; /* somebody holds their devices, and not for long */
	struct conditions_releases stuck;   /* pending for too long */
	bool holds_devices; /* devices are bound for Kubernetes, or wait for that or their release */
	uint32_t pod_failures;  /* of pod-resources, in a row */
	int64_t pod_failing_ms; /* since the first of them */
	const char *pod_error;
	const char *
		process_error; /* of the look at pods' processes; NULL: none, or nothing waits for it */
	int64_t process_failing_ms; /* since the first of them */
	const char *
		plugin_error; /* of the resources that the kubelet can't be told of, each; NULL: none */
	int64_t plugin_failing_ms; /* since the first of them */
	const char *gpus_open;     /* wanted ones that pods' processes have open; NULL: none */
	const char *api_error;     /* of the API server; NULL: it answers, or wasn't asked */
	const char *api_hint;      /* what to do about it; NULL or "": nothing in particular */
	bool api_needed;           /* and a pod is to be deleted */
	bool api_partial;          /* it answers, but for a pod of its list that can't be read */
	const char *unknown_node;  /* our name, if the cluster has no Node of it; else NULL */
	const char
		*not_served;  /* our Node's name, while its kubelet isn't served by configuration */
	const char *exposure; /* other ways to the GPUs, and how to close them; NULL: none */
	const char *releases_marker; /* path, while the marker is there; else NULL */
	const char *releases_way;    /* who or what keeps the marker there; NULL or "": not known */
	const char *claims_error;    /* of prepared.json; NULL: readable, or not there */
	const struct error
		*write_error;      /* of the records on disk, and what to do; NULL: it goes well */
	bool withheld;             /* because of that no device is given to a pod either */
	const char *reports_error; /* those that waited are lost, why; NULL: not, or told anew */
	const char *holds_error;   /* NULL: readable */
	const char *spec_error;    /* NULL: readable */
	const char *gpus_error;    /* NULL: readable */
	const char *gpus_next;     /* what to do about it; NULL nothing to say */
	const char *gpu_strangers; /* GPUs without a UUID, by place and why; NULL: none */
	const char *health_marker; /* path, while the marker is there; else NULL */
	const char *kernel_log_error; /* NULL: followed, or need not be */
	const char *overbooked;       /* what is booked beyond the machine; NULL: nothing */
	const char
		*unoffered; /* why nothing is offered by the API that is asked for; NULL: it is */
	bool host_units;    /* false: another party configures the host */
};

/* `before` is the last answer, for `since`. `*ret_conditions` must be empty. */
void conditions_decide(const struct conditions_view *view, const struct conditions *before,
		       struct wall now, struct conditions *ret_conditions);
/* The same conditions, whatever their times? */
bool conditions_equal(const struct conditions *a, const struct conditions *b);
const struct condition *conditions_find(const struct conditions *conditions, const char *type);
