#include "better-compute/up_child.h"
#include "sys/proc.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

struct up_child {
	struct loop *loop;
	char *name, *file, *log_path;
	char *argv[UP_CHILD_MAX_ARGS + 2];
	bool once, stopping;
	struct proc *proc; /* NULL when it isn't running */
	struct loop_timer *restart, *kill;
	struct mono started;
	int64_t next_restart_ms;
	up_child_end_fn *on_end;
	void *arg;
};

static void on_restart_due(void *arg);
static void on_kill_due(void *arg);

struct up_child *up_child_create(struct loop *loop, const struct up_child_options *options)
{
	struct up_child *child = mem_alloc(sizeof *child);

	*child = (struct up_child){
		.loop = loop,
		.name = mem_strdup(options->name),
		.file = mem_strdup(options->file),
		.log_path = mem_strdup(options->log_path),
		.once = options->once,
		.next_restart_ms = UP_CHILD_FIRST_MS,
		.on_end = options->on_end,
		.arg = options->arg,
	};
	child->argv[0] = mem_strdup(options->file);
	child->restart = loop_timer_create(loop, on_restart_due, child);
	child->kill = loop_timer_create(loop, on_kill_due, child);
	return child;
}

static void free_args(struct up_child *child)
{
	for (size_t i = 1; child->argv[i]; i++) {
		free(child->argv[i]);
		child->argv[i] = NULL;
	}
}

void up_child_destroy(struct up_child *child)
{
	if (!child)
		return;
	assert(!child->proc);
	loop_timer_destroy(child->restart);
	loop_timer_destroy(child->kill);
	free_args(child);
	free(child->argv[0]);
	free(child->name);
	free(child->file);
	free(child->log_path);
	free(child);
}

void up_child_set_args(struct up_child *child, const char *const *args)
{
	free_args(child);
	for (size_t i = 0; args[i]; i++) {
		assert(i < UP_CHILD_MAX_ARGS);
		child->argv[i + 1] = mem_strdup(args[i]);
	}
}

/* Ends soon: waits longer each time. Ran a while: starts at once. */
static int64_t restart_delay(struct up_child *child)
{
	int64_t delay = child->next_restart_ms;

	if (child->stopping || child->once)
		return -1;
	if (mono_until(child->started, loop_now(child->loop)) >= UP_CHILD_STEADY_MS)
		delay = UP_CHILD_FIRST_MS;
	child->next_restart_ms = delay * 2 < UP_CHILD_MOST_MS ? delay * 2 : UP_CHILD_MOST_MS;
	return delay;
}

static void on_ended(void *arg, int status)
{
	struct up_child *child = arg;
	int64_t delay;

	child->proc = NULL;
	loop_timer_stop(child->kill);
	delay = restart_delay(child);
	if (delay >= 0)
		loop_timer_start(child->restart, delay);
	child->on_end(child->arg, child, status, delay);
}

bool up_child_start(struct up_child *child, struct error *error)
{
	const struct proc_options options = {
		.file = child->file, .argv = child->argv, .output_path = child->log_path};

	assert(!child->proc);
	child->started = loop_now(child->loop);
	if (!proc_start(child->loop, &options, on_ended, child, &child->proc, error))
		return error_wrap(error, "start %s", child->name);
	return true;
}

static void on_restart_due(void *arg)
{
	struct up_child *child = arg;
	struct error ignored; /* such as too many processes: tried again later */

	if (child->stopping || child->proc || up_child_start(child, &ignored))
		return;
	loop_timer_start(child->restart, restart_delay(child));
}

static void on_kill_due(void *arg)
{
	up_child_kill(arg);
}

void up_child_stop(struct up_child *child)
{
	child->stopping = true;
	loop_timer_stop(child->restart);
	if (!child->proc)
		return;
	proc_signal(child->proc, SIGTERM);
	loop_timer_start(child->kill, UP_CHILD_STOP_MS);
}

void up_child_kill(struct up_child *child)
{
	if (child->proc)
		proc_signal(child->proc, SIGKILL);
}

bool up_child_running(const struct up_child *child)
{
	return child && child->proc;
}

const char *up_child_name(const struct up_child *child)
{
	return child->name;
}

pid_t up_child_pid(const struct up_child *child)
{
	return child->proc ? proc_pid(child->proc) : 0;
}

void up_child_describe(char out[UP_CHILD_DESCRIBE_SIZE], int status)
{
	if (WIFSIGNALED(status))
		snprintf(out, UP_CHILD_DESCRIBE_SIZE, "signal %d", WTERMSIG(status));
	else
		snprintf(out, UP_CHILD_DESCRIBE_SIZE, "exit status %d", WEXITSTATUS(status));
}
