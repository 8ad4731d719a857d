/*
 * lead: which replica runs the leader's passes. Private to this room; what serve calls is in
 * control.h.
 *
 * The lease is a row with a holder, a fence and an end. The fence grows with each new holder, and
 * all that a pass writes is written by lead_run(), which looks in the same transaction whether it is
 * still the same: a leader that was asleep does nothing once another leads.
 */
#pragma once

#include "control/control.h"
#include "store/store.h"

/* Takes or keeps the lease. *ret_fence is 0 when somebody else has it. */
MUST_CHECK bool lead_take(struct control *control, int64_t *ret_fence, struct error *error);

/* Runs `body` in a transaction that writes, if the fence is still the lease's then; *ret_leads says
 * whether it was, also when the body failed. */
MUST_CHECK bool lead_run(struct control *control, int64_t fence, store_body_fn *body,
			 void *argument, bool *ret_leads, struct error *error);
