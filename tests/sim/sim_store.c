/*
 * store/store.h's store_run() as workers see it, put before the real one by the linker: a job may be
 * overtaken between two of its transactions, its database may be away, and a commit's answer may be
 * lost. Each commit is a crash point. The world's own calls, which no fiber runs, see the real one.
 */
#include "sim/sim.h"
#include "sim/sim_fiber.h"
#include "store/store.h"

#define OVERTAKEN_ONE_IN 3
#define UNHEARD_ONE_IN   400

bool __real_store_run(struct store_connection *connection, enum store_mode mode,
		      store_body_fn *body, void *argument, struct error *error);
bool __wrap_store_run(struct store_connection *connection, enum store_mode mode,
		      store_body_fn *body, void *argument, struct error *error);

static bool fail(struct error *error, const char *why)
{
	return error_set(error, ERROR_UNAVAILABLE, "the simulated database: %s", why);
}

bool __wrap_store_run(struct store_connection *connection, enum store_mode mode,
		      store_body_fn *body, void *argument, struct error *error)
{
	if (!fiber_inside())
		return __real_store_run(connection, mode, body, argument, error);
	if (sim_effective() && sim_chance(OVERTAKEN_ONE_IN))
		fiber_stop();
	if (!sim_effective())
		return fail(error, "who asks is dying");
	if (sim.current->database_away)
		return fail(error, "it doesn't answer");
	if (mode == STORE_READ)
		return __real_store_run(connection, mode, body, argument, error);
	if (sim_crash_point("before a commit", "database"))
		return fail(error, "who asks is dying");
	bool done = __real_store_run(connection, mode, body, argument, error);
	/* Committed, and dies before anybody hears of it. */
	if (done && sim_crash_point("after a commit", "database"))
		return true;
	if (done && sim_chance(UNHEARD_ONE_IN)) {
		sim_trace("the answer to a commit is lost");
		return fail(error, "the connection broke during a commit");
	}
	return done;
}
