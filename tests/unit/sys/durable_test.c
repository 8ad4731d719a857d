#include "sys/durable.h"

#include "lib/folder.h"
#include "lib/hang.h"
#include "lib/test.h"

#include <fcntl.h>
#include <sys/stat.h>
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

	expect_ok(durable_list(*state, 2000, &names, &error), &error);
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

/* In its own place: what is killed then leaves it there and nowhere else. */
static void test_a_text_is_written_over(void **state)
{
	const char *path = folder_path(state, "f");
	struct error error;
	struct stat before, now;

	expect_ok(durable_create(path, "a longer one\n", 13, 0600, &error), &error);
	assert_int_equal(stat(path, &before), 0);
	expect_ok(durable_overwrite_text(path, "short\n", 6, &error), &error);
	expect_content(path, "short\n");
	expect_ok(durable_overwrite_text(path, "longer than that\n", 17, &error), &error);
	expect_content(path, "longer than that\n");
	assert_int_equal(stat(path, &now), 0);
	assert_int_equal(now.st_ino, before.st_ino);
	assert_int_equal(now.st_mode & 0777, 0600);
	assert_int_equal(count_entries(state), 1);
	assert_int_equal(unlink(path), 0);
	expect_error(durable_overwrite_text(path, "x", 1, &error), &error, ERROR_NOT_FOUND, "f");
	assert_true(durable_absent(path));
}

static size_t secrets_beside;

/* At each moment that lasts: in which files is it? */
static int look_for_secret(const char *path)
{
	CLEANUP(buf) struct buf content = {0};
	struct error ignored;

	if (!str_ends(path, "/f") && durable_read(path, 1000, &content, &ignored) &&
	    strstr(buf_text(&content), "secret"))
		secrets_beside++;
	return 0;
}

static int texts_fail(const char *path)
{
	CLEANUP(buf) struct buf content = {0};
	struct error ignored;

	return durable_read(path, 1000, &content, &ignored) && content.length > 0 ? EIO : 0;
}

static void expect_secret(const char *path, const char *text)
{
	struct stat now;

	expect_content(path, text);
	assert_int_equal(lstat(path, &now), 0);
	assert_true(S_ISREG(now.st_mode));
	assert_int_equal(now.st_mode & 07777, 0600);
	assert_int_equal(now.st_nlink, 1);
}

static bool write_secret(const char *path, const char *text, size_t length, bool replace,
			 struct error *error)
{
	struct durable_place place = {0};

	return durable_place_make(path, replace, &place, error) &&
	       durable_place_fill(&place, text, length, error);
}

/* In the file that was named or nowhere, whatever was there before. */
static void test_a_secret_is_in_its_own_file_alone(void **state)
{
	const char *path = folder_path(state, "f"), *other = folder_path(state, "other");
	struct error error;
	struct stat before, now;

	secrets_beside = 0;
	hang_look = look_for_secret;
	expect_ok(write_secret(path, "secret 1\n", 9, false, &error), &error);
	expect_secret(path, "secret 1\n");
	assert_int_equal(stat(path, &before), 0);
	expect_error(write_secret(path, "secret 2\n", 9, false, &error), &error, ERROR_CONFLICT,
		     "exists already");
	expect_secret(path, "secret 1\n");
	expect_ok(write_secret(path, "secret 2\n", 9, true, &error), &error);
	expect_secret(path, "secret 2\n");
	assert_int_equal(stat(path, &now), 0);
	assert_int_equal(now.st_ino, before.st_ino); /* until then it had the old one */
	assert_int_equal(chmod(path, 0644), 0);      /* who has it open would read the new one */
	expect_ok(write_secret(path, "secret 3\n", 9, true, &error), &error);
	expect_secret(path, "secret 3\n");
	assert_int_equal(stat(path, &now), 0);
	assert_int_not_equal(now.st_ino, before.st_ino);
	assert_int_equal(link(path, other), 0);
	expect_ok(write_secret(path, "secret 4\n", 9, true, &error), &error);
	expect_secret(path, "secret 4\n");
	expect_secret(other, "secret 3\n");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(other, path), 0);
	expect_ok(write_secret(path, "secret 5\n", 9, true, &error), &error);
	expect_secret(path, "secret 5\n");
	expect_secret(other, "secret 3\n");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(unlink(other), 0);
	expect_ok(write_secret(path, "secret 6\n", 9, true, &error), &error);
	expect_secret(path, "secret 6\n");
	assert_int_equal(secrets_beside, 0);
	assert_int_equal(unlink(path), 0);
	hang_look = texts_fail;
	for (int replace = 0; replace <= 1; replace++) {
		expect_error(write_secret(path, "secret\n", 7, replace, &error), &error,
			     ERROR_INTERNAL, "write '");
		assert_int_equal(count_entries(state), 0);
	}
	hang_look = NULL;
}

