/*
 * lock: one bcd a machine. A newcomer waits until the data folder is free, and harms nothing
 * meanwhile. Threads: the loop's.
 */
#pragma once

#include "base/error.h"
#include "sys/loop.h"

struct lock;

/* Calls `ready` from the loop once the lock is ours. Fails when the folder can't be made. */
MUST_CHECK bool lock_wait(struct loop *loop, const char *data_folder, loop_fn *ready, void *arg,
			  struct lock **ret_lock, struct error *error);
void lock_destroy(struct lock *lock); /* gives it back, or stops waiting */
