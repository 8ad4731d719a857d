/* Files that are to be ours alone: what is refused, and where a secret may be when a run is cut off. */
#include "durable_files.h"
#include "lib/hang.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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
		IN_FOLDER(test_a_secret_that_all_may_read_is_refused),
		IN_FOLDER(test_a_text_is_written_over),
		IN_FOLDER(test_what_is_not_ours_alone_is_not_written_over),
		IN_FOLDER(test_a_secret_is_in_its_own_file_alone),
		IN_FOLDER(test_a_place_is_made_first),
		IN_FOLDER(test_what_is_anothers_is_not_ours_to_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
