/* A lock that somebody else keeps: another session of PostgreSQL, another program that has SQLite's file. */
#include "unit/store/database.h"

#include "store/driver.h"
#include "sys/clock.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <time.h>

/* Shorter than STORE_LOCKED_MS would make it no test of that. */
#define LOCK_MS (STORE_LOCKED_MS * 2)

struct world {
	struct store *store;
	struct store_connection *connection;
	PGconn *session, *older; /* the second is there, too, and keeps nobody from anything */
	sqlite3 *program;
};

static int setup(void **state)
{
	struct world *world = mem_alloc(sizeof *world);
	struct error error;

	database_setup(state);
	expect_ok(store_open(database_url(), &world->store, &error), &error);
	world->store->lock_ms = LOCK_MS;
	expect_ok(store_connect(world->store, &world->connection, &error), &error);
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	PQfinish(world->session);
	PQfinish(world->older);
	sqlite3_close(world->program);
	store_disconnect(world->connection);
	store_destroy(world->store);
	free(world);
	return database_teardown(state);
}

static void run_in(PGconn *session, const char *sql)
{
	PGresult *result = PQexec(session, sql);

	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		fail_msg("%s: %s", sql, PQerrorMessage(session));
	PQclear(result);
}

static void run_there(struct world *world, const char *sql)
{
	run_in(world->session, sql);
}

static PGconn *meet(const char *name)
{
	const char *const names[] = {"dbname", "application_name", NULL};
	const char *const values[] = {database_url(), name, NULL};

	return PQconnectdbParams(names, values, true);
}

static void lock(struct world *world)
{
	if (!database_is_postgres()) {
		assert_int_equal(sqlite3_open(database_url() + strlen("sqlite:"), &world->program),
				 SQLITE_OK);
		assert_int_equal(sqlite3_exec(world->program, "BEGIN IMMEDIATE", NULL, NULL, NULL),
				 SQLITE_OK);
		return;
	}
	if (!world->session)
		world->session = meet("intruder");
	run_there(world, "BEGIN");
	run_there(world, "LOCK TABLE counters IN ROW EXCLUSIVE MODE");
}

static void unlock(struct world *world)
{
	if (database_is_postgres())
		run_there(world, "ROLLBACK");
	else
		assert_int_equal(sqlite3_exec(world->program, "ROLLBACK", NULL, NULL, NULL),
				 SQLITE_OK);
}

static bool write_body(struct store_connection *connection, void *argument, struct error *error)
{
	int *ret_lock_ms = argument;

	if (ret_lock_ms) /* as the next one would wait */
		*ret_lock_ms = store_lock_ms(connection, STORE_WRITE);
	return store_exec(connection, "DELETE FROM meta WHERE name = 'none'", STORE_NO_PARAMS,
			  error);
}

static bool read_body(struct store_connection *connection, void *argument, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	(void)argument;
	return store_query(connection, "SELECT value FROM counters", STORE_NO_PARAMS, &rows, error);
}

static void expect_locked(struct world *world)
{
	struct error error;

	expect_error(store_run(world->connection, STORE_WRITE, write_body, NULL, &error), &error,
		     ERROR_UNAVAILABLE,
		     database_is_postgres() ? "(intruder, idle in transaction) keeps it"
					    : "test.db' locked");
	assert_true(store_is_locked(world->connection));
	assert_true(store_is_to_blame(world->connection));
}

/* It is said who it is, nobody waits for it again and again, and whoever reads goes on.
 *
 * proves: ADM-10 */
static void test_a_lock_that_others_keep(void **state)
{
	struct world *world = *state;
	struct store_stats stats;
	struct error error;

	expect_ok(store_check_writes(world->connection, &error), &error);
	lock(world);
	assert_int_equal(store_lock_ms(world->connection, STORE_WRITE), LOCK_MS);
	expect_locked(world);
	assert_int_equal(store_lock_ms(world->connection, STORE_WRITE), STORE_LOCKED_MS);
	expect_locked(world);
	store_stats_read(world->store, STORE_WRITE, &stats);
	assert_int_equal(stats.retries, 0);
	expect_error(store_check_writes(world->connection, &error), &error, ERROR_UNAVAILABLE,
		     database_is_postgres() ? "a lock that another session keeps"
					    : "a lock that another program keeps");
	expect_ok(store_run(world->connection, STORE_READ, read_body, NULL, &error), &error);

	unlock(world);
	expect_ok(store_check_writes(world->connection, &error), &error);
	expect_ok(store_run(world->connection, STORE_WRITE, write_body, NULL, &error), &error);
	assert_false(store_is_locked(world->connection));
	assert_int_equal(store_lock_ms(world->connection, STORE_WRITE), LOCK_MS);
}

/* On PostgreSQL a row is enough: it is met in the middle of a transaction. */
static void test_a_row_that_others_keep(void **state)
{
	struct world *world = *state;
	struct error error;

	if (!database_is_postgres())
		return;
	lock(world);
	run_there(world, "ROLLBACK");
	run_there(world, "BEGIN");
	run_there(world, "UPDATE meta SET value = value WHERE name = 'lineage'");
	expect_ok(store_run(world->connection, STORE_WRITE, write_body, NULL, &error), &error);
	run_there(world, "INSERT INTO meta (name, value) VALUES ('none', 'x')");
	run_there(world, "COMMIT");
	run_there(world, "BEGIN");
	run_there(world, "UPDATE meta SET value = 'y' WHERE name = 'none'");
	expect_locked(world);
	run_there(world, "ROLLBACK");
	expect_ok(store_run(world->connection, STORE_WRITE, write_body, NULL, &error), &error);
}

