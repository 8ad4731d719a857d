/*
 * serve/workers.h on the queue: a job runs after a while, and its `done` follows after another. Between
 * two of its transactions others may come, and anywhere its process may die (sim_store.c).
 */
#include "sim/sim_workers.h"
#include "control/control.h"
#include "serve/workers.h"
#include "sim/sim.h"
#include "sim/sim_fiber.h"
#include "store/store.h"

#define JOB_MS 4

struct job {
	struct workers *workers;
	workers_work_fn *work;
	workers_done_fn *done;
	void *context, *job;
	struct sim_event *event;
	struct fiber *fiber; /* it has begun, and stopped between two transactions */
};

struct workers {
	struct loop *loop;
	struct control control;
	VEC(struct job *) jobs;
	bool stopping;
};

/* Connections of workers that are gone, for the next ones: what was prepared on them is worth keeping,
 * and nothing else of theirs outlives a transaction. All of one store. */
static struct {
	struct store *store;
	VEC(struct store_connection *) list;
} spare;

void sim_workers_forget_store(void)
{
	vec_each (&spare.list, struct store_connection * *connection)
		store_disconnect(*connection);
	vec_deinit(&spare.list);
	spare.store = NULL;
}

static bool take_connection(struct store *store, struct store_connection **ret_connection,
			    struct error *error)
{
	assert(!spare.store || spare.store == store);
	spare.store = store;
	if (spare.list.count == 0)
		return store_connect(store, ret_connection, error);
	*ret_connection = spare.list.items[--spare.list.count];
	return true;
}

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

static void on_more(void *arg);

static void went_on(struct job *job, bool ended)
{
	if (ended)
		job->fiber = NULL;
	job->event = sim_schedule(sim.current, sim_delay(ended ? 1 : JOB_MS),
				  ended ? on_done : on_more, job);
}

static void on_more(void *arg)
{
	struct job *job = arg;
	went_on(job, fiber_resume(job->fiber));
}

static void do_job(void *arg)
{
	struct job *job = arg;
	job->work(job->job, &job->workers->control);
}

static void on_work(void *arg)
{
	struct job *job = arg;
	went_on(job, fiber_start(do_job, job, &job->fiber));
}

bool workers_create(struct loop *loop, struct store *store, const char *replica,
		    size_t threads UNUSED, struct workers **ret_workers, struct error *error)
{
	struct workers *workers = mem_alloc(sizeof *workers);
	workers->loop = loop;
	str_copy(workers->control.replica, sizeof workers->control.replica, replica);
	if (!take_connection(store, &workers->control.connection, error)) {
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
		/* What it still wants of the database fails. */
		while (job->fiber && !fiber_resume(job->fiber))
			;
		give_back(job);
	}
	*vec_push(&spare.list) = workers->control.connection;
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
