#include "sys/watch.h"

#include "base/buf.h"
#include "lib/folder.h"
#include "lib/test.h"

#include <fcntl.h>
#include <sys/stat.h>

/* Names seen, each followed by a space; "GONE " for the folder. */
static struct buf seen;
static struct watch *watch;
static struct loop *loop;
static struct loop_timer *end;
static const char *stop_at;

static void stop(void *arg UNUSED)
{
	loop_stop(loop);
}

static void on_change(void *arg UNUSED, const char *name)
{
	buf_printf(&seen, "%s ", name ? name : "GONE");
	if (str_equal(name ? name : "GONE", stop_at))
		loop_stop(loop);
}

static void destroy_watch(void *arg UNUSED, const char *name)
{
	buf_printf(&seen, "%s ", name);
	watch_destroy(TAKE(watch));
	loop_stop(loop);
}

static int make(void **state)
{
	loop = loop_create();
	end = loop_timer_create(loop, stop, NULL); /* a lost event fails the test, not hangs it */
	loop_timer_start(end, 2000);
	buf_clear(&seen);
	return folder_make(state);
}

static int drop(void **state)
{
	loop_timer_destroy(end);
	watch_destroy(TAKE(watch));
	loop_destroy(loop);
	buf_deinit(&seen);
	return access(*state, F_OK) == 0 ? folder_remove(state) : (free(*state), 0);
}

static void touch(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static void test_changes_are_told_by_name(void **state)
{
	struct error error;

	expect_ok(watch_create(loop, *state, on_change, NULL, &watch, &error), &error);
	touch(folder_path(state, "a"));
	assert_int_equal(rename(folder_path(state, "a"), folder_path(state, "b")), 0);
	assert_int_equal(unlink(folder_path(state, "b")), 0);
	touch(folder_path(state, "z"));
	stop_at = "z";
	loop_run(loop);
	assert_string_equal(buf_text(&seen), "a a a b b z z ");
}

static void test_the_folder_itself_goes(void **state)
{
	struct error error;

	expect_ok(watch_create(loop, *state, on_change, NULL, &watch, &error), &error);
	assert_int_equal(rmdir(*state), 0);
	stop_at = "GONE";
	loop_run(loop);
	assert_string_equal(buf_text(&seen), "GONE ");
}

static void test_destroyed_from_inside_nothing_more_comes(void **state)
{
	struct error error;

	expect_ok(watch_create(loop, *state, destroy_watch, NULL, &watch, &error), &error);
	touch(folder_path(state, "a"));
	touch(folder_path(state, "b"));
	loop_run(loop);
	assert_string_equal(buf_text(&seen), "a ");
}

static void test_only_folders(void **state)
{
	struct error error;

	expect_error(
		watch_create(loop, folder_path(state, "none"), on_change, NULL, &watch, &error),
		&error, ERROR_NOT_FOUND, "none");
	expect_error(watch_create(loop, "/dev/null", on_change, NULL, &watch, &error), &error,
		     ERROR_INTERNAL, "Not a directory");
}

#define WATCH_TEST(test) cmocka_unit_test_setup_teardown(test, make, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WATCH_TEST(test_changes_are_told_by_name),
		WATCH_TEST(test_the_folder_itself_goes),
		WATCH_TEST(test_destroyed_from_inside_nothing_more_comes),
		WATCH_TEST(test_only_folders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
