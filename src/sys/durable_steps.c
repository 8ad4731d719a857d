/* durable's lists of steps: built on the loop's thread, run on a worker, answered on the loop. */
#include "sys/durable.h"

static struct durable_step *add_step(struct durable_steps *steps, enum durable_kind kind,
				     const char *path)
{
	struct durable_step *step;

	if (steps->count == steps->capacity) {
		steps->capacity = steps->capacity ? steps->capacity * 2 : 8;
		steps->items = mem_resize(steps->items, steps->capacity, sizeof *steps->items);
	}
	step = &steps->items[steps->count++];
	*step = (struct durable_step){.kind = kind, .path = mem_strdup(path)};
	return step;
}

void durable_steps_replace(struct durable_steps *steps, const char *path, const void *data,
			   size_t length, mode_t mode)
{
	struct durable_step *step = add_step(steps, DURABLE_REPLACE, path);

	step->mode = mode;
	buf_add(&step->data, data, length);
}

void durable_steps_remove(struct durable_steps *steps, const char *path)
{
	add_step(steps, DURABLE_REMOVE, path);
}

void durable_steps_sync(struct durable_steps *steps, const char *folder)
{
	add_step(steps, DURABLE_SYNC, folder);
}

void durable_steps_folder(struct durable_steps *steps, const char *folder, mode_t mode)
{
	add_step(steps, DURABLE_FOLDER, folder)->mode = mode;
}

void durable_steps_deinit(struct durable_steps *steps)
{
	if (!steps)
		return;
	for (size_t i = 0; i < steps->count; i++) {
		free(steps->items[i].path);
		buf_deinit(&steps->items[i].data);
	}
	free(steps->items);
	*steps = (struct durable_steps){0};
}

struct durable_job {
	struct durable_steps steps;
	_Atomic size_t done_count; /* the worker's, and the loop looks at it */
	struct error error;
	durable_done_fn *done;
	void *arg;
	size_t seen; /* of it, at the last look; and since when */
	struct mono since;
};

static bool run_step(const struct durable_step *step, struct error *error)
{
	switch (step->kind) {
	case DURABLE_REPLACE:
		return durable_replace(step->path, step->data.data, step->data.length, step->mode,
				       error);
	case DURABLE_REMOVE:
		return durable_remove(step->path, error);
	case DURABLE_SYNC:
		return durable_sync_folder(step->path, error);
	case DURABLE_FOLDER:
		return durable_make_folder(step->path, step->mode, error) &&
		       durable_sync_folder(step->path, error);
	}
	abort();
}

static void run_steps(void *arg)
{
	struct durable_job *job = arg;

	while (job->done_count < job->steps.count &&
	       run_step(&job->steps.items[job->done_count], &job->error))
		job->done_count++;
}

static void steps_done(void *arg)
{
	struct durable_job *job = arg;
	bool all = job->done_count == job->steps.count;

	job->done(job->arg, job->done_count, all ? NULL : &job->error);
	durable_steps_deinit(&job->steps);
	free(job);
}

struct durable_job *durable_submit(struct loop *loop, struct durable_steps *steps,
				   durable_done_fn *done, void *arg)
{
	struct durable_job *job = mem_alloc(sizeof *job);

	*job = (struct durable_job){
		.steps = *steps, .done = done, .arg = arg, .since = loop_now(loop)};
	*steps = (struct durable_steps){0};
	loop_work(loop, run_steps, steps_done, job);
	return job;
}

/* --- a list that hangs --- */

bool durable_hangs(struct durable_job *job, struct mono now, struct error *ret_error)
{
	static const char *const doing[] = {
		[DURABLE_REPLACE] = "write",
		[DURABLE_REMOVE] = "remove",
		[DURABLE_SYNC] = "sync folder",
		[DURABLE_FOLDER] = "make or sync folder",
	};
	size_t done = job->done_count;

	if (done != job->seen) {
		job->seen = done;
		job->since = now;
	}
	if (done == job->steps.count || mono_until(job->since, now) < DURABLE_HANG_MS)
		return false;
	error_set(ret_error, ERROR_UNAVAILABLE, "%s '%s': it hangs, the disk doesn't answer",
		  doing[job->steps.items[done].kind], job->steps.items[done].path);
	error_hint(
		ret_error,
		"Look at the disk and the kernel's log: all goes on by itself when the disk does.");
	return true;
}
