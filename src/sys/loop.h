/*
 * loop: one thread, one event loop; the only place where a program waits.
 *
 * Every callback runs on the thread that calls loop_run(). Callbacks note facts and arm a deferred
 * function; the deferred functions run once, after all callbacks of this wake-up and before the
 * loop sleeps again: that is the turn. Time is read once a wake-up (loop_now).
 *
 * Handles are made with _create and belong to the caller; _destroy is legal at any moment, also
 * from inside the handle's own callback, and nothing of it is called afterwards. _destroy takes NULL.
 * Threads   everything on the loop's thread, except loop_waker_wake() and what loop_work() runs.
 * Simulated by tests/sim/sim_loop.c (same header, simulated time).
 */
#pragma once

#include "base/base.h"
#include "base/error.h"

struct loop;
typedef void loop_fn(void *arg);

struct loop *loop_create(void);
void loop_destroy(struct loop *loop); /* after loop_run() returned; all handles are gone by then */
void loop_run(struct loop *loop);     /* until loop_stop(), or nothing is left to wait for */
void loop_stop(struct loop *loop);    /* returns from loop_run() after this turn */
struct mono loop_now(const struct loop *loop); /* boot-time clock, as read at this wake-up */

/* Timers fire once; start again for more. Starting a running timer moves it. */
struct loop_timer *loop_timer_create(struct loop *loop, loop_fn *fn, void *arg);
void loop_timer_start(struct loop_timer *timer, int64_t delay_ms);
void loop_timer_stop(struct loop_timer *timer);
bool loop_timer_running(const struct loop_timer *timer);
void loop_timer_destroy(struct loop_timer *timer);

/* Deferred functions: armed any number of times, called once before the loop sleeps, in the order
 * armed. One armed from inside a deferred function runs in the same round. */
struct loop_defer *loop_defer_create(struct loop *loop, loop_fn *fn, void *arg);
void loop_defer_arm(struct loop_defer *defer);
void loop_defer_destroy(struct loop_defer *defer);

/* Wakes the loop from another thread: fn runs on the loop's thread, once for several wakes. */
struct loop_waker *loop_waker_create(struct loop *loop, loop_fn *fn, void *arg);
void loop_waker_wake(struct loop_waker *waker); /* any thread */
void loop_waker_destroy(struct loop_waker *waker);

/* Blocking work on a worker thread; `done` follows on the loop's thread, always, exactly once. */
void loop_work(struct loop *loop, loop_fn *work, loop_fn *done, void *arg);

/* For daemons, as early as there is one: SIGHUP, SIGUSR1 and SIGUSR2 don't end it. At these, others'
 * daemons read files anew or say something: whoever sends one means no harm. One that means something
 * here has its loop_signal. (SIGPIPE is ignored wherever there is a loop.) */
void loop_ignore_signals(void);

/* A signal as an event. */
struct loop_signal *loop_signal_create(struct loop *loop, int signal, loop_fn *fn, void *arg);
void loop_signal_destroy(struct loop_signal *handle);

/* Readiness of a foreign library's descriptor; the descriptor stays the caller's. */
#define LOOP_READABLE 1
#define LOOP_WRITABLE 2
typedef void loop_poll_fn(void *arg, int events);
struct loop_poll *loop_poll_create(struct loop *loop, int fd, int events, loop_poll_fn *fn,
				   void *arg);
void loop_poll_set(struct loop_poll *poll, int events);
void loop_poll_destroy(struct loop_poll *poll);
