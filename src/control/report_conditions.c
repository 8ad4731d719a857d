#include "control/report.h"

#include "control/core/node_conditions.h"

#include <stdio.h>

#define MAX_CONDITION_TYPE   64
#define MAX_CONDITION_REASON 64
#define MAX_AHEAD_MS         ((int64_t)60 * 1000)

static bool load_conditions(struct store_connection *db, const char *node, struct store_rows *rows,
			    struct error *error)
{
	return store_query(db,
			   "SELECT type, reason, message, since_ms FROM node_conditions "
			   "WHERE node = $1 AND type <> $2 ORDER BY type",
			   STORE_PARAMS(store_text(node), store_text(NODE_INVENTORY_REFUSED)), rows,
			   error);
}

static bool publish_condition(struct store_connection *db, const struct node *node,
			      const struct node_condition *condition, bool holds,
			      struct error *error)
{
	return work_event(db, node->tenant, "node.condition.changed", node->id,
			  json_pack("{s:s, s:b, s:s, s:s}", "type", condition->type, "status",
				    holds, "reason", condition->reason, "message",
				    condition->message),
			  error);
}

bool report_condition_change(struct store_connection *db, const struct node *node,
			     const struct node_condition_change *change, struct error *error)
{
	const struct node_condition *now = change->now;

	if (!now)
		return store_exec(
			       db, "DELETE FROM node_conditions WHERE node = $1 AND type = $2",
			       STORE_PARAMS(store_text(node->id), store_text(change->before->type)),
			       error) &&
		       publish_condition(db, node, change->before, false, error);
	return store_exec(db,
			  "INSERT INTO node_conditions (node, type, reason, message, since_ms) "
			  "VALUES ($1, $2, $3, $4, $5) ON CONFLICT (node, type) DO UPDATE SET "
			  "reason = excluded.reason, message = excluded.message",
			  STORE_PARAMS(store_text(node->id), store_text(now->type),
				       store_text(now->reason), store_text(now->message),
				       store_int(now->since_ms)),
			  error) &&
	       publish_condition(db, node, now, true, error);
}

/* GW-30: of a newer bcd. It counts as advice, and is logged when it comes, not while it stays. */
static void note_unknown(struct report_work *work, const struct node_condition_change *change)
{
	size_t used = strlen(work->unknown);

	if (change->now && !change->before && !node_condition_is_known(change->now->type))
		snprintf(work->unknown + used, sizeof work->unknown - used, "%s%s",
			 used ? ", " : "", change->now->type);
}

bool reported_conditions(struct store_connection *db, struct report_work *work, struct node *node,
			 struct error *error)
{
	const struct control_report *report = work->report;
	CLEANUP(store_rows) struct store_rows rows = {0};
	CLEANUP(arena) struct arena arena = {0};
	struct node_condition before[CONTROL_MAX_CONDITIONS], now[CONTROL_MAX_CONDITIONS];
	struct node_condition_changes changes = {0};
	int64_t now_ms = store_now(db).ms;
	bool done = true;

	if (report->conditions.count > CONTROL_MAX_CONDITIONS)
		return report_ignore(work, "%zu conditions, at most %d are taken",
				     report->conditions.count, CONTROL_MAX_CONDITIONS);
	if (!load_conditions(db, node->id, &rows, error))
		return false;
	assert(rows.count <= CONTROL_MAX_CONDITIONS);
	for (size_t i = 0; i < rows.count; i++)
		before[i] = (struct node_condition){
			store_get_text(&rows, i, 0), store_get_text(&rows, i, 1),
			store_get_text(&rows, i, 2), store_get_int(&rows, i, 3)};
	for (size_t i = 0; i < report->conditions.count; i++) {
		const struct control_condition *from = &report->conditions.items[i];
		bool sane = from->since.ms > 0 && from->since.ms <= now_ms + MAX_AHEAD_MS;

		now[i] = (struct node_condition){
			report_text(&arena, from->type, MAX_CONDITION_TYPE),
			report_text(&arena, from->reason, MAX_CONDITION_REASON),
			report_text(&arena, from->message, CONTROL_MAX_TEXT),
			sane ? from->since.ms : now_ms};
	}
	node_conditions_diff(before, rows.count, now, report->conditions.count, &changes);
	for (size_t i = 0; i < changes.count && done; i++) {
		note_unknown(work, &changes.items[i]);
		work->eases |= !changes.items[i].now;
		done = report_condition_change(db, node, &changes.items[i], error);
	}
	vec_deinit(&changes);
	node->has_conditions = true;
	work->result.look_again = true;
	return done;
}
