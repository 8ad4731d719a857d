/*
 * processes: which processes of this machine have given devices open or mapped.
 *
 * By        the device's number, whatever its node is called and wherever it lies: what stat says of
 *           /proc/<pid>/fd and of /proc/<pid>/map_files, so a descriptor that was closed counts for
 *           as long as its memory is mapped. Threads with descriptors of their own are looked at too.
 * Pods      Who is asked about as a whole is told of also when it has none of the devices.
 * Errors    A process that ends meanwhile is no error. One that may not be looked at is, and so is a
 *           look that takes longer than PROCESSES_MS, or finds more cgroups that are asked about than
 *           PROCESSES_LIFE_MAX: never "it has nothing".
 * Blocks    for as long as /proc does: for workers. Simulated by tests/sim/sim_processes.c.
 */
#pragma once

#include "base/error.h"
#include "base/vec.h"
#include "sys/machine.h"

#define PROCESSES_MS           10000
#define PROCESSES_COMMAND_SIZE 17
#define PROCESSES_DEVICE_MAX   64   /* of one device that are told; more are as good as these */
#define PROCESSES_LIFE_MAX     4096 /* of those that are asked about as a whole */

struct process_open {
	int32_t pid;
	char command[PROCESSES_COMMAND_SIZE];
	char *cgroup;  /* the text of /proc/<pid>/cgroup */
	size_t device; /* which of those asked for, or PROCESSES_NO_DEVICE */
};
#define PROCESSES_NO_DEVICE SIZE_MAX
/* One for each process and device, up to PROCESSES_DEVICE_MAX of each device; of those without one, one
 * for each cgroup. */
struct processes VEC_BODY(struct process_open);
void processes_deinit(struct processes *processes);

static inline void processes_cleanup(struct processes *processes)
{
	processes_deinit(processes);
}

enum processes_interest {
	PROCESSES_NONE,    /* it isn't looked at */
	PROCESSES_DEVICES, /* which of the devices has it? */
	PROCESSES_LIFE,    /* that, and that it is there */
};
/* What of a process of this cgroup is to be known? Called on the same thread. */
typedef enum processes_interest processes_wanted_fn(void *arg, const char *cgroup, size_t length);

/* `proc` is where procfs is. Processes of this one's own cgroup are left out: its children have
 * devices open on its behalf. `*ret_processes` must be empty. */
MUST_CHECK bool processes_find(const char *proc, processes_wanted_fn *wanted, void *arg,
			       const struct machine_device *devices, size_t count,
			       struct processes *ret_processes, struct error *error);
