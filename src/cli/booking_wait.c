#include "cli/booking.h"
#include "cli/view.h"
#include "cli/wait.h"
#include "sys/clock.h"

#define UNCONFIRMED "ReleaseUnconfirmed"

static bool all_released(const json_t *reservation)
{
	size_t index;
	json_t *item;

	json_array_foreach(json_object_get(reservation, "allocations"), index, item)
	{
		const char *state = view_text(item, "state");
		if (!state || (!str_equal(state, "released") && !str_equal(state, "failed")))
			return false;
	}
	return !view_has_condition(reservation, "DevicesHeld");
}

/* Over, and no node's word is awaited any more: there was none. */
static bool is_unconfirmed(const json_t *reservation)
{
	return view_has_condition(reservation, UNCONFIRMED) && all_released(reservation);
}

bool booking_reached(const json_t *reservation, enum booking_goal goal)
{
	const char *state = view_text(reservation, "state");

	if (!state)
		return false;
	switch (goal) {
	case BOOKING_ACTIVE:
		return str_equal(state, "active");
	case BOOKING_RELEASED:
		return view_terminal(state) && all_released(reservation) &&
		       !is_unconfirmed(reservation);
	}
	return false;
}

static enum booking_goal goal_of(const struct wait_for *wait)
{
	return *(const enum booking_goal *)wait->arg;
}

#define HELD "DevicesHeld: " /* its message says enough */

static const char *why_releasing(struct arena *arena, const json_t *reservation)
{
	const char *all = view_conditions(arena, json_object_get(reservation, "conditions"));

	if (!all || !view_has_condition(reservation, "DevicesHeld"))
		return NULL;
	return str_starts(all, HELD) ? all + strlen(HELD) : all;
}

static const char *step_of_release(const json_t *reservation, const char *state)
{
	if (booking_reached(reservation, BOOKING_RELEASED))
		return "released";
	if (view_terminal(state) && is_unconfirmed(reservation))
		return "over, unconfirmed";
	return view_terminal(state) ? "releasing" : state;
}

static const char *step_of_booking(struct arena *arena, const json_t *reservation,
				   const char *state)
{
	const char *node = view_nodes(arena, reservation);
	const char *waits = view_condition(arena, reservation, "Waiting");
	const char *why = view_reasons(arena, json_object_get(reservation, "reasons"),
				       json_object_get(reservation, "devices"));

	if (view_starts(arena, reservation, clock_wall()))
		return arena_printf(arena, "%s%s%s, starts %s", state, node ? " on " : "",
				    node ? node : "", view_exact(arena, reservation, "startAt"));
	if (str_equal(state, "placed") && node && waits)
		return arena_printf(arena, "placed on %s, waits: %s", node, waits);
	if (str_equal(state, "placed") && node)
		return arena_printf(arena, "placed on %s", node);
	if (str_equal(state, "pending") && why)
		return arena_printf(arena, "pending: %s", why);
	return state;
}

static const char *step(const struct wait_for *wait, struct arena *arena, const json_t *reservation)
{
	const char *state = view_text(reservation, "state");

	if (!state)
		return "?";
	return goal_of(wait) == BOOKING_RELEASED ? step_of_release(reservation, state)
						 : step_of_booking(arena, reservation, state);
}

/* A booking for later has got all it can now. */
static bool placed_for_later(const json_t *reservation, const char *state)
{
	CLEANUP(arena) struct arena arena = {0};

	return str_equal(state, "placed") && view_starts(&arena, reservation, clock_wall());
}

static enum wait_verdict judge(const struct wait_for *wait, const json_t *reservation)
{
	const char *state = view_text(reservation, "state");

	if (!state)
		return WAIT_ON;
	if (booking_reached(reservation, goal_of(wait)))
		return WAIT_REACHED;
	if (goal_of(wait) == BOOKING_RELEASED)
		return view_terminal(state) && is_unconfirmed(reservation) ? WAIT_NEVER : WAIT_ON;
	if (placed_for_later(reservation, state))
		return WAIT_REACHED;
	return view_terminal(state) ? WAIT_NEVER : WAIT_ON;
}

static const char *why_never(struct arena *arena, const json_t *reservation)
{
	return view_reasons(arena, json_object_get(reservation, "reasons"),
			    json_object_get(reservation, "devices"));
}

static const char *why_unconfirmed(struct arena *arena, const json_t *reservation)
{
	return view_condition(arena, reservation, UNCONFIRMED);
}

bool booking_wait(struct cli *cli, const char *id, enum booking_goal goal,
		  struct wait_together *together, json_t **ret_reservation, bool *ret_reached,
		  struct error *error)
{
	const struct wait_for wait = {
		.path = arena_printf(&cli->arena, "/v1/reservations/%s", id),
		.id = id,
		.goes_on = goal == BOOKING_ACTIVE ? "the reservation" : "the release",
		.see = "reservations show",
		.arg = &goal,
		.step = step,
		.remark = goal == BOOKING_RELEASED ? why_releasing : NULL,
		.judge = judge,
		.why_never = goal == BOOKING_RELEASED ? why_unconfirmed : why_never,
		/* Nothing was refused: it didn't come. */
		.never_status = goal == BOOKING_RELEASED ? 1 : 0,
		.together = together,
	};

	return wait_run(cli, &wait, ret_reservation, ret_reached, error);
}
