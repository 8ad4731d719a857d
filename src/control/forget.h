/*
 * forget: what nobody needs any more goes: outbox rows, events, audit entries, failed allocations, and
 * the idempotency keys of what is over. Private to this room.
 *
 * However much there is: a transaction takes at most FORGET_BATCH rows of each kind, so that it keeps
 * nobody waiting, and a pass at most FORGET_BATCHES of them.
 */
#pragma once

#include "control/control.h"

#define FORGET_BATCH   1000
#define FORGET_BATCHES 10

/* One pass of the leader with this fence. *leads becomes false when another replica leads. */
MUST_CHECK bool forget_old(struct control *control, int64_t fence, bool *leads,
			   struct error *error);
