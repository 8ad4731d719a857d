#include "sim/sim_processes.h"

#include "sim/programs.h"
#include "sim/sim_faults.h"
#include "sim/sim_pods.h"
#include "sys/processes.h"

#include <errno.h>
#include <stdio.h>

#define LINGER_MS 60000  /* at most so long */
#define LATER_MS  120000 /* at most so long after it began to run does a pod open its devices */

static struct {
	struct sim_pod_processes running, lingering;
	uint64_t outlived;
} pods;

void sim_processes_power_cut(void)
{
	vec_clear(&pods.running);
	vec_clear(&pods.lingering);
}

void sim_processes_end(void)
{
	vec_deinit(&pods.running);
	vec_deinit(&pods.lingering);
}

uint64_t sim_processes_outlived(void)
{
	return pods.outlived;
}

/* A part of a GPU has its GPU's node: no process tells of it (REL-11). */
static bool is_whole(const char *device)
{
	return strcspn(device, "@") == sizeof "gpu_00000000-0000-4000-8000-000000000000" - 1;
}

static void add_pod(const json_t *pod, struct sim_pod_processes *list)
{
	const json_t *devices = json_object_get(pod, "devices");
	for (size_t i = 0; i < json_array_size(devices); i++) {
		const char *id =
			json_string_value(json_object_get(json_array_get(devices, i), "id"));
		if (!programs.in_pod && !is_whole(id))
			continue;
		struct sim_pod_process *process = vec_push(list);
		str_copy(process->pod, sizeof process->pod,
			 json_string_value(json_object_get(pod, "uid")));
		str_copy(process->device, sizeof process->device, id);
	}
}

static const struct sim_pod_process *find_in(const struct sim_pod_processes *list,
					     const struct sim_pod_process *process)
{
	vec_each (list, const struct sim_pod_process *one)
		if (str_equal(one->pod, process->pod) && str_equal(one->device, process->device))
			return one;
	return NULL;
}

/* Many a program computes at once, many a one sleeps first: until then only the kubelet tells who has
 * the devices. */
static void note_opening(struct sim_pod_process *process)
{
	const struct sim_pod_process *before = find_in(&pods.running, process);
	if (before)
		process->opens_ms = before->opens_ms;
	else if (sim_chance(3))
		process->opens_ms = sim.now_ms + (int64_t)sim_below(LATER_MS);
}

/* In a pod bcd can't see what nobody knows of. */
static bool lives_on(const struct sim_pod_process *process)
{
	return programs.in_pod ? sim_pods_lives_on(process->pod) : sim_below(2) == 0;
}

static bool is_listed(const json_t *list, const char *uid)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (str_equal(json_string_value(json_object_get(json_array_get(list, i), "uid")),
			      uid))
			return true;
	return false;
}

static bool is_over(const struct sim_pod_process *process)
{
	return programs.in_pod ? !sim_pods_lives_on(process->pod) : process->until_ms <= sim.now_ms;
}

void sim_processes_pods(const json_t *list)
{
	struct sim_pod_processes now = {0};
	for (size_t i = 0; i < json_array_size(list); i++)
		if (str_equal(json_string_value(json_object_get(json_array_get(list, i), "phase")),
			      "Running"))
			add_pod(json_array_get(list, i), &now);
	vec_each (&now, struct sim_pod_process * process)
		note_opening(process);
	vec_each (&pods.running, const struct sim_pod_process *process) {
		/* In the calm, too: that a pod goes is no trouble, and most go then. */
		if (find_in(&now, process) || (programs.in_pod && is_listed(list, process->pod)) ||
		    !lives_on(process))
			continue;
		struct sim_pod_process *left = vec_push(&pods.lingering);
		*left = *process;
		if (programs.in_pod)
			left->opens_ms = 0; /* it has it, whether or not it is open */
		else if (left->opens_ms > sim.now_ms)
			left->opens_ms = INT64_MAX;
		left->alone_ms = sim.now_ms;
		left->until_ms = sim.now_ms + 1 + (int64_t)sim_below(LINGER_MS);
		pods.outlived++;
		sim_trace("a process of pod %s lives on with %s", left->pod, left->device);
	}
	vec_deinit(&pods.running);
	pods.running = now;
}

const struct sim_pod_processes *sim_processes_lingering(void)
{
	for (size_t i = pods.lingering.count; i-- > 0;)
		if (is_over(&pods.lingering.items[i]))
			vec_remove(&pods.lingering, i);
	return &pods.lingering;
}

/* --- sys/processes.h --- */

void processes_deinit(struct processes *processes)
{
	vec_each (processes, struct process_open * open)
		free(open->cgroup);
	vec_deinit(processes);
}

/* The world's GPU n has the UUID 0000000n-… and the number n (programs.c). */
static uint32_t minor_of(const char *device)
{
	return (uint32_t)(device[strlen("gpu_0000000")] - '0');
}

static void add(struct processes *found, const char *cgroup, size_t device)
{
	struct process_open *open = vec_push(found);
	open->pid = (int32_t)found->count;
	open->device = device;
	open->cgroup = mem_strdup(cgroup);
}

static void find(const struct sim_pod_processes *list, processes_wanted_fn *wanted, void *arg,
		 const struct machine_device *devices, size_t count, struct processes *found)
{
	vec_each (list, const struct sim_pod_process *process) {
		char cgroup[160];
		snprintf(cgroup, sizeof cgroup, "0::/kubepods/burstable/pod%s/main\n",
			 process->pod);
		enum processes_interest interest = wanted(arg, cgroup, strlen(cgroup));
		if (interest == PROCESSES_LIFE)
			add(found, cgroup, PROCESSES_NO_DEVICE);
		for (size_t i = 0; i < count && interest != PROCESSES_NONE; i++)
			if (devices[i].minor == minor_of(process->device) &&
			    process->opens_ms <= sim.now_ms)
				add(found, cgroup, i);
	}
}

bool processes_find(const char *proc, processes_wanted_fn *wanted, void *arg,
		    const struct machine_device *devices, size_t count,
		    struct processes *ret_processes, struct error *error)
{
	int failed = sim_fault(SIM_LOOK, proc);
	if (failed) {
		errno = failed;
		return error_os(error, "open '%s'", proc);
	}
	if (sim_chance(20))
		return error_set(error, ERROR_FORBIDDEN, "open '%s/77/fd': not now", proc);
	find(&pods.running, wanted, arg, devices, count, ret_processes);
	find(sim_processes_lingering(), wanted, arg, devices, count, ret_processes);
	return true;
}
