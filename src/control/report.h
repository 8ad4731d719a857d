/*
 * report: what a node reports, one kind a file: what it has (report_inventory.c), what is wrong with it
 * (report_conditions.c), and what became of an allocation (report_allocations.c); report.c takes one report, and
 * acknowledges it. Private to this room.
 */
#pragma once

#include "control/nodes.h"
#include "control/work.h"

struct report_work {
	const struct control_report *report;
	struct control_report_result result;
	char ignored[ERROR_WHAT_SIZE]; /* why it had no effect; "" when it had */
	char unknown[ERROR_WHAT_SIZE]; /* conditions new on this node and not known here; "" none */
	bool eases; /* it may be about what was in the way of a bind that failed */
};

/* A report that can't be used: acknowledged, since sending it again would not make it better. Returns true. */
bool report_ignore(struct report_work *work, const char *format, ...) PRINTF(2, 3);

/* Text of a node, fit for the database: at most `max` bytes of UTF-8, cut between characters. */
const char *report_text(struct arena *arena, const char *text, size_t max);

/* Each of these is done in the report's transaction; true also for one that is ignored. */
MUST_CHECK bool reported_conditions(struct store_connection *db, struct report_work *work,
				    struct node *node, struct error *error);
MUST_CHECK bool reported_inventory(struct store_connection *db, struct report_work *work,
				   struct node *node, struct error *error);

MUST_CHECK bool reported_bound(struct store_connection *db, struct report_work *work,
			       struct error *error);
MUST_CHECK bool reported_failed(struct store_connection *db, struct report_work *work,
				struct error *error);
MUST_CHECK bool reported_released(struct store_connection *db, struct report_work *work,
				  struct error *error);

/* One condition of a node comes, changes or goes, in the database and as an event. */
struct node_condition_change;
MUST_CHECK bool report_condition_change(struct store_connection *db, const struct node *node,
					const struct node_condition_change *change,
					struct error *error);
