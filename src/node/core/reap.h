/*
 * reap: which pods are deleted because they cling to devices that are no longer theirs, when, and
 * how hard.
 *
 * Owns      the rule that a released GPU comes free in bounded time, and that nobody else's pod
 *           pays for it. A pod that holds a released device is asked to go (REAP_GRACE_S) once it
 *           has held it for REAP_HOLD_MS, and is forced (0 s) when it still holds it REAP_FORCE_MS
 *           later. After that it is the kubelet's, and the release says who is in the way.
 * Grounds   a pending release of the allocation; or, where the holds could be read, that it isn't
 *           bound here at all. Unreadable holds are no ground (REL-28), and neither is a listing
 *           that failed: then nothing new is decided.
 * Who       is known by UID, never by name alone: a newcomer of the same name is not the holder.
 *           Each deletion names that UID as its precondition. A static pod is deleted through its
 *           mirror, whose UID is another one; that can't end it, and reap_state says so.
 * Unlisted  A pod that the kubelet doesn't list isn't forced: a kubelet that hasn't heard of its pods ends
 *           none, and without its Pod object nobody could tell any more that it runs. Once it is listed
 *           it has its REAP_FORCE_MS.
 * Claims    A device that a ResourceClaim has is held by each pod of this node that has the claim
 *           (DRA-32), which only the API server can tell. A claim that none has is asked about
 *           again each REAP_ORPHAN_MS: ending it is the kubelet's, or the DRA driver's. One that was
 *           made anew under the same name is another claim, with another key.
 * Partial   A list that lacks pods which couldn't be read tells who it has: they are ended like others. Who it
 *           lacks isn't absent for that, and no claim is nobody's.
 * Rate      REAP_IN_FLIGHT deletions at a time, REAP_PER_S begun in any second.
 * Time      on the boot-time clock. After a restart of bcd in the same boot the forced step counts
 *           from the pod's deletionTimestamp, if the wall clock has kept step with the boot-time
 *           clock since the release was recorded; else from when it is first seen. A pod may live
 *           longer by this, never shorter (REL-49).
 * Pure      one view, one time and the state in; a plan out. The caller owns the state.
 * Tests     tests/unit/node/core/reap_test.c, reap_claims_test.c, reap_static_test.c (static pods and their mirrors)
 */
#pragma once

#include "base/id.h"
#include "base/vec.h"

#define REAP_HOLD_MS   30000 /* REL-21 */
#define REAP_GRACE_S   10    /* REL-22 */
#define REAP_FORCE_MS  60000 /* REL-23 */
#define REAP_IN_FLIGHT 10    /* REL-50 */
#define REAP_PER_S     5
#define REAP_RETRY_MS  5000 /* after a deletion that didn't get through */
#define REAP_SKEW_MS   5000 /* that the clocks may have drifted apart and still be believed */
#define REAP_ORPHAN_MS 30000
#define REAP_UID_SIZE  65
#define REAP_NAME_SIZE 254

/* --- what is seen; texts are borrowed for the call --- */

/* One device of one container, from the kubelet; or of a claim, once for each pod that has it. */
struct reap_holder {
	const char *uid; /* of the pod, as the kubelet knows it; "" when it can't be told, or for a
			  * claim whose pods aren't known, or that has none */
	const char *namespace, *name; /* "" when only the UID is known */
	const char *allocation;
	const char *device;
	const char *claim; /* key of the claim that has the device, "namespace/name…"; NULL: none */
	bool unlisted;     /* only the kubelet's checkpoint names it (unlisted.h) */
};

/* A pod of this node, from the API server. */
struct reap_pod {
	const char *uid;
	const char *static_uid; /* of a mirror pod: the kubelet's own UID for it; else "" */
	const char *namespace, *name;
	bool deleting;
	struct wall deletion; /* its deletionTimestamp: when the grace is over */
	int64_t grace_s;      /* of that deletion */
};

/* A pending release that still counts: its allocation isn't wanted again. */
struct reap_release {
	const char *allocation;
	struct mono asked; /* since when its waiting counts, in this boot */
	struct wall since; /* when it was recorded, by the wall clock */
};

