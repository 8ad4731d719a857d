/*
 * podprocesses: which pod's process has a whole GPU's device node open, and which pods have processes.
 *
 * Why       pod-resources says nothing of static pods in time, of pods that a kubelet forgot, and of
 *           processes that outlive their pod (REL-10..12). One that outlives a pod which had a
 *           device may have it without an open node: it has the pod's mounts and environment.
 * Off       when the kubelet's processes can't be seen from here, as in a pod without the host's PID
 *           namespace (REL-13).
 * Doubt     What can't be looked at is an error, what has no known number is said to be so; neither
 *           is "nobody" (REL-14). Where a number isn't known because the driver's list can't be read, that is the error.
 * Threads   the loop's; procfs and the driver are asked on a worker, which may hang: nothing waits
 *           for it longer than PODPROCESSES_MS, and no second one is started beside it.
 */
#pragma once

#include "base/error.h"
#include "base/vec.h"
#include "gpu/core/inventory.h"
#include "node/core/podprocess.h"
#include "sys/loop.h"
#include "sys/processes.h"

#define PODPROCESSES_MS 12000

enum podprocesses_node {
	PODPROCESSES_UNKNOWN, /* its number can't be told: anybody may have it open */
	PODPROCESSES_NONE,    /* a simulated GPU without a device node */
	PODPROCESSES_LOOKED,
};

struct podprocesses_gpu {
	struct atom_uuid gpu;
	enum podprocesses_node node; /* the answer's */
};
struct podprocesses_gpus VEC_BODY(struct podprocesses_gpu);
/* Once each, up to INVENTORY_MAX_GPUS: what isn't looked at counts as held. */
void podprocesses_gpus_add(struct podprocesses_gpus *gpus, struct atom_uuid gpu);

struct podprocesses_holder {
	struct atom_uuid gpu;
	int32_t pid;
	char command[PROCESSES_COMMAND_SIZE];
	struct podprocess of;
};

/* A pod that is asked about by its UID. */
struct podprocesses_pod {
	char uid[PODPROCESS_UID_SIZE];
	int32_t pid; /* the answer's: of a process of it; 0: there is none */
	char command[PROCESSES_COMMAND_SIZE];
	struct podprocess of;
};
struct podprocesses_pods VEC_BODY(struct podprocesses_pod);

/* `{0}` is "nothing was asked". */
struct podprocesses_answer {
	bool off;           /* the kubelet's process can't be seen from here */
	bool on;            /* it can; neither: that isn't known */
	struct error error; /* code NONE: `holders` is whole */
	struct podprocesses_gpus gpus;
	VEC(struct podprocesses_holder) holders;
	struct podprocesses_pods pods;
};
void podprocesses_answer_deinit(struct podprocesses_answer *answer);
const struct podprocesses_gpu *podprocesses_find_gpu(const struct podprocesses_answer *answer,
						     struct atom_uuid gpu);
/* The first process that has it open, or NULL. */
const struct podprocesses_holder *podprocesses_find(const struct podprocesses_answer *answer,
						    struct atom_uuid gpu);
/* What was found of the pod; NULL: it wasn't asked about. */
const struct podprocesses_pod *podprocesses_find_pod(const struct podprocesses_answer *answer,
						     const char *uid);
/* "process 123 (python) of pod UID (container)" */
#define PODPROCESSES_NAME_SIZE 160
void podprocesses_name(char out[PODPROCESSES_NAME_SIZE], const struct podprocesses_holder *holder);

struct podprocesses;
/* The answer may be taken over by emptying it. Called from the loop; the question is over then. */
typedef void podprocesses_fn(void *arg, struct podprocesses_answer *answer);

struct podprocesses_options {
	const char *proc, *dev; /* where they are on this host */
	const char *kubelet;    /* a socket that the kubelet listens on */
	podprocesses_fn *fn;
	void *arg;
};
struct podprocesses *podprocesses_create(struct loop *loop,
					 const struct podprocesses_options *options);
void podprocesses_destroy(struct podprocesses *processes); /* fn isn't called any more */
bool podprocesses_asking(const struct podprocesses *processes);
/* One question at a time. `gpus` and `pods` are copied; what is known of the GPUs is in the inventory. */
void podprocesses_ask(struct podprocesses *processes, const struct podprocesses_gpus *gpus,
		      const struct podprocesses_pods *pods, const struct inventory *inventory);
