#include "node/podprocesses.h"

#include "sys/durable.h"
#include "sys/net.h"

#include <stdio.h>

#define DRIVER_FOLDER "driver/nvidia/gpus"
#define NVIDIA_MAJOR  195 /* the kernel's list of devices gives it to NVIDIA */

/* One GPU as the worker gets it. */
struct wanted {
	bool simulated;
	int32_t minor;                       /* by the inventory; -1 unknown */
	char host_path[INVENTORY_PATH_SIZE]; /* of a simulated one's node; "" it has none */
};

/* Outlives who asked: its worker can't be stopped. */
struct job {
	struct podprocesses *owner; /* NULL: nobody waits any more */
	char *proc, *dev;
	VEC(struct wanted) wanted;
	struct error
		unread; /* of the driver's list of GPUs; code NONE: it was read, or there is none */
	struct podprocesses_answer answer;
};

struct podprocesses {
	struct loop *loop;
	char *proc, *dev, *kubelet;
	podprocesses_fn *fn;
	void *arg;
	struct job *job;          /* under way; NULL: none that is waited for */
	struct job *hung;         /* a worker that didn't come back in time */
	struct loop_timer *timer; /* how long it is waited for */
	struct loop_defer *over;  /* an answer without a worker */
	struct podprocesses_answer at_once;
	bool answering;
};

void podprocesses_answer_deinit(struct podprocesses_answer *answer)
{
	vec_deinit(&answer->gpus);
	vec_deinit(&answer->holders);
	vec_deinit(&answer->pods);
}

const struct podprocesses_gpu *podprocesses_find_gpu(const struct podprocesses_answer *answer,
						     struct atom_uuid gpu)
{
	vec_each (&answer->gpus, const struct podprocesses_gpu *one)
		if (atom_uuid_equal(one->gpu, gpu))
			return one;
	return NULL;
}

const struct podprocesses_holder *podprocesses_find(const struct podprocesses_answer *answer,
						    struct atom_uuid gpu)
{
	vec_each (&answer->holders, const struct podprocesses_holder *holder)
		if (atom_uuid_equal(holder->gpu, gpu))
			return holder;
	return NULL;
}

const struct podprocesses_pod *podprocesses_find_pod(const struct podprocesses_answer *answer,
						     const char *uid)
{
	vec_each (&answer->pods, const struct podprocesses_pod *pod)
		if (str_equal(pod->uid, uid))
			return pod;
	return NULL;
}

void podprocesses_name(char out[PODPROCESSES_NAME_SIZE], const struct podprocesses_holder *holder)
{
	const struct podprocess *of = &holder->of;

	snprintf(out, PODPROCESSES_NAME_SIZE, "process %d (%s) of %s%s%s%s%s", (int)holder->pid,
		 holder->command, of->is_static ? "static " : "", *of->pod ? "pod " : "a pod",
		 of->pod, *of->container ? ", container " : "", of->container);
}

/* --- on the worker --- */

/* The driver knows which GPU has which number. */
static void read_minor(struct job *job, const char *name)
{
	CLEANUP(buf) struct buf path = {0}, text = {0};
	struct error error; /* a GPU that went: the inventory's word counts */
	struct atom_uuid gpu;
	int32_t minor;

	buf_printf(&path, "%s/" DRIVER_FOLDER "/%s/information", job->proc, name);
	if (!durable_read(buf_text(&path), PODPROCESS_MAX_TEXT, &text, &error)) {
		if (error.code != ERROR_NOT_FOUND)
			job->unread = error;
		return;
	}
	if (!podprocess_minor(buf_text(&text), text.length, &gpu, &minor))
		return;
	for (size_t i = 0; i < job->wanted.count; i++)
		if (!job->wanted.items[i].simulated &&
		    atom_uuid_equal(job->answer.gpus.items[i].gpu, gpu))
			job->wanted.items[i].minor = minor;
}

/* Nobody asks for those of simulated GPUs. */
static bool wants_minors(const struct job *job)
{
	vec_each (&job->wanted, const struct wanted *wanted)
		if (!wanted->simulated)
			return true;
	return false;
}

static void read_minors(struct job *job)
{
	CLEANUP(buf) struct buf path = {0};
	struct durable_names names = {0};
	struct error error;

	buf_printf(&path, "%s/" DRIVER_FOLDER, job->proc);
	if (!wants_minors(job))
		return;
	if (!durable_list(buf_text(&path), INVENTORY_MAX_GPUS, &names, &error)) {
		if (error.code != ERROR_NOT_FOUND) /* then no driver is loaded */
			job->unread = error;
		return;
	}
	for (size_t i = 0; i < names.count; i++)
		read_minor(job, names.names[i]);
	durable_names_deinit(&names);
}

