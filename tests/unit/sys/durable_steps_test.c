/* Lists of changes that a worker makes. */
#include "durable_files.h"
#include "lib/hang.h"

#include <unistd.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FOLDER(test_steps_run_in_order),
		IN_FOLDER(test_a_failed_step_ends_the_list),
		IN_FOLDER(test_a_step_that_hangs_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
