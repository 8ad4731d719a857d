/*
 * workers: control functions run off the loop, and come back to it.
 *
 * Owns      N threads, each with its own database connection, and the queue between them and the
 *           loop. With no threads jobs run on the loop, in the order given, from a deferred
 * function: that is the simulation. Bounds    WORKERS_MAX_JOBS are queued, running or waiting for
 * their `done`, all together; one more is refused, and whoever asked says "later" to its peer. Jobs
 * carry all they need and name others by id: whom a job was for may be gone when it is done.
 * Different jobs may run at the same time and end in any order. Threads   everything on the loop's
 * thread but `work`.
 */
#pragma once

#include "base/error.h"
#include "sys/loop.h"

struct control;
struct store;
struct workers;

#define WORKERS_MAX_JOBS    1024
#define WORKERS_MAX_THREADS 64

/* On a worker: may block, sees nothing but `job` and the control. */
typedef void workers_work_fn(void *job, struct control *control);
/* On the loop: takes the job over. Always called, exactly once, before workers_destroy() returns.
 */
typedef void workers_done_fn(void *context, void *job);

MUST_CHECK bool workers_create(struct loop *loop, struct store *store, const char *replica,
			       size_t threads, struct workers **ret_workers, struct error *error);
/* Waits for what runs. What only waits is done without having been run, so a job says by itself
 * that nothing happened: its result starts as a failure. */
void workers_destroy(struct workers *workers);

/* False, and nothing is taken, when WORKERS_MAX_JOBS are under way or the workers are stopping. */
MUST_CHECK bool workers_submit(struct workers *workers, workers_work_fn *work,
			       workers_done_fn *done, void *context, void *job);
