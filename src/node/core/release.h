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
#include "node/core/spec.h"

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
#define RELEASES_CLAIMED_BY "(pending Kubernetes releases that could not be read)"

struct release_device {
	struct atom atom;
	char visible[ATOM_VISIBLE_SIZE];
};

struct release_entry {
	char allocation[ID_SIZE];
	VEC(struct release_device) devices;
	int64_t since;    /* unix seconds, for people */
	char boot_id[40]; /* of the boot that sinceBootMs belongs to */
	int64_t since_boot_ms;
	bool reported; /* AllocationReleased is in reports.json; kept until acknowledged */
	json_t *extra; /* members of a newer bcd, kept as they are; NULL for none */
};

/* In order of recording; `{0}` is "none pending". */
struct releases {
	VEC(struct release_entry) entries;
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
void releases_remove(struct releases *releases, const char *allocation);

/* What the record can still take: beyond it no restart could read the file again. */
struct releases_room {
	size_t entries, bytes;
};
struct releases_room releases_room(const struct releases *releases);
/* Takes what the hold's entry needs, in place of one that is there or as one more. False, and
 * nothing is taken: there isn't as much. */
bool releases_room_take(struct releases_room *room, const struct hold *hold, bool in_place);

void releases_format(const struct releases *releases, struct buf *out);
/* Anything that isn't such a record in full is an error: it is never taken as "none pending". */
MUST_CHECK bool releases_parse(const char *text, size_t length, struct releases *ret_releases,
			       struct error *error);

/* --- the decision --- */

enum release_answer {
	RELEASE_ANSWER_NONE,   /* the kubelet wasn't asked yet */
	RELEASE_ANSWER_FAILED, /* no answer, or not a whole one */
	RELEASE_ANSWER_HELD,   /* a container has a device of the allocation */
	RELEASE_ANSWER_UNSEEN, /* none has, but the pods' processes can't be looked at */
	RELEASE_ANSWER_OPEN,   /* none has, but a pod's process has one open */
	RELEASE_ANSWER_FREE,   /* none has, nor its processes */
};

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
	RELEASE_FORGET,   /* bound again: drop the entry, report nothing (REL-6) */
	RELEASE_WITHDRAW, /* remove the CDI spec */
	RELEASE_ASK,      /* ask the kubelet, at `again` */
	RELEASE_REPORT,   /* nobody holds a device: say so */
	RELEASE_DONE,     /* reported; waits for the acknowledgement */
};

struct release_plan {
	enum release_step step;
	struct mono again; /* RELEASE_ASK: not before this time */
	bool stuck;        /* pending for more than five minutes (REL-19) */
	const char *why;   /* static text, for status and logs */
};

struct release_plan release_decide(const struct release_view *view, struct mono now);
const char *release_step_name(enum release_step step);

/* The start of the waiting on this boot's clock: anew after another boot (REL-49). */
struct mono release_asked(const struct release_entry *entry, const char *boot_id, struct mono now);
