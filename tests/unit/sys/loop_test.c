#include "sys/loop.h"

#include "base/buf.h"
#include "lib/test.h"
#include "sys/clock.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

/* What happened, one letter each. */
static struct buf trace;

static int make_loop(void **state)
{
	*state = loop_create();
	buf_clear(&trace);
	return 0;
}

static int drop_loop(void **state)
{
	loop_destroy(*state);
	buf_deinit(&trace);
	return 0;
}

static void note(void *arg)
{
	buf_add_text(&trace, arg);
}

static void test_nothing_to_wait_for_returns(void **state)
{
	loop_run(*state);
}

static void test_timers_fire_in_order_and_never_early(void **state)
{
	struct loop_timer *late = loop_timer_create(*state, note, "b");
	struct loop_timer *soon = loop_timer_create(*state, note, "a");
	struct mono start = clock_mono();

	loop_timer_start(late, 30);
	loop_timer_start(soon, 10);
	assert_true(loop_timer_running(late));
	loop_run(*state);
	assert_true(mono_until(start, clock_mono()) >= 30);
	assert_false(loop_timer_running(late));
	assert_string_equal(buf_text(&trace), "ab");
	loop_timer_destroy(late);
	loop_timer_destroy(soon);
}

static void test_a_stopped_or_destroyed_timer_is_silent(void **state)
{
	struct loop_timer *stopped = loop_timer_create(*state, note, "s");
	struct loop_timer *destroyed = loop_timer_create(*state, note, "d");

	loop_timer_start(stopped, 0);
	loop_timer_start(destroyed, 0);
	loop_timer_stop(stopped);
	loop_timer_destroy(destroyed);
	loop_run(*state);
	assert_string_equal(buf_text(&trace), "");
	loop_timer_destroy(stopped);
	loop_timer_destroy(NULL);
}

static struct loop_timer *suicidal;

static void destroy_itself(void *arg)
{
	note(arg);
	loop_timer_destroy(TAKE(suicidal));
}

static void test_a_handle_may_go_from_inside_its_callback(void **state)
{
	suicidal = loop_timer_create(*state, destroy_itself, "x");
	loop_timer_start(suicidal, 0);
	loop_run(*state);
	assert_string_equal(buf_text(&trace), "x");
}

static struct loop_defer *turn, *second;

static void arm_turn(void *arg)
{
	note(arg);
	loop_defer_arm(turn);
	loop_defer_arm(turn);
}

static void arm_second(void *arg)
{
	note(arg);
	loop_defer_arm(second);
}

static void test_the_turn_comes_once_after_all_callbacks(void **state)
{
	struct loop_timer *one = loop_timer_create(*state, arm_turn, "1");
	struct loop_timer *two = loop_timer_create(*state, arm_turn, "2");

	turn = loop_defer_create(*state, arm_second, "T");
	second = loop_defer_create(*state, note, "S");
	loop_timer_start(one, 0);
	loop_timer_start(two, 0);
	loop_run(*state);
	assert_string_equal(buf_text(&trace), "12TS");
	loop_timer_destroy(one);
	loop_timer_destroy(two);
	loop_defer_destroy(turn);
	loop_defer_destroy(second);
}

static void test_an_armed_function_alone_is_run(void **state)
{
	struct loop_defer *kept = loop_defer_create(*state, note, "k");
	struct loop_defer *dropped = loop_defer_create(*state, note, "d");
	struct loop_defer *last = loop_defer_create(*state, note, "l");

	loop_defer_arm(kept);
	loop_defer_arm(dropped);
	loop_defer_destroy(dropped);
	loop_defer_arm(last);
	loop_run(*state);
	assert_string_equal(buf_text(&trace), "kl");
	loop_defer_destroy(kept);
	loop_defer_destroy(last);
}

static void stop_in_turn(void *arg)
{
	note("t");
	loop_stop(arg);
}

static void stop_and_arm(void *arg)
{
	note("c");
	loop_stop(arg);
	loop_defer_arm(turn);
}

static void test_stop_returns_after_this_turn(void **state)
{
	struct loop_timer *now = loop_timer_create(*state, stop_and_arm, *state);
	struct loop_timer *never = loop_timer_create(*state, note, "n");

	turn = loop_defer_create(*state, note, "T");
	loop_timer_start(now, 0);
	loop_timer_start(never, 60000);
	loop_run(*state);
	assert_string_equal(buf_text(&trace), "cT");

	loop_defer_destroy(turn);
	turn = loop_defer_create(*state, stop_in_turn, *state);
	loop_defer_arm(turn);
	loop_run(*state); /* stopped from inside a deferred function, and runs again after a stop */
	assert_string_equal(buf_text(&trace), "cTt");
	loop_defer_destroy(turn);
	loop_timer_destroy(now);
	loop_timer_destroy(never);
}

