/*
 * lead: which replica runs the leader's passes. Private to this room; what serve calls is in
 * control.h.
 *
 * The lease is a row with a holder, a fence and an end. The fence grows with each new holder, and
 * each step of a pass looks in its own transaction whether it is still the same: a leader that was
 * asleep does nothing once another leads.
 */
#pragma once

#include "control/control.h"
#include "store/store.h"

/* Takes or keeps the lease. *ret_fence is 0 when somebody else has it. */
MUST_CHECK bool lead_take(struct control *control, int64_t *ret_fence, struct error *error);

/* Inside a transaction: is the fence still the lease's? */
MUST_CHECK bool lead_check(struct store_connection *db, int64_t fence, bool *ret_leads,
			   struct error *error);