/* As on a file system that gives what root makes to nobody: of all files that are open. */
static bool squashed;

int fstat(int fd, struct stat *now);

int fstat(int fd, struct stat *now)
{
	int result = (int)syscall(SYS_newfstatat, fd, "", now, AT_EMPTY_PATH);

	if (result == 0 && squashed)
		now->st_uid = geteuid() + 1;
	return result;
}

/* It is refused before there is a secret, and leaves all as it was. */
static void test_a_place_is_made_first(void **state)
{
	const char *path = folder_path(state, "f");
	struct durable_place place = {0};
	struct error error;

	squashed = true;
	expect_error(durable_place_make(path, false, &place, &error), &error, ERROR_FORBIDDEN,
		     "belongs to another user");
	squashed = false;
	assert_null(place.path);
	assert_int_equal(count_entries(state), 0);
	for (mode_t mode = 0600; mode <= 0644; mode += 044) {
		expect_ok(durable_replace(path, "old", 3, mode, &error), &error);
		squashed = true;
		expect_error(durable_place_make(path, true, &place, &error), &error,
			     ERROR_FORBIDDEN, "f' belongs to another user");
		squashed = false;
		assert_int_equal(count_entries(state), 1);
		expect_content(path, "old");
		expect_ok(durable_place_make(path, true, &place, &error), &error);
		expect_content(path, "old"); /* until it is filled */
		durable_place_give_up(&place);
		assert_int_equal(count_entries(state), 1);
		expect_content(path, "old");
	}
	expect_ok(durable_remove(path, &error), &error);
	for (int replace = 0; replace <= 1; replace++) {
		expect_ok(durable_place_make(path, replace, &place, &error), &error);
		expect_secret(path, "");
		durable_place_give_up(&place);
		assert_int_equal(count_entries(state), 0);
		durable_place_give_up(&place); /* none */
	}
	/* Somebody else's by then: it stays. */
	expect_ok(durable_place_make(path, false, &place, &error), &error);
	expect_ok(durable_replace(path, "other", 5, 0600, &error), &error);
	durable_place_give_up(&place);
	expect_content(path, "other");
}

static void expect_refused(const char *path, enum error_code code, const char *what,
			   const char *hint)
{
	struct error error;

	expect_error(durable_overwrite_text(path, "x", 1, &error), &error, code, what);
	if (!strstr(error.hint, hint))
		fail_msg("no \"%s\": %s", hint, error.hint);
}

/* What is wrong with it, and what to do: each in its own words. */
static void test_what_is_not_ours_alone_is_not_written_over(void **state)
{
	const char *path = folder_path(state, "f"), *link_to = folder_path(state, "l");
	const char *fifo = folder_path(state, "fifo");
	struct error error;

	expect_ok(durable_create(path, "old\n", 4, 0600, &error), &error);
	assert_int_equal(symlink(path, link_to), 0);
	expect_refused(link_to, ERROR_INVALID_STATE, "/l': not a file but a link", "Remove it");
	expect_refused(*state, ERROR_INVALID_STATE, "not a file but a folder", "another file");
	assert_int_equal(mkfifo(fifo, 0600), 0);
	expect_refused(fifo, ERROR_INVALID_STATE, "not a file but a fifo", "another file");
	assert_int_equal(chmod(path, 0640), 0);
	expect_refused(path, ERROR_FORBIDDEN, "others may read '", "chmod 600 '");
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(unlink(link_to), 0);
	assert_int_equal(link(path, link_to), 0);
	expect_refused(path, ERROR_INVALID_STATE, "/f': the file has 2 names", "remove this name");
	assert_int_equal(unlink(link_to), 0);
	expect_content(path, "old\n");
	if (geteuid() == 0)
		assert_int_equal(chown(path, 65534, 65534), 0);
	else
		path = "/etc/passwd";
	expect_refused(path, ERROR_FORBIDDEN, "belongs to another user (uid ", "(chown ");
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

	durable_steps_replace(&steps, folder_path(state, "b"), "1", 1, 0600);
	durable_steps_replace(&steps, folder_path(state, "c"), "3", 1, 0600);
	durable_steps_remove(&steps, folder_path(state, "c"));
	durable_steps_sync(&steps, *state);
	durable_steps_folder(&steps, folder_path(state, "d"), 0750);
	durable_steps_folder(&steps, folder_path(state, "d"), 0750);
	durable_steps_replace(&steps, folder_path(state, "d/e"), "5", 1, 0600);
	durable_submit(loop, &steps, on_done, &answer);
	assert_int_equal(steps.count, 0);
	loop_run(loop);
	assert_int_equal(answer.calls, 1);
	assert_int_equal(answer.done_count, 7);
	assert_int_equal(answer.error.code, ERROR_NONE);
	expect_content(folder_path(state, "b"), "1");
	expect_content(folder_path(state, "d/e"), "5");
	assert_int_equal(count_entries(state), 2);
	loop_destroy(loop);
}

