#include "serve/passes.h"

#include "control/control.h"
#include "serve/gateway.h"
#include "serve/workers.h"
#include "sys/log.h"

struct passes {
	struct loop *loop;
	struct workers *workers;
	struct gateway *gateway;
	struct loop_timer *poll, *lead, *tick;
	int64_t outbox_end, ticks, failed_ticks;
	bool polling, leading, ticking; /* a job is under way */
	bool leads;
	bool poll_soon, tick_soon;   /* the timer runs for what was asked: it isn't put off again */
	bool look_again, tick_again; /* asked for meanwhile */
	bool draining;
	loop_fn *on_drained;
	void *drained_arg;
};

struct job {
	bool ok, leads;
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

/* --- the end: the lead is given up once no job of ours needs it --- */

static void resign_work(void *arg, struct control *control)
{
	struct job *job = arg;

	job->ok = control_resign(control, &job->error);
}

static void tell_drained(struct passes *passes)
{
	loop_fn *fn = passes->on_drained;

	passes->on_drained = NULL;
	if (fn)
		fn(passes->drained_arg);
}

static void resign_done(void *context, void *arg)
{
	struct job *job = arg;

	if (!job->ok)
		log_failure(LOG_WARN, "resign", &job->error, "another replica leads in moments");
	job_destroy(job);
	tell_drained(context);
}

static void resign_when_idle(struct passes *passes)
{
	struct job *job;

	if (!passes->draining || passes->leading || passes->ticking)
		return;
	job = job_create();
	if (workers_submit(passes->workers, resign_work, resign_done, passes, job))
		return;
	job_destroy(job);
	tell_drained(passes);
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
	if (passes->leads && !passes->draining)
		loop_timer_start(passes->tick,
				 passes->tick_again ? PASSES_SOON_MS : CONTROL_TICK_MS);
	passes->tick_again = false;
	job_destroy(job);
	resign_when_idle(passes);
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
	if (!passes->leads || passes->draining)
		return;
	if (passes->ticking) {
		passes->tick_again = true;
	} else if (!passes->tick_soon) {
		passes->tick_soon = true;
		loop_timer_start(passes->tick, PASSES_SOON_MS);
	}
}

/* --- who leads --- */

static void lead_work(void *arg, struct control *control)
{
	struct job *job = arg;

	job->ok = control_lead(control, &job->leads, &job->error);
}

static void lead_done(void *context, void *arg)
{
	struct passes *passes = context;
	struct job *job = arg;
	bool led = passes->leads;

	passes->leading = false;
	passes->leads = job->ok && job->leads;
	if (!job->ok)
		log_failure(LOG_WARN, "lead", &job->error, "it is asked for again in 1 s");
	job_destroy(job);
	if (passes->leads && !led) {
		passes_tick(passes);
	} else if (!passes->leads) {
		loop_timer_stop(passes->tick);
		passes->tick_soon = false;
	}
	if (!passes->draining)
		loop_timer_start(passes->lead, CONTROL_LEAD_MS);
	resign_when_idle(passes);
}

static void on_lead(void *arg)
{
	struct passes *passes = arg;
	struct job *job = job_create();

	passes->leading = workers_submit(passes->workers, lead_work, lead_done, passes, job);
	if (!passes->leading) {
		job_destroy(job);
		loop_timer_start(passes->lead, CONTROL_LEAD_MS);
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
	passes->lead = loop_timer_create(loop, on_lead, passes);
	passes->tick = loop_timer_create(loop, on_tick, passes);
	loop_timer_start(passes->poll, PASSES_POLL_MS);
	loop_timer_start(passes->lead, PASSES_SOON_MS);
	return passes;
}

struct passes_figures passes_figures(const struct passes *passes)
{
	return (struct passes_figures){passes->outbox_end, passes->ticks, passes->failed_ticks};
}

void passes_drain(struct passes *passes, loop_fn *fn, void *arg)
{
	passes->draining = true;
	passes->on_drained = fn;
	passes->drained_arg = arg;
	loop_timer_stop(passes->lead);
	loop_timer_stop(passes->tick);
	resign_when_idle(passes);
}

void passes_destroy(struct passes *passes)
{
	if (!passes)
		return;
	loop_timer_destroy(passes->poll);
	loop_timer_destroy(passes->lead);
	loop_timer_destroy(passes->tick);
	free(passes);
}
