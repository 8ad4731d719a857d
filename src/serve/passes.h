/*
 * passes: what serve does by itself: looks at the outbox, and runs the leader's pass.
 *
 * The outbox is polled each PASSES_POLL_MS, and at once after a change made here; what it names is
 * pushed to the nodes whose streams are here, wherever the change was made. The replica that leads
 * (control_lead(), each CONTROL_LEAD_MS) runs control_tick() once it leads, each CONTROL_TICK_MS and
 * soon after a report that asks for it.
 * Threads   the loop's.
 */
#pragma once

#include "base/error.h"
#include "sys/loop.h"

struct gateway;
struct passes;
struct workers;

#define PASSES_POLL_MS 1000
#define PASSES_SOON_MS 20 /* several changes in a row are one look */

/* `outbox_end`: what control_outbox_poll() said before the gateway took its first stream. */
struct passes *passes_create(struct loop *loop, struct workers *workers, struct gateway *gateway,
			     int64_t outbox_end);
void passes_look(struct passes *passes); /* something was changed here */
void passes_tick(struct passes *passes); /* there may be something for the leader to do */

struct passes_figures {
	int64_t outbox_end; /* looked at so far */
	int64_t ticks, failed_ticks;
};
struct passes_figures passes_figures(const struct passes *passes);

/* Ends the passes, gives the lead to whoever wants it, then calls fn. */
void passes_drain(struct passes *passes, loop_fn *fn, void *arg);
/* After workers_destroy(). Takes NULL. */
void passes_destroy(struct passes *passes);
