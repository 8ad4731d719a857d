#include "cli/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "lib/test.h"

#define NOTE "note: it is taken back\n"

static volatile sig_atomic_t ended; /* by what stood there before the guard */

static void end(int number)
{
	ended = number;
}

static int set_up(void **state)
{
	(void)state;
	ended = 0;
	signal(SIGINT, end);
	signal(SIGTERM, end);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	return 0;
}

/* However late: between the last step that may take long and the commit, as well.
 * proves: MAN-63 */
static void test_a_signal_before_the_commit_is_an_error(void **state)
{
	struct error error;

	(void)state;
	guard_begin(NOTE);
	expect_ok(guard_check(&error), &error);
	raise(SIGTERM);
	expect_error(guard_commit(&error), &error, ERROR_INVALID_STATE, "ended by SIGTERM");
	/* What is taken back now isn't cut off by the next one. */
	raise(SIGINT);
	assert_int_equal(ended, 0);
	guard_end();
	assert_int_equal(ended, 0);
	raise(SIGINT);
	assert_int_equal(ended, SIGINT);
}

/* proves: MAN-63 */
static void test_a_signal_after_the_commit_waits_for_the_end(void **state)
{
	struct error error;

	(void)state;
	guard_begin(NOTE);
	expect_ok(guard_commit(&error), &error);
	raise(SIGINT);
	assert_int_equal(ended, 0);
	expect_ok(guard_check(&error), &error);
	guard_end();
	assert_int_equal(ended, SIGINT);
}

/* Once, and errno is whoever's it was. */
static void test_the_first_is_answered(void **state)
{
	int ends[2], kept = dup(STDERR_FILENO);
	char said[2 * sizeof NOTE];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	assert_true(kept >= 0 && dup2(ends[1], STDERR_FILENO) >= 0);
	guard_begin(NOTE);
	errno = ENOENT;
	raise(SIGINT);
	raise(SIGTERM);
	assert_int_equal(errno, ENOENT);
	guard_end();
	assert_true(dup2(kept, STDERR_FILENO) >= 0);
	assert_int_equal(read(ends[0], said, sizeof said), strlen(NOTE));
	assert_memory_equal(said, NOTE, strlen(NOTE));
	close(kept);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_signal_before_the_commit_is_an_error, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_a_signal_after_the_commit_waits_for_the_end,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_first_is_answered, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
