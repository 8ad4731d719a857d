/*
 * client: calls to a Kubernetes API server from the loop, which none of them holds up.
 *
 * Owns      queue, retries and deadlines. A call is sent with the credentials of that moment
 *           (credentials.h) and tried again as kube/core/answer.h decides: after 401 once with
 *           what the files say now, on a new connection; after 429 and 5xx when the server says
 *           so; after a broken connection only what is repeatable; with growing, jittered pauses,
 *           KUBE_TRIES times at most and never past its deadline.
 * Order     the urgent go first, and some of the KUBE_IN_FLIGHT places are only theirs, so that a
 *           slow API server's slow answers to others don't keep them waiting. A try has
 *           KUBE_TRY_MS; KUBE_WAITING calls may wait; one that pauses before its next try holds
 *           nobody's place.
 * Turn      what is longer than KUBE_INLINE_MAX is read on a worker, as a list of pods takes tens of
 *           milliseconds. Local files are read on the loop.
 * Errors    name the API server that was asked, and what was asked of it.
 * Answers   come through the callback, exactly once, from a turn's deferred functions and never
 *           from inside kube_send(). An answer over KUBE_MAX_ANSWER bytes is an error.
 * Secrets   are in no message.
 * Threads   the loop's.
 * Source    Kubernetes API concepts; checked with 1.37.2 by tests/peer/kube.
 * Tests     tests/unit/kube/client_test.c (a scripted server), tests/peer/kube (a real one)
 */
#pragma once

#include "kube/core/answer.h"
#include "kube/core/request.h"
#include "kube/credentials.h"
#include "sys/loop.h"

#define KUBE_IN_FLIGHT  10 /* as many deletions as may be under way (REL-50) */
#define KUBE_WAITING    512
#define KUBE_TRY_MS     15000
#define KUBE_TIMEOUT_MS 30000
#define KUBE_INLINE_MAX 8192 /* bytes of an answer */

struct kube_client;
struct kube_client *kube_client_create(struct loop *loop,
				       const struct credentials_options *options);
/* Legal at any moment, also from a callback; calls under way end silently. Watches are stopped before. */
void kube_client_destroy(struct kube_client *kube);

enum kube_priority {
	KUBE_URGENT, /* what frees a GPU, or answers the kubelet */
	KUBE_NORMAL, /* of all places but two */
	KUBE_LATER,  /* what is only told, such as Events; of three */
};

struct kube_call_options {
	enum kube_priority priority;
	int64_t timeout_ms; /* until the last try's end; 0: KUBE_TIMEOUT_MS */
};

/* `answer` is the callback's for its duration; it may take `body`. The call is gone. */
typedef void kube_fn(void *arg, struct kube_answer *answer);

/* Takes *request over (empty afterwards). RESOURCES_EXHAUSTED as an answer when too many wait. */
struct kube_call *kube_send(struct kube_client *kube, struct kube_request *request,
			    struct kube_call_options options, kube_fn *fn, void *arg);
void kube_call_cancel(struct kube_call *call); /* fn isn't called; the server may carry it out */

/* --- a whole list, page by page (kube/core/pages.h) --- */

struct kube_collect;

/* The callback may take *items, an array; NULL with error set when the list failed. */
typedef void kube_items_fn(void *arg, json_t **items, const struct error *error);

/* `query` names the kind's part to list; its limit and continue_token are ours. `options` are each
 * page's. */
struct kube_collect *kube_collect(struct kube_client *kube, const struct kube_resource *resource,
				  const struct kube_list_options *query,
				  struct kube_call_options options, kube_items_fn *fn, void *arg);
void kube_collect_cancel(struct kube_collect *collect);
