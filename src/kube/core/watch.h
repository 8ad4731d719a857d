/*
 * watch: what a Kubernetes watch tells, out of bytes as they come, and when to ask for it again.
 *
 * Owns      the form of a watch's answer, one JSON object a line: {"type": ADDED | MODIFIED | DELETED | BOOKMARK |
 *           ERROR, "object": ...}; and the version from which a later watch goes on, the last one told. Versions are
 *           texts without a meaning here.
 * Anew      an answer without a version begins with an ADDED of each object that is there, in no order of time: their
 *           versions are no place to go on from. So there is none until the first event of another kind, or bookmark.
 * Silence   of a version that the API server has yet to come to (its etcd was put back) it tells nothing, not even by
 *           bookmarks, which else come each minute, and opens the answer all the same. So after answers that were
 *           silent for KUBE_WATCH_SILENT_MS, together, the next starts anew. Of a server that never sends bookmarks
 *           that asks no more than a list does.
 * Bounds    an event of at most KUBE_WATCH_MAX_EVENT bytes; a larger one is passed over (the API server keeps no object
 *           of more than 1.5 MiB, and a watch that ended on one would end on it again). So who watches lists as well.
 * Errors    an ERROR event is an answer as answer.h has it. What is no event is KUBE_STRANGE.
 *           After an ERROR that the version is too old or yet to come (410, 504), after the second one of another kind
 *           without an event between, and after what is no event, the version is gone: the next watch starts anew.
 * Pure      kube/watch.h asks; times are arguments.
 * Source    API concepts, "Efficient detection of changes", "410 Gone responses", "Watch bookmarks"; checked with 1.37.2.
 * Tests     tests/unit/kube/core/watch_test.c, fuzz/kubewatch_fuzz.c, tests/peer/kube
 */
#pragma once

#include "kube/core/answer.h"

#define KUBE_WATCH_MAX_EVENT    ((size_t)4 << 20)
#define KUBE_WATCH_VERSION_SIZE 128

enum kube_watch_kind {
	KUBE_WATCH_ADDED, /* also of each object that is there when a watch starts without a version */
	KUBE_WATCH_MODIFIED,
	KUBE_WATCH_DELETED, /* its object is the last state, with the deletion's version */
};

/* One watch's reading. All but `resource` zero is a beginning without a version. */
struct kube_watch_reader {
	const struct kube_resource *resource;  /* for messages */
	char version[KUBE_WATCH_VERSION_SIZE]; /* from which to go on; "": anew */
	struct buf line;
	bool passing; /* over the rest of an event that is too large */
	bool failed;  /* the last one was an ERROR */
	bool heard;   /* an event or bookmark has come; the caller's to take back */
};
void kube_watch_reader_deinit(struct kube_watch_reader *reader);

static inline void kube_watch_reader_cleanup(struct kube_watch_reader *reader)
{
	kube_watch_reader_deinit(reader);
}

/* The next answer follows; what has come of the last one's last event is dropped. */
void kube_watch_reader_begin(struct kube_watch_reader *reader);

/* The callback may take *object. */
typedef void kube_watch_take_fn(void *arg, enum kube_watch_kind kind, json_t **object);

/* The next bytes; `take` is called for each event that they complete, bookmarks excepted. False when this watch is over:
 * *ret_end says why, and must be empty before. */
MUST_CHECK bool kube_watch_read(struct kube_watch_reader *reader, const char *bytes, size_t length,
				kube_watch_take_fn *take, void *arg, struct kube_answer *ret_end);

/* --- asking again --- */

#define KUBE_WATCH_STEADY_MS      5000 /* who has lasted so long hasn't failed when it ends */
#define KUBE_WATCH_BACKOFF_MS     1000 /* after the first failure; it doubles */
#define KUBE_WATCH_BACKOFF_MAX_MS 30000
#define KUBE_WATCH_REFUSED_MS     300000 /* after some refusals: it will hardly be allowed soon */
#define KUBE_WATCH_REFUSALS       4 /* an API server that has just started refuses what it will allow */
#define KUBE_WATCH_SILENT_MS      150000 /* two bookmarks and more that didn't come */
#define KUBE_WATCH_HURRY_MS       5000 /* between two tries, whatever shows that the server is there */

/* What came of the last watches. `{0}` before the first, and after one that was steady. */
struct kube_watch_course {
	int failures; /* in a row */
	int refusals; /* of these, the last ones */
	bool renewed; /* the credentials, for one of them */
	bool anew;    /* as the version had run out, for one of them */
};

struct kube_watch_end {
	enum kube_reason reason; /* KUBE_DONE: its time was over */
	int64_t retry_after_s;
	int64_t lasted_ms; /* since the answer began; 0: it hadn't */
	int64_t silent_ms; /* for so long answers were open since something was told last */
	struct kube_watch_course before;
	uint64_t random; /* for the jitter */
};

struct kube_watch_next {
	int64_t delay_ms;
	bool renew; /* the credentials, on a new connection */
	bool anew;  /* without a version */
	bool hasty; /* once the server is there the pause is over */
	struct kube_watch_course course;
};

/* Never gives up. */
struct kube_watch_next kube_watch_decide(const struct kube_watch_end *end);
