/* sys/loop.h on simulated time. A loop belongs to the process that made it; the engine runs it. */
#include "sim/sim_loop.h"

#include "sim/sim.h"
#include "sim/sim_faults.h"
#include "sim/sim_fiber.h"
#include "sys/clock.h"

#include <stdio.h>

/* How long work on a worker usually takes. */
#define WORK_MS 3

struct loop_defer {
	struct loop *loop;
	loop_fn *fn;
	void *arg;
	bool armed;
};

struct loop {
	struct sim_process *process;
	VEC(struct loop_defer *) armed; /* in order; NULL where one was destroyed */
};

struct loop *loop_create(void)
{
	assert(sim.current && !sim.current->loop);
	struct loop *loop = mem_alloc(sizeof *loop);
	loop->process = sim.current;
	sim.current->loop = loop;
	return loop;
}

void loop_destroy(struct loop *loop)
{
	vec_deinit(&loop->armed);
	free(loop);
}

void loop_run(struct loop *loop UNUSED)
{
	abort(); /* the engine runs everything */
}

void loop_stop(struct loop *loop)
{
	/* A program that stops by itself ends its process. */
	loop->process->dying = SIM_KILLED;
}

struct mono loop_now(const struct loop *loop UNUSED)
{
	return clock_mono();
}

/* --- deferred functions --- */

struct loop_defer *loop_defer_create(struct loop *loop, loop_fn *fn, void *arg)
{
	struct loop_defer *defer = mem_alloc(sizeof *defer);
	*defer = (struct loop_defer){loop, fn, arg, false};
	return defer;
}

void loop_defer_arm(struct loop_defer *defer)
{
	if (defer->armed)
		return;
	defer->armed = true;
	*vec_push(&defer->loop->armed) = defer;
}

void loop_defer_destroy(struct loop_defer *defer)
{
	if (!defer)
		return;
	vec_each (&defer->loop->armed, struct loop_defer * *slot)
		if (*slot == defer)
			*slot = NULL;
	free(defer);
}

void sim_loop_run_deferred(struct loop *loop)
{
	for (size_t i = 0; i < loop->armed.count; i++) {
		struct loop_defer *defer = loop->armed.items[i];
		if (!defer)
			continue;
		defer->armed = false;
		loop->armed.items[i] = NULL;
		defer->fn(defer->arg);
	}
	vec_clear(&loop->armed);
}

/* --- timers --- */

struct loop_timer {
	struct loop *loop;
	loop_fn *fn;
	void *arg;
	struct sim_event *event;
};

struct loop_timer *loop_timer_create(struct loop *loop, loop_fn *fn, void *arg)
{
	struct loop_timer *timer = mem_alloc(sizeof *timer);
	*timer = (struct loop_timer){loop, fn, arg, NULL};
	return timer;
}

static void timer_fire(void *arg)
{
	struct loop_timer *timer = arg;
	timer->event = NULL;
	timer->fn(timer->arg);
}

void loop_timer_start(struct loop_timer *timer, int64_t delay_ms)
{
	loop_timer_stop(timer);
	timer->event = sim_schedule(timer->loop->process, delay_ms, timer_fire, timer);
}

void loop_timer_stop(struct loop_timer *timer)
{
	sim_cancel(TAKE(timer->event));
}

bool loop_timer_running(const struct loop_timer *timer)
{
	return timer->event != NULL;
}

void loop_timer_destroy(struct loop_timer *timer)
{
	if (!timer)
		return;
	loop_timer_stop(timer);
	free(timer);
}

/* --- wakers and work --- */

struct loop_waker {
	struct loop *loop;
	loop_fn *fn;
	void *arg;
	struct sim_event *event;
};

struct loop_waker *loop_waker_create(struct loop *loop, loop_fn *fn, void *arg)
{
	struct loop_waker *waker = mem_alloc(sizeof *waker);
	*waker = (struct loop_waker){loop, fn, arg, NULL};
	return waker;
}

static void waker_fire(void *arg)
{
	struct loop_waker *waker = arg;
	waker->event = NULL;
	waker->fn(waker->arg);
}

void loop_waker_wake(struct loop_waker *waker)
{
	if (!waker->event)
		waker->event = sim_schedule(waker->loop->process, 0, waker_fire, waker);
}

void loop_waker_destroy(struct loop_waker *waker)
{
	if (!waker)
		return;
	sim_cancel(waker->event);
	free(waker);
}

struct work {
	struct loop *loop;
	loop_fn *work, *done;
	void *arg;
	struct fiber *fiber; /* it has begun, and waits for the disk */
};

static void work_done(void *arg)
{
	struct work work = *(struct work *)arg;
	free(arg);
	work.done(work.arg);
}

static void work_more(void *arg);

static void went_on(struct work *work, bool ended)
{
	if (ended)
		work->fiber = NULL;
	sim_schedule(work->loop->process, ended ? sim_delay(1) : sim_hang_ms(),
		     ended ? work_done : work_more, work)
		->is_work = true;
}

static void work_more(void *arg)
{
	struct work *work = arg;
	sim_hang_ends();
	went_on(work, fiber_resume(work->fiber));
}

static void do_work(void *arg)
{
	struct work *work = arg;
	work->work(work->arg);
}

static void work_run(void *arg)
{
	struct work *work = arg;
	bool ended = true;
	if (sim_hang_may_come(work->loop->process))
		ended = fiber_start(do_work, work, &work->fiber);
	else
		do_work(work);
	went_on(work, ended);
}

void loop_work(struct loop *loop, loop_fn *run, loop_fn *done, void *arg)
{
	struct work *work = mem_alloc(sizeof *work);
	*work = (struct work){.loop = loop, .work = run, .done = done, .arg = arg};
	sim_schedule(loop->process, sim_delay(WORK_MS), work_run, work)->is_work = true;
}

/* --- what never happens here --- */

struct loop_signal *loop_signal_create(struct loop *loop UNUSED, int signal UNUSED,
				       loop_fn *fn UNUSED, void *arg UNUSED)
{
	return NULL;
}

void loop_signal_destroy(struct loop_signal *handle UNUSED)
{
}

struct loop_poll *loop_poll_create(struct loop *loop UNUSED, int fd UNUSED, int events UNUSED,
				   loop_poll_fn *fn UNUSED, void *arg UNUSED)
{
	abort(); /* no foreign descriptor has a place in the simulation */
}

void loop_poll_set(struct loop_poll *poll UNUSED, int events UNUSED)
{
	abort();
}

void loop_poll_destroy(struct loop_poll *poll UNUSED)
{
}
