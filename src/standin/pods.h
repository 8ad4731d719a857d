/*
 * pods: the pods that were asked for, which a real kubelet would have from the API server and from
 * the container runtime.
 *
 * Owns      ROOT/standin-pods.json. A pod that ran keeps running, and keeps what its container saw,
 *           while the stand-in is away.
 * Tests     tests/unit/standin/pods_test.c
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/vec.h"

#include <jansson.h>

#define PODS_MAX       1024
#define PODS_MAX_SIZE  ((size_t)16 << 20)
#define PODS_MAX_COUNT 1024 /* devices of one pod */

enum pod_phase {
	POD_PENDING, /* not admitted: too few devices */
	POD_WAITING, /* admitted; its container can't be made yet */
	POD_RUNNING,
	POD_FAILED, /* refused at admission, for good */
};
const char *pod_phase_name(enum pod_phase phase); /* as Kubernetes says it: "Pending" ... */

struct pod {
	char *namespace, *name, *uid;
	char *container;
	char *resource; /* "" for none */
	size_t count;
	json_t *env;   /* of its spec: an object of texts */
	bool bound;    /* skips the scheduler: the kubelet alone decides on it */
	bool stubborn; /* ignores SIGTERM, so deletion takes its whole grace period */
	bool deleting;
	int64_t grace_ms; /* when deleting */
	struct mono ends; /* when deleting: of this run of the stand-in */
	enum pod_phase phase;
	char *reason;  /* CamelCase; "" when it runs */
	char *message; /* for people; "" when it runs */
	json_t *seen;  /* what its container got: env, annotations, deviceNodes, mounts, cdiDevices;
			  NULL until it ran */
};

#define PODS_BOOT_SIZE 40

struct pods {
	VEC(struct pod) list;      /* in the order asked for */
	char boot[PODS_BOOT_SIZE]; /* the boot that their containers run in */
	bool unheard;              /* by the kubelet, whose API server tells it nothing yet */
};
void pods_deinit(struct pods *pods);

/* Does the kubelet count it as active: admitted, and not over? */
bool pod_active(const struct pod *pod);
void pod_set(struct pod *pod, enum pod_phase phase, const char *reason, const char *message);

struct pod *pods_find(const struct pods *pods, const char *namespace, const char *name);
struct pod *pods_by_uid(const struct pods *pods, const char *uid);

/* A pod from a request: namespace ("default"), name, container ("main"), resource and count (none),
 * env, bound, stubborn. CONFLICT when its name is taken. */
MUST_CHECK bool pods_add(struct pods *pods, json_t *request, const char *uid, struct pod **ret_pod,
			 struct error *error);
void pods_remove(struct pods *pods, struct pod *pod);

json_t *pod_to_json(const struct pod *pod); /* for answers; new reference */

void pods_format(const struct pods *pods, struct buf *out);
/* Into an empty list, which stays empty on failure. */
MUST_CHECK bool pods_parse(const void *data, size_t length, struct pods *pods, struct error *error);
