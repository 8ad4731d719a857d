#include "control/report.h"

#include "control/allocation.h"
#include "control/placing.h"

/* The allocation that a report speaks of. *ret_known is false when it isn't this node's. */
static bool load_allocation(struct store_connection *db, struct report_work *work, const char *id,
			    struct allocation *ret_allocation, bool *ret_known, struct error *error)
{
	*ret_known = false;
	if (!id_valid(id, "alc"))
		return report_ignore(work, "'%.40s' is no allocation", id);
	if (!allocation_load(db, id, ret_allocation, ret_known, error))
		return false;
	if (*ret_known && str_equal(ret_allocation->node, work->report->node))
		return true;
	*ret_known = false;
	return report_ignore(work, "allocation '%s' isn't one of this node", id);
}

/* It is bound from now on, or has been for long: said again, it changes nothing. While a release
 * is pending it stays pending (RES-31). */
bool reported_bound(struct store_connection *db, struct report_work *work, struct error *error)
{
	const struct control_report *report = work->report;
	struct allocation allocation;
	bool known;

	if (!load_allocation(db, work, report->bound.allocation, &allocation, &known, error))
		return false;
	if (!known)
		return true;
	if (allocation.assigned_generation == 0 ||
	    report->spec_generation < allocation.assigned_generation)
		return report_ignore(work, "allocation '%s' wasn't in Spec %lld", allocation.id,
				     (long long)report->spec_generation);
	if (allocation.state == ALLOCATION_RELEASED || allocation.state == ALLOCATION_FAILED)
		return report_ignore(work, "allocation '%s' is %s", allocation.id,
				     allocation_state_name(allocation.state));
	return allocation_bind(db, &allocation, error);
}

/* The node can't keep what it had bound: the devices stay booked, since pods may still use them. */
static bool lose_binding(struct store_connection *db, const struct control_report *report,
			 const struct allocation *allocation, struct error *error)
{
	CLEANUP(arena) struct arena arena = {0};
	const char *reason =
		arena_printf(&arena, "%s: %s", report->failed.reason, report->failed.message);

	return store_exec(db, "UPDATE allocations SET lost_reason = $2, lost_ms = $3 WHERE id = $1",
			  STORE_PARAMS(store_text(allocation->id),
				       store_text(report_text(&arena, reason, CONTROL_MAX_TEXT)),
				       store_int(store_now(db).ms)),
			  error);
}

bool reported_failed(struct store_connection *db, struct report_work *work, struct error *error)
{
	const struct control_report *report = work->report;
	CLEANUP(arena) struct arena arena = {0};
	struct allocation allocation;
	const char *reason;
	bool known;

	if (!load_allocation(db, work, report->failed.allocation, &allocation, &known, error))
		return false;
	if (!known)
		return true;
	if (allocation.assigned_generation == 0 ||
	    report->spec_generation < allocation.assigned_generation)
		return report_ignore(work, "allocation '%s' wasn't in Spec %lld", allocation.id,
				     (long long)report->spec_generation);
	reason = report_text(&arena, report->failed.reason, 64);
	work->result.look_again = true;
	switch (allocation.state) {
	case ALLOCATION_PLACED:
		return placing_failed(db, &allocation, reason, error);
	case ALLOCATION_BOUND:
		return lose_binding(db, report, &allocation, error);
	case ALLOCATION_RELEASING:
		/* It never got to bind it, so there is nothing to wait for. But the word of an
		 * early Spec is no word about a later one that still had it: then the node's own
		 * report is waited for, or STUCK_DEFERRED_MS. */
		return allocation.bound_ms != 0 ||
		       report->spec_generation < allocation.withdrawn_generation - 1 ||
		       allocation_finish(db, &allocation, reason, error);
	case ALLOCATION_RELEASED:
	case ALLOCATION_FAILED:
		break;
	}
	return report_ignore(work, "allocation '%s' is %s", allocation.id,
			     allocation_state_name(allocation.state));
}

bool reported_released(struct store_connection *db, struct report_work *work, struct error *error)
{
	const struct control_report *report = work->report;
	struct allocation allocation;
	bool known, given_up = false;

	/* Also of one that was ended here without its word: it was in the way until now. */
	work->eases = true;
	if (!load_allocation(db, work, report->released.allocation, &allocation, &known, error))
		return false;
	if (!known)
		return true;
	if (report->spec_generation >= allocation.withdrawn_generation &&
	    !allocation_word_came(db, &allocation, &given_up, error))
		return false;
	if (given_up)
		return true;
	if (!allocation_release_counts(allocation.state, allocation.withdrawn_generation,
				       report->spec_generation))
		return report_ignore(work,
				     "allocation '%s' is %s, withdrawn by Spec %lld, not by %lld",
				     allocation.id, allocation_state_name(allocation.state),
				     (long long)allocation.withdrawn_generation,
				     (long long)report->spec_generation);
	work->result.look_again = true;
	return allocation_finish(db, &allocation, "Released", error);
}
