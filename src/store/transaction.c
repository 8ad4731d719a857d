/*
 * transaction: statements, the transactions around them, and what is done when one lost a race.
 */
#include "store/driver.h"

#include "base/hash.h"
#include "sys/clock.h"
#include "sys/random.h"

#include <time.h>

/* A constraint that is still in the way after so many looks is really there. */
#define MAX_CONSTRAINT_TRIES 3
#define MAX_PAUSE_MS         50

/* --- statements --- */

uint64_t store_sql_hash(const char *sql)
{
	return hash_text(sql);
}

bool store_exec(struct store_connection *connection, const char *sql,
		const struct store_value *params, size_t count, struct error *error)
{
	assert(connection->inside);
	assert(connection->mode == STORE_WRITE);
	assert(!connection->failed);
	if (connection->driver->run(connection, sql, params, count, NULL, error))
		return true;
	connection->failed = true;
	return false;
}

bool store_query(struct store_connection *connection, const char *sql,
		 const struct store_value *params, size_t count, struct store_rows *ret_rows,
		 struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	assert(connection->inside);
	assert(!connection->failed);
	if (!connection->driver->run(connection, sql, params, count, &rows, error)) {
		connection->failed = true;
		return false;
	}
	store_rows_deinit(ret_rows);
	*ret_rows = rows;
	rows = (struct store_rows){0};
	return true;
}

/* --- transactions --- */

struct wall store_now(const struct store_connection *connection)
{
	assert(connection->inside);
	return connection->now;
}

bool store_run_once(struct store_connection *connection, enum store_mode mode, store_body_fn *body,
		    void *argument, struct error *error)
{
	const struct store_driver *driver = connection->driver;
	bool done;

	assert(!connection->inside);
	connection->loss = STORE_LOSS_NONE;
	connection->failed = connection->refused = false;
	connection->mode = mode;
	connection->lock_ms = store_lock_ms(connection, mode);
	connection->waited_for[0] = '\0';
	if (!driver->begin(connection, mode, &connection->now, error))
		return false;
	connection->inside = true;
	done = body(connection, argument, error);
	connection->inside = false;
	/* A body that goes on after a failed statement would commit half of what it meant. */
	assert(!done || !connection->failed);
	if (!connection->failed && driver->settle && !driver->settle(connection, error)) {
		connection->failed = true;
		done = false;
	}
	connection->refused = !done && !connection->failed;
	if (done && driver->commit(connection, error))
		return true;
	driver->rollback(connection);
	return false;
}

/* Lets the winner finish; longer each time and never the same for two losers. */
static void pause_after_loss(int tries)
{
	int64_t most_ms = tries * 4 < MAX_PAUSE_MS ? tries * 4 : MAX_PAUSE_MS;
	int64_t ms = (int64_t)random_below((uint64_t)most_ms + 1);
	struct timespec pause = {.tv_sec = 0, .tv_nsec = ms * 1000000};

	nanosleep(&pause, NULL);
}

bool store_is_late(const struct store_connection *connection)
{
	return connection->deadline.ms && mono_until(clock_mono(), connection->deadline) <= 0;
}

bool store_is_locked(const struct store_connection *connection)
{
	return connection->to_blame && connection->loss == STORE_LOSS_LOCK;
}

bool store_is_to_blame(const struct store_connection *connection)
{
	return connection->to_blame;
}

void store_set_deadline(struct store_connection *connection, struct mono deadline)
{
	connection->deadline = deadline;
}

bool store_run_retried(struct store_connection *connection, enum store_mode mode,
		       store_body_fn *body, void *argument, struct error *error)
{
	int constraint_tries = 0;

	connection->refused = false;
	if (store_is_late(connection))
		return error_set(error, ERROR_UNAVAILABLE, "the database was waited for too long");
	for (int tries = 1; tries <= STORE_MAX_TRIES; tries++) {
		if (tries > 1)
			connection->store->counters[mode].retries++;
		if (store_run_once(connection, mode, body, argument, error)) {
			if (mode == STORE_WRITE)
				connection->store->writes->locked = false;
			return true;
		}
		switch (connection->loss) {
		case STORE_LOSS_NONE:
			return false;
		case STORE_LOSS_LOCK:
			if (store_note_lock(connection, mode, error))
				return false;
			break;
		case STORE_LOSS_CONSTRAINT:
			if (++constraint_tries == MAX_CONSTRAINT_TRIES)
				return false;
			break;
		case STORE_LOSS_RACE:
			break;
		}
		if (store_is_late(connection))
			return false;
		pause_after_loss(tries);
	}
	error->code = ERROR_UNAVAILABLE;
	return error_wrap(error, "%d tries lost against other transactions", STORE_MAX_TRIES);
}

bool store_run(struct store_connection *connection, enum store_mode mode, store_body_fn *body,
	       void *argument, struct error *error)
{
	struct store_counters *counters = &connection->store->counters[mode];
	int64_t began_us = clock_us(), took_us;
	bool done = store_run_retried(connection, mode, body, argument, error);

	connection->to_blame = !done && !connection->refused;
	if (!done)
		store_note_failure(connection, mode, error);
	took_us = clock_us() - began_us;
	if (done)
		counters->committed++;
	else
		counters->failed++;
	counters->took_us += (uint64_t)took_us;
	counters->took[histogram_bucket(took_us)]++;
	return done;
}

/* --- figures --- */

void store_stats_read(const struct store *store, enum store_mode mode,
		      struct store_stats *ret_stats)
{
	const struct store_counters *counters = &store->counters[mode];

	*ret_stats = (struct store_stats){
		.committed = counters->committed,
		.failed = counters->failed,
		.retries = counters->retries,
		.took.sum_us = counters->took_us,
	};
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		ret_stats->took.counts[i] = counters->took[i];
}