static enum podprocesses_node find_number(const struct job *job, const struct wanted *wanted,
					  struct machine_device *ret_device)
{
	CLEANUP(buf) struct buf path = {0};

	if (wanted->simulated)
		return *wanted->host_path && machine_device(wanted->host_path, ret_device)
			       ? PODPROCESSES_LOOKED
			       : PODPROCESSES_NONE;
	if (wanted->minor < 0)
		return PODPROCESSES_UNKNOWN;
	buf_printf(&path, "%s/nvidia%d", job->dev, (int)wanted->minor);
	/* A container may have a node of this number though the host has none. */
	if (!machine_device(buf_text(&path), ret_device))
		*ret_device = (struct machine_device){'c', NVIDIA_MAJOR, (uint32_t)wanted->minor};
	return PODPROCESSES_LOOKED;
}

static struct podprocesses_pod *find_pod(struct job *job, const char *uid)
{
	vec_each (&job->answer.pods, struct podprocesses_pod * pod)
		if (str_equal(pod->uid, uid))
			return pod;
	return NULL;
}

static enum processes_interest interest_in(void *arg, const char *cgroup, size_t length)
{
	struct podprocess of;

	if (!podprocess_read(cgroup, length, &of))
		return PROCESSES_NONE;
	return find_pod(arg, of.pod) ? PROCESSES_LIFE : PROCESSES_DEVICES;
}

static void note_life(struct job *job, const struct process_open *process)
{
	struct podprocess of = {0};
	struct podprocesses_pod *pod;

	(void)podprocess_read(process->cgroup, strlen(process->cgroup), &of);
	pod = find_pod(job, of.pod);
	pod->of = of;
	pod->pid = process->pid;
	str_copy(pod->command, sizeof pod->command, process->command);
}

static void look(struct job *job, const struct machine_device *devices, const size_t *gpus,
		 size_t count)
{
	CLEANUP(processes) struct processes found = {0};

	if ((count == 0 && job->answer.pods.count == 0) ||
	    !processes_find(job->proc, interest_in, job, devices, count, &found,
			    &job->answer.error))
		return;
	job->answer.error = (struct error){0};
	vec_each (&found, const struct process_open *open) {
		struct podprocesses_holder *holder;

		if (open->device == PROCESSES_NO_DEVICE) {
			note_life(job, open);
			continue;
		}
		holder = vec_push(&job->answer.holders);
		holder->gpu = job->answer.gpus.items[gpus[open->device]].gpu;
		holder->pid = open->pid;
		str_copy(holder->command, sizeof holder->command, open->command);
		(void)podprocess_read(open->cgroup, strlen(open->cgroup), &holder->of);
	}
}

static void work(void *arg)
{
	struct job *job = arg;
	struct machine_device devices[INVENTORY_MAX_GPUS];
	size_t gpus[INVENTORY_MAX_GPUS], count = 0;
	bool unnumbered = false;

	read_minors(job);
	for (size_t i = 0; i < job->wanted.count; i++) {
		struct podprocesses_gpu *gpu = &job->answer.gpus.items[i];

		gpu->node = find_number(job, &job->wanted.items[i], &devices[count]);
		if (gpu->node == PODPROCESSES_LOOKED)
			gpus[count++] = i;
		unnumbered |= gpu->node == PODPROCESSES_UNKNOWN;
	}
	look(job, devices, gpus, count);
	/* People are to hear why it can't be told; without a number nothing is found anyway. */
	if (unnumbered && job->answer.error.code == ERROR_NONE)
		job->answer.error = job->unread;
}

/* --- on the loop --- */

static void job_destroy(struct job *job)
{
	podprocesses_answer_deinit(&job->answer);
	vec_deinit(&job->wanted);
	free(job->proc);
	free(job->dev);
	free(job);
}

static void done(void *arg)
{
	struct job *job = arg;
	struct podprocesses *processes = job->owner;

	if (processes && processes->job == job) {
		processes->job = NULL;
		loop_timer_stop(processes->timer);
		processes->fn(processes->arg, &job->answer);
	} else if (processes) {
		processes->hung = NULL;
	}
	job_destroy(job);
}

static void on_over(void *arg)
{
	struct podprocesses *processes = arg;

	if (!processes->answering)
		return;
	processes->answering = false;
	processes->fn(processes->arg, &processes->at_once);
	podprocesses_answer_deinit(&processes->at_once);
	processes->at_once = (struct podprocesses_answer){0};
}

static void copy_gpus(const struct podprocesses_gpus *from, struct podprocesses_gpus *to)
{
	vec_each (from, const struct podprocesses_gpu *gpu)
		*vec_push(to) = (struct podprocesses_gpu){.gpu = gpu->gpu};
}

