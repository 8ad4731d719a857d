#include "gpu/smi.h"

#include "sys/net.h"
#include "sys/proc.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_ERR   65536 /* of stderr; what follows is dropped */
#define PATH_SIZE 512

extern char **environ;

enum step {
	STEP_REPORT,
	STEP_LIST,
	STEP_PLACES,
};

static char *const step_arguments[][4] = {
	[STEP_REPORT] = {"nvidia-smi", "-q", "-x"},
	[STEP_LIST] = {"nvidia-smi", "-L"},
	[STEP_PLACES] = {"nvidia-smi", "mig", "-lgi"},
};

/* Where drivers have it: distributions, their own installer, WSL, GKE, driver containers. */
static const struct {
	const char *root, *program, *libraries;
} usual_places[] = {
	{"", "/usr/bin/nvidia-smi", NULL},
	{"", "/usr/local/bin/nvidia-smi", NULL},
	{"", "/opt/bin/nvidia-smi", NULL},
	{"", "/usr/lib/wsl/lib/nvidia-smi", "/usr/lib/wsl/lib"},
	{"", "/run/current-system/sw/bin/nvidia-smi", NULL},
	{"", "/usr/local/nvidia/bin/nvidia-smi", "/usr/local/nvidia/lib64"},
	{"", "/home/kubernetes/bin/nvidia/bin/nvidia-smi", "/home/kubernetes/bin/nvidia/lib64"},
	{"/run/nvidia/driver", "/usr/bin/nvidia-smi", NULL},
};

struct smi_tool {
	struct loop *loop;
	struct smi_tool_options options; /* texts are ours */
	struct smi_tool_handlers handlers;
	void *arg;

	/* the command under way */
	enum step step;
	struct proc *proc; /* NULL: none, or it ended */
	struct net_conn *out, *err;
	struct buf out_text, err_text;
	int status; /* of one that ended */
	bool asked; /* a question is under way */
	bool told;  /* its on_failure() was called */

	/* the question under way */
	struct smi smi;
	int attempts;
	/* of the last question that came this far; the places belong to the list */
	char *list, *places;
	bool unplaced; /* the places were refused: they are asked for again next time */

	struct loop_defer *start;
	struct loop_timer *deadline;
	struct loop_timer *death; /* after the kill, or the end */
};

/* --- the end of a question --- */

static void tell(struct smi_tool *tool, const struct error *error, bool stuck)
{
	tool->told = true;
	tool->handlers.on_failure(tool->arg, error, stuck);
}

static void fail(struct smi_tool *tool, const struct error *error)
{
	tool->asked = false;
	if (!tool->told)
		tell(tool, error, false);
}

static void deliver(struct smi_tool *tool)
{
	CLEANUP(smi) struct smi smi = tool->smi;

	tool->smi = (struct smi){0};
	tool->asked = false;
	tool->handlers.on_reading(tool->arg, &smi.reading);
}

/* --- one step after the other --- */

static void start_step(struct smi_tool *tool, enum step step);

/* Instances that are made anew may get their old names back, in other places. */
static void forget_lists(struct smi_tool *tool)
{
	free(TAKE(tool->list));
	free(TAKE(tool->places));
}

static bool take_report(struct smi_tool *tool, const struct smi_said *said, struct error *error)
{
	smi_deinit(&tool->smi);
	tool->smi = (struct smi){0};
	if (!smi_read(said, &tool->smi, error))
		return false;
	if (tool->smi.migs.count > 0) {
		start_step(tool, STEP_LIST);
		return true;
	}
	forget_lists(tool);
	deliver(tool);
	return true;
}

static bool take_list(struct smi_tool *tool, const char *list, struct error *error)
{
	if (tool->places && str_equal(tool->list, list)) {
		smi_add_mig(&tool->smi, tool->list, tool->places);
		if (tool->unplaced)
			forget_lists(tool);
		deliver(tool);
		return true;
	}
	forget_lists(tool);
	tool->list = mem_strdup(list);
	if (++tool->attempts > SMI_TOOL_ATTEMPTS)
		return error_set(error, ERROR_UNAVAILABLE,
				 "MIG instances changed each time they were looked at");
	start_step(tool, STEP_PLACES);
	return true;
}

/* Whatever it says: a placement that isn't told is unknown. The report before may be older than the
 * list, so it is made again. */
static void take_places(struct smi_tool *tool, const struct smi_said *said)
{
	tool->places = mem_strdup(said->out);
	tool->unplaced = said->exit_status != 0;
	start_step(tool, STEP_REPORT);
}

