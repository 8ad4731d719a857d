#include "control/core/reservation.h"

static const char *const STATES[RESERVATION_STATES] = {
	[RESERVATION_PENDING] = "pending",   [RESERVATION_PLACED] = "placed",
	[RESERVATION_ACTIVE] = "active",     [RESERVATION_RELEASING] = "releasing",
	[RESERVATION_RELEASED] = "released", [RESERVATION_DENIED] = "denied",
	[RESERVATION_FAILED] = "failed",     [RESERVATION_CANCELLED] = "cancelled",
	[RESERVATION_EXPIRED] = "expired",   [RESERVATION_PREEMPTED] = "preempted",
};

static const char *const EVENTS[RESERVATION_EVENTS] = {
	[RESERVATION_ON_PLACED] = "placed",     [RESERVATION_ON_BOUND] = "bound",
	[RESERVATION_ON_UNPLACED] = "unplaced", [RESERVATION_ON_WITHDRAWN] = "withdrawn",
	[RESERVATION_ON_RELEASED] = "released", [RESERVATION_ON_CANCELLED] = "cancelled",
	[RESERVATION_ON_EXPIRED] = "expired",   [RESERVATION_ON_DENIED] = "denied",
	[RESERVATION_ON_LOST] = "lost",         [RESERVATION_ON_PREEMPTED] = "preempted",
};

static const char *const ALLOCATION_NAMES[ALLOCATION_STATES] = {
	[ALLOCATION_PLACED] = "placed",       [ALLOCATION_BOUND] = "bound",
	[ALLOCATION_RELEASING] = "releasing", [ALLOCATION_RELEASED] = "released",
	[ALLOCATION_FAILED] = "failed",
};

/* Every step there is. */
static const struct {
	enum reservation_state from;
	enum reservation_event event;
	enum reservation_state to;
} STEPS[] = {
	{RESERVATION_PENDING, RESERVATION_ON_PLACED, RESERVATION_PLACED},
	{RESERVATION_PENDING, RESERVATION_ON_RELEASED, RESERVATION_RELEASED},
	{RESERVATION_PENDING, RESERVATION_ON_CANCELLED, RESERVATION_CANCELLED},
	{RESERVATION_PENDING, RESERVATION_ON_EXPIRED, RESERVATION_EXPIRED},
	{RESERVATION_PENDING, RESERVATION_ON_DENIED, RESERVATION_DENIED},
	{RESERVATION_PLACED, RESERVATION_ON_BOUND, RESERVATION_ACTIVE},
	{RESERVATION_PLACED, RESERVATION_ON_UNPLACED, RESERVATION_PENDING},
	{RESERVATION_PLACED, RESERVATION_ON_WITHDRAWN, RESERVATION_RELEASING},
	{RESERVATION_PLACED, RESERVATION_ON_RELEASED, RESERVATION_RELEASED},
	{RESERVATION_ACTIVE, RESERVATION_ON_BOUND, RESERVATION_ACTIVE},
	{RESERVATION_ACTIVE, RESERVATION_ON_WITHDRAWN, RESERVATION_RELEASING},
	{RESERVATION_ACTIVE, RESERVATION_ON_LOST, RESERVATION_FAILED},
	{RESERVATION_ACTIVE, RESERVATION_ON_PREEMPTED, RESERVATION_PREEMPTED},
	{RESERVATION_RELEASING, RESERVATION_ON_BOUND, RESERVATION_RELEASING},
	{RESERVATION_RELEASING, RESERVATION_ON_RELEASED, RESERVATION_RELEASED},
	{RESERVATION_RELEASING, RESERVATION_ON_LOST, RESERVATION_RELEASED},
};

const char *reservation_state_name(enum reservation_state state)
{
	assert((size_t)state < RESERVATION_STATES);
	return STATES[state];
}

const char *reservation_state_shown(enum reservation_state state)
{
	return reservation_state_name(state == RESERVATION_RELEASING ? RESERVATION_RELEASED
								     : state);
}

bool reservation_state_parse(const char *name, enum reservation_state *ret_state)
{
	for (size_t i = 0; i < RESERVATION_STATES; i++) {
		if (!str_equal(STATES[i], name))
			continue;
		*ret_state = (enum reservation_state)i;
		return true;
	}
	return false;
}

const char *reservation_event_name(enum reservation_event event)
{
	assert((size_t)event < RESERVATION_EVENTS);
	return EVENTS[event];
}

bool reservation_is_terminal(enum reservation_state state)
{
	for (size_t i = 0; i < ARRAY_SIZE(STEPS); i++) {
		if (STEPS[i].from == state)
			return false;
	}
	return true;
}

bool reservation_next(enum reservation_state state, enum reservation_event event,
		      enum reservation_state *ret_next)
{
	for (size_t i = 0; i < ARRAY_SIZE(STEPS); i++) {
		if (STEPS[i].from != state || STEPS[i].event != event)
			continue;
		*ret_next = STEPS[i].to;
		return true;
	}
	return false;
}

bool reservation_settle(enum reservation_state state, const struct reservation_parts *parts,
			enum reservation_event *ret_event)
{
	int held = parts->placed + parts->bound;

	switch (state) {
	case RESERVATION_PLACED:
		if (parts->bound == parts->wanted) {
			*ret_event = RESERVATION_ON_BOUND;
			return true;
		}
		break;
	case RESERVATION_ACTIVE:
		break;
	case RESERVATION_RELEASING:
		*ret_event = RESERVATION_ON_RELEASED;
		return held + parts->releasing == 0;
	case RESERVATION_PENDING:
	case RESERVATION_RELEASED:
	case RESERVATION_DENIED:
	case RESERVATION_FAILED:
	case RESERVATION_CANCELLED:
	case RESERVATION_EXPIRED:
	case RESERVATION_PREEMPTED:
		return false;
	}
	if (held > 0)
		return false;
	*ret_event = parts->releasing > 0 || state == RESERVATION_ACTIVE ? RESERVATION_ON_WITHDRAWN
									 : RESERVATION_ON_RELEASED;
	return true;
}

const char *allocation_state_name(enum allocation_state state)
{
	assert((size_t)state < ALLOCATION_STATES);
	return ALLOCATION_NAMES[state];
}

bool allocation_state_parse(const char *name, enum allocation_state *ret_state)
{
	for (size_t i = 0; i < ALLOCATION_STATES; i++) {
		if (!str_equal(ALLOCATION_NAMES[i], name))
			continue;
		*ret_state = (enum allocation_state)i;
		return true;
	}
	return false;
}

int64_t allocation_retry_ms(int64_t failures, bool excused)
{
	int64_t wait_ms = excused ? ALLOCATION_EXCUSED_MS : ALLOCATION_RETRY_MS;
	int64_t most_ms = excused ? ALLOCATION_RETRY_MS : ALLOCATION_RETRY_MAX_MS;

	if (excused && --failures == 0)
		return 0;
	while (--failures > 0 && wait_ms < most_ms)
		wait_ms *= 2;
	return wait_ms < most_ms ? wait_ms : most_ms;
}

bool allocation_release_counts(enum allocation_state state, int64_t withdrawn_generation,
			       int64_t report_generation)
{
	return state == ALLOCATION_RELEASING && withdrawn_generation > 0 &&
	       report_generation >= withdrawn_generation;
}
