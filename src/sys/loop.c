#include "sys/loop.h"

#include "sys/clock.h"
#include "sys/loop_uv.h"

#include <signal.h>

/*
 * Where the turn sits in libuv's round: timers, [prepare: deferred functions], sleep, events.
 * Events of a wake-up and the timers that follow them come before the next prepare, so a prepare
 * handle that runs the armed functions is exactly "after all callbacks, before sleeping".
 */
struct loop {
	uv_loop_t uv;
	uv_prepare_t prepare;
	struct loop_defer *armed, **armed_end;
	struct mono now;
	bool now_read, stopping;
	uint8_t read_buffer[LOOP_READ_SIZE];
};

struct loop_timer {
	uv_timer_t uv;
	loop_fn *fn;
	void *arg;
};

struct loop_defer {
	struct loop *loop;
	struct loop_defer *next;
	bool armed;
	loop_fn *fn;
	void *arg;
};

struct loop_waker {
	uv_async_t uv;
	loop_fn *fn;
	void *arg;
};

struct loop_signal {
	uv_signal_t uv;
	loop_fn *fn;
	void *arg;
};

struct loop_poll {
	uv_poll_t uv;
	loop_poll_fn *fn;
	void *arg;
};

struct loop_job {
	uv_work_t uv;
	loop_fn *work, *done;
	void *arg;
};

uv_loop_t *loop_uv(struct loop *loop)
{
	return &loop->uv;
}

uint8_t *loop_read_buffer(struct loop *loop)
{
	return loop->read_buffer;
}

void loop_must(int status)
{
	if (status < 0)
		abort();
}

static void free_handle(uv_handle_t *handle)
{
	free(handle->data);
}

/* Every handle's data is the struct that holds it; that goes once libuv has let go. */
static void close_handle(void *handle)
{
	uv_close(handle, free_handle);
}

/* --- the loop --- */

static void run_deferred(struct loop *loop)
{
	while (loop->armed) {
		struct loop_defer *defer = loop->armed;

		loop->armed = defer->next;
		if (!loop->armed)
			loop->armed_end = &loop->armed;
		defer->armed = false;
		defer->fn(defer->arg);
	}
	uv_unref((uv_handle_t *)&loop->prepare);
	loop->now_read = false; /* the next wake-up reads the clock anew */
}

static void before_sleep(uv_prepare_t *prepare)
{
	struct loop *loop = prepare->data;

	run_deferred(loop);
	if (loop->stopping)
		uv_stop(&loop->uv);
}

struct loop *loop_create(void)
{
	struct loop *loop = mem_alloc(sizeof *loop);

	/* libuv writes without MSG_NOSIGNAL: a peer that went away must be an error, not the end.
	 */
	signal(SIGPIPE, SIG_IGN);
	loop->armed_end = &loop->armed;
	loop_must(uv_loop_init(&loop->uv));
	loop_must(uv_prepare_init(&loop->uv, &loop->prepare));
	loop->prepare.data = loop;
	loop_must(uv_prepare_start(&loop->prepare, before_sleep));
	uv_unref((uv_handle_t *)&loop->prepare);
	return loop;
}

void loop_ignore_signals(void)
{
	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
}

static void assert_closing(uv_handle_t *handle, void *arg UNUSED)
{
	assert(uv_is_closing(handle) && "a handle outlives its loop");
}

void loop_destroy(struct loop *loop)
{
	if (!loop)
		return;
	assert(!loop->armed);
	uv_close((uv_handle_t *)&loop->prepare, NULL);
	uv_walk(&loop->uv, assert_closing, NULL);
	uv_run(&loop->uv, UV_RUN_DEFAULT); /* closes what is closing, waits for running work */
	loop_must(uv_loop_close(&loop->uv));
	free(loop);
}

void loop_run(struct loop *loop)
{
	uv_run(&loop->uv, UV_RUN_DEFAULT);
	run_deferred(loop); /* what the last look at the events has armed */
	loop->stopping = false;
}

void loop_stop(struct loop *loop)
{
	loop->stopping = true;
	uv_ref((uv_handle_t *)&loop->prepare); /* one more round, also when nothing else is left */
}

struct mono loop_now(const struct loop *loop)
{
	struct loop *own = (struct loop *)loop;

	if (!own->now_read) {
		own->now = clock_mono();
		own->now_read = true;
	}
	return own->now;
}

/* --- timers --- */

static void on_timer(uv_timer_t *uv)
{
	struct loop_timer *timer = uv->data;

	timer->fn(timer->arg);
}

struct loop_timer *loop_timer_create(struct loop *loop, loop_fn *fn, void *arg)
{
	struct loop_timer *timer = mem_alloc(sizeof *timer);

	timer->fn = fn;
	timer->arg = arg;
	timer->uv.data = timer;
	loop_must(uv_timer_init(&loop->uv, &timer->uv));
	return timer;
}

void loop_timer_start(struct loop_timer *timer, int64_t delay_ms)
{
	/* libuv counts from its own, older reading in whole milliseconds: never fire early. */
	uint64_t delay = delay_ms > 0 ? (uint64_t)delay_ms + 1 : 0;

	uv_update_time(timer->uv.loop);
	loop_must(uv_timer_start(&timer->uv, on_timer, delay, 0));
}

