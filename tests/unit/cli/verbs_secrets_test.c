/* Commands that get a secret once: the file where it goes. */
#include "unit/cli/verbs.h"

#include "sys/durable.h"

#include <unistd.h>

/* The answer of a repeated create has no token: nothing is in the file that the next step would name. */
static void test_a_repeated_join_token(void **state)
{
	const struct fake_answer answers[] = {OK(ITEM(JOIN_TOKEN, ""))};
	CLEANUP(buf) struct buf line = {0};
	static struct outcome outcome;

	buf_printf(&line, "join-tokens create --pool " POOL " --idempotency-key k --out %s",
		   folder_path(state, "t2"));
	run_line(state, buf_text(&line), "", answers, ARRAY_SIZE(answers), &outcome);
	assert_int_equal(outcome.status, 0);
	assert_non_null(strstr(outcome.err, "with the same --idempotency-key"));
	assert_null(strstr(outcome.err, "next"));
	assert_int_equal(access(folder_path(state, "t2"), F_OK), -1);
}

/* A file that is there is not touched, and a secret goes into a file of its owner alone. */
static void test_files_written(void **state)
{
	static struct outcome outcome;
	const struct fake_answer made[] = {OK(ITEM(KEY, ",\"key\":\"bck_new\""))};
	const char *path = folder_path(state, "key");
	CLEANUP(buf) struct buf line = {0};
	char content[64] = "";
	struct stat stat_now;

	buf_printf(&line, "keys create ci --role user --tenant " TENANT " --out %s", path);
	run_line(state, buf_text(&line), "", made, 1, &outcome);
	assert_int_equal(outcome.status, 0);
	assert_null(strstr(outcome.out, "bck_new"));
	assert_int_equal(stat(path, &stat_now), 0);
	assert_int_equal(stat_now.st_mode & 0777, 0600);
	FILE *file = fopen(path, "r");
	assert_non_null(fgets(content, sizeof content, file));
	fclose(file);
	assert_string_equal(content, "bck_new\n");

	run_line(state, buf_text(&line), "", made, 1, &outcome);
	assert_int_equal(outcome.status, 3);
	assert_non_null(strstr(outcome.err, "add --force"));
	assert_string_equal(outcome.seen, ""); /* nothing was made that nobody would have */
	buf_add_text(&line, " --force");
	run_line(state, buf_text(&line), "", made, 1, &outcome);
	assert_int_equal(outcome.status, 0);
	ino_t before = stat_now.st_ino;
	assert_int_equal(stat(path, &stat_now), 0);
	assert_int_equal(stat_now.st_ino, before); /* it was in no other file */
}

/* What was refused leaves the place as it was. */
static void test_a_place_without_a_secret(void **state)
{
	static const struct {
		const char *line;
		struct fake_answer answer;
		int status;
	} ENDS[] = {
		{"keys create ci --role user --tenant " TENANT "",
		 REFUSED(403, "FORBIDDEN", "role 'user' may not"), 5},
		{"keys rotate " KEY " --yes", REFUSED(404, "NOT_FOUND", "no such key"), 1},
		/* It was made before: its secret is told once. */
		{"join-tokens create --pool " POOL " --idempotency-key abcdefgh",
		 OK(ITEM(JOIN_TOKEN, "")), 0},
		{"keys create ci --role user --tenant " TENANT " --dry-run", OK("{}"), 0},
	};
	static const mode_t OLD[] = {0, 0600, 0644};
	static struct outcome outcome;
	const char *path = folder_path(state, "place");

	for (size_t i = 0; i < ARRAY_SIZE(ENDS) * ARRAY_SIZE(OLD); i++) {
		mode_t old = OLD[i % ARRAY_SIZE(OLD)];
		CLEANUP(buf) struct buf line = {0}, content = {0};
		struct durable_names names = {0};
		struct error error;

		if (old) {
			expect_ok(durable_replace(path, "old\n", 4, old, &error), &error);
		}
		buf_printf(&line, "%s --out %s", ENDS[i / ARRAY_SIZE(OLD)].line, path);
		buf_add_text(&line, old ? " --force" : "");
		run_line(state, buf_text(&line), "", &ENDS[i / ARRAY_SIZE(OLD)].answer, 1,
			 &outcome);
		if (outcome.status != ENDS[i / ARRAY_SIZE(OLD)].status)
			fail_msg("'%s' ended with %d: %s", buf_text(&line), outcome.status,
				 outcome.err);
		expect_ok(durable_list(*state, 100, &names, &error), &error);
		for (size_t k = 0; k < names.count; k++)
			assert_false(str_starts(names.names[k], ".tmp-"));
		durable_names_deinit(&names);
		if (!old) {
			assert_true(durable_absent(path));
			continue;
		}
		expect_ok(durable_read(path, 100, &content, &error), &error);
		assert_string_equal(buf_text(&content), "old\n");
		expect_ok(durable_remove(path, &error), &error);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_repeated_join_token),
		cmocka_unit_test(test_files_written),
		cmocka_unit_test(test_a_place_without_a_secret),
	};

	return cmocka_run_group_tests(tests, verbs_set_up, folder_remove);
}
