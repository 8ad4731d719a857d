/*
 * release: when may a node say that an allocation is released?
 *
 * Owns      the promise that nobody hears "released" while a pod may still hold a device, and the
 *           record of pending releases, releasing.json (REL-46, docs/formats/releasing.json.md).
 * Order     the record, then the CDI spec goes, then the kubelet is asked, then the report; the
 *           entry goes only when the report was acknowledged. Any step may be done twice.
 * Pure      one view and one time in, one step out. node/release.c gathers the view.
 * Tests     tests/unit/node/core/release_test.c (every view), fuzz/releasing_fuzz.c
 */
#pragma once

#include "gpu/core/field.h"
#include "node/core/holds.h"
#include "node/core/podprocess.h"
#include "node/core/spec.h"
#include "node/core/unlisted.h"

/* A listing asked for sooner than this after an Allocate was answered may miss its pod: the kubelet
 * records a device after the plugin has answered. After the withdrawal none is answered. */
#define RELEASE_SETTLE_MS 1000
/* A kubelet that just started lists nothing until it has heard of its pods. */
#define RELEASE_KUBELET_SETTLE_MS 10000
#define RELEASE_STUCK_MS          300000
#define RELEASE_ASK_MS            1000 /* between listings while a release is young */
#define RELEASE_ASK_OLD_MS        5000 /* later; never more than 30 s apart (REL-18) */
#define RELEASE_YOUNG_MS          60000

/* --- the record --- */

#define RELEASES_FILE       "releasing.json"
#define RELEASES_MARKER     "releasing.unreadable"
#define RELEASES_VERSION    1
#define RELEASES_MAX_FILE   ((size_t)1 << 20)
#define RELEASES_MAX        1024
#define RELEASES_MAX_USERS  1024
#define RELEASES_USER_BYTES 640 /* of one in the record, at most */
#define RELEASES_CLAIMED_BY "(pending Kubernetes releases that could not be read)"

struct release_device {
	struct atom atom;
	char visible[ATOM_VISIBLE_SIZE];
};

/* Pods that had a device, by UID; the last ones, if there were very many. */
#define RELEASE_MAX_PODS  64
#define RELEASE_POD_BYTES (GIVEN_UID_SIZE + 32) /* of one in the record, at most */
struct release_pod {
	char uid[GIVEN_UID_SIZE];
};
struct release_pods VEC_BODY(struct release_pod);
/* False: it is among them. In place of the one that came first when they are many. */
bool release_pods_add(struct release_pods *pods, const char *uid);

struct release_entry {
	char allocation[ID_SIZE];
	VEC(struct release_device) devices;
	struct release_pods pods; /* as far as was known; an older bcd wrote none */
	struct admission_share
		share;    /* booked of the host until it is reported; an older bcd wrote none */
	int64_t since;    /* unix seconds, for people */
	char boot_id[40]; /* of the boot that sinceBootMs belongs to */
	int64_t since_boot_ms;
	/* It was withdrawn before this boot began, so nothing that is alive ever had it; an older bcd wrote none. */
	bool outlived;
	bool reported; /* AllocationReleased is in reports.json; kept until acknowledged */
	json_t *extra; /* members of a newer bcd, kept as they are; NULL for none */
};

/* A pod that had a device of an allocation which is bound or pending, where the host's processes can't be
 * seen: what is known of its end. */
struct release_user {
	char allocation[ID_SIZE];
	struct unlisted_pod pod;
};
struct release_users VEC_BODY(struct release_user);

/* In order of recording; `{0}` is "none pending". */
struct releases {
	VEC(struct release_entry) entries;
	struct release_users users;
	char users_boot_id[40]; /* of the boot that their times belong to */
	json_t *extra;
};
void releases_deinit(struct releases *releases);
void release_entry_deinit(struct release_entry *entry);

static inline void releases_cleanup(struct releases *releases)
{
	releases_deinit(releases);
}

void releases_copy(const struct releases *from, struct releases *ret_to);
struct release_entry *releases_find(const struct releases *releases, const char *allocation);
/* Makes the record this boot's: of an earlier one no pod is alive, and its waiting begins anew (REL-49). `holds`: what is
 * still bound pods may have been given in this boot; NULL: that isn't known. False: it is this boot's, or
 * that can't be told, and then the waiting begins anew each time. */
bool releases_begin_boot(struct releases *releases, const struct holds *holds, const char *boot_id,
			 struct mono now);
/* Adds an entry for the hold, unless one is pending that names devices. One that was reported is of
 * an earlier binding: the release begins anew. */
void releases_add(struct releases *releases, const struct hold *hold, struct wall wall,
		  struct mono now, const char *boot_id);
/* Adds an entry without devices for each that a Spec names as withdrawn and that isn't bound here:
 * nothing is to be withdrawn, but it is said only after the kubelet was asked. False: there was
 * nothing to add. */
