/*
 * sim_processes: the processes of the machine's pods, as sys/processes.h finds them.
 *
 * One for each whole GPU of a running pod, which opens it at once or later. When a pod goes, its process may
 * live on for a while, as after a forced deletion: nobody but the process itself tells of it then, by the
 * device that it has open, or, if it never opened it, by its pod alone.
 */
#pragma once

#include "base/vec.h"
#include "sim/sim.h"

#include <jansson.h>

struct sim_pod_process {
	char pod[64];     /* its UID */
	char device[128]; /* as the kubelet knows it: "gpu_<uuid>@<allocation>" */
	int64_t opens_ms; /* it has its device open from then on; INT64_MAX: never */
	int64_t until_ms; /* 0: as long as its pod */
	int64_t alone_ms; /* since when its pod is gone */
};
struct sim_pod_processes VEC_BODY(struct sim_pod_process);

void sim_processes_end(void);
void sim_processes_power_cut(void);
/* The pods as the kubelet has them now. */
void sim_processes_pods(const json_t *pods);
/* Those whose pod is gone and that live now; valid until the next call of this file. */
const struct sim_pod_processes *sim_processes_lingering(void);
uint64_t sim_processes_outlived(void); /* how many there ever were */
