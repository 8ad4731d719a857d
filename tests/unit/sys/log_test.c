#include "sys/log.h"

#include "base/buf.h"
#include "lib/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int saved_stderr, captured;

/* stderr into a file that is no terminal: the JSON form. */
static int capture(void **state UNUSED)
{
	fflush(stderr);
	saved_stderr = dup(STDERR_FILENO);
	captured = open("/tmp", O_TMPFILE | O_RDWR, 0600);
	return captured >= 0 && dup2(captured, STDERR_FILENO) >= 0 ? 0 : -1;
}

static int release(void **state UNUSED)
{
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	close(captured);
	log_set_level(LOG_INFO);
	return 0;
}

/* What was logged, each line without its time. */
static const char *logged(void)
{
	static char text[4096];
	ssize_t length = pread(captured, text, sizeof text - 1, 0);

	assert_true(length >= 0);
	text[length] = '\0';
	for (char *line = text; *line; line = strchr(line, '\n') + 1) {
		assert_int_equal(strncmp(line, "{\"time\":\"20", 11), 0);
		assert_int_equal(line[32], 'Z');
		memmove(line, line + 35, strlen(line + 35) + 1);
	}
	return text;
}

static void test_one_line_with_fields(void **state UNUSED)
{
	log_info("bound", "allocation bound", "allocation", "alc_1", "none", NULL, "node", "n",
		 NULL);
	assert_string_equal(logged(),
			    "\"level\":\"info\",\"event\":\"bound\",\"message\":"
			    "\"allocation bound\",\"allocation\":\"alc_1\",\"node\":\"n\"}\n");
}

static void test_names_cannot_forge_lines(void **state UNUSED)
{
	log_warn("x", "a\n\"b\\\x01\xff\xc3\xa4", NULL);
	assert_string_equal(logged(), "\"level\":\"warn\",\"event\":\"x\",\"message\":"
				      "\"a\\n\\\"b\\\\\\u0001\xef\xbf\xbd\xc3\xa4\"}\n");
}

static void test_the_level_holds(void **state UNUSED)
{
	enum log_level level = LOG_ERROR;

	log_debug("x", "hidden", NULL);
	assert_string_equal(logged(), "");
	assert_false(log_level_parse("loud", &level));
	assert_true(log_level_parse("warn", &level));
	assert_int_equal(level, LOG_WARN);
	log_set_level(level);
	log_info("x", "hidden", NULL);
	assert_string_equal(logged(), "");
}

static void test_repeats_are_counted(void **state UNUSED)
{
	for (int i = 0; i < 5; i++)
		log_info("r", "same", NULL);
	log_info("r", "other", NULL);
	assert_string_equal(
		logged(),
		"\"level\":\"info\",\"event\":\"r\",\"message\":\"same\"}\n"
		"\"level\":\"info\",\"event\":\"r\",\"message\":\"same\",\"repeated\":\"4\"}\n"
		"\"level\":\"info\",\"event\":\"r\",\"message\":\"other\"}\n");
}

static void test_an_error_where_it_stops(void **state UNUSED)
{
	struct error error;

	error_set(&error, ERROR_UNAVAILABLE, "no way");
	error_hint(&error, "Try again.");
	log_failure(LOG_ERROR, "dial", &error, "tries again in 5 s");
	assert_string_equal(logged(),
			    "\"level\":\"error\",\"event\":\"dial\",\"message\":\"no way\","
			    "\"code\":\"UNAVAILABLE\",\"hint\":\"Try again.\","
			    "\"goes_on\":\"tries again in 5 s\"}\n");
}

#define LOG_TEST(test) cmocka_unit_test_setup_teardown(test, capture, release)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOG_TEST(test_one_line_with_fields),    LOG_TEST(test_names_cannot_forge_lines),
		LOG_TEST(test_the_level_holds),         LOG_TEST(test_repeats_are_counted),
		LOG_TEST(test_an_error_where_it_stops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
