/* A data folder that another one has, and one whose lock can't be taken. */
#include "node/lock.h"

#include "kubelet.h"
#include "lib/folder.h"
#include "sys/clock.h"
#include "sys/durable.h"
#include "sys/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct world {
	struct loop *loop;
	struct lock *lock;
	bool ready;
	struct error failed; /* code NONE: not */
};

static void on_over(void *arg, const struct error *error)
{
	struct world *world = arg;

	if (error)
		world->failed = *error;
	else
		world->ready = true;
}

static bool has_failed(void *arg)
{
	return ((struct world *)arg)->failed.code != ERROR_NONE;
}

static bool is_answering(void *arg)
{
	return !durable_absent(folder_path(arg, LOCK_SOCKET));
}

static bool is_ready(void *arg)
{
	return ((struct world *)arg)->ready;
}

/* The data folder is `name` in the test's. */
static void begin_in(struct world *world, void **state, const char *name)
{
	struct error error;

	*world = (struct world){.loop = loop_create()};
	log_set_level(LOG_ERROR);
	expect_ok(lock_wait(world->loop, folder_path(state, name), *state, on_over, world,
			    &world->lock, &error),
		  &error);
}

static void begin(struct world *world, void **state)
{
	begin_in(world, state, ".");
}

static void end(struct world *world)
{
	lock_destroy(world->lock);
	kubelet_run(world->loop, 20);
	loop_destroy(world->loop);
}

/* proves: HOSTED-3 HOSTED-32 */
static void test_another_one_has_it(void **state)
{
	struct durable_lock *other;
	struct world world;
	struct error error;

	expect_ok(durable_lock_take(folder_path(state, "lock"), &other, &error), &error);
	begin(&world, state);
	kubelet_until(world.loop, is_answering, state, 1000, "who waits can be asked");
	kubelet_run(world.loop, 200);
	assert_false(world.ready);
	durable_lock_destroy(other);
	kubelet_until(world.loop, is_ready, &world, 500, "the lock is ours");
	end(&world);
}

/* Nobody is waited for, and it is tried again. */
static void test_it_can_not_be_taken(void **state)
{
	struct world world;

	begin_in(&world, state, "data");
	assert_int_equal(rename(folder_path(state, "data"), folder_path(state, "away")), 0);
	kubelet_run(world.loop, 200);
	assert_false(world.ready || has_failed(&world));
	assert_true(durable_absent(folder_path(state, LOCK_SOCKET)));
	assert_int_equal(rename(folder_path(state, "away"), folder_path(state, "data")), 0);
	kubelet_until(world.loop, is_ready, &world, 3000, "the lock is ours");
	end(&world);
}

/* Only somebody can move it away. */
static void test_no_file_is_in_its_place(void **state)
{
	struct world world;

	assert_int_equal(symlink("nowhere", folder_path(state, "lock")), 0);
	begin(&world, state);
	kubelet_until(world.loop, has_failed, &world, 3000, "it isn't waited for");
	assert_false(world.ready);
	assert_non_null(strstr(world.failed.what, "not a file but a link"));
	assert_non_null(strstr(world.failed.hint, "Move it away"));
	end(&world);
}

static void write_left(void **state, const char *name, int64_t seconds_ago)
{
	const struct timespec then = {.tv_sec = clock_wall().ms / 1000 - seconds_ago};
	const char *path = folder_path(state, name);
	struct error error;

	expect_ok(durable_create(path, "a key", 5, 0600, &error), &error);
	assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){then, then}, 0), 0);
}

/* A join that was killed left a key half-written; another one is at work.  proves: JOIN-14 */
static void test_what_killed_ones_left_goes(void **state)
{
	struct world world;

	write_left(state, ".tmp-0123456789abcdef", DURABLE_LEFT_MS / 1000 + 1);
	write_left(state, ".tmp-fedcba9876543210", 0);
	begin(&world, state);
	kubelet_until(world.loop, is_ready, &world, 3000, "the lock is ours");
	assert_true(durable_absent(folder_path(state, ".tmp-0123456789abcdef")));
	assert_false(durable_absent(folder_path(state, ".tmp-fedcba9876543210")));
	end(&world);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_another_one_has_it, folder_make,
						folder_remove),
		cmocka_unit_test_setup_teardown(test_it_can_not_be_taken, folder_make,
						folder_remove),
		cmocka_unit_test_setup_teardown(test_no_file_is_in_its_place, folder_make,
						folder_remove),
		cmocka_unit_test_setup_teardown(test_what_killed_ones_left_goes, folder_make,
						folder_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
