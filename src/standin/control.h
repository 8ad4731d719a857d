/*
 * control: ROOT/standin.sock, where requests come in: one JSON object a line, one line back each,
 * in the order in which they are done. The requests are standin.h's.
 */
#pragma once

#include "standin/standin.h"

#define CONTROL_SOCKET   "standin.sock"
#define CONTROL_MAX_LINE ((size_t)1 << 20)

struct standin_control;

/* Serves ROOT/standin.sock; a leftover is replaced (the root's lock is held by now). */
MUST_CHECK bool control_listen(struct loop *loop, const char *root, struct standin *standin,
			       struct standin_control **ret_control, struct error *error);
void control_destroy(struct standin_control *control); /* takes NULL; before the stand-in */

/* The other side, `kubelet-standin ctl`: sends one request and prints its answer. Blocks in its own
 * loop. The exit status: 3 when run-pod left a pod that is Unschedulable. */
int control_call(const char *root, const json_t *request, int64_t timeout_ms);