/* Lets go of `counters` as soon as a writer of ours has lost a race for it. */
struct replica {
	struct world *world;
	PGconn *session;
	_Atomic bool over; /* nobody waits any more */
};

static void *let_go(void *argument)
{
	static const struct timespec pause = {.tv_nsec = 1000000};
	struct replica *replica = argument;
	struct store_stats stats, now;

	store_stats_read(replica->world->store, STORE_WRITE, &stats);
	do {
		nanosleep(&pause, NULL);
		store_stats_read(replica->world->store, STORE_WRITE, &now);
	} while (now.retries == stats.retries && !replica->over);
	run_in(replica->session, "ROLLBACK");
	return NULL;
}

static void expect_race(struct world *world, struct replica *replica)
{
	struct error error;
	pthread_t thread;
	int lock_ms = 0;
	bool done;

	replica->over = false;
	run_in(replica->session, "BEGIN");
	run_in(replica->session, "LOCK TABLE counters IN EXCLUSIVE MODE");
	assert_int_equal(pthread_create(&thread, NULL, let_go, replica), 0);
	done = store_run(world->connection, STORE_WRITE, write_body, &lock_ms, &error);
	replica->over = true;
	pthread_join(thread, NULL);
	if (!done)
		fail_msg("%s", error.what);
	assert_false(store_is_locked(world->connection));
	assert_int_equal(lock_ms, LOCK_MS);
}

/* However long another replica takes, nobody but us keeps the lock: it is a race, also when one was kept by another
 * a moment ago, and though another writes to what we don't wait for.
 *
 * proves: ADM-10 */
static void test_a_lock_that_a_replica_keeps(void **state)
{
	struct world *world = *state;
	struct replica replica = {.world = world};
	struct error error;

	if (!database_is_postgres())
		return;
	replica.session = meet("better-compute");
	expect_race(world, &replica);
	lock(world);
	expect_locked(world);
	unlock(world);
	expect_race(world, &replica);
	world->older = meet("older");
	run_in(world->older, "BEGIN");
	run_in(world->older, "LOCK TABLE meta IN ROW EXCLUSIVE MODE");
	expect_race(world, &replica);
	expect_ok(store_check_writes(world->connection, &error), &error);
	PQfinish(replica.session);
}

/* Not whoever has been at it for longest, such as one who writes elsewhere, or who tidies up (as autovacuum does) the
 * table with the row. proves: ADM-10 */
static void test_who_it_is_of_several(void **state)
{
	struct world *world = *state;
	struct error error;

	if (!database_is_postgres())
		return;
	world->older = meet("older");
	run_in(world->older, "BEGIN");
	run_in(world->older, "LOCK TABLE tenants IN ROW EXCLUSIVE MODE");
	run_in(world->older, "LOCK TABLE meta IN SHARE UPDATE EXCLUSIVE MODE");
	lock(world);
	expect_locked(world);
	unlock(world);
	expect_ok(store_run(world->connection, STORE_WRITE, write_body, NULL, &error), &error);
	run_there(world, "INSERT INTO meta (name, value) VALUES ('none', 'x')");
	run_there(world, "BEGIN");
	run_there(world, "UPDATE meta SET value = 'y' WHERE name = 'none'");
	expect_locked(world);
	unlock(world);
}

/* Ours queue for SQLite's file: whoever is let in next knows already that it needn't wait long. */
static void test_who_is_next_in_the_queue(void **state)
{
	struct world *world = *state;
	struct error error;

	if (database_is_postgres())
		return;
	lock(world);
	expect_error(store_run_once(world->connection, STORE_WRITE, write_body, NULL, &error),
		     &error, ERROR_UNAVAILABLE, "test.db' locked");
	assert_int_equal(store_lock_ms(world->connection, STORE_WRITE), STORE_LOCKED_MS);
	unlock(world);
}

/* Who has no time left hasn't waited long enough to say that one is kept. */
static void test_a_wait_that_the_deadline_ends(void **state)
{
	struct world *world = *state;
	struct error error;

	lock(world);
	store_set_deadline(world->connection, mono_after(clock_mono(), 5));
	assert_int_equal(store_lock_ms(world->connection, STORE_WRITE), 5);
	assert_int_equal(store_lock_ms(world->connection, STORE_READ), 5);
	expect_error(store_run(world->connection, STORE_WRITE, write_body, NULL, &error), &error,
		     ERROR_UNAVAILABLE, "tries lost");
	assert_false(store_is_locked(world->connection));
	store_set_deadline(world->connection, (struct mono){0});
	assert_int_equal(store_lock_ms(world->connection, STORE_WRITE), LOCK_MS);
	expect_locked(world);
	unlock(world);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_lock_that_others_keep, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_row_that_others_keep, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_lock_that_a_replica_keeps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_who_it_is_of_several, setup, teardown),
		cmocka_unit_test_setup_teardown(test_who_is_next_in_the_queue, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_wait_that_the_deadline_ends, setup,
						teardown),
	};

	return database_main(argc, argv, tests, ARRAY_SIZE(tests));
}