bool releases_add_withdrawn(struct releases *releases, const struct spec *spec,
			    const struct holds *holds, struct wall wall, struct mono now,
			    const char *boot_id);
/* What was said under `before`, which doesn't know of it, doesn't count for `next`, which waits for it: it is to be
 * said again. So it is when a crash left the record of `next` without `next` itself. False: there is none. */
bool releases_say_again(struct releases *releases, const struct spec *before,
			const struct spec *next);
/* What the record can still take: beyond it no restart could read the file again. */
struct releases_room {
	size_t entries, bytes;
};
struct releases_room releases_room(const struct releases *releases);
/* Adds a device that pods have by an allocation of which nothing is bound here, as one that was bound before and
 * is to be released: as an entry of its own, or to the one that is pending. False: there is no room, or
 * the entry is reported and waits to go. */
bool releases_adopt(struct releases *releases, struct releases_room *room, const char *allocation,
		    const struct release_device *device, struct wall wall, struct mono now,
		    const char *boot_id);
void releases_remove(struct releases *releases, const char *allocation);
/* Takes what the hold's entry needs, in place of one that is there or as one more. False, and
 * nothing is taken: there isn't as much. */
bool releases_room_take(struct releases_room *room, const struct hold *hold, bool in_place);

/* Is there an entry to which they can be added? */
bool releases_lack_pods(const struct releases *releases, const char *allocation,
			const struct release_pods *pods);
/* Adds those that had a device of it to an entry, and takes what that needs, while the record has room for
 * more entries than that. False: nothing was added. */
bool releases_add_pods(struct releases *releases, struct releases_room *room,
		       const char *allocation, const struct release_pods *pods);

/* Puts these in place of the record's users, the first of them where it has no room for all: half of it is
 * for releases. False: they are there already. */
bool releases_set_users(struct releases *releases, const struct release_users *users,
			const char *boot_id);

void releases_format(const struct releases *releases, struct buf *out);
/* Anything that isn't such a record in full is an error: it is never taken as "none pending". */
MUST_CHECK bool releases_parse(const char *text, size_t length, struct releases *ret_releases,
			       struct error *error);

/* --- the decision --- */

enum release_answer {
	RELEASE_ANSWER_NONE,   /* the kubelet wasn't asked yet */
	RELEASE_ANSWER_FAILED, /* no answer, or not a whole one */
	RELEASE_ANSWER_UNREAD, /* what claims have prepared can't be read (REL-9) */
	RELEASE_ANSWER_HELD,   /* a container has a device of the allocation, or a claim has */
	RELEASE_ANSWER_UNSEEN, /* none has, but the pods' processes can't be looked at */
	RELEASE_ANSWER_OPEN,   /* none has, but a pod's process has one open */
	RELEASE_ANSWER_ALIVE,  /* none has, but a pod that had one has processes yet */
	RELEASE_ANSWER_UNSURE, /* none has, but it isn't sure that a pod which had one is over */
	RELEASE_ANSWER_FREE,   /* none has, nor its processes */
};

#define RELEASE_RECORD_TROUBLE "the record of prepared claims can't be read"

struct release_view {
	struct mono asked;     /* when the release was recorded, on this boot's clock */
	struct mono withdrawn; /* since when the devices are gone from disk and from the offers */
	struct mono given;     /* when this process last answered an Allocate; {0}: never */
	bool wanted;           /* the stored Spec has the allocation again */
	bool bound;            /* its CDI spec is on disk */
	bool reported;
	bool worker; /* this node serves or ever served a kubelet (REL-15) */
	enum release_answer answer;
	struct mono answered;      /* when the listing behind `answer` was asked for */
	struct mono kubelet_since; /* since when this kubelet is there */
};

enum release_step {
	RELEASE_ASK,      /* ask the kubelet, at `again`; what isn't decided yet is this */
	RELEASE_FORGET,   /* bound again: drop the entry, report nothing (REL-6) */
	RELEASE_WITHDRAW, /* remove the CDI spec */
	RELEASE_REPORT,   /* nobody holds a device: say so */
	RELEASE_DONE,     /* reported; waits for the acknowledgement */
};

struct release_plan {
	enum release_step step;
	struct mono again; /* RELEASE_ASK: not before this time */
	bool stuck;        /* pending for more than five minutes (REL-19) */
	const char *why;   /* static text, for status and logs */
};

/* A listing counts when it was asked for at this time or later: since `from`, its subject's own condition;
 * `given`, when this process last answered an Allocate; and `kubelet`, since when this kubelet is there. */
struct mono release_evidence_from(struct mono from, struct mono given, struct mono kubelet);
bool release_counts(struct mono evidence_from, struct mono answered);

struct release_plan release_decide(const struct release_view *view, struct mono now);
const char *release_step_name(enum release_step step);