static void test_a_failed_step_ends_the_list(void **state)
{
	struct loop *loop = loop_create();
	struct durable_steps steps = {0};
	struct answer answer = {0};

	durable_steps_replace(&steps, folder_path(state, "a"), "1", 1, 0600);
	durable_steps_replace(&steps, folder_path(state, "none/b"), "2", 1, 0600);
	durable_steps_remove(&steps, folder_path(state, "a"));
	durable_submit(loop, &steps, on_done, &answer);
	loop_run(loop);
	assert_int_equal(answer.done_count, 1);
	assert_int_equal(answer.error.code, ERROR_NOT_FOUND);
	expect_content(folder_path(state, "a"), "1");
	loop_destroy(loop);
}

/* Not the list counts but its step: a long list on a slow disk doesn't hang. */
static void test_a_step_that_hangs_is_named(void **state)
{
	struct loop *loop = loop_create();
	struct mono now = loop_now(loop);
	struct durable_steps steps = {0};
	struct answer answer = {0};
	struct durable_job *job;
	struct error error = {0};

	expect_ok(durable_make_folder(folder_path(state, "d"), 0700, &error), &error);
	hang_at = "/d/";
	durable_steps_replace(&steps, folder_path(state, "a"), "1", 1, 0600);
	durable_steps_replace(&steps, folder_path(state, "d/b"), "2", 1, 0600);
	durable_steps_remove(&steps, folder_path(state, "a"));
	job = durable_submit(loop, &steps, on_done, &answer);
	while (hanging == 0)
		usleep(1000);
	now = mono_after(now, DURABLE_HANG_MS);
	assert_false(durable_hangs(job, now, &error)); /* the second since this look */
	assert_false(durable_hangs(job, mono_after(now, DURABLE_HANG_MS - 1), &error));
	assert_int_equal(error.code, ERROR_NONE);
	assert_true(durable_hangs(job, mono_after(now, DURABLE_HANG_MS), &error));
	assert_non_null(strstr(error.what, "write '"));
	assert_non_null(strstr(error.what, "/d/b': it hangs"));
	assert_true(*error.hint);
	hang_at = NULL;
	loop_run(loop);
	assert_int_equal(answer.done_count, 3);
	assert_int_equal(answer.error.code, ERROR_NONE);
	loop_destroy(loop);
}

static void test_what_is_anothers_is_not_ours_to_change(void **state)
{
	const char *path = folder_path(state, "key");
	struct error error;

	expect_ok(durable_check_ours(path, &error), &error); /* not there */
	expect_ok(durable_create(path, "x", 1, 0600, &error), &error);
	expect_ok(durable_check_ours(path, &error), &error);
	expect_ok(durable_check_ours(*state, &error), &error);
	if (geteuid() == 0)
		assert_int_equal(chown(path, 65534, 65534), 0);
	else
		path = "/etc/passwd";
	expect_error(durable_check_ours(path, &error), &error, ERROR_FORBIDDEN,
		     "belongs to another user");
	assert_non_null(strstr(error.hint, "Run it as that user"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FOLDER(test_replace_leaves_only_the_file),
		IN_FOLDER(test_a_failed_write_leaves_the_old_content),
		IN_FOLDER(test_create_refuses_what_exists),
		IN_FOLDER(test_what_could_not_be_created_is_not_there),
		IN_FOLDER(test_read_tells_absent_from_unreadable),
		IN_FOLDER(test_a_secret_that_all_may_read_is_refused),
		IN_FOLDER(test_read_is_bounded),
		IN_FOLDER(test_read_takes_large_files),
		IN_FOLDER(test_remove_and_rename),
		IN_FOLDER(test_what_is_set_aside_is_kept),
		IN_FOLDER(test_nothing_kept_is_written_over),
		IN_FOLDER(test_make_folder_with_parents),
		IN_FOLDER(test_a_new_folder_is_nobody_elses),
		IN_FOLDER(test_a_text_is_written_over),
		IN_FOLDER(test_what_is_not_ours_alone_is_not_written_over),
		IN_FOLDER(test_a_secret_is_in_its_own_file_alone),
		IN_FOLDER(test_a_place_is_made_first),
		IN_FOLDER(test_list_is_sorted_and_bounded),
		IN_FOLDER(test_where_a_file_could_be_written),
		IN_FOLDER(test_what_a_kill_left_is_tidied),
		IN_FOLDER(test_a_stamp_tells_change),
		IN_FOLDER(test_absent_is_certain),
		IN_FOLDER(test_what_is_anothers_is_not_ours_to_change),
		IN_FOLDER(test_steps_run_in_order),
		IN_FOLDER(test_a_failed_step_ends_the_list),
		IN_FOLDER(test_a_step_that_hangs_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
