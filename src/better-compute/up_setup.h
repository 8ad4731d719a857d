/*
 * up_setup: the calls to the API that make a fresh control plane usable, and the wait for the node.
 *
 * Runs on a worker thread (loop_work): blocks. What is there already is found by name and kept, so
 * running it again finishes what a start that was cut off had begun.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "better-compute/up_files.h"

#include <stdatomic.h>

#define UP_SETUP_NODE_MS 30000 /* after this the person is told that the node isn't ready yet */

/* One piece of work: the inputs stay untouched while it runs, the rest is its answer. */
struct up_setup {
	const struct up_files *files;
	const char *api;  /* "http://127.0.0.1:7480" */
	atomic_bool stop; /* set by the loop: end soon */

	bool ok;
	struct error error;
	struct arena arena;
	bool joined; /* the node has its identity: no join is needed */
	/* The node's, NULL until it was ready. */
	const char *node_id, *gpus, *simulated_reason;
};

/* Site, pool, context.json; a join token in files->token when there is no identity yet. */
void up_setup_prepare(void *setup);
/* Until the node is ready, UP_SETUP_NODE_MS at most: node_id is NULL then. */
void up_setup_wait_node(void *setup);
