#include "control/core/stuck.h"

static struct stuck_plan finish(const char *why)
{
	return (struct stuck_plan){.step = STUCK_FINISH, .why = why};
}

struct stuck_plan stuck_decide(const struct stuck_view *view, struct wall now)
{
	int64_t last_carry_ms = view->own_end_ms + STUCK_MAX_CARRY_MS;

	if (view->node_lost)
		return finish("NodeLost");
	if (!view->was_bound && view->unknown_to_node &&
	    now.ms >= view->asked_ms + STUCK_DEFERRED_MS)
		return finish("NeverBound");
	if (view->booked_next) {
		/* It can't be pushed away, but until it begins nobody needs the devices. */
		if (now.ms >= view->handover_ms)
			return finish(STUCK_BOOKED_NEXT);
		if (view->reachable && now.ms >= last_carry_ms)
			return finish(STUCK_CARRIED_TOO_LONG);
		return (struct stuck_plan){.step = STUCK_WAIT};
	}
	if (!view->held)
		return (struct stuck_plan){.step = STUCK_HOLD};
	/* An unreachable node keeps its devices until somebody declares it lost. */
	if (!view->reachable)
		return (struct stuck_plan){.step = STUCK_WAIT};
	if (now.ms >= last_carry_ms)
		return finish(STUCK_CARRIED_TOO_LONG);
	if (view->booked_to_ms - now.ms <= STUCK_NEAR_MS) {
		int64_t from_ms = view->booked_to_ms > now.ms ? view->booked_to_ms : now.ms;

		return (struct stuck_plan){.step = STUCK_CARRY, .to_ms = from_ms + STUCK_STEP_MS};
	}
	return (struct stuck_plan){.step = STUCK_WAIT};
}
