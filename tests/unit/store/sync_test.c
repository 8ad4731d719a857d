/* What a SQLite commit promises, on a disk that is slow, and on one that fails. The disk here is the
 * test's own fdatasync. */
#include "lib/test.h"
#include "store/driver.h"
#include "sys/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LATE_MS 100

static atomic_bool held, failing;
static atomic_int waiting;

int fdatasync(int fd)
{
	waiting++;
	while (held)
		usleep(1000);
	waiting--;
	if (failing) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_fdatasync, fd);
}

struct fixture {
	char folder[64], url[128];
	struct store *store;
	struct store_connection *one, *other;
};

static int setup(void **state)
{
	struct fixture *fixture = mem_alloc(sizeof *fixture);
	struct error error;

	snprintf(fixture->folder, sizeof fixture->folder, "/tmp/bc-sync-XXXXXX");
	assert_non_null(mkdtemp(fixture->folder));
	snprintf(fixture->url, sizeof fixture->url, "sqlite:%s/db", fixture->folder);
	expect_ok(store_open(fixture->url, &fixture->store, &error), &error);
	expect_ok(store_connect(fixture->store, &fixture->one, &error), &error);
	expect_ok(store_connect(fixture->store, &fixture->other, &error), &error);
	*state = fixture;
	return 0;
}

static void close_store(struct fixture *fixture)
{
	store_disconnect(fixture->one);
	store_disconnect(fixture->other);
	store_destroy(fixture->store);
	fixture->one = fixture->other = NULL;
	fixture->store = NULL;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;
	char command[128];

	held = failing = false;
	close_store(fixture);
	snprintf(command, sizeof command, "rm -r '%s'", fixture->folder);
	assert_int_equal(system(command), 0);
	free(fixture);
	return 0;
}

/* --- bodies --- */

static bool write_body(struct store_connection *connection, void *argument, struct error *error)
{
	return store_exec(connection, "INSERT INTO meta (name, value) VALUES ($1, 'x')",
			  STORE_PARAMS(store_text(argument)), error);
}

static bool count_body(struct store_connection *connection, void *argument, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(connection, "SELECT count(*) FROM meta WHERE value = 'x'", STORE_NO_PARAMS,
			 &rows, error))
		return false;
	*(int64_t *)argument = store_get_int(&rows, 0, 0);
	return true;
}

/* One transaction in a thread of its own. */
struct run {
	struct store_connection *connection;
	enum store_mode mode;
	store_body_fn *body;
	void *argument;
	pthread_t thread;
	bool ok;
	struct error error;
	atomic_bool over;
};

static struct run run_of(struct store_connection *connection, enum store_mode mode,
			 store_body_fn *body, void *argument)
{
	return (struct run){
		.connection = connection, .mode = mode, .body = body, .argument = argument};
}

static void *run_main(void *arg)
{
	struct run *run = arg;

	run->ok = store_run(run->connection, run->mode, run->body, run->argument, &run->error);
	run->over = true;
	return NULL;
}

static void begin(struct run *run)
{
	assert_int_equal(pthread_create(&run->thread, NULL, run_main, run), 0);
}

static void await_sync(void)
{
	for (int i = 0; i < 10000 && waiting == 0; i++)
		usleep(1000);
	assert_int_not_equal(waiting, 0);
}

/* --- tests --- */

static void test_nothing_is_told_before_it_is_on_the_disk(void **state)
{
	struct fixture *fixture = *state;
	int64_t count = 0;
	struct run writer = run_of(fixture->one, STORE_WRITE, write_body, "one");
	struct run reader = run_of(fixture->other, STORE_READ, count_body, &count);

	held = true;
	begin(&writer);
	await_sync();
	begin(&reader);
	usleep(50000);
	assert_false(writer.over);
	assert_false(reader.over);
	held = false;
	pthread_join(writer.thread, NULL);
	pthread_join(reader.thread, NULL);
	expect_ok(writer.ok, &writer.error);
	expect_ok(reader.ok, &reader.error);
	assert_int_equal(count, 1);
}

/* The kernel tells of a failure once; the next sync would say that all is well. */
static void test_after_a_failed_sync_nothing_counts_as_kept(void **state)
{
	struct fixture *fixture = *state;
	struct error error;
	int64_t count;

	failing = true;
	expect_error(store_run(fixture->one, STORE_WRITE, write_body, "lost?", &error), &error,
		     ERROR_UNAVAILABLE, "sync");
	failing = false;
	expect_error(store_run(fixture->one, STORE_WRITE, write_body, "two", &error), &error,
		     ERROR_UNAVAILABLE, "disk failed");
	expect_error(store_run(fixture->other, STORE_READ, count_body, &count, &error), &error,
		     ERROR_UNAVAILABLE, "disk failed");
	close_store(fixture);
	expect_ok(store_open(fixture->url, &fixture->store, &error), &error);
	expect_ok(store_connect(fixture->store, &fixture->one, &error), &error);
	expect_ok(store_run(fixture->one, STORE_WRITE, write_body, "two", &error), &error);
}

static bool slow_body(struct store_connection *connection, void *argument, struct error *error)
{
	struct fixture *fixture = argument;
	struct run waiter = run_of(fixture->other, STORE_WRITE, write_body, "late");
	struct mono began = clock_mono();

	if (!write_body(connection, "first", error))
		return false;
	store_set_deadline(fixture->other, mono_after(began, LATE_MS));
	begin(&waiter);
	pthread_join(waiter.thread, NULL);
	expect_error(waiter.ok, &waiter.error, ERROR_UNAVAILABLE, "too long");
	assert_true(mono_until(began, clock_mono()) < 20 * LATE_MS);
	return true;
}

/* Whoever waits for another writer is told in time. */
static void test_a_deadline_ends_the_wait_for_another_writer(void **state)
{
	struct fixture *fixture = *state;
	struct error error;
	int64_t count;

	expect_ok(store_run(fixture->one, STORE_WRITE, slow_body, fixture, &error), &error);
	store_set_deadline(fixture->other, (struct mono){0});
	expect_ok(store_run(fixture->other, STORE_READ, count_body, &count, &error), &error);
	assert_int_equal(count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nothing_is_told_before_it_is_on_the_disk,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_after_a_failed_sync_nothing_counts_as_kept,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_deadline_ends_the_wait_for_another_writer,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
