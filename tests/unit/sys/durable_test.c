#include "sys/durable.h"

#include "lib/folder.h"
#include "lib/test.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void expect_content(const char *path, const char *wanted)
{
	CLEANUP(buf) struct buf content = {0};
	struct error error;

	expect_ok(durable_read(path, 1000, &content, &error), &error);
	assert_string_equal(buf_text(&content), wanted);
}

static size_t count_entries(void **state)
{
	struct durable_names names;
	struct error error;
	size_t count;

	expect_ok(durable_list(*state, 100, &names, &error), &error);
	count = names.count;
	durable_names_deinit(&names);
	return count;
}

static void test_replace_leaves_only_the_file(void **state)
{
	const char *path = folder_path(state, "a.json");
	struct error error;
	struct stat stat_now;
	mode_t before = umask(077);

	expect_ok(durable_replace(path, "one", 3, 0644, &error), &error);
	expect_content(path, "one");
	expect_ok(durable_replace(path, "two", 3, 0640, &error), &error);
	umask(before);
	expect_content(path, "two");
	assert_int_equal(stat(path, &stat_now), 0);
	assert_int_equal(stat_now.st_mode & 07777, 0640);
	assert_int_equal(count_entries(state), 1);
}

static void test_a_failed_write_leaves_the_old_content(void **state)
{
	const char *path = folder_path(state, "taken");
	struct error error;

	expect_ok(durable_make_folder(path, 0700, &error), &error);
	expect_error(durable_replace(path, "x", 1, 0600, &error), &error, ERROR_INTERNAL,
		     "replace '");
	assert_int_equal(count_entries(state), 1);
	expect_error(durable_replace(folder_path(state, "absent/x"), "x", 1, 0600, &error), &error,
		     ERROR_NOT_FOUND, "absent/x");
}

static void test_create_refuses_what_exists(void **state)
{
	const char *path = folder_path(state, "a");
	struct error error;

	expect_ok(durable_create(path, "one", 3, 0600, &error), &error);
	expect_error(durable_create(path, "two", 3, 0600, &error), &error, ERROR_CONFLICT,
		     "exists already");
	expect_content(path, "one");
	assert_int_equal(count_entries(state), 1);
}

static void test_read_tells_absent_from_unreadable(void **state)
{
	CLEANUP(buf) struct buf content = {0};
	const char *fifo = folder_path(state, "fifo");
	struct error error;

	expect_error(durable_read(folder_path(state, "none"), 10, &content, &error), &error,
		     ERROR_NOT_FOUND, "none");
	expect_error(durable_read(*state, 10, &content, &error), &error, ERROR_INVALID_STATE,
		     "a folder");
	assert_int_equal(mkfifo(fifo, 0600), 0);
	expect_error(durable_read(fifo, 10, &content, &error), &error, ERROR_INVALID_STATE,
		     "a fifo");
	expect_error(durable_read("/dev/null", 10, &content, &error), &error, ERROR_INVALID_STATE,
		     "a device");
	expect_error(durable_read(folder_path(state, "fifo/x"), 10, &content, &error), &error,
		     ERROR_INTERNAL, "Not a directory");
}

/* Whose group may read it is its owner's choice. */
static void test_a_secret_that_all_may_read_is_refused(void **state)
{
	CLEANUP(buf) struct buf content = {0};
	const char *path = folder_path(state, "a");
	struct error error;

	expect_ok(durable_create(path, "word", 4, 0640, &error), &error);
	expect_ok(durable_read_hidden(path, 4, &content, &error), &error);
	assert_string_equal(buf_text(&content), "word");
	assert_int_equal(chmod(path, 0644), 0);
	expect_error(durable_read_hidden(path, 4, &content, &error), &error, ERROR_FORBIDDEN,
		     "everybody may read");
	expect_error(durable_read_private(path, 4, &content, &error), &error, ERROR_FORBIDDEN,
		     "others may read");
	assert_int_equal(chmod(path, 0640), 0);
	expect_error(durable_read_own(path, 4, &content, &error), &error, ERROR_FORBIDDEN,
		     "others may read");
	assert_non_null(strstr(error.hint, "chmod 600"));
	assert_int_equal(chmod(path, 0600), 0);
	expect_ok(durable_read_own(path, 4, &content, &error), &error);
	expect_ok(durable_read_private(path, 4, &content, &error), &error);
	expect_ok(durable_read(path, 4, &content, &error), &error);
}

