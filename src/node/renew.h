/*
 * renew: an expired certificate is renewed at the join service by the node's key, on bcd's loop (JOIN-41).
 *
 * One renewal asks each address once; when to try again is the caller's.
 * Threads   the loop's. `fn` follows exactly once, from the loop and never from renewal_start().
 */
#pragma once

#include "node/joining.h"
#include "sys/loop.h"

struct renewal;

/* JOIN_DONE: `certificate` is the new one, which may be taken. Otherwise `error` says why not, JOIN_TOKEN
 * being the control plane's no. Both are borrowed. */
typedef void renewal_fn(void *arg, enum join_exit exit, struct buf *certificate,
			const struct error *error);

/* `config` and `identity` outlive it. */
struct renewal *renewal_start(struct loop *loop, const struct config *config,
			      const struct identity *identity, renewal_fn *fn, void *arg);
/* Legal at any moment, also from fn, which isn't called any more. Takes NULL. */
void renewal_destroy(struct renewal *renewal);