static struct loop *current;
static struct mono before_sleep, after_sleep;

static void read_now_twice(void *arg UNUSED)
{
	before_sleep = loop_now(current);
	usleep(5000);
	after_sleep = loop_now(current);
}

static void test_time_is_read_once_a_wake_up(void **state)
{
	struct loop_timer *timer = loop_timer_create(*state, read_now_twice, NULL);
	struct mono first;

	current = *state;
	loop_timer_start(timer, 0);
	loop_run(*state);
	assert_int_equal(before_sleep.ms, after_sleep.ms);
	first = before_sleep;
	loop_timer_start(timer, 0);
	loop_run(*state);
	assert_true(mono_until(first, before_sleep) >= 5);
	loop_timer_destroy(timer);
}

static struct loop_waker *waker;

static void on_wake(void *arg)
{
	note("w");
	loop_waker_destroy(TAKE(waker));
	loop_stop(arg);
}

static void *wake_thrice(void *arg)
{
	for (int i = 0; i < 3; i++)
		loop_waker_wake(arg);
	return NULL;
}

static void test_wakes_from_a_thread_are_joined(void **state)
{
	pthread_t thread;

	waker = loop_waker_create(*state, on_wake, *state);
	assert_int_equal(pthread_create(&thread, NULL, wake_thrice, waker), 0);
	pthread_join(thread, NULL);
	loop_run(*state);
	assert_string_equal(buf_text(&trace), "w");
}

struct job {
	pthread_t thread;
	bool worked;
};

static void do_work(void *arg)
{
	struct job *job = arg;

	job->thread = pthread_self();
	job->worked = true;
}

static void work_done(void *arg)
{
	struct job *job = arg;

	assert_true(job->worked);
	assert_false(pthread_equal(job->thread, pthread_self()));
	note("d");
}

static void test_work_runs_elsewhere_and_is_answered_here(void **state)
{
	struct job job = {0};

	loop_work(*state, do_work, work_done, &job);
	loop_run(*state);
	assert_string_equal(buf_text(&trace), "d");
}

static void test_destroy_waits_for_work(void **state)
{
	struct job job = {0};

	loop_work(*state, do_work, work_done, &job);
	loop_destroy(*state);
	assert_string_equal(buf_text(&trace), "d");
	*state = loop_create();
}

static void on_signal(void *arg)
{
	note("s");
	loop_stop(arg);
}

static void test_a_signal_is_an_event(void **state)
{
	struct loop_signal *handle = loop_signal_create(*state, SIGUSR1, on_signal, *state);

	raise(SIGUSR1);
	loop_run(*state);
	assert_string_equal(buf_text(&trace), "s");
	loop_signal_destroy(handle);
}

static struct loop_poll *poll_handle;
static int pipe_ends[2];

static void on_ready(void *arg UNUSED, int events)
{
	char byte;

	assert_int_equal(events & LOOP_READABLE, LOOP_READABLE);
	assert_int_equal(read(pipe_ends[0], &byte, 1), 1);
	buf_add_char(&trace, byte);
	loop_poll_set(poll_handle, 0);
}

static void test_a_foreign_descriptor_is_watched(void **state)
{
	assert_int_equal(pipe(pipe_ends), 0);
	poll_handle = loop_poll_create(*state, pipe_ends[0], LOOP_READABLE, on_ready, NULL);
	assert_int_equal(write(pipe_ends[1], "ab", 2), 2);
	loop_run(*state); /* one event, then nothing is watched any more */
	assert_string_equal(buf_text(&trace), "a");
	loop_poll_set(poll_handle, LOOP_READABLE);
	loop_run(*state);
	assert_string_equal(buf_text(&trace), "ab");
	loop_poll_destroy(poll_handle);
	close(pipe_ends[0]); /* still the caller's */
	close(pipe_ends[1]);
}

#define LOOP_TEST(test) cmocka_unit_test_setup_teardown(test, make_loop, drop_loop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOOP_TEST(test_nothing_to_wait_for_returns),
		LOOP_TEST(test_timers_fire_in_order_and_never_early),
		LOOP_TEST(test_a_stopped_or_destroyed_timer_is_silent),
		LOOP_TEST(test_a_handle_may_go_from_inside_its_callback),
		LOOP_TEST(test_the_turn_comes_once_after_all_callbacks),
		LOOP_TEST(test_an_armed_function_alone_is_run),
		LOOP_TEST(test_stop_returns_after_this_turn),
		LOOP_TEST(test_time_is_read_once_a_wake_up),
		LOOP_TEST(test_wakes_from_a_thread_are_joined),
		LOOP_TEST(test_work_runs_elsewhere_and_is_answered_here),
		LOOP_TEST(test_destroy_waits_for_work),
		LOOP_TEST(test_a_signal_is_an_event),
		LOOP_TEST(test_a_foreign_descriptor_is_watched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
