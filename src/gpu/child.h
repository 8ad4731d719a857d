/*
 * child: bcd's side of the process that speaks to NVML.
 *
 * Owns      the promise that bcd never waits for a driver, and that no second process is started
 *           beside one that is stuck in it. Each may hang, crash or be killed at any moment.
 * Tells     a reading for each child_ask(), XIDs as they come. After on_failure() nothing is known of
 *           the GPUs until the next on_reading(), which comes by itself: the process is started anew
 *           after CHILD_RESPAWN_MIN_MS, doubled for each failure in a row up to CHILD_RESPAWN_MAX_MS,
 *           and asked at once. One that doesn't answer in time is killed; one that doesn't die is
 *           stuck in the kernel: it is left alone, and only its end starts another.
 * Errors    of on_failure(): NOT_FOUND: this machine has no NVML (nvidia-smi may be there);
 *           UNAVAILABLE and others: it doesn't work at the moment.
 * Threads   the loop's. Callbacks come from the loop, never from inside a call here, and must not
 *           destroy the child.
 */
#pragma once

#include "gpu/core/frame.h"
#include "sys/loop.h"

#include <sys/types.h>

#define CHILD_VERB           "nvml" /* of bcd, not for people: src/nvml/child.h */
#define CHILD_DEADLINE_MS    10000
#define CHILD_RESPAWN_MIN_MS 1000
#define CHILD_RESPAWN_MAX_MS 60000
#define CHILD_DEATH_MS       1000 /* a killed process that lives longer is stuck */

struct child;

struct child_options {
	const char *program;      /* bcd; NULL: this program, even if its file was replaced */
	const char *nvml_library; /* its file; NULL: where a driver has it below `root` */
	const char *root;         /* "/" when NULL */
	int64_t deadline_ms, respawn_min_ms, respawn_max_ms, death_ms; /* 0: as above */
};

struct child_handlers {
	/* The reading may be taken: leave {0} behind. */
	void (*on_reading)(void *arg, struct reading *reading);
	/* `stuck`: the process can't be killed. Told a second time when that turns out. */
	void (*on_failure)(void *arg, const struct error *error, bool stuck);
	void (*on_xid)(void *arg, const struct frame_xid *xid);
};

/* Starts the process from the loop, and asks. The options' texts are copied. */
struct child *child_create(struct loop *loop, const struct child_options *options,
			   const struct child_handlers *handlers, void *arg);
void child_destroy(struct child *child);

/* One on_reading() or on_failure() follows. Nothing happens while a question is under way or
 * no process is there: it will be asked anyway. */
void child_ask(struct child *child);

/* 0 when there is none. It has NVIDIA's devices open, as every user of NVML. */
pid_t child_pid(const struct child *child);
