/*
 * up_child: a program that is kept running: started again when it ends, later each time it ends
 * soon.
 *
 * Owns      one process at a time. The log gets a line when it is started again.
 * Lifetimes destroy only when it isn't running (up_child_running).
 * Threads   the loop's.
 */
#pragma once

#include "base/error.h"
#include "sys/loop.h"

#include <sys/types.h>

#define UP_CHILD_MAX_ARGS      16
#define UP_CHILD_FIRST_MS      100   /* before the first restart */
#define UP_CHILD_MOST_MS       10000 /* between restarts */
#define UP_CHILD_STEADY_MS     30000 /* one that ran this long is started again at once */
#define UP_CHILD_STOP_MS       10000 /* what SIGTERM may take before SIGKILL */
#define UP_CHILD_DESCRIBE_SIZE 64

struct up_child;
/* It ended. `restart_ms` is when it is started again; -1: it isn't, as it was stopped or is done.
 */
typedef void up_child_end_fn(void *arg, struct up_child *child, int status, int64_t restart_ms);

struct up_child_options {
	const char *name;     /* "serve" */
	const char *file;     /* absolute path */
	const char *log_path; /* stdout and stderr are appended */
	bool once;            /* not started again */
	up_child_end_fn *on_end;
	void *arg;
};

/* Copies the strings. */
struct up_child *up_child_create(struct loop *loop, const struct up_child_options *options);
void up_child_destroy(struct up_child *child); /* takes NULL */

/* The next start's arguments, without the program's name; copied. `args` ends with NULL. */
void up_child_set_args(struct up_child *child, const char *const *args);
MUST_CHECK bool up_child_start(struct up_child *child, struct error *error);
/* SIGTERM, and SIGKILL when that doesn't end it in time; on_end follows if it was running. */
void up_child_stop(struct up_child *child);
void up_child_kill(struct up_child *child); /* SIGKILL now */

bool up_child_running(const struct up_child *child); /* takes NULL: false */
const char *up_child_name(const struct up_child *child);
pid_t up_child_pid(const struct up_child *child); /* 0 when it isn't running */

/* "exit status 1", "signal 9" */
void up_child_describe(char out[UP_CHILD_DESCRIBE_SIZE], int status);
