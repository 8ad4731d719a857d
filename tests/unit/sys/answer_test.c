#include "sys/answer.h"

#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Descriptors 0 to 2 are cmocka's too, so what changes them runs in a child. */
static void expect_child_passes(bool (*body)(void))
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		_exit(body() ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static bool closed_ones_stay_unusable(void)
{
	char byte = 'x';

	for (int fd = 0; fd <= 2; fd++)
		close(fd);
	answer_begin();
	return open("/dev/null", O_RDWR | O_CLOEXEC) > 2 && read(0, &byte, 1) < 0 &&
	       errno == EBADF && write(1, &byte, 1) < 0 && errno == EBADF &&
	       write(2, &byte, 1) < 0 && errno == EBADF;
}

static bool an_answer_to_nobody_fails(void)
{
	struct error error;

	close(1);
	answer_begin();
	printf("hello\n");
	return !answer_flush(&error) && strstr(error.what, "write to stdout");
}

static bool open_ones_are_kept(void)
{
	int ends[2];
	char byte = 'x';

	if (pipe2(ends, O_CLOEXEC) != 0 || dup2(ends[0], 0) != 0 || dup2(ends[1], 1) != 1)
		return false;
	answer_begin();
	return write(1, &byte, 1) == 1 && read(0, &byte, 1) == 1;
}

static void test_what_is_opened_next_is_no_standard_stream(void **state UNUSED)
{
	expect_child_passes(closed_ones_stay_unusable);
}

static void test_a_closed_stdout_is_told(void **state UNUSED)
{
	expect_child_passes(an_answer_to_nobody_fails);
}

static void test_open_streams_are_kept(void **state UNUSED)
{
	expect_child_passes(open_ones_are_kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_opened_next_is_no_standard_stream),
		cmocka_unit_test(test_a_closed_stdout_is_told),
		cmocka_unit_test(test_open_streams_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
