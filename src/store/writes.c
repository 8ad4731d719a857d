/*
 * writes: can the database be written, as far as is known?
 */
#include "store/driver.h"

#include "sys/clock.h"

#include <stdatomic.h>

/* By neither a race, a constraint, nor what the body says. */
void store_note_failure(struct store_connection *connection, enum store_mode mode,
			const struct error *error)
{
	bool stays = connection->loss == STORE_LOSS_NONE || connection->loss == STORE_LOSS_LOCK;

	if (mode == STORE_WRITE && connection->to_blame && stays && error->code != ERROR_CONFLICT)
		connection->store->writes->doubtful = true;
}

/* --- a lock that others keep --- */

#define KEEPER_SIZE 256

int store_lock_ms(const struct store_connection *connection, enum store_mode mode)
{
	const struct store *store = connection->store;
	int64_t ms = store->lock_ms;

	if (mode == STORE_WRITE && store->writes->locked && ms > STORE_LOCKED_MS)
		ms = STORE_LOCKED_MS;
	if (connection->deadline.ms && mono_until(clock_mono(), connection->deadline) < ms)
		ms = mono_until(clock_mono(), connection->deadline);
	return ms > 0 ? (int)ms : 1; /* 0 is "without end" to PostgreSQL */
}

struct keeper {
	const char *waited_for;
	enum store_mode mode;
	char name[KEEPER_SIZE]; /* "": nobody but the control plane */
};

static bool keeper_body(struct store_connection *connection, void *argument, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct keeper *keeper = argument;

	if (!store_query(connection, connection->driver->who_locks,
			 STORE_PARAMS(store_text(keeper->waited_for),
				      store_int(keeper->mode == STORE_WRITE)),
			 &rows, error))
		return false;
	str_copy(keeper->name, sizeof keeper->name, rows.count ? store_get_text(&rows, 0, 0) : "");
	return true;
}

static bool is_kept(struct store_connection *connection, enum store_mode mode, struct error *error)
{
	char waited_for[sizeof connection->waited_for];
	struct keeper keeper = {waited_for, mode, ""}, any = {"", mode, ""};
	struct error why = *error, ignored; /* who can't be asked for isn't known to keep it */

	if (!connection->driver->who_locks)
		return true;
	str_copy(waited_for, sizeof waited_for, connection->waited_for);
	if (!store_run_once(connection, STORE_READ, keeper_body, &keeper, &ignored))
		return false;
	if (keeper.name[0])
		return !error_set(error, why.code, "%s: %s", why.what, keeper.name);
	/* A queue of our own is worth a long wait, unless another keeps back who is first in it. */
	if (mode == STORE_WRITE && connection->store->writes->locked &&
	    store_run_once(connection, STORE_READ, keeper_body, &any, &ignored) && !any.name[0])
		connection->store->writes->locked = false;
	return false;
}

bool store_waited_long(const struct store_connection *connection)
{
	return connection->lock_ms > connection->store->lock_ms / 2;
}

bool store_note_lock(struct store_connection *connection, enum store_mode mode, struct error *error)
{
	struct store_writes *writes = connection->store->writes;
	bool known = mode == STORE_WRITE && writes->locked;
	bool kept = (store_waited_long(connection) || known) && is_kept(connection, mode, error);

	if (kept && mode == STORE_WRITE)
		writes->locked = true;
	connection->loss = kept ? STORE_LOSS_LOCK : STORE_LOSS_RACE;
	connection->refused = false;
	return kept;
}

/* --- writing to see whether it goes --- */

#define PROBE "write-probe"

static bool probe_body(struct store_connection *connection, void *argument UNUSED,
		       struct error *error)
{
	CLEANUP(free) char *text = mem_alloc(STORE_PROBE_SIZE + 1);

	memset(text, 'x', STORE_PROBE_SIZE);
	return store_exec(connection,
			  "INSERT INTO meta (name, value) VALUES ('" PROBE "', $1) "
			  "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
			  STORE_PARAMS(store_text(text)), error);
}

static bool unprobe_body(struct store_connection *connection, void *argument UNUSED,
			 struct error *error)
{
	return store_exec(connection, "DELETE FROM meta WHERE name = '" PROBE "'", STORE_NO_PARAMS,
			  error);
}

/* Two transactions: what one adds and removes again might never come to the disk. */
static bool probe(struct store_connection *connection, struct error *error)
{
	bool done = store_run_retried(connection, STORE_WRITE, probe_body, NULL, error) &&
		    store_run_retried(connection, STORE_WRITE, unprobe_body, NULL, error);

	connection->to_blame = false; /* what is told is our own */
	return done;
}

/* A server's words may name hosts and users. */
static bool tell(const struct store_connection *connection, const struct error *failure,
		 struct error *error)
{
	bool shared = connection->driver->shared;

	if (connection->store->writes->locked) {
		error_set(error, ERROR_UNAVAILABLE,
			  "writes to the database wait for a lock that another %s keeps",
			  shared ? "session" : "program");
		return error_hint(error, "End it: the log says which it is. This is asked anew "
					 "each time.");
	}
	if (shared || !failure->what[0])
		error_set(error, ERROR_UNAVAILABLE, "writes to the database fail");
	else
		error_set(error, ERROR_UNAVAILABLE, "writes to the database fail: %s",
			  failure->what);
	return error_hint(error, "Make room on its disk, or see in the log why; this is asked "
				 "anew each time.");
}

bool store_check_writes(struct store_connection *connection, struct error *error)
{
	struct store_writes *writes = connection->store->writes;
	struct error failure = {0};
	bool done;

	if (!writes->doubtful)
		return true;
	if (atomic_exchange(&writes->probing, true))
		return tell(connection, &failure, error);
	done = probe(connection, &failure);
	if (done)
		writes->doubtful = false;
	writes->probing = false;
	return done || tell(connection, &failure, error);
}