static void take_output(struct smi_tool *tool)
{
	const struct smi_said said = {
		.out = buf_text(&tool->out_text),
		.err = buf_text(&tool->err_text),
		.out_length = tool->out_text.length,
		.exit_status = WIFEXITED(tool->status) ? WEXITSTATUS(tool->status) : -1,
	};
	struct error error;
	bool ok = true;

	switch (tool->step) {
	case STEP_REPORT:
		ok = take_report(tool, &said, &error);
		break;
	case STEP_LIST:
		ok = take_list(tool, said.out, &error);
		break;
	case STEP_PLACES:
		take_places(tool, &said);
		break;
	}
	if (!ok)
		fail(tool, &error);
}

/* --- the end of a command --- */

static void close_pipes(struct smi_tool *tool)
{
	if (tool->out)
		net_close(TAKE(tool->out));
	if (tool->err)
		net_close(TAKE(tool->err));
}

/* Nothing is left of it: what it said counts, if anybody still wants to know. */
static void check_gone(struct smi_tool *tool)
{
	if (tool->proc || tool->out || tool->err)
		return;
	loop_timer_stop(tool->deadline);
	loop_timer_stop(tool->death);
	if (tool->asked && !tool->told)
		take_output(tool);
	else
		tool->asked = false;
	if (!tool->asked) { /* a report is large, and the next one is seconds away */
		buf_deinit(&tool->out_text);
		buf_deinit(&tool->err_text);
	}
}

/* It is of no use any more. */
static void end(struct smi_tool *tool, const struct error *error)
{
	if (!tool->told)
		tell(tool, error, false);
	loop_timer_stop(tool->deadline);
	if (tool->proc)
		proc_signal(tool->proc, SIGKILL);
	loop_timer_start(tool->death, tool->options.death_ms);
	close_pipes(tool);
	check_gone(tool);
}

static void on_deadline(void *arg)
{
	struct smi_tool *tool = arg;
	struct error error;

	error_set(&error, ERROR_UNAVAILABLE, "nvidia-smi did not answer within %lld ms",
		  (long long)tool->options.deadline_ms);
	error_hint(&error, "The driver hangs: see the kernel's log. Without persistence mode "
			   "(nvidia-smi -pm 1) it may just be slow.");
	end(tool, &error);
}

/* The process outlived its kill, or something else holds its output open. */
static void on_death_late(void *arg)
{
	struct smi_tool *tool = arg;
	struct error error;

	if (!tool->proc) {
		close_pipes(tool);
		check_gone(tool);
		return;
	}
	error_set(&error, ERROR_UNAVAILABLE, "nvidia-smi's process %d hangs in the kernel",
		  (int)proc_pid(tool->proc));
	error_hint(&error, "It can't be killed: the machine must be started anew.");
	tell(tool, &error, true);
}

static void on_ended(void *arg, int status)
{
	struct smi_tool *tool = arg;

	tool->proc = NULL;
	tool->status = status;
	loop_timer_start(tool->death, tool->options.death_ms);
	check_gone(tool);
}

static void on_out(void *arg, const uint8_t *data, size_t length)
{
	struct smi_tool *tool = arg;
	struct error error;

	if (length <= SMI_MAX_BYTES - tool->out_text.length) {
		buf_add(&tool->out_text, data, length);
		return;
	}
	error_set(&error, ERROR_INVALID_INPUT, "nvidia-smi printed more than %d MiB",
		  (int)(SMI_MAX_BYTES >> 20));
	end(tool, &error);
}

static void on_err(void *arg, const uint8_t *data, size_t length)
{
	struct smi_tool *tool = arg;

	if (length > MAX_ERR - tool->err_text.length)
		length = MAX_ERR - tool->err_text.length;
	buf_add(&tool->err_text, data, length);
}

static void on_out_close(void *arg, const struct error *error UNUSED)
{
	struct smi_tool *tool = arg;

	tool->out = NULL;
	check_gone(tool);
}

static void on_err_close(void *arg, const struct error *error UNUSED)
{
	struct smi_tool *tool = arg;

	tool->err = NULL;
	check_gone(tool);
}

/* --- the start of a command --- */

struct place {
	char root[PATH_SIZE], program[PATH_SIZE];
	const char *libraries; /* NULL: where the linker looks anyway */
};

static bool is_there(const char *root, const char *program)
{
	char path[2 * PATH_SIZE];

	return snprintf(path, sizeof path, "%s%s", root, program) < (int)sizeof path &&
	       access(path, X_OK) == 0;
}