static void copy_pods(const struct podprocesses_pods *from, struct podprocesses_pods *to)
{
	vec_each (from, const struct podprocesses_pod *pod)
		str_copy(vec_push(to)->uid, sizeof pod->uid, pod->uid);
}

/* An answer that needs no worker. */
static void answer_at_once(struct podprocesses *processes, const struct podprocesses_gpus *gpus,
			   const struct podprocesses_pods *pods, bool off,
			   const struct error *error)
{
	copy_gpus(gpus, &processes->at_once.gpus);
	copy_pods(pods, &processes->at_once.pods);
	processes->at_once.off = off;
	if (error)
		processes->at_once.error = *error;
	processes->answering = true;
	loop_defer_arm(processes->over);
}

static void on_timeout(void *arg)
{
	struct podprocesses *processes = arg;
	struct error error;

	processes->hung = TAKE(processes->job);
	error_set(&error, ERROR_UNAVAILABLE, "looking at the pods' processes hangs");
	answer_at_once(processes, &processes->hung->answer.gpus, &processes->hung->answer.pods,
		       false, &error);
}

struct podprocesses *podprocesses_create(struct loop *loop,
					 const struct podprocesses_options *options)
{
	struct podprocesses *processes = mem_alloc(sizeof *processes);

	processes->loop = loop;
	processes->proc = mem_strdup(options->proc);
	processes->dev = mem_strdup(options->dev);
	processes->kubelet = mem_strdup(options->kubelet);
	processes->fn = options->fn;
	processes->arg = options->arg;
	processes->timer = loop_timer_create(loop, on_timeout, processes);
	processes->over = loop_defer_create(loop, on_over, processes);
	return processes;
}

void podprocesses_destroy(struct podprocesses *processes)
{
	if (!processes)
		return;
	if (processes->job)
		processes->job->owner = NULL;
	if (processes->hung)
		processes->hung->owner = NULL;
	loop_timer_destroy(processes->timer);
	loop_defer_destroy(processes->over);
	podprocesses_answer_deinit(&processes->at_once);
	free(processes->proc);
	free(processes->dev);
	free(processes->kubelet);
	free(processes);
}

void podprocesses_gpus_add(struct podprocesses_gpus *gpus, struct atom_uuid gpu)
{
	vec_each (gpus, const struct podprocesses_gpu *one)
		if (atom_uuid_equal(one->gpu, gpu))
			return;
	if (gpus->count < INVENTORY_MAX_GPUS)
		vec_push(gpus)->gpu = gpu;
}

bool podprocesses_asking(const struct podprocesses *processes)
{
	return processes->job || processes->answering;
}

static void want(struct job *job, const struct inventory *inventory, struct atom_uuid gpu)
{
	const struct inventory_gpu *known = inventory_find_gpu(inventory, gpu);
	const struct atom whole = {.class = ATOM_GPU, .gpu = gpu};
	struct inventory_node nodes[INVENTORY_MAX_NODES];
	struct wanted *wanted = vec_push(&job->wanted);

	wanted->simulated = inventory->simulated;
	wanted->minor = known ? known->minor : -1;
	if (inventory->simulated && inventory_atom_nodes(inventory, &whole, nodes) > 0)
		str_copy(wanted->host_path, sizeof wanted->host_path, nodes[0].host_path);
}

void podprocesses_ask(struct podprocesses *processes, const struct podprocesses_gpus *gpus,
		      const struct podprocesses_pods *pods, const struct inventory *inventory)
{
	bool nothing = gpus->count == 0 && pods->count == 0;
	struct error error;
	struct job *job;
	int32_t pid;

	assert(!podprocesses_asking(processes));
	assert(gpus->count <= INVENTORY_MAX_GPUS);
	if (!net_unix_peer(processes->kubelet, &pid, &error)) {
		answer_at_once(processes, gpus, pods, false, nothing ? NULL : &error);
	} else if (pid == 0 || nothing) {
		processes->at_once.on = pid != 0;
		answer_at_once(processes, gpus, pods, pid == 0, NULL);
	} else if (processes->hung) {
		error_set(&error, ERROR_UNAVAILABLE, "looking at the pods' processes hangs");
		answer_at_once(processes, gpus, pods, false, &error);
	} else {
		job = mem_alloc(sizeof *job);
		job->owner = processes;
		job->answer.on = true;
		job->proc = mem_strdup(processes->proc);
		job->dev = mem_strdup(processes->dev);
		copy_gpus(gpus, &job->answer.gpus);
		copy_pods(pods, &job->answer.pods);
		vec_each (gpus, const struct podprocesses_gpu *gpu)
			want(job, inventory, gpu->gpu);
		processes->job = job;
		loop_timer_start(processes->timer, PODPROCESSES_MS);
		loop_work(processes->loop, work, done, job);
	}
}