struct reap_view {
	bool listed;           /* the kubelet's answer is there and whole */
	struct mono listed_at; /* when it was asked for */
	const struct reap_holder *holders;
	size_t holders_count;
	const struct reap_release *releases;
	size_t releases_count;
	bool bound_known; /* the holds could be read */
	const char *const *bound;
	size_t bound_count;
	bool pods_known; /* the API server's list is there, and young, and tells who has each claim */
	bool pods_partial; /* it lacks some that couldn't be read: it can't be told who isn't there */
	struct mono pods_asked; /* when; it can tell nothing of who was first seen later */
	const struct reap_pod *pods;
	size_t pods_count;
	struct wall wall;
};

/* --- what is to be done --- */

struct reap_deletion {
	char holder[REAP_UID_SIZE]; /* the kubelet's UID: names it in reap_told() */
	char uid[REAP_UID_SIZE];    /* the precondition */
	char namespace[REAP_NAME_SIZE], name[REAP_NAME_SIZE];
	char allocation[ID_SIZE], device[128]; /* for log and Event: one that it holds */
	bool forced;                           /* grace 0, else REAP_GRACE_S */
	const char *why;                       /* static text */
};
struct reap_deletions VEC_BODY(struct reap_deletion);

struct reap_plan {
	struct reap_deletions deletions; /* send them; reap_told() follows for each */
	bool need_pods;    /* somebody is due: ask the API server for this node's pods */
	struct mono again; /* decide again at this time at the latest; INT64_MAX: none */
};
void reap_plan_deinit(struct reap_plan *plan);

static inline void reap_plan_cleanup(struct reap_plan *plan)
{
	reap_plan_deinit(plan);
}

struct reap;
struct reap *reap_create(void);
void reap_destroy(struct reap *reap);

/* `*ret_plan` must be empty. Cannot fail. */
void reap_decide(struct reap *reap, const struct reap_view *view, struct mono now,
		 struct reap_plan *ret_plan);

enum reap_outcome {
	REAP_DELETED, /* the API server took it */
	REAP_GONE,    /* 404, or the UID is another one: as good as deleted (REL-51) */
	REAP_FAILED,  /* no answer, or a refusal: again after REAP_RETRY_MS */
};
void reap_told(struct reap *reap, const char *holder, enum reap_outcome outcome, struct mono now);

/* --- for status and conditions --- */

enum reap_state {
	REAP_NOTHING,  /* holds no released device, or isn't known */
	REAP_HOLDING,  /* has its time to go by itself */
	REAP_ASKED,    /* is being deleted with a grace */
	REAP_FORCED,   /* was forced; the kubelet hasn't ended it */
	REAP_ABSENT,   /* the API server has no such pod; the kubelet hasn't ended it */
	REAP_STATIC,   /* as FORCED, but static: only its manifest's removal ends it (REL-56) */
	REAP_NAMELESS, /* its UID can't be told, so it isn't touched */
	REAP_ORPHAN,   /* a claim that no pod of this node has; the kubelet hasn't unprepared it */
};
/* Of the pod with the kubelet's UID, or of a claim by its key: then of a pod that has it. */
enum reap_state reap_state(const struct reap *reap, const char *holder);
/* When it is deleted next; false: it isn't, any more or for now. */
bool reap_next(const struct reap *reap, const char *holder, struct mono *ret_due);
/* By the wall clock, and by the rule alone: an attempt that fails moves none of them. */
struct reap_times {
	struct wall done; /* the last deletion was taken; {0}: there was none */
	struct wall next; /* the next is due; {0}: there is none to come */
	bool unlisted;    /* by force it isn't while the kubelet doesn't list it */
};
/* False: it isn't known, or there is none of either. As of the last reap_decide(). */
bool reap_times(const struct reap *reap, const char *holder, struct reap_times *ret_times);
bool reap_idle(const struct reap *reap); /* nobody holds what isn't theirs, as far as is known */
const char *reap_state_name(enum reap_state state); /* "asked to go"; never NULL */
