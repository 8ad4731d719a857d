/*
 * unlisted: is a pod over that the kubelet doesn't list, or doesn't list any more?
 *
 * Why       A kubelet that hasn't heard from its API server since it started lists no pods. And one that
 *           lost a pod (its static manifest was removed, its object was deleted by force) drops it from its
 *           list at once and from its checkpoint at the next write, while the containers run on for as long
 *           as the pod's grace. Where bcd can't see the host's processes or the pods' folders, the API
 *           server's list of this node's pods, and time, must tell.
 * Heard     What a kubelet lists counts only once it is proven to have heard of its pods: it lists one that the
 *           API server has, other than by a mirror. A kubelet that hasn't neither lists what runs nor ends it.
 * Listed    by name, with a device of ours or without: a lost checkpoint takes the devices only. A name that
 *           another pod has by now says nothing, and neither does one without a device against a last word: some
 *           kubelets list who is over.
 * Absent    A list that was asked for once the pod was known lacks its UID. An older one is no proof: the pod
 *           may have come after it.
 * Over      It is over by its word: a list has it in a final phase, with no container running. Or by time:
 *           the kubelet doesn't list it, it is absent, and the kubelet must have killed it, see
 *           unlisted_end(). A UID isn't given twice, but for a static pod's, which the kubelet lists whenever
 *           it runs.
 * Events    of the API server (a watch) have each word, also one that is there for too short for any list. One is of its
 *           pod alone: that others don't come means nothing, nor does that an object was deleted (by force it is while
 *           its containers run).
 * Mirrors   Anybody who may create pods may write that one mirrors another. A UID of the API server's form is
 *           taken for no static pod's, so a mirror of one may only lengthen what is waited for; a name that the kubelet has for one is its mirror's, too; and as the UID is made from
 *           the manifest, the grace belongs to it: the longest that was said counts.
 * Deleted   isn't taken back: a list that doesn't say so was made before.
 * Times     are this boot's, counted from when this node saw what it saw: no clock of another machine is
 *           compared with its own.
 * Record    what has to outlive bcd is a row of releasing.json (docs/formats/releasing.json.md).
 * Pure      the caller owns the state.
 * Source    Kubernetes 1.37, pkg/kubelet: calculateEffectiveGracePeriod(), killContainer(), SyncTerminatingPod(),
 *           HandlePodCleanups().
 * Tests     tests/unit/node/core/unlisted_test.c, unlisted_asking_test.c (when lists are asked for), unlisted_words_test.c (events)
 */
#pragma once

#include "base/error.h"
#include "base/vec.h"
#include "node/core/given.h"

#include <jansson.h>

#define UNLISTED_ASK_MS 5000 /* between two lists for a pod that is there */
/* Its last word is there for two seconds or less: while it may come, and while a release waits for one that is ending. */
#define UNLISTED_CLOSE_MS     500
#define UNLISTED_LATER_MS     2000
#define UNLISTED_CLOSE_FOR_MS 10000 /* from when the kubelet's list lost it */
#define UNLISTED_MARGIN_MS                                                                         \
	10000 /* for the kubelet to hear of it, and for SIGKILL once the grace is over */
/* A kubelet that has just heard of its pods ends what it doesn't know within a second of grace: until then. */
#define UNLISTED_KUBELET_MS 20000
#define UNLISTED_UNKNOWN_S  3600 /* the grace of a pod that no list ever had, nor an event */
/* What events said of pods that nobody knows (yet) is kept: of so many, for so long after the last. */
#define UNLISTED_WORDS     1024
#define UNLISTED_WORDS_MS  600000
#define UNLISTED_NAME_SIZE 128
#define UNLISTED_NEVER     ((struct mono){INT64_MAX})

/* "namespace/name" of pods; each is owned, and sorted they can be looked up. */
struct unlisted_names VEC_BODY(char *);
void unlisted_names_sort(struct unlisted_names *names);
void unlisted_names_deinit(struct unlisted_names *names);

struct unlisted_pod {
	char uid[GIVEN_UID_SIZE];
	/* what lists and events had of it */
	char name[UNLISTED_NAME_SIZE]; /* "namespace/name", perhaps cut; "": not known */
	int64_t grace_s;               /* its spec's; 0: none had it */
	bool called;                   /* it is as the kubelet lists it */
	bool is_static;
	bool over;
	int64_t deletion_s; /* it is being deleted with this grace; 0: it isn't, as far as was seen */
	struct mono deleted; /* since when that is known */
	/* when it was first seen to be gone from the kubelet's list, and from the API server's too; NEVER */
	struct mono lost, missing;
	/* in this process: */
	bool listed;   /* by the kubelet, with a device */
	bool given;    /* so, or its checkpoint has it with one */
	bool named;    /* by the kubelet, with a device or without, unless another has its name */
	bool waited;   /* a release, or the marker, waits for it */
	bool there;    /* by the last list, at `asked` */
	bool replaced; /* by that list another pod has its name */
	bool said;     /* that list has it as over, or an event since */
	struct mono first; /* when it came to be known; of a mere word: when that was heard */
	struct mono asked; /* the list that counts; before `first`: none */
	struct mono
		until;    /* when its grace, and the margin, is over, as unlisted_end() said last */
	struct wall ends; /* the same, for people */
};
/* By UID; `{0}` is none. */
struct unlisted VEC_BODY(struct unlisted_pod);