static bool find_program(const struct smi_tool *tool, struct place *place, struct error *error)
{
	const char *root = str_equal(tool->options.root, "/") ? "" : tool->options.root;

	*place = (struct place){.libraries = NULL};
	if (tool->options.program) {
		str_copy(place->root, PATH_SIZE, root);
		str_copy(place->program, PATH_SIZE, tool->options.program);
		if (is_there(root, place->program))
			return true;
		error_set(error, ERROR_NOT_FOUND, "there is no program '%s%s'", root,
			  place->program);
		return error_hint(error, "Set [gpu] nvidia_smi to where it is.");
	}
	for (size_t i = 0; i < ARRAY_SIZE(usual_places); i++) {
		snprintf(place->root, PATH_SIZE, "%s%s", root, usual_places[i].root);
		str_copy(place->program, PATH_SIZE, usual_places[i].program);
		place->libraries = usual_places[i].libraries;
		if (is_there(place->root, place->program))
			return true;
	}
	error_set(error, ERROR_NOT_FOUND, "there is no nvidia-smi below '%s'", tool->options.root);
	return error_hint(error, "Install NVIDIA's driver, or set [gpu] nvidia_smi.");
}

/* Ours, and where the driver's libraries are. The caller frees the array, and nothing in it. */
static char **environment(char *libraries)
{
	size_t count = 0, used = 0;
	char **env;

	while (environ[count])
		count++;
	env = mem_alloc((count + 2) * sizeof *env);
	for (size_t i = 0; i < count; i++)
		if (!*libraries || !str_starts(environ[i], "LD_LIBRARY_PATH="))
			env[used++] = environ[i];
	if (*libraries)
		env[used] = libraries;
	return env;
}

static bool start_command(struct smi_tool *tool, struct error *error)
{
	static const struct net_handlers out_handlers = {on_out, NULL, on_out_close};
	static const struct net_handlers err_handlers = {on_err, NULL, on_err_close};
	char libraries[PATH_SIZE] = "";
	struct place place;
	struct proc_options options = {
		.argv = step_arguments[tool->step],
		.ret_stdout = &tool->out,
		.ret_stderr = &tool->err,
	};
	char **env;
	bool ok;

	if (!find_program(tool, &place, error))
		return false;
	if (place.libraries)
		snprintf(libraries, sizeof libraries, "LD_LIBRARY_PATH=%s", place.libraries);
	options.file = place.program;
	options.root = *place.root ? place.root : NULL;
	options.env = env = environment(libraries);
	ok = proc_start(tool->loop, &options, on_ended, tool, &tool->proc, error);
	free(env);
	if (!ok)
		return false;
	net_start(tool->out, &out_handlers, tool);
	net_start(tool->err, &err_handlers, tool);
	loop_timer_start(tool->deadline, tool->options.deadline_ms);
	return true;
}

static void start_step(struct smi_tool *tool, enum step step)
{
	struct error error;

	tool->step = step;
	buf_clear(&tool->out_text);
	buf_clear(&tool->err_text);
	if (!start_command(tool, &error))
		fail(tool, &error);
}

static void on_start(void *arg)
{
	struct smi_tool *tool = arg;

	tool->told = false;
	tool->attempts = 0;
	start_step(tool, STEP_REPORT);
}

void smi_tool_ask(struct smi_tool *tool)
{
	if (tool->asked || tool->proc || tool->out || tool->err)
		return;
	tool->asked = true;
	loop_defer_arm(tool->start);
}

/* --- its life --- */

struct smi_tool *smi_tool_create(struct loop *loop, const struct smi_tool_options *options,
				 const struct smi_tool_handlers *handlers, void *arg)
{
	struct smi_tool *tool = mem_alloc(sizeof *tool);

	tool->loop = loop;
	tool->options = (struct smi_tool_options){
		.program = mem_strdup(options->program),
		.root = mem_strdup(options->root ? options->root : "/"),
		.deadline_ms = options->deadline_ms ? options->deadline_ms : SMI_TOOL_DEADLINE_MS,
		.death_ms = options->death_ms ? options->death_ms : SMI_TOOL_DEATH_MS,
	};
	tool->handlers = *handlers;
	tool->arg = arg;
	tool->start = loop_defer_create(loop, on_start, tool);
	tool->deadline = loop_timer_create(loop, on_deadline, tool);
	tool->death = loop_timer_create(loop, on_death_late, tool);
	return tool;
}

void smi_tool_destroy(struct smi_tool *tool)
{
	if (!tool)
		return;
	proc_drop(tool->proc);
	close_pipes(tool);
	loop_defer_destroy(tool->start);
	loop_timer_destroy(tool->deadline);
	loop_timer_destroy(tool->death);
	smi_deinit(&tool->smi);
	buf_deinit(&tool->out_text);
	buf_deinit(&tool->err_text);
	forget_lists(tool);
	free((char *)tool->options.program);
	free((char *)tool->options.root);
	free(tool);
}

pid_t smi_tool_pid(const struct smi_tool *tool)
{
	return tool->proc ? proc_pid(tool->proc) : 0;
}
