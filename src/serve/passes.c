#include "serve/passes.h"

#include "control/control.h"
#include "serve/gateway.h"
#include "serve/workers.h"
#include "sys/log.h"

struct passes {
	struct loop *loop;
	struct workers *workers;
	struct gateway *gateway;
	struct loop_timer *poll, *tick;
	int64_t outbox_end, ticks, failed_ticks;
	bool polling, ticking;
	bool poll_soon, tick_soon;   /* the timer runs for what was asked: it isn't put off again */
	bool look_again, tick_again; /* asked for meanwhile */
};

struct job {
	bool ok;
	struct error error;
	int64_t after;
	struct control_outbox outbox;
};

static struct job *job_create(void)
{
	struct job *job = mem_alloc(sizeof *job);

	error_set(&job->error, ERROR_UNAVAILABLE, "the control plane is stopping");
	return job;
}

static void job_destroy(struct job *job)
{
	control_outbox_deinit(&job->outbox);
	free(job);
}

/* --- the outbox --- */

static void poll_work(void *arg, struct control *control)
{
	struct job *job = arg;

	job->ok = control_outbox_poll(control, job->after, &job->outbox, &job->error);
}

static void poll_done(void *context, void *arg)
{
	struct passes *passes = context;
	struct job *job = arg;
	bool full = job->outbox.count >= CONTROL_OUTBOX_MAX;

	passes->polling = false;
	if (job->ok) {
		passes->outbox_end = job->outbox.last;
		for (size_t i = 0; i < job->outbox.count; i++)
			gateway_push(passes->gateway, job->outbox.items[i].node,
				     job->outbox.items[i].generation);
	} else {
		log_failure(LOG_WARN, "outbox.poll", &job->error, "it is looked at again in 1 s");
	}
	loop_timer_start(passes->poll,
			 job->ok && (full || passes->look_again) ? 0 : PASSES_POLL_MS);
	passes->look_again = false;
	job_destroy(job);
}

static void on_poll(void *arg)
{
	struct passes *passes = arg;
	struct job *job = job_create();

	passes->poll_soon = false;
	job->after = passes->outbox_end;
	passes->polling = workers_submit(passes->workers, poll_work, poll_done, passes, job);
	if (!passes->polling) {
		job_destroy(job);
		loop_timer_start(passes->poll, PASSES_POLL_MS);
	}
}

void passes_look(struct passes *passes)
{
	if (passes->polling) {
		passes->look_again = true;
	} else if (!passes->poll_soon) {
		passes->poll_soon = true;
		loop_timer_start(passes->poll, PASSES_SOON_MS);
	}
}

/* --- the leader's pass --- */

static void tick_work(void *arg, struct control *control)
{
	struct job *job = arg;

	job->ok =
		control_tick(control, &job->error) && control_secrets_reseal(control, &job->error);
}

static void tick_done(void *context, void *arg)
{
	struct passes *passes = context;
	struct job *job = arg;

	passes->ticking = false;
	passes->ticks++;
	passes->failed_ticks += !job->ok;
	if (job->ok)
		passes_look(passes);
	else
		log_failure(LOG_WARN, "tick", &job->error, "the next pass tries again");
	loop_timer_start(passes->tick, passes->tick_again ? PASSES_SOON_MS : CONTROL_TICK_MS);
	passes->tick_again = false;
	job_destroy(job);
}

static void on_tick(void *arg)
{
	struct passes *passes = arg;
	struct job *job = job_create();

	passes->tick_soon = false;
	passes->ticking = workers_submit(passes->workers, tick_work, tick_done, passes, job);
	if (!passes->ticking) {
		job_destroy(job);
		loop_timer_start(passes->tick, CONTROL_TICK_MS);
	}
}

void passes_tick(struct passes *passes)
{
	if (passes->ticking) {
		passes->tick_again = true;
	} else if (!passes->tick_soon) {
		passes->tick_soon = true;
		loop_timer_start(passes->tick, PASSES_SOON_MS);
	}
}

/* --- life --- */

struct passes *passes_create(struct loop *loop, struct workers *workers, struct gateway *gateway,
			     int64_t outbox_end)
{
	struct passes *passes = mem_alloc(sizeof *passes);

	passes->loop = loop;
	passes->workers = workers;
	passes->gateway = gateway;
	passes->outbox_end = outbox_end;
	passes->poll = loop_timer_create(loop, on_poll, passes);
	passes->tick = loop_timer_create(loop, on_tick, passes);
	loop_timer_start(passes->poll, PASSES_POLL_MS);
	loop_timer_start(passes->tick, PASSES_SOON_MS);
	return passes;
}

struct passes_figures passes_figures(const struct passes *passes)
{
	return (struct passes_figures){passes->outbox_end, passes->ticks, passes->failed_ticks};
}

void passes_destroy(struct passes *passes)
{
	if (!passes)
		return;
	loop_timer_destroy(passes->poll);
	loop_timer_destroy(passes->tick);
	free(passes);
}