/* A pod that is to be known; more than one of a UID are added up. */
struct unlisted_seen {
	const char *uid;
	const char *namespace, *name; /* as the kubelet lists it; NULL: it doesn't */
	bool listed;                  /* with a device */
	bool given;                   /* or only the checkpoint says so */
	bool waited;
};
struct unlisted_view {
	const struct unlisted_seen *seen; /* all that are to be known now, in any order */
	size_t count;
	const struct unlisted_names *names; /* of all that the kubelet lists, sorted */
	bool counts; /* that it lacks one means something: it has heard of its pods, and settled */
};
/* `words`: of pods that weren't known, as unlisted_hear() keeps them. */
void unlisted_follow(struct unlisted *unlisted, struct unlisted *words,
		     const struct unlisted_view *view, struct mono now);

/* A pod of the API server's list; texts are borrowed. */
struct unlisted_listed {
	const char *uid;
	const char *static_uid; /* of a mirror: the kubelet's own UID for it; else "" */
	const char *namespace, *name;
	bool over; /* its phase is final, and no container runs */
	bool deleting;
	int64_t deletion_s; /* with this grace */
	int64_t grace_s;    /* its spec's */
};
/* Does the kubelet's list have one that it can only have heard of from the API server? */
bool unlisted_heard(const struct unlisted_names *names, const struct unlisted_listed *pods,
		    size_t count);
/* The API server's list came, that was asked for at `asked`. */
void unlisted_take(struct unlisted *unlisted, const struct unlisted_listed *pods, size_t count,
		   struct mono asked, struct mono now);

/*
 * An event of the API server: the object is as `pod` says, or was, when it was deleted. A last word counts as a list's
 * does; of whom nobody knows yet it is kept among `words`, which are `{0}` at first, unless he is static: his UID may
 * come again, and the kubelet hasn't said his name. A static pod runs again when its mirror says so.
 */
void unlisted_hear(struct unlisted *unlisted, struct unlisted *words,
		   const struct unlisted_listed *pod, bool deleted, struct mono now);

struct unlisted_pod *unlisted_find(const struct unlisted *unlisted, const char *uid);
/* Takes back what was on record of a pod that isn't known yet. */
void unlisted_add(struct unlisted *unlisted, const struct unlisted_pod *pod, struct mono now);

/* A list that counts lacks it, or has it as over. */
bool unlisted_absent(const struct unlisted_pod *pod);

enum unlisted_state {
	UNLISTED_LISTED,  /* the kubelet lists it, perhaps without a device */
	UNLISTED_UNASKED, /* no list that counts has come */
	UNLISTED_THERE,   /* the API server has it */
	UNLISTED_GRACE,   /* nobody has it, and it may run yet */
	UNLISTED_OVER,
};
struct unlisted_end {
	enum unlisted_state state;
	struct mono
		until; /* then the kubelet has killed it, as far as is known now; NEVER: can't be told */
};
/*
 * The kubelet kills a pod of the API server when the grace of its deletion is over, and one that vanished
 * without when its spec's grace is over, counted from then. Whether it had heard of a deletion before the object
 * was gone nobody says, so both are waited for. The grace of a static pod counts from when the
 * kubelet's list lost it, and its mirror stays until it is over. `heard`: since when this kubelet is known to
 * have heard of its pods, NEVER if it isn't; it counts the grace of what the API server has anew.
 */
struct unlisted_end unlisted_end(const struct unlisted_pod *pod, struct mono heard,
				 struct mono now);

/* Is the kubelet to be asked closely, as its end is near? While a release waits for it, or it is being deleted; where
 * events tell (`watched`), once its last word is heard and the kubelet alone still lists it. */
bool unlisted_is_closing(const struct unlisted_pod *pod, bool watched);

/* What there is to ask with. */
struct unlisted_asking {
	bool heard;   /* since when, as above, is known */
	bool watched; /* events tell of last words: no list need be asked for closely */
};
/* From when on a list is to be asked for because of it, if it isn't over; NEVER. */
struct mono unlisted_due(const struct unlisted_pod *pod, struct unlisted_asking asking,
			 struct mono now);

/* Of the record; a row has more members, which the caller's are. */
#define UNLISTED_KEYS                                                                              \
	"uid", "name", "called", "graceSeconds", "static", "over", "deletionSeconds", "deletedMs", \
		"lostMs", "missingMs"
void unlisted_set(json_t *row, const struct unlisted_pod *pod);
MUST_CHECK bool unlisted_parse(json_t *row, const char *where, struct unlisted_pod *ret_pod,
			       struct error *error);
bool unlisted_same_row(const struct unlisted_pod *a, const struct unlisted_pod *b);
