/*
 * program: runs a kubeconfig's credential program and reads what it says.
 *
 * It has PROGRAM_TIME_MS and KUBE_EXEC_MAX_ANSWER bytes, no stdin, the parent's environment with
 * what the kubeconfig adds, and its stderr is ours. Secrets are in its environment and its answer,
 * never in its arguments unless the kubeconfig puts them there.
 * Threads   the loop's.
 */
#pragma once

#include "kube/core/exec.h"
#include "sys/loop.h"

#define PROGRAM_TIME_MS 30000

struct program;
/* One of them is NULL; the callback may take the answer over by emptying it. The program is gone. */
typedef void program_fn(void *arg, struct kube_exec_answer *answer, const struct error *error);

/* `access` must outlive it. */
MUST_CHECK bool program_start(struct loop *loop, const struct kube_access *access,
			      const char *ca_pem, program_fn *fn, void *arg,
			      struct program **ret_program, struct error *error);
void program_destroy(struct program *program); /* fn isn't called; not after it was */
