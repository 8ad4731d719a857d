/*
 * watch: is told by a Kubernetes API server what happens to objects, as it happens.
 *
 * A watch is an addition to lists, never instead of them: what is deleted while none is open, and while one starts anew,
 * is told by nobody.
 *
 * Owns      the watch's life: each answer lasts about KUBE_WATCH_TIME_S, then the next goes on from the last version that
 *           was told (bookmarks keep it young), also over a lost connection and an API server that was away. A version
 *           that has run out, one of which nothing is told, or an answer that is none, starts it anew; so does what ends
 *           the first answer before it has told more than what was there. Pauses, refusals, silence, and what renews the
 *           credentials are kube/core/watch.h's; each answer is asked for with those of that moment.
 * Anew      also the first time: the API server begins with an ADDED of each object that is there. So an ADDED may be of
 *           what is known, and what has gone meanwhile has no event.
 * Places    none of the calls' (KUBE_IN_FLIGHT): a connection of its own.
 * Gone      a server that is away without a word is noticed within about 40 s (http/multi.h), while kube_watch_live() is
 *           true; one that holds the connection but tells nothing, by the answer's deadline, and kube_watch_live() ends
 *           after KUBE_WATCH_SILENT_MS of that.
 * Turn      what is longer than KUBE_INLINE_MAX is read on a worker; what comes meanwhile waits, and when it is more than
 *           KUBE_WATCH_MAX_BEHIND the answer ends and the next goes on.
 * Callbacks come from the loop, never from inside a function of this header. Any of them may stop the watch.
 * Threads   the loop's.
 * Source    API concepts, "Efficient detection of changes"; checked with 1.37.2 by tests/peer/kube.
 * Tests     tests/unit/kube/watch_test.c (a scripted server), tests/peer/kube (a real one)
 */
#pragma once

#include "kube/client.h"
#include "kube/core/watch.h"

#define KUBE_WATCH_TIME_S     240 /* of one answer, and up to KUBE_WATCH_JITTER_S more */
#define KUBE_WATCH_JITTER_S   120
#define KUBE_WATCH_GRACE_MS   20000 /* that the API server may be late in ending it */
#define KUBE_WATCH_MAX_BEHIND (2 * KUBE_WATCH_MAX_EVENT)
#define KUBE_WATCH_MAX_SAID   ((size_t)64 << 10) /* bytes of a refusal */

/* One event. `object` is borrowed for the call; json_incref() keeps it. */
typedef void kube_watch_fn(void *arg, enum kube_watch_kind kind, json_t *object);

/* For logs: the watch can't be had, after its second failure in a row and once a reason; or (`error` NULL) it has been
 * open for KUBE_WATCH_STEADY_MS, the first time and after a failure that was told. */
typedef void kube_watch_state_fn(void *arg, const struct error *error);

struct kube_watch;
/* `query` names the kind's part to watch; no limit and no continue token. `on_state` may be NULL. */
struct kube_watch *kube_watch_start(struct kube_client *kube, const struct kube_resource *resource,
				    const struct kube_list_options *query, kube_watch_fn *fn,
				    kube_watch_state_fn *on_state, void *arg);
void kube_watch_stop(
	struct kube_watch *watch); /* nothing is called afterwards; before the client */

/* Is one open at present, and not silent for too long? What happens now is told then, as far as anybody can know. NULL:
 * no. */
bool kube_watch_live(const struct kube_watch *watch);
/* The API server has just answered something else: what pauses as it was away is tried at once, or KUBE_WATCH_HURRY_MS
 * after the last try. NULL is legal. */
void kube_watch_hurry(struct kube_watch *watch);
