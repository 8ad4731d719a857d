#include "control/report.h"

#include "base/utf8.h"
#include "control/room.h"
#include "control/stream.h"
#include "control/waking.h"
#include "sys/log.h"

#include <stdarg.h>
#include <stdio.h>

#define SEEN_AGAIN_MS ((int64_t)1000)

bool report_ignore(struct report_work *work, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(work->ignored, sizeof work->ignored, format, args);
	va_end(args);
	return true;
}

const char *report_text(struct arena *arena, const char *text, size_t max)
{
	CLEANUP(buf) struct buf out = {0};
	CLEANUP(free) char *head = NULL;

	text = text ? text : "";
	head = mem_dup(text, strnlen(text, max) + 1);
	head[strnlen(text, max)] = '\0';
	utf8_add_clean(&out, head);
	return arena_strdup(arena, buf_text(&out));
}

/* --- one report --- */

/* What was in the way of a bind may be gone: a release is over, a condition has ended, the machine is told
 * anew. So the node is asked again without the long wait, for all that it failed: it alone knows what was in
 * whose way, and another refusal costs little. Here, with the report, so that whoever stops has lost nothing. */
static bool excuse(struct store_connection *db, struct report_work *work, struct error *error)
{
	const char *node = work->report->node;
	CLEANUP(store_rows) struct store_rows rows = {0};

	work->result.look_again = true;
	return store_query(db,
			   "UPDATE allocations SET excused = 1 WHERE node = $1 AND state = "
			   "'failed' AND excused = 0 RETURNING 1",
			   STORE_PARAMS(store_text(node)), &rows, error) &&
	       (rows.count == 0 || room_refresh(db, node, error));
}

static bool apply(struct store_connection *db, struct report_work *work, struct node *node,
		  struct error *error)
{
	switch (work->report->kind) {
	case CONTROL_REPORT_INVENTORY:
		return reported_inventory(db, work, node, error);
	case CONTROL_REPORT_CONDITIONS:
		return reported_conditions(db, work, node, error);
	case CONTROL_REPORT_BOUND:
		return reported_bound(db, work, error);
	case CONTROL_REPORT_FAILED:
		return reported_failed(db, work, error);
	case CONTROL_REPORT_RELEASED:
		return reported_released(db, work, error);
	case CONTROL_REPORT_KUBERNETES_RELEASED:
	case CONTROL_REPORT_OPERATION_RESULT:
		return true; /* nothing waits for them yet */
	case CONTROL_REPORT_UNKNOWN:
		return report_ignore(work, "a kind of report that this version doesn't know");
	}
	return report_ignore(work, "kind %d", (int)work->report->kind);
}

static bool apply_and_ease(struct store_connection *db, struct report_work *work, struct node *node,
			   struct error *error)
{
	return apply(db, work, node, error) && (!work->eases || excuse(db, work, error));
}

/* What bears on the reservations that run there is told to those who follow them. */
static bool apply_and_wake(struct store_connection *db, struct report_work *work, struct node *node,
			   struct error *error)
{
	CLEANUP(waking) struct waking waking = {0};
	enum control_report_kind kind = work->report->kind;

	if (kind != CONTROL_REPORT_INVENTORY && kind != CONTROL_REPORT_CONDITIONS &&
	    kind != CONTROL_REPORT_BOUND && kind != CONTROL_REPORT_FAILED)
		return apply_and_ease(db, work, node, error);
	return waking_begin(db, node->id, &waking, error) &&
	       apply_and_ease(db, work, node, error) && waking_end(db, node->id, &waking, error);
}

static bool note_seen(struct store_connection *db, const struct node *node, struct error *error)
{
	int64_t now_ms = store_now(db).ms;

	/* Whoever says much is not written down each time. */
	if (node->connected && now_ms >= node->seen_ms && now_ms - node->seen_ms < SEEN_AGAIN_MS)
		return true;
	return store_exec(db, "UPDATE node_streams SET seen_ms = $2, connected = 1 WHERE node = $1",
			  STORE_PARAMS(store_text(node->id), store_int(now_ms)), error);
}

static bool acknowledge(struct store_connection *db, int64_t sequence,
			const struct control_report *report, const struct node *node,
			struct error *error)
{
	return store_exec(
		       db,
		       "UPDATE nodes SET acknowledged = $2, has_inventory = $3, has_conditions = "
		       "$4 WHERE id = $1",
		       STORE_PARAMS(store_text(report->node), store_int(sequence),
				    store_int(node->has_inventory),
				    store_int(node->has_conditions)),
		       error) &&
	       note_seen(db, node, error);
}

static bool report_body(struct store_connection *db, void *argument, struct error *error)
{
	struct report_work *work = argument;
	const struct control_report *report = work->report;
	CLEANUP(node) struct node node = {0};

	work->result = (struct control_report_result){0};
	work->ignored[0] = work->unknown[0] = '\0';
	work->eases = false;
	if (!stream_check(db, report->node, report->epoch, &node, error))
		return false;
	work->result.acknowledged = node.acknowledged;
	/* Without a number: what is wrong with a node that can't record anything. */
	if (report->sequence == 0 && report->kind == CONTROL_REPORT_CONDITIONS)
		return apply_and_wake(db, work, &node, error) &&
		       acknowledge(db, node.acknowledged, report, &node, error);
	if (report->sequence <= node.acknowledged)
		return true;
	if (!apply_and_wake(db, work, &node, error) ||
	    !acknowledge(db, report->sequence, report, &node, error))
		return false;
	work->result.acknowledged = report->sequence;
	/* Adopting ends by itself: from here on the node can be judged. */
	return !str_equal(node.state, "adopting") || !node.has_inventory || !node.has_conditions ||
	       node_set_state(db, &node, "ready", error);
}

bool control_node_report(struct control *control, const struct control_report *report,
			 struct control_report_result *ret_result, struct error *error)
{
	struct report_work work = {.report = report};

	if (!store_run(control->connection, STORE_WRITE, report_body, &work, error))
		return false;
	if (work.ignored[0] != '\0')
		log_warn("report-ignored", work.ignored, "node", report->node, NULL);
	if (work.unknown[0] != '\0')
		log_warn("condition-unknown", "conditions not known here count as advice", "node",
			 report->node, "types", work.unknown, NULL);
	*ret_result = work.result;
	return true;
}
