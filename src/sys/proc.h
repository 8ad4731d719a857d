/*
 * proc: child processes, watched by the loop.
 *
 * A child never outlives its parent's death (PR_SET_PDEATHSIG) and gets no descriptor but 0 to 2. It leads
 * a process group of its own, so that what it has started ends with it.
 * Threads   the loop's.
 */
#pragma once

#include "base/error.h"
#include "sys/loop.h"
#include "sys/net.h"

#include <sys/types.h>

struct proc;

struct proc_options {
	const char *file;        /* an absolute path */
	char *const *argv;       /* NULL-ended; no secrets */
	char *const *env;        /* NULL-ended, or NULL for the parent's */
	const char *output_path; /* stdout and stderr are appended here (0600); NULL keeps both */
	const char *working_folder; /* NULL keeps the parent's */
	/* The child's stdin is a socket, and this becomes its other end, not yet started; the caller
	 * closes it. NULL: stdin is /dev/null. */
	struct net_conn **ret_stdin;
	/* So are its stdout and stderr; not together with output_path. NULL keeps the parent's. */
	struct net_conn **ret_stdout, **ret_stderr;
	const char *root; /* the child's root folder, in which `file` is looked for; NULL: ours */
};

/* `status` as of wait(2): use WIFEXITED and friends. The proc is gone after it. */
typedef void proc_exit_fn(void *arg, int status);

MUST_CHECK bool proc_start(struct loop *loop, const struct proc_options *options,
			   proc_exit_fn *on_exit, void *arg, struct proc **ret_proc,
			   struct error *error);
pid_t proc_pid(const struct proc *proc);
void proc_signal(struct proc *proc, int signal); /* and what it has started */

/* Ends it for good, and what it has started: SIGKILL, PROC_DROP_MS of waiting at most, and no proc_exit_fn.
 * One that is stuck in the kernel is left to it. Takes NULL. */
#define PROC_DROP_MS 200
void proc_drop(struct proc *proc);
