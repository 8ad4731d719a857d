#include "serve/workers.h"

#include "fake_control.h"
#include "lib/test.h"
#include "store/store.h"

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

struct world {
	struct loop *loop;
	struct store *store;
	struct workers *workers;
	int done, ran; /* on the loop; `ran` counts those whose work was done */
	int expected;
};

struct job {
	struct world *world;
	int number;
	bool ran;
	pthread_t thread;
	sem_t *gate; /* the work waits for it; NULL: it doesn't */
};

static void work(void *arg, struct control *control)
{
	struct job *job = arg;

	assert_non_null(control->connection);
	assert_string_equal(control->replica, "rep");
	if (job->gate)
		sem_wait(job->gate);
	job->thread = pthread_self();
	job->ran = true;
}

static void done(void *context, void *arg)
{
	struct world *world = context;
	struct job *job = arg;

	world->done++;
	world->ran += job->ran;
	if (world->done == world->expected)
		loop_stop(world->loop);
}

static void open_world(struct world *world, size_t threads)
{
	struct error error;

	*world = (struct world){.loop = loop_create()};
	expect_ok(store_open("sqlite::memory:", &world->store, &error), &error);
	expect_ok(
		workers_create(world->loop, world->store, "rep", threads, &world->workers, &error),
		&error);
}

static void close_world(struct world *world)
{
	workers_destroy(world->workers);
	store_destroy(world->store);
	loop_run(world->loop); /* closes handles */
	loop_destroy(world->loop);
}

static void test_results_come_back(void **state)
{
	struct job jobs[200];

	(void)state;
	for (size_t threads = 0; threads < 5; threads += 2) {
		struct world world;

		open_world(&world, threads);
		world.expected = (int)ARRAY_SIZE(jobs);
		for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
			jobs[i] = (struct job){.world = &world};
			assert_true(workers_submit(world.workers, work, done, &world, &jobs[i]));
		}
		assert_int_equal(world.done, 0); /* never from inside submit */
		loop_run(world.loop);
		assert_int_equal(world.ran, ARRAY_SIZE(jobs));
		for (size_t i = 0; i < ARRAY_SIZE(jobs); i++)
			assert_int_equal(pthread_equal(jobs[i].thread, pthread_self()) != 0,
					 threads == 0);
		close_world(&world);
	}
}

static void test_bound(void **state)
{
	struct job *jobs = mem_alloc((WORKERS_MAX_JOBS + 1) * sizeof *jobs);
	struct world world;

	(void)state;
	open_world(&world, 1);
	world.expected = WORKERS_MAX_JOBS;
	for (size_t i = 0; i < WORKERS_MAX_JOBS; i++)
		assert_true(workers_submit(world.workers, work, done, &world, &jobs[i]));
	/* finished or not, none has come back: the loop did not run */
	assert_false(workers_submit(world.workers, work, done, &world, &jobs[WORKERS_MAX_JOBS]));
	loop_run(world.loop);
	assert_int_equal(world.ran, WORKERS_MAX_JOBS);
	world.expected++;
	assert_true(workers_submit(world.workers, work, done, &world, &jobs[WORKERS_MAX_JOBS]));
	loop_run(world.loop);
	close_world(&world);
	free(jobs);
}

/* What runs is waited for, what waits is given back undone. */
static void *open_gate(void *arg)
{
	const struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};

	nanosleep(&pause, NULL);
	sem_post(arg);
	return NULL;
}

static void test_stopping(void **state)
{
	struct job jobs[20] = {0};
	struct world world;
	pthread_t opener;
	sem_t gate;

	(void)state;
	sem_init(&gate, 0, 0);
	open_world(&world, 1);
	jobs[0].gate = &gate;
	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++)
		assert_true(workers_submit(world.workers, work, done, &world, &jobs[i]));
	world.expected = -1;
	pthread_create(&opener, NULL, open_gate, &gate);
	workers_destroy(world.workers);
	pthread_join(opener, NULL);
	world.workers = NULL;
	assert_int_equal(world.done, ARRAY_SIZE(jobs));
	assert_true(world.ran <= 1);
	close_world(&world);
	sem_destroy(&gate);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_results_come_back),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_stopping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
