/*
 * proc: child processes, watched by the loop.
 *
 * A child never outlives its parent's death (PR_SET_PDEATHSIG) and gets no descriptor but 0 to 2.
 * Threads   the loop's.
 */
#pragma once

#include "base/error.h"
#include "sys/loop.h"

#include <sys/types.h>

struct proc;

struct proc_options {
	const char *file;        /* an absolute path */
	char *const *argv;       /* NULL-ended; no secrets */
	char *const *env;        /* NULL-ended, or NULL for the parent's */
	const char *output_path; /* stdout and stderr are appended here (0600); NULL keeps both */
	const char *working_folder; /* NULL keeps the parent's */
};

/* `status` as of wait(2): use WIFEXITED and friends. The proc is gone after it. */
typedef void proc_exit_fn(void *arg, int status);

MUST_CHECK bool proc_start(struct loop *loop, const struct proc_options *options,
			   proc_exit_fn *on_exit, void *arg, struct proc **ret_proc,
			   struct error *error);
pid_t proc_pid(const struct proc *proc);
void proc_signal(struct proc *proc, int signal);
