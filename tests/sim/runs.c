#include "sim/runs.h"

#include "base/vec.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* So many results may wait for one before them. */
#define MAX_AHEAD 4096

struct asked {
	struct world_options options;
	struct world_result result;
	bool is_done;
};

struct child {
	pid_t pid; /* 0: none */
	int fd;
	size_t number; /* of its run */
};

struct state {
	const struct runs *runs;
	struct child children[RUNS_MAX_JOBS];
	VEC(struct asked) asked; /* that were not told yet, in order */
	size_t told;             /* before the first of them */
	bool over;               /* nothing more is begun */
};

static void run_inline(const struct runs *runs)
{
	struct world_options options = {0};
	struct world_result result;

	do {
		if (!runs->next(runs->arg, &options))
			return;
		world_prepare(runs->cold);
		result = world_run(&options);
		world_end();
	} while (runs->done(runs->arg, &options, &result));
}

/* The child; it ends without freeing anything. */
static void run_here(const struct world_options *options, int fd)
{
	struct world_result result = world_run(options);
	ssize_t written = write(fd, &result, sizeof result);

	fflush(stdout);
	_exit(written == sizeof result ? 0 : 2);
}

static bool begin(struct state *state, struct child *child)
{
	struct asked asked = {0};
	int ends[2];

	if (!state->runs->next(state->runs->arg, &asked.options))
		return false;
	fflush(stdout);
	if (pipe(ends) < 0 || (child->pid = fork()) < 0) {
		perror("sim: begin a run");
		exit(2);
	}
	if (child->pid == 0) {
		close(ends[0]);
		run_here(&asked.options, ends[1]);
	}
	close(ends[1]);
	child->fd = ends[0];
	child->number = state->told + state->asked.count;
	*vec_push(&state->asked) = asked;
	return true;
}

static void reap(struct state *state, struct child *child)
{
	struct asked *asked = &state->asked.items[child->number - state->told];
	ssize_t got = read(child->fd, &asked->result, sizeof asked->result);
	int status = 0;

	close(child->fd);
	while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (got != sizeof asked->result) {
		asked->result = (struct world_result){.ok = false};
		snprintf(asked->result.why, sizeof asked->result.why, "the run itself died of %s",
			 WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "an exit");
	}
	asked->is_done = true;
	*child = (struct child){0};
}

static void tell(struct state *state)
{
	size_t count = 0;

	for (; count < state->asked.count && state->asked.items[count].is_done; count++) {
		const struct asked *asked = &state->asked.items[count];

		if (!state->over)
			state->over = !state->runs->done(state->runs->arg, &asked->options,
							 &asked->result);
	}
	for (size_t i = count; i < state->asked.count; i++)
		state->asked.items[i - count] = state->asked.items[i];
	state->asked.count -= count;
	state->told += count;
}

static size_t wait_for_some(struct state *state)
{
	struct pollfd polls[RUNS_MAX_JOBS];
	size_t running = 0;

	for (size_t i = 0; i < state->runs->jobs; i++) {
		const struct child *child = &state->children[i];

		polls[i] = (struct pollfd){child->pid ? child->fd : -1, POLLIN, 0};
		running += child->pid != 0;
	}
	if (running == 0 || poll(polls, state->runs->jobs, -1) < 0)
		return running;
	for (size_t i = 0; i < state->runs->jobs; i++)
		if (polls[i].revents)
			reap(state, &state->children[i]);
	return running;
}

void runs_go(const struct runs *runs)
{
	static struct state state;
	bool more = true;

	if (runs->jobs == 0) {
		run_inline(runs);
		return;
	}
	assert(runs->jobs <= RUNS_MAX_JOBS);
	state = (struct state){.runs = runs};
	world_prepare(runs->cold);
	do {
		for (size_t i = 0; i < runs->jobs && more; i++)
			if (!state.children[i].pid && state.asked.count < MAX_AHEAD)
				more = !state.over && begin(&state, &state.children[i]);
		tell(&state);
	} while (wait_for_some(&state) > 0);
	vec_deinit(&state.asked);
	world_end();
}
