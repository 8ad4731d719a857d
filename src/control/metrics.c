#include "control/metrics.h"

#include "control/work.h"

#define LEASE_NAME "pass"

struct metrics_work {
	const struct control *control;
	struct control_metrics metrics;
};

static bool count_states(struct store_connection *db, const char *sql,
			 struct control_counts *ret_counts, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db, sql, STORE_NO_PARAMS, &rows, error))
		return false;
	for (size_t i = 0; i < rows.count && ret_counts->count < CONTROL_MAX_COUNTS; i++) {
		struct control_count *count = &ret_counts->items[ret_counts->count++];

		str_copy(count->state, sizeof count->state, store_get_text(&rows, i, 0));
		count->connected = store_get_int(&rows, i, 1) != 0;
		count->count = store_get_int(&rows, i, 2);
	}
	return true;
}

static bool count_all_states(struct store_connection *db, struct control_metrics *metrics,
			     struct error *error)
{
	return count_states(db,
			    "SELECT n.state, coalesce(s.connected, 0), count(*) FROM nodes n "
			    "LEFT JOIN node_streams s ON s.node = n.id "
			    "GROUP BY n.state, coalesce(s.connected, 0) ORDER BY 1, 2",
			    &metrics->nodes, error) &&
	       count_states(db,
			    "SELECT state, 0, count(*) FROM reservations GROUP BY state ORDER BY 1",
			    &metrics->reservations, error) &&
	       count_states(db,
			    "SELECT state, 0, count(*) FROM allocations GROUP BY state ORDER BY 1",
			    &metrics->allocations, error);
}

static bool count_one(struct store_connection *db, const char *sql,
		      const struct store_value *params, size_t count, int64_t *ret_number,
		      struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db, sql, params, count, &rows, error))
		return false;
	*ret_number = store_get_int(&rows, 0, 0);
	return true;
}

static bool count_gpus(struct store_connection *db, struct control_metrics *metrics,
		       struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};

	if (!store_query(db,
			 "SELECT g.healthy, count(*) FROM gpus g JOIN nodes n ON n.id = g.node "
			 "WHERE n.state NOT IN ('lost', 'retired') GROUP BY g.healthy",
			 STORE_NO_PARAMS, &rows, error))
		return false;
	for (size_t i = 0; i < rows.count; i++) {
		metrics->gpus += store_get_int(&rows, i, 1);
		if (store_get_int(&rows, i, 0) != 0)
			metrics->gpus_healthy += store_get_int(&rows, i, 1);
	}
	return count_one(db,
			 /* There is a booking as long as the devices may be held. */
			 "SELECT count(DISTINCT gpu) FROM bookings WHERE from_ms <= $1",
			 STORE_PARAMS(store_int(store_now(db).ms)), &metrics->gpus_taken, error);
}

static bool read_lease(struct store_connection *db, struct metrics_work *work, struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	struct control_metrics *metrics = &work->metrics;

	if (!store_query(db, "SELECT holder, fence, until_ms FROM leases WHERE name = $1",
			 STORE_PARAMS(store_text(LEASE_NAME)), &rows, error))
		return false;
	if (rows.count == 0)
		return true;
	metrics->lease_fence = store_get_int(&rows, 0, 1);
	metrics->lease_left_ms = store_get_int(&rows, 0, 2) - store_now(db).ms;
	if (metrics->lease_left_ms < 0)
		metrics->lease_left_ms = 0;
	metrics->leads = metrics->lease_left_ms > 0 &&
			 str_equal(store_get_text(&rows, 0, 0), work->control->replica);
	return true;
}

static bool metrics_body(struct store_connection *db, void *argument, struct error *error)
{
	struct metrics_work *work = argument;
	struct control_metrics *metrics = &work->metrics;

	*metrics = (struct control_metrics){0};
	return count_all_states(db, metrics, error) && count_gpus(db, metrics, error) &&
	       read_lease(db, work, error) &&
	       count_one(db, "SELECT count(*) FROM pools WHERE state = 'active'", STORE_NO_PARAMS,
			 &metrics->pools, error) &&
	       count_one(db,
			 "SELECT count(*) FROM allocations WHERE state = 'releasing' AND "
			 "releasing_ms <= $1",
			 STORE_PARAMS(store_int(store_now(db).ms - CONTROL_OVERDUE_MS)),
			 &metrics->releases_overdue, error) &&
	       count_one(db, "SELECT value FROM counters WHERE name = 'outbox'", STORE_NO_PARAMS,
			 &metrics->outbox_last, error);
}

bool control_metrics(struct control *control, struct control_metrics *ret_metrics,
		     struct error *error)
{
	struct metrics_work work = {.control = control};

	if (!store_run(control->connection, STORE_READ, metrics_body, &work, error))
		return false;
	*ret_metrics = work.metrics;
	return true;
}
