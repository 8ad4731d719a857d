#include "serve/workers.h"

#include "control/control.h"
#include "store/store.h"

#include <pthread.h>
#include <signal.h>

struct job {
	struct job *next;
	workers_work_fn *work;
	workers_done_fn *done;
	void *context;
	void *job;
};

struct queue {
	struct job *first, **last;
};

struct worker {
	struct workers *workers;
	struct control control;
	pthread_t thread;
	bool started;
};

struct workers {
	struct worker *items;
	size_t count; /* connections: one a thread, or one for the loop */
	bool on_loop; /* no threads */
	size_t under_way;
	struct loop_waker *waker; /* threads: something is finished */
	struct loop_defer *defer; /* no threads: something is to be run */

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t work_came;
	struct queue waiting, finished;
	bool stopping;
};

static void push(struct queue *queue, struct job *job)
{
	job->next = NULL;
	*queue->last = job;
	queue->last = &job->next;
}

static struct job *pop(struct queue *queue)
{
	struct job *job = queue->first;

	if (!job)
		return NULL;
	queue->first = job->next;
	if (!queue->first)
		queue->last = &queue->first;
	return job;
}

static void give_back(struct workers *workers, struct job *job)
{
	workers->under_way--;
	job->done(job->context, job->job);
	free(job);
}

/* --- with threads --- */

static void *worker_main(void *arg)
{
	struct worker *worker = arg;
	struct workers *workers = worker->workers;

	pthread_mutex_lock(&workers->lock);
	for (;;) {
		struct job *job;

		while (!workers->stopping && !workers->waiting.first)
			pthread_cond_wait(&workers->work_came, &workers->lock);
		if (workers->stopping)
			break;
		job = pop(&workers->waiting);
		pthread_mutex_unlock(&workers->lock);
		job->work(job->job, &worker->control);
		pthread_mutex_lock(&workers->lock);
		push(&workers->finished, job);
		loop_waker_wake(workers->waker);
	}
	pthread_mutex_unlock(&workers->lock);
	return NULL;
}

static void on_finished(void *arg)
{
	struct workers *workers = arg;

	for (;;) {
		struct job *job;

		pthread_mutex_lock(&workers->lock);
		job = pop(&workers->finished);
		pthread_mutex_unlock(&workers->lock);
		if (!job)
			return;
		give_back(workers, job);
	}
}

/* --- without --- */

static void on_defer(void *arg)
{
	struct workers *workers = arg;
	struct job *job;

	while ((job = pop(&workers->waiting))) {
		job->work(job->job, &workers->items[0].control);
		give_back(workers, job);
	}
}

/* --- life --- */

static bool start(struct worker *worker, struct error *error)
{
	sigset_t all, before;
	int failed;

	/* Signals are the loop's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&worker->thread, NULL, worker_main, worker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed)
		return error_set(error, ERROR_INTERNAL, "start a worker thread: %s",
				 strerror(failed));
	worker->started = true;
	return true;
}

bool workers_create(struct loop *loop, struct store *store, const char *replica, size_t threads,
		    struct workers **ret_workers, struct error *error)
{
	struct workers *workers = mem_alloc(sizeof *workers);

	assert(threads <= WORKERS_MAX_THREADS);
	workers->on_loop = threads == 0;
	workers->count = threads ? threads : 1;
	workers->items = mem_alloc(workers->count * sizeof *workers->items);
	workers->waiting.last = &workers->waiting.first;
	workers->finished.last = &workers->finished.first;
	pthread_mutex_init(&workers->lock, NULL);
	pthread_cond_init(&workers->work_came, NULL);
	workers->waker = loop_waker_create(loop, on_finished, workers);
	workers->defer = loop_defer_create(loop, on_defer, workers);
	for (size_t i = 0; i < workers->count; i++) {
		struct worker *worker = &workers->items[i];

		worker->workers = workers;
		str_copy(worker->control.replica, sizeof worker->control.replica, replica);
		if (!store_connect(store, &worker->control.connection, error) ||
		    (!workers->on_loop && !start(worker, error))) {
			workers_destroy(workers);
			return error_wrap(error, "start the workers");
		}
	}
	*ret_workers = workers;
	return true;
}

void workers_destroy(struct workers *workers)
{
	struct job *job;

	if (!workers)
		return;
	pthread_mutex_lock(&workers->lock);
	workers->stopping = true;
	pthread_cond_broadcast(&workers->work_came);
	pthread_mutex_unlock(&workers->lock);
	for (size_t i = 0; i < workers->count; i++) {
		if (workers->items[i].started)
			pthread_join(workers->items[i].thread, NULL);
		store_disconnect(workers->items[i].control.connection);
	}
	while ((job = pop(&workers->finished)) || (job = pop(&workers->waiting)))
		give_back(workers, job);
	loop_waker_destroy(workers->waker);
	loop_defer_destroy(workers->defer);
	pthread_cond_destroy(&workers->work_came);
	pthread_mutex_destroy(&workers->lock);
	free(workers->items);
	free(workers);
}

bool workers_submit(struct workers *workers, workers_work_fn *work, workers_done_fn *done,
		    void *context, void *job)
{
	struct job *item;

	if (workers->stopping || workers->under_way == WORKERS_MAX_JOBS)
		return false;
	item = mem_alloc(sizeof *item);
	*item = (struct job){.work = work, .done = done, .context = context, .job = job};
	workers->under_way++;
	pthread_mutex_lock(&workers->lock);
	push(&workers->waiting, item);
	pthread_cond_signal(&workers->work_came);
	pthread_mutex_unlock(&workers->lock);
	if (workers->on_loop)
		loop_defer_arm(workers->defer);
	return true;
}
