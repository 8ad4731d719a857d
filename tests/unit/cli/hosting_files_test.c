/* The files of one `kubernetes manifest`: what was there is never touched, what was made goes. */
#include "cli/hosting_files.h"

#include "lib/folder.h"
#include "lib/test.h"
#include "sys/durable.h"

#include <sys/stat.h>

struct made {
	struct buf text;
	struct chart chart;
	struct hosting_files files;
};

static void made_begin(struct made *made, void **state, const char *prefix)
{
	static const char *const names[CHART_FILES] = {"Chart.yaml", "values.yaml",
						       "templates/bcd.yaml"};
	char name[64];

	*made = (struct made){0};
	buf_add_text(&made->text, prefix);
	for (size_t i = 0; i < CHART_FILES; i++) {
		made->chart.files[i].name = names[i];
		buf_add_text(&made->chart.files[i].text, prefix);
	}
	snprintf(name, sizeof name, "%s.json", prefix);
	made->files = (struct hosting_files){
		.manifests = &made->text,
		.helm = mem_strdup(folder_path(state, "chart")),
		.chart = &made->chart,
		.secret_out = mem_strdup(folder_path(state, name)),
		.placeholder = "# not yet, and longer than what comes\n",
	};
}

static void made_end(struct made *made)
{
	buf_deinit(&made->text);
	for (size_t i = 0; i < CHART_FILES; i++)
		buf_deinit(&made->chart.files[i].text);
	free((void *)made->files.helm);
	free((void *)made->files.secret_out);
}

static void expect_content(const char *path, const char *wanted)
{
	CLEANUP(buf) struct buf content = {0};
	struct error error;

	expect_ok(durable_read(path, 1000, &content, &error), &error);
	assert_string_equal(buf_text(&content), wanted);
}

static void expect_chart(void **state, const char *wanted)
{
	expect_content(folder_path(state, "chart/Chart.yaml"), wanted);
	expect_content(folder_path(state, "chart/values.yaml"), wanted);
	expect_content(folder_path(state, "chart/templates/bcd.yaml"), wanted);
}

/* Both looked while there was no folder. */
static void test_of_two_runs_the_second_takes_nothing_away(void **state)
{
	struct made first, second;
	struct error error;

	made_begin(&first, state, "first");
	made_begin(&second, state, "second");
	expect_ok(hosting_files_check(&first.files, &error), &error);
	expect_ok(hosting_files_check(&second.files, &error), &error);
	expect_ok(hosting_files_make(&first.files, &error), &error);
	expect_error(hosting_files_make(&second.files, &error), &error, ERROR_CONFLICT,
		     "exists already");
	assert_non_null(strstr(error.hint, "name a new one"));
	hosting_files_remove(&second.files);
	expect_chart(state, "first");
	assert_true(durable_absent(second.files.secret_out));
	hosting_files_remove(&first.files);
	assert_true(durable_absent(first.files.helm));
	assert_true(durable_absent(first.files.secret_out));
	made_end(&first);
	made_end(&second);
}

/* A folder that somebody fills before any chart is there. */
static void test_files_of_others_stay(void **state)
{
	struct made made;
	struct error error;

	made_begin(&made, state, "made");
	expect_ok(durable_make_folder(made.files.helm, 0755, &error), &error);
	expect_ok(durable_create(folder_path(state, "chart/Chart.yaml"), "theirs", 6, 0644, &error),
		  &error);
	expect_error(hosting_files_make(&made.files, &error), &error, ERROR_CONFLICT, "exists");
	hosting_files_remove(&made.files);
	expect_content(folder_path(state, "chart/Chart.yaml"), "theirs");
	made_end(&made);
}

/* proves: MAN-63 */
static void test_the_secret_takes_the_placeholders_own_file(void **state)
{
	json_t *secret = json_pack("{s:s}", "kind", "Secret");
	struct made made;
	struct error error;
	struct stat before, now;

	made_begin(&made, state, "made");
	expect_ok(hosting_files_make(&made.files, &error), &error);
	expect_content(made.files.secret_out, made.files.placeholder);
	assert_int_equal(stat(made.files.secret_out, &before), 0);
	expect_ok(hosting_files_secret(&made.files, secret, &error), &error);
	assert_int_equal(stat(made.files.secret_out, &now), 0);
	assert_int_equal(now.st_ino, before.st_ino); /* it was never in another file */
	assert_int_equal(now.st_mode & 0777, 0600);
	json_decref(secret);
	secret = json_load_file(made.files.secret_out, 0, NULL);
	assert_string_equal(json_string_value(json_object_get(secret, "kind")), "Secret");
	json_decref(secret);
	made_end(&made);
}

static void test_names_that_are_too_long(void **state)
{
	char name[300] = "";
	struct made made;
	struct error error;

	memset(name, 'x', sizeof name - 1);
	made_begin(&made, state, "made");
	free((void *)made.files.secret_out);
	made.files.secret_out = mem_strdup(folder_path(state, name));
	assert_false(hosting_files_check(&made.files, &error));
	assert_non_null(strstr(error.what, "File name too long"));
	assert_non_null(strstr(error.hint, "Name another one"));
	made_end(&made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FOLDER(test_of_two_runs_the_second_takes_nothing_away),
		IN_FOLDER(test_files_of_others_stay),
		IN_FOLDER(test_the_secret_takes_the_placeholders_own_file),
		IN_FOLDER(test_names_that_are_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
