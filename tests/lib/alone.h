/*
 * alone: a child of a test in a PID namespace of its own, as a pod without the host's is.
 *
 * Nothing in it may fail as tests do: this is another process, and has its exit status alone. It ends with the test. Who
 * isn't root makes the namespace in a user namespace.
 */
#pragma once

#include "lib/test.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The child's exit status. */
typedef int alone_fn(void *arg);

/* Of a child that waits for the one inside, the first process there: it ends when that one does, with 0 if that one did,
 * and takes it along when it is killed. */
static inline pid_t alone_start(alone_fn *fn, void *arg)
{
	pid_t test = getpid(), child = fork(), first;
	int status;

	assert_true(child >= 0);
	if (child > 0)
		return child;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != test ||
	    unshare(geteuid() == 0 ? CLONE_NEWPID : CLONE_NEWUSER | CLONE_NEWPID) != 0 ||
	    (first = fork()) < 0)
		_exit(1);
	if (first > 0)
		_exit(waitpid(first, &status, 0) != first || status != 0);
	/* Its parent can't be seen from there. */
	_exit(prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ? 1 : fn(arg));
}
