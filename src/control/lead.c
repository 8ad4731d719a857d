#include "control/lead.h"

struct lead_work {
	const char *replica;
	int64_t fence;
};

/* Reads first: only a lease that is free or half over is written. One that lasts longer than any is
 * given is of a time that the clock has gone back from: nobody can hold it until then. */
static bool look_at_lease(struct store_connection *db, struct lead_work *work, bool *ret_take,
			  struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	int64_t left_ms;
	bool mine;

	if (!store_query(db, "SELECT holder, fence, until_ms FROM leases WHERE name = 'pass'",
			 STORE_NO_PARAMS, &rows, error))
		return false;
	work->fence = 0;
	*ret_take = true;
	if (rows.count == 0)
		return true;
	left_ms = store_get_int(&rows, 0, 2) - store_now(db).ms;
	mine = str_equal(store_get_text(&rows, 0, 0), work->replica);
	if (mine)
		work->fence = store_get_int(&rows, 0, 1);
	*ret_take = left_ms <= (mine ? CONTROL_LEASE_MS / 2 : 0) || left_ms > CONTROL_LEASE_MS;
	return true;
}

static bool take_body(struct store_connection *db, void *argument, struct error *error)
{
	struct lead_work *work = argument;
	CLEANUP(store_rows) struct store_rows rows = {0};
	int64_t now_ms = store_now(db).ms;
	bool take;

	if (!look_at_lease(db, work, &take, error))
		return false;
	if (!take)
		return true;
	/* Whoever holds it keeps its fence; whoever takes over gets the next. */
	if (!store_query(db,
			 "INSERT INTO leases (name, holder, fence, until_ms) "
			 "VALUES ('pass', $1, 1, $3) "
			 "ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, "
			 "until_ms = excluded.until_ms, fence = leases.fence + "
			 "CASE WHEN leases.holder = excluded.holder THEN 0 ELSE 1 END "
			 "WHERE leases.holder = excluded.holder OR leases.until_ms <= $2 "
			 "OR leases.until_ms > $3 RETURNING fence",
			 STORE_PARAMS(store_text(work->replica), store_int(now_ms),
				      store_int(now_ms + CONTROL_LEASE_MS)),
			 &rows, error))
		return false;
	work->fence = rows.count == 1 ? store_get_int(&rows, 0, 0) : 0;
	return true;
}

bool lead_take(struct control *control, int64_t *ret_fence, struct error *error)
{
	struct lead_work work = {.replica = control->replica};

	if (!store_run(control->connection, STORE_WRITE, take_body, &work, error))
		return false;
	*ret_fence = work.fence;
	return true;
}

struct fenced_work {
	int64_t fence;
	store_body_fn *body;
	void *argument;
	bool leads;
};

static bool fenced_body(struct store_connection *db, void *argument, struct error *error)
{
	struct fenced_work *work = argument;
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db, "SELECT 1 FROM leases WHERE name = 'pass' AND fence = $1",
			 STORE_PARAMS(store_int(work->fence)), &rows, error))
		return false;
	work->leads = rows.count == 1;
	return !work->leads || work->body(db, work->argument, error);
}

bool lead_run(struct control *control, int64_t fence, store_body_fn *body, void *argument,
	      bool *ret_leads, struct error *error)
{
	struct fenced_work work = {fence, body, argument, true};
	bool done = store_run(control->connection, STORE_WRITE, fenced_body, &work, error);

	*ret_leads = work.leads;
	return done;
}

bool control_lead(struct control *control, bool *ret_leads, struct error *error)
{
	int64_t fence;

	if (!lead_take(control, &fence, error))
		return false;
	*ret_leads = fence != 0;
	return true;
}

static bool resign_body(struct store_connection *db, void *argument, struct error *error)
{
	const struct control *control = argument;

	return store_exec(db, "UPDATE leases SET until_ms = 0 WHERE name = 'pass' AND holder = $1",
			  STORE_PARAMS(store_text(control->replica)), error);
}

bool control_resign(struct control *control, struct error *error)
{
	return store_run(control->connection, STORE_WRITE, resign_body, control, error);
}