static void test_read_is_bounded(void **state)
{
	CLEANUP(buf) struct buf content = {0};
	const char *path = folder_path(state, "a");
	struct error error;

	expect_ok(durable_replace(path, "12345", 5, 0600, &error), &error);
	expect_ok(durable_read(path, 5, &content, &error), &error);
	assert_int_equal(content.length, 5);
	expect_error(durable_read(path, 4, &content, &error), &error, ERROR_RESOURCES_EXHAUSTED,
		     "larger than 4 bytes");
	assert_int_equal(content.length, 5); /* untouched on failure */
	/* /proc files claim size 0: the bound holds while reading, too */
	expect_error(durable_read("/proc/self/maps", 10, &content, &error), &error,
		     ERROR_RESOURCES_EXHAUSTED, "larger than 10 bytes");
}

static void test_read_takes_large_files(void **state)
{
	CLEANUP(buf) struct buf written = {0}, content = {0};
	const char *path = folder_path(state, "large");
	struct error error;

	memset(buf_extend(&written, 200000), 'x', 200000);
	expect_ok(durable_replace(path, written.data, written.length, 0600, &error), &error);
	expect_ok(durable_read(path, 200000, &content, &error), &error);
	assert_int_equal(content.length, 200000);
	assert_memory_equal(content.data, written.data, 200000);
}

static void test_remove_and_rename(void **state)
{
	const char *a = folder_path(state, "a"), *b = folder_path(state, "b");
	struct error error;

	expect_ok(durable_remove(a, &error), &error); /* absent is fine */
	expect_ok(durable_remove(folder_path(state, "absent/x"), &error), &error);
	expect_ok(durable_replace(a, "1", 1, 0600, &error), &error);
	expect_ok(durable_rename(a, b, &error), &error);
	expect_content(b, "1");
	expect_error(durable_rename(a, b, &error), &error, ERROR_NOT_FOUND, "rename '");
	expect_ok(durable_remove(b, &error), &error);
	assert_int_equal(count_entries(state), 0);
	expect_error(durable_remove(*state, &error), &error, ERROR_INTERNAL, "remove '");
}

static void test_make_folder_with_parents(void **state)
{
	const char *path = folder_path(state, "a/b/c");
	struct error error;

	expect_ok(durable_make_folder(path, 0750, &error), &error);
	expect_ok(durable_make_folder(path, 0750, &error), &error);
	expect_ok(durable_replace(folder_path(state, "a/b/c/f"), "1", 1, 0600, &error), &error);
	expect_error(durable_make_folder(folder_path(state, "a/b/c/f"), 0750, &error), &error,
		     ERROR_INVALID_STATE, "is no folder");
}

static void test_list_is_sorted_and_bounded(void **state)
{
	struct durable_names names = {0};
	struct error error;

	for (const char *name = "cab"; *name; name++) {
		char one[2] = {*name};

		expect_ok(durable_replace(folder_path(state, one), "", 0, 0600, &error), &error);
	}
	expect_ok(durable_list(*state, 3, &names, &error), &error);
	assert_int_equal(names.count, 3);
	assert_string_equal(names.names[0], "a");
	assert_string_equal(names.names[2], "c");
	durable_names_deinit(&names);
	expect_error(durable_list(*state, 2, &names, &error), &error, ERROR_RESOURCES_EXHAUSTED,
		     "more than 2 entries");
	expect_error(durable_list(folder_path(state, "none"), 2, &names, &error), &error,
		     ERROR_NOT_FOUND, "none");
	assert_null(names.names);
}

static void test_where_a_file_could_be_written(void **state)
{
	const char *path = folder_path(state, "file");
	struct error error;

	expect_ok(durable_check_writable(path, &error), &error);
	assert_true(durable_absent(path));
	expect_ok(durable_replace(path, "", 0, 0600, &error), &error);
	expect_ok(durable_check_writable(path, &error), &error);
	expect_error(durable_check_writable(folder_path(state, "none/file"), &error), &error,
		     ERROR_NOT_FOUND, "none/file");
	expect_error(durable_check_writable(*state, &error), &error, ERROR_INVALID_STATE,
		     "it is a folder");
}

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

