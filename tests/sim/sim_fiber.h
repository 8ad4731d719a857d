/*
 * sim_fiber: code that stops in the middle of itself and goes on at a later event, so that what runs
 * on a worker's thread can be overtaken between two transactions. On a stack of its own.
 */
#pragma once

#include "base/base.h"

struct fiber;

typedef void fiber_fn(void *arg);

/* Both run it until it stops or has ended; true: it has ended, and is gone. */
bool fiber_start(fiber_fn *fn, void *arg, struct fiber **ret_fiber);
bool fiber_resume(struct fiber *fiber);

bool fiber_inside(void); /* does a fiber run? */
void fiber_stop(void);   /* from inside: back to whoever ran it */
void fiber_end(void);    /* frees the stacks that are kept for the next */
