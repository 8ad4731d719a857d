/* What belief.h writes behind: a disk that doesn't answer. The rest is source_test.c's. */
#include "gpu/belief.h"

#include "lib/folder.h"
#include "lib/hang.h"
#include "sys/durable.h"

#include <time.h>

static _Atomic int64_t leapt_s;

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *time)
{
	int done = (int)syscall(SYS_clock_gettime, id, time);

	time->tv_sec += leapt_s;
	return done;
}

/* The loop reads its clock, and whatever is over is told. */
static void turn(struct loop *loop)
{
	struct loop_timer *timer = loop_timer_create(loop, (loop_fn *)loop_stop, loop);

	loop_timer_start(timer, 20);
	loop_run(loop);
	loop_timer_destroy(timer);
}

/* Else its error would be told only by one that is answered. */
static void test_a_record_that_hangs_is_an_error(void **state)
{
	struct loop *loop = loop_create();
	CLEANUP(belief) struct belief belief = {0};
	struct belief_file *file = belief_file_create(loop, *state, &belief);

	hang_at = "/.tmp-";
	belief.record++;
	(void)belief_file_look(file);
	while (hanging == 0)
		usleep(1000);
	assert_null(belief_file_error(file));
	leapt_s += DURABLE_HANG_MS / 1000 + 1;
	turn(loop);
	(void)belief_file_look(file);
	assert_non_null(belief_file_error(file));
	assert_non_null(strstr(belief_file_error(file)->what, BELIEF_FILE "': it hangs"));
	hang_at = NULL;
	while (hanging > 0)
		usleep(1000);
	while (belief_file_error(file))
		turn(loop);
	belief_file_destroy(file);
	loop_run(loop);
	loop_destroy(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {IN_FOLDER(test_a_record_that_hangs_is_an_error)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
