#include "durable_files.h"
#include "lib/hang.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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

static bool is_folder(const char *path)
{
	struct stat now;

	return stat(path, &now) == 0 && S_ISDIR(now.st_mode);
}

static int folders_fail(const char *path)
{
	return is_folder(path) ? EIO : 0;
}

/* Whoever is told that it failed won't look whether it is there. */
static void test_what_could_not_be_created_is_not_there(void **state)
{
	const char *path = folder_path(state, "a");
	struct error error;

	hang_look = folders_fail;
	expect_error(durable_create(path, "one", 3, 0600, &error), &error, ERROR_INTERNAL,
		     "sync folder '");
	hang_look = NULL;
	assert_int_equal(count_entries(state), 0);
	expect_ok(durable_create(path, "two", 3, 0600, &error), &error);
	expect_content(path, "two");
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

static void test_what_is_set_aside_is_kept(void **state)
{
	const char *path = folder_path(state, "a");
	CLEANUP(buf) struct buf first = {0}, second = {0};
	struct error error;

	expect_error(durable_set_aside(path, (struct wall){7000}, &first, &error), &error,
		     ERROR_NOT_FOUND, "rename '");
	assert_int_equal(first.length, 0);
	expect_ok(durable_replace(path, "1", 1, 0600, &error), &error);
	expect_ok(durable_set_aside(path, (struct wall){7000}, &first, &error), &error);
	assert_true(str_ends(buf_text(&first), "a.unreadable-7"));
	expect_ok(durable_replace(path, "2", 1, 0600, &error), &error);
	expect_ok(durable_set_aside(path, (struct wall){7000}, &second, &error), &error);
	assert_true(str_ends(buf_text(&second), "a.unreadable-8"));
	expect_content(buf_text(&first), "1");
	expect_content(buf_text(&second), "2");
	assert_true(durable_absent(path));
}

/* When no name is left nothing that was kept is lost. proves: REL-31 */
static void test_nothing_kept_is_written_over(void **state)
{
	const char *path = folder_path(state, "a");
	CLEANUP(buf) struct buf name = {0}, kept = {0};
	struct error error;

	for (int i = 0; i < 1000; i++) {
		buf_clear(&name);
		buf_printf(&name, "%s.unreadable-%d", path, 7 + i);
		assert_int_equal(symlink("kept", buf_text(&name)), 0);
	}
	expect_ok(durable_replace(path, "1", 1, 0600, &error), &error);
	expect_error(durable_set_aside(path, (struct wall){7000}, &kept, &error), &error,
		     ERROR_RESOURCES_EXHAUSTED, "a.unreadable-1006'");
	assert_non_null(strstr(error.hint, "move them elsewhere"));
	expect_error(durable_keep(path, (struct wall){7000}, &kept, &error), &error,
		     ERROR_RESOURCES_EXHAUSTED, "are taken");
	expect_content(path, "1");
	assert_int_equal(count_entries(state), 1001);
	expect_ok(durable_set_aside(path, (struct wall){8000}, &kept, &error), &error);
	assert_true(str_ends(buf_text(&kept), "a.unreadable-1007"));
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

static void test_a_new_folder_is_nobody_elses(void **state)
{
	const char *path = folder_path(state, "a"), *file = folder_path(state, "f");
	struct error error;
	struct stat now;

	expect_ok(durable_make_new_folder(path, 0755, &error), &error);
	assert_int_equal(stat(path, &now), 0);
	assert_int_equal(now.st_mode & 0777, 0755);
	expect_error(durable_make_new_folder(path, 0755, &error), &error, ERROR_CONFLICT,
		     "exists already");
	expect_ok(durable_create(file, "x", 1, 0600, &error), &error);
	expect_error(durable_make_new_folder(file, 0755, &error), &error, ERROR_CONFLICT,
		     "exists already");
	expect_error(durable_make_new_folder(folder_path(state, "none/a"), 0755, &error), &error,
		     ERROR_NOT_FOUND, "none/a");
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
	char name[300] = "";
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
	memset(name, 'x', sizeof name - 1);
	assert_false(durable_check_writable(folder_path(state, name), &error));
	assert_non_null(strstr(error.what, "File name too long"));
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
	expect_ok(durable_create(left, "x", 1, 0600, &error), &error);
	durable_tidy(file, (struct wall){written.ms - 2 * DURABLE_LEFT_MS}); /* a clock set back */
	assert_true(durable_absent(left));
	durable_tidy(folder_path(state, "none/file"), written);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FOLDER(test_replace_leaves_only_the_file),
		IN_FOLDER(test_a_failed_write_leaves_the_old_content),
		IN_FOLDER(test_create_refuses_what_exists),
		IN_FOLDER(test_what_could_not_be_created_is_not_there),
		IN_FOLDER(test_read_tells_absent_from_unreadable),
		IN_FOLDER(test_read_is_bounded),
		IN_FOLDER(test_read_takes_large_files),
		IN_FOLDER(test_remove_and_rename),
		IN_FOLDER(test_what_is_set_aside_is_kept),
		IN_FOLDER(test_nothing_kept_is_written_over),
		IN_FOLDER(test_make_folder_with_parents),
		IN_FOLDER(test_a_new_folder_is_nobody_elses),
		IN_FOLDER(test_list_is_sorted_and_bounded),
		IN_FOLDER(test_where_a_file_could_be_written),
		IN_FOLDER(test_what_a_kill_left_is_tidied),
		IN_FOLDER(test_a_stamp_tells_change),
		IN_FOLDER(test_absent_is_certain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
