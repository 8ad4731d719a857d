/*
 * serve/workers.h on the queue: a job runs after a while, and its `done` follows after another. In
 * between the process may die, with the commit made and nobody told, or not made at all.
 */
#include "control/control.h"
#include "serve/workers.h"
#include "sim/sim.h"
#include "store/store.h"

#define JOB_MS 4

struct job {
	struct workers *workers;
	workers_work_fn *work;
	workers_done_fn *done;
	void *context, *job;
	struct sim_event *event;
};

struct workers {
	struct loop *loop;
	struct control control;
	VEC(struct job *) jobs;
	bool stopping;
};

static void give_back(struct job *job)
{
	struct workers *workers = job->workers;
	for (size_t i = 0; i < workers->jobs.count; i++) {
		if (workers->jobs.items[i] != job)
			continue;
		vec_remove(&workers->jobs, i);
		break;
	}
	job->done(job->context, job->job);
	free(job);
}

static void on_done(void *arg)
{
	give_back(arg);
}

static void on_work(void *arg)
{
	struct job *job = arg;
	if (sim_crash_point("before a commit", "database"))
		return;
	job->work(job->job, &job->workers->control);
	job->event = sim_schedule(sim.current, sim_delay(1), on_done, job);
	/* Committed, and dies before anybody hears of it. */
	(void)sim_crash_point("after a commit", "database");
}

bool workers_create(struct loop *loop, struct store *store, const char *replica,
		    size_t threads UNUSED, struct workers **ret_workers, struct error *error)
{
	struct workers *workers = mem_alloc(sizeof *workers);
	workers->loop = loop;
	str_copy(workers->control.replica, sizeof workers->control.replica, replica);
	if (!store_connect(store, &workers->control.connection, error)) {
		free(workers);
		return false;
	}
	*ret_workers = workers;
	return true;
}

void workers_destroy(struct workers *workers)
{
	if (!workers)
		return;
	workers->stopping = true;
	while (workers->jobs.count > 0) {
		struct job *job = workers->jobs.items[0];
		sim_cancel(job->event);
		give_back(job);
	}
	store_disconnect(workers->control.connection);
	vec_deinit(&workers->jobs);
	free(workers);
}

bool workers_submit(struct workers *workers, workers_work_fn *work, workers_done_fn *done,
		    void *context, void *arg)
{
	if (workers->stopping || workers->jobs.count == WORKERS_MAX_JOBS)
		return false;
	struct job *job = mem_alloc(sizeof *job);
	*job = (struct job){
		.workers = workers, .work = work, .done = done, .context = context, .job = arg};
	*vec_push(&workers->jobs) = job;
	job->event = sim_schedule(sim.current, sim_delay(JOB_MS), on_work, job);
	return true;
}
