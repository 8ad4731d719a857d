/*
 * waking: a reservation that runs is looked at again when what its node says bears on it: its GPUs'
 * health, GPUs exposed outside bcd, a binding that is lost (RES-34, GW-15). Private to this room.
 *
 * Its conditions are computed whenever they are read; what is left to do is to tell those who
 * follow it, by "reservation.condition.changed", once for each change.
 */
#pragma once

#include "control/work.h"

/* What the node's bound devices were like. `{0}` is empty; CLEANUP(waking). */
struct waking {
	struct store_rows before;
};

/* Before what the node said is written, and after. */
MUST_CHECK bool waking_begin(struct store_connection *db, const char *node, struct waking *waking,
			     struct error *error);
MUST_CHECK bool waking_end(struct store_connection *db, const char *node,
			   const struct waking *waking, struct error *error);

static inline void waking_cleanup(struct waking *waking)
{
	store_rows_deinit(&waking->before);
}
