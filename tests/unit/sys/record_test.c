/* sys/durable_read.c with an open() that fails as often as a test wants (linked with --wrap). */
#include "sys/durable.h"

#include "lib/folder.h"
#include "lib/test.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/types.h>
#include <unistd.h>

static int failures, os, opened;

int __real_open64(const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, ...);

int __wrap_open64(const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = va_arg(arguments, mode_t);
	va_end(arguments);
	if (!strstr(path, "record"))
		return __real_open64(path, flags, mode);
	opened++;
	if (failures > 0) {
		failures--;
		errno = os;
		return -1;
	}
	return __real_open64(path, flags, mode);
}

static bool read_with(void **state, int times, int how, struct buf *text, struct error *error)
{
	failures = times;
	os = how;
	opened = 0;
	return durable_read_record(folder_path(state, "record"), 100, text, error);
}

/* proves: REL-55 */
static void test_a_moments_trouble(void **state)
{
	static const int passing[] = {EIO, EMFILE, ENFILE, ENOMEM}, lasting[] = {EACCES, ENOENT};
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	failures = 0;
	expect_ok(durable_replace(folder_path(state, "record"), "x", 1, 0600, &error), &error);
	for (size_t i = 0; i < ARRAY_SIZE(passing); i++) {
		expect_ok(read_with(state, 2, passing[i], &text, &error), &error);
		assert_int_equal(opened, 3);
		assert_string_equal(buf_text(&text), "x");
		assert_false(read_with(state, 3, passing[i], &text, &error));
		assert_int_equal(opened, 3);
		assert_int_equal(error.os, passing[i]);
		assert_int_not_equal(error.code, ERROR_NOT_FOUND);
	}
	for (size_t i = 0; i < ARRAY_SIZE(lasting); i++) {
		assert_false(read_with(state, 1, lasting[i], &text, &error));
		assert_int_equal(opened, 1);
	}
	assert_int_equal(error.code, ERROR_NOT_FOUND);
	failures = 0;
}

static void test_a_link_to_nowhere_is_something(void **state)
{
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	assert_int_equal(symlink("nowhere", folder_path(state, "record")), 0);
	assert_false(read_with(state, 0, 0, &text, &error));
	assert_int_equal(error.code, ERROR_INVALID_STATE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FOLDER(test_a_moments_trouble),
		cmocka_unit_test_setup_teardown(test_a_link_to_nowhere_is_something, folder_make,
						folder_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