void loop_timer_stop(struct loop_timer *timer)
{
	uv_timer_stop(&timer->uv);
}

bool loop_timer_running(const struct loop_timer *timer)
{
	return uv_is_active((const uv_handle_t *)&timer->uv);
}

void loop_timer_destroy(struct loop_timer *timer)
{
	if (timer)
		close_handle(&timer->uv);
}

/* --- deferred functions --- */

struct loop_defer *loop_defer_create(struct loop *loop, loop_fn *fn, void *arg)
{
	struct loop_defer *defer = mem_alloc(sizeof *defer);

	*defer = (struct loop_defer){.loop = loop, .fn = fn, .arg = arg};
	return defer;
}

void loop_defer_arm(struct loop_defer *defer)
{
	struct loop *loop = defer->loop;

	if (defer->armed)
		return;
	defer->armed = true;
	defer->next = NULL;
	*loop->armed_end = defer;
	loop->armed_end = &defer->next;
	uv_ref((uv_handle_t *)&loop->prepare); /* an armed function is something to wait for */
}

static void disarm(struct loop_defer *defer)
{
	struct loop *loop = defer->loop;
	struct loop_defer **at = &loop->armed;

	while (*at != defer)
		at = &(*at)->next;
	*at = defer->next;
	if (!defer->next)
		loop->armed_end = at;
}

void loop_defer_destroy(struct loop_defer *defer)
{
	if (!defer)
		return;
	if (defer->armed)
		disarm(defer);
	free(defer);
}

/* --- waking from other threads --- */

static void on_wake(uv_async_t *uv)
{
	struct loop_waker *waker = uv->data;

	waker->fn(waker->arg);
}

struct loop_waker *loop_waker_create(struct loop *loop, loop_fn *fn, void *arg)
{
	struct loop_waker *waker = mem_alloc(sizeof *waker);

	waker->fn = fn;
	waker->arg = arg;
	waker->uv.data = waker;
	loop_must(uv_async_init(&loop->uv, &waker->uv, on_wake));
	return waker;
}

void loop_waker_wake(struct loop_waker *waker)
{
	loop_must(uv_async_send(&waker->uv));
}

void loop_waker_destroy(struct loop_waker *waker)
{
	if (waker)
		close_handle(&waker->uv);
}

/* --- work on other threads --- */

static void on_work(uv_work_t *uv)
{
	struct loop_job *job = uv->data;

	job->work(job->arg);
}

static void on_work_done(uv_work_t *uv, int status UNUSED)
{
	struct loop_job *job = uv->data;

	job->done(job->arg);
	free(job);
}

void loop_work(struct loop *loop, loop_fn *work, loop_fn *done, void *arg)
{
	struct loop_job *job = mem_alloc(sizeof *job);

	*job = (struct loop_job){.work = work, .done = done, .arg = arg};
	job->uv.data = job;
	loop_must(uv_queue_work(&loop->uv, &job->uv, on_work, on_work_done));
}

/* --- signals --- */

static void on_signal(uv_signal_t *uv, int signal UNUSED)
{
	struct loop_signal *handle = uv->data;

	handle->fn(handle->arg);
}

struct loop_signal *loop_signal_create(struct loop *loop, int signal, loop_fn *fn, void *arg)
{
	struct loop_signal *handle = mem_alloc(sizeof *handle);

	handle->fn = fn;
	handle->arg = arg;
	handle->uv.data = handle;
	loop_must(uv_signal_init(&loop->uv, &handle->uv));
	loop_must(uv_signal_start(&handle->uv, on_signal, signal));
	return handle;
}

void loop_signal_destroy(struct loop_signal *handle)
{
	if (handle)
		close_handle(&handle->uv);
}

/* --- foreign descriptors --- */

static_assert(LOOP_READABLE == UV_READABLE, "events are libuv's");
static_assert(LOOP_WRITABLE == UV_WRITABLE, "events are libuv's");

static void on_poll(uv_poll_t *uv, int status, int events)
{
	struct loop_poll *poll = uv->data;

	/* A broken descriptor: its owner finds out by using it. */
	poll->fn(poll->arg, status < 0 ? LOOP_READABLE | LOOP_WRITABLE : events);
}

struct loop_poll *loop_poll_create(struct loop *loop, int fd, int events, loop_poll_fn *fn,
				   void *arg)
{
	struct loop_poll *poll = mem_alloc(sizeof *poll);

	poll->fn = fn;
	poll->arg = arg;
	poll->uv.data = poll;
	loop_must(uv_poll_init(&loop->uv, &poll->uv, fd));
	loop_poll_set(poll, events);
	return poll;
}

void loop_poll_set(struct loop_poll *poll, int events)
{
	loop_must(events ? uv_poll_start(&poll->uv, events, on_poll) : uv_poll_stop(&poll->uv));
}

void loop_poll_destroy(struct loop_poll *poll)
{
	if (poll)
		close_handle(&poll->uv);
}
