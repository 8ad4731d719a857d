/*
 * lock: one bcd a machine. A newcomer waits until the data folder is free, and harms nothing
 * meanwhile: it binds no port and no socket but the one on which it says that it waits, so that
 * `bcd status`, the liveness probe of its own pod, finds it alive (HOSTED-3, 32).
 *
 * Errors    A lock that nobody has and that can't be taken (no disk, no permission) is told as that, and
 *           tried again each second; one in whose place is no file ends the waiting.
 * Threads   the loop's.
 * Tests     tests/unit/node/lock_test.c, tests/unit/node/rollout_test.c
 */
#pragma once

#include "base/error.h"
#include "sys/loop.h"

/* <run>/waiting.sock tells one JSON object (docs/formats/status.md). */
#define LOCK_SOCKET "waiting.sock"

struct lock;

/* `error` is NULL: the lock is ours, and what killed ones left half-written is gone. Else it never will be. */
typedef void lock_fn(void *arg, const struct error *error);

/* Calls `over` from the loop, once. Fails when the data folder can't be made. */
MUST_CHECK bool lock_wait(struct loop *loop, const char *data_folder, const char *run_folder,
			  lock_fn *over, void *arg, struct lock **ret_lock, struct error *error);
void lock_destroy(struct lock *lock); /* gives it back, or stops waiting */