/* Temporary files of before go; one that is being written, and everybody else's, stay. */
static void test_what_a_kill_left_is_tidied(void **state)
{
	const char *left = folder_path(state, ".tmp-0123456789abcdef");
	const char *kept = folder_path(state, ".tmp-0123456789ABCDEF");
	const char *file = folder_path(state, "file");
	struct stat info;
	struct wall written;
	struct error error;

	expect_ok(durable_create(left, "x", 1, 0600, &error), &error);
	expect_ok(durable_create(kept, "x", 1, 0600, &error), &error);
	assert_int_equal(stat(left, &info), 0);
	written.ms = (int64_t)info.st_mtim.tv_sec * 1000;
	durable_tidy(file, (struct wall){written.ms + DURABLE_LEFT_MS - 1});
	assert_false(durable_absent(left));
	durable_tidy(file, (struct wall){written.ms + DURABLE_LEFT_MS});
	assert_true(durable_absent(left));
	assert_false(durable_absent(kept));
	durable_tidy(folder_path(state, "none/file"), written);
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

static void test_a_stamp_tells_change(void **state)
{
	const char *path = folder_path(state, "a");
	struct durable_stamp absent = durable_stamp(path), first;
	struct error error;

	assert_false(absent.exists);
	expect_ok(durable_replace(path, "1", 1, 0600, &error), &error);
	first = durable_stamp(path);
	assert_false(durable_stamp_equal(absent, first));
	assert_true(durable_stamp_equal(first, durable_stamp(path)));
	expect_ok(durable_replace(path, "2", 1, 0600, &error), &error);
	assert_false(durable_stamp_equal(first, durable_stamp(path)));
}

/* Absent is what surely isn't there. */
static void test_absent_is_certain(void **state)
{
	char inside[512];
	struct error error;

	assert_true(durable_absent(folder_path(state, "a")));
	expect_ok(durable_replace(folder_path(state, "a"), "1", 1, 0600, &error), &error);
	assert_false(durable_absent(folder_path(state, "a")));
	snprintf(inside, sizeof inside, "%s/b", folder_path(state, "a"));
	assert_true(durable_absent(inside)); /* a file has nothing below it */
	assert_int_equal(symlink("nowhere", folder_path(state, "link")), 0);
	assert_false(durable_absent(folder_path(state, "link")));
	assert_int_equal(symlink("loop", folder_path(state, "loop")), 0);
	snprintf(inside, sizeof inside, "%s/b", folder_path(state, "loop"));
	assert_false(durable_absent(inside)); /* nobody can tell */
}

struct answer {
	size_t calls, done_count;
	struct error error;
};

static void on_done(void *arg, size_t done_count, const struct error *error)
{
	struct answer *answer = arg;

	answer->calls++;
	answer->done_count = done_count;
	if (error)
		answer->error = *error;
}

static void test_steps_run_in_order(void **state)
{
	struct loop *loop = loop_create();
	struct durable_steps steps = {0};
	struct answer answer = {0};

	durable_steps_replace(&steps, folder_path(state, "a"), "1", 1, 0600);
	durable_steps_rename(&steps, folder_path(state, "a"), folder_path(state, "b"));
	durable_steps_replace(&steps, folder_path(state, "c"), "3", 1, 0600);
	durable_steps_remove(&steps, folder_path(state, "c"));
	durable_submit(loop, &steps, on_done, &answer);
	assert_int_equal(steps.count, 0);
	loop_run(loop);
	assert_int_equal(answer.calls, 1);
	assert_int_equal(answer.done_count, 4);
	assert_int_equal(answer.error.code, ERROR_NONE);
	expect_content(folder_path(state, "b"), "1");
	assert_int_equal(count_entries(state), 1);
	loop_destroy(loop);
}

static void test_a_failed_step_ends_the_list(void **state)
{
	struct loop *loop = loop_create();
	struct durable_steps steps = {0};
	struct answer answer = {0};

	durable_steps_replace(&steps, folder_path(state, "a"), "1", 1, 0600);
	durable_steps_rename(&steps, folder_path(state, "none"), folder_path(state, "b"));
	durable_steps_remove(&steps, folder_path(state, "a"));
	durable_submit(loop, &steps, on_done, &answer);
	loop_run(loop);
	assert_int_equal(answer.done_count, 1);
	assert_int_equal(answer.error.code, ERROR_NOT_FOUND);
	expect_content(folder_path(state, "a"), "1");
	loop_destroy(loop);
}

#define FOLDER_TEST(test) cmocka_unit_test_setup_teardown(test, folder_make, folder_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FOLDER_TEST(test_replace_leaves_only_the_file),
		FOLDER_TEST(test_a_failed_write_leaves_the_old_content),
		FOLDER_TEST(test_create_refuses_what_exists),
		FOLDER_TEST(test_read_tells_absent_from_unreadable),
		FOLDER_TEST(test_a_secret_that_all_may_read_is_refused),
		FOLDER_TEST(test_read_is_bounded),
		FOLDER_TEST(test_read_takes_large_files),
		FOLDER_TEST(test_remove_and_rename),
		FOLDER_TEST(test_make_folder_with_parents),
		FOLDER_TEST(test_list_is_sorted_and_bounded),
		FOLDER_TEST(test_where_a_file_could_be_written),
		FOLDER_TEST(test_a_lock_is_exclusive_until_it_goes),
		FOLDER_TEST(test_a_folder_can_be_locked),
		FOLDER_TEST(test_what_a_kill_left_is_tidied),
		FOLDER_TEST(test_a_lock_ends_with_its_process),
		FOLDER_TEST(test_a_stamp_tells_change),
		FOLDER_TEST(test_absent_is_certain),
		FOLDER_TEST(test_steps_run_in_order),
		FOLDER_TEST(test_a_failed_step_ends_the_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
