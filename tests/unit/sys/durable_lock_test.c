#include "sys/durable.h"

#include "lib/folder.h"
#include "lib/test.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_a_lock_is_exclusive_until_it_goes(void **state)
{
	const char *path = folder_path(state, "lock");
	struct durable_lock *lock, *other = NULL;
	char pid[32];
	struct error error;

	expect_ok(durable_lock_take(path, &lock, &error), &error);
	expect_error(durable_lock_take(path, &other, &error), &error, ERROR_CONFLICT,
		     "somebody else holds it");
	snprintf(pid, sizeof pid, "Process %d ", (int)getpid());
	assert_non_null(strstr(error.hint, pid));
	assert_null(other);
	durable_lock_destroy(lock);
	expect_ok(durable_lock_take(path, &lock, &error), &error);
	durable_lock_destroy(lock);
	durable_lock_destroy(NULL);
}

/* As on a full disk: who can't write its pid has the lock all the same. */
static void test_a_lock_needs_no_room(void **state)
{
	const char *path = folder_path(state, "lock");
	struct durable_lock *lock, *other = NULL;
	struct rlimit before, none;
	struct error error;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	none = (struct rlimit){0, before.rlim_max};
	assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	expect_ok(durable_lock_take(path, &lock, &error), &error);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	expect_error(durable_lock_take(path, &other, &error), &error, ERROR_CONFLICT,
		     "somebody else holds it");
	durable_lock_destroy(lock);
}

/* proves: HOSTED-3 */
static void test_what_is_no_file_is_no_lock(void **state)
{
	const char *path = folder_path(state, "lock");
	struct durable_lock *lock = NULL;
	struct error error;

	assert_int_equal(symlink("elsewhere", path), 0);
	expect_error(durable_lock_take(path, &lock, &error), &error, ERROR_INVALID_STATE,
		     "not a file but a link");
	assert_non_null(strstr(error.hint, "Move it away"));
	assert_true(durable_absent(folder_path(state, "elsewhere")));
	assert_int_equal(unlink(path), 0);
	expect_ok(durable_make_folder(path, 0700, &error), &error);
	expect_error(durable_lock_take(path, &lock, &error), &error, ERROR_INVALID_STATE,
		     "not a file but a folder");
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	expect_error(durable_lock_take(path, &lock, &error), &error, ERROR_INVALID_STATE,
		     "not a file but a fifo");
	assert_null(lock);
}

/* Whatever the folder is called meanwhile, and until it goes. */
static void test_a_folder_can_be_locked(void **state)
{
	const char *path = folder_path(state, "folder"), *moved = folder_path(state, "moved");
	struct durable_lock *lock, *other = NULL;
	struct error error;

	expect_error(durable_lock_folder(path, &lock, &error), &error, ERROR_NOT_FOUND, "folder");
	expect_ok(durable_make_folder(path, 0700, &error), &error);
	expect_ok(durable_lock_folder(path, &lock, &error), &error);
	expect_ok(durable_rename(path, moved, &error), &error);
	expect_error(durable_lock_folder(moved, &other, &error), &error, ERROR_CONFLICT,
		     "somebody else holds it");
	durable_lock_destroy(lock);
	expect_ok(durable_lock_folder(moved, &lock, &error), &error);
	durable_lock_destroy(lock);
}

static void test_a_lock_ends_with_its_process(void **state)
{
	const char *path = folder_path(state, "lock");
	struct durable_lock *lock;
	struct error error;
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(durable_lock_take(path, &lock, &error) ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	expect_ok(durable_lock_take(path, &lock, &error), &error);
	durable_lock_destroy(lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FOLDER(test_a_lock_is_exclusive_until_it_goes),
		IN_FOLDER(test_a_lock_needs_no_room),
		IN_FOLDER(test_what_is_no_file_is_no_lock),
		IN_FOLDER(test_a_folder_can_be_locked),
		IN_FOLDER(test_a_lock_ends_with_its_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
