/*
 * answer: what an API server's answer means, and whether to ask again.
 *
 * Pure.
 * Errors    a failure's message is "SUBJECT: the API server says STATUS REASON: its message",
 *           cleaned and cut; the hint says what to do.
 * 403       for a node stands for "absent" and for "the authorizer is behind", too (checked on
 *           1.37.2): GET, PATCH and DELETE of an absent slice or claim are answered so. Whoever
 *           must tell them apart lists.
 * Strangers whatever answers in an API server's place (a proxy, a default backend, a half-started
 *           cluster) must not be believed: a 2xx is done only with the kind and name that were asked
 *           for; a 404 means "not there", and a 409 a conflict, only as a Status that says so and of
 *           what was asked for.
 * Source    metav1.Status; API concepts, "HTTP status codes"; 1.34 to 1.37.
 * Tests     tests/unit/kube/core/answer_test.c, fuzz/kubeanswer_fuzz.c, tests/peer/kube
 */
#pragma once

#include "base/error.h"
#include "kube/core/request.h"

#include <jansson.h>

#define KUBE_MAX_ANSWER        ((size_t)8 << 20) /* bytes of one answer */
#define KUBE_CAUSES_SIZE       256
#define KUBE_TRIES             5 /* of one request */
#define KUBE_BACKOFF_MS        200
#define KUBE_BACKOFF_MAX_MS    10000
#define KUBE_RETRY_AFTER_MAX_S 60

enum kube_reason {
	KUBE_DONE,           /* 2xx, and what was asked for */
	KUBE_INVALID,        /* the server has checked it and wants none of it */
	KUBE_UNAUTHORIZED,   /* 401 */
	KUBE_FORBIDDEN,      /* 403: see above */
	KUBE_NOT_FOUND,      /* 404 of an API server */
	KUBE_ALREADY_EXISTS, /* 409 of a create */
	KUBE_CONFLICT,       /* 409: another UID, another version, or fields of another manager */
	KUBE_EXPIRED,        /* 410: the token or version is too old; 504: it is yet to come */
	KUBE_DISRUPTION,     /* 429 of an eviction: a budget doesn't allow it; `causes` names it */
	KUBE_BUSY,           /* 429: later */
	KUBE_UNAVAILABLE,    /* 5xx */
	KUBE_STRANGE,   /* anything else: something that is no API server, or not to be believed */
	KUBE_UNREACHED, /* no answer: `status` is 0, `error` says why */
};
const char *kube_reason_name(enum kube_reason reason); /* "not found"; never NULL */

struct kube_answer {
	int status;
	enum kube_reason reason;
	int64_t retry_after_s; /* 0: not said */
	json_t *body;          /* the object of KUBE_DONE, without managedFields; else NULL */
	char causes[KUBE_CAUSES_SIZE]; /* the messages of the Status's causes, "; " between */
	bool unknown;       /* of KUBE_UNREACHED: it was sent and may have been carried out */
	struct error error; /* of all but KUBE_DONE */
};
void kube_answer_deinit(struct kube_answer *answer);

static inline void kube_answer_cleanup(struct kube_answer *answer)
{
	kube_answer_deinit(answer);
}

/* Always gives an answer. `retry_after_s` is the header's. `*ret_answer` must be empty. */
void kube_answer_read(const struct kube_request *request, int status, int64_t retry_after_s,
		      const void *body, size_t length, struct kube_answer *ret_answer);

/* A failure that isn't an answer's status but stands in what it brings: `status` is the Status. `*ret_answer` must be
 * empty. */
void kube_answer_of_status(const char *subject, const json_t *status,
			   struct kube_answer *ret_answer);

/* Of a deletion with a UID precondition: that object is deleted or on its way (REL-51). A node is
 * told 403 of a newcomer of the same name on another node: whoever gets that lists its own pods. */
bool kube_answer_deleted(const struct kube_answer *answer);

/* --- asking again --- */

/* How far a request came. */
enum kube_way {
	KUBE_WAY_ANSWERED,
	KUBE_WAY_UNSENT,      /* nothing of it has left */
	KUBE_WAY_BROKEN,      /* it may have been carried out */
	KUBE_WAY_CREDENTIALS, /* certificate and key don't fit: their files are being changed */
	KUBE_WAY_HOPELESS,    /* the next try ends in the same way */
};

struct kube_try {
	enum kube_way way;
	const struct kube_answer *answer; /* of KUBE_WAY_ANSWERED */
	bool repeatable;
	int tries;       /* made so far, this one included */
	bool renewed;    /* credentials were read anew after a 401 already */
	int64_t left_ms; /* until the request's deadline */
	uint64_t random; /* for the jitter */
};

enum kube_next_step {
	KUBE_GIVE_UP, /* the outcome stands */
	KUBE_AGAIN,
	KUBE_AGAIN_RENEWED, /* with credentials read anew and a new connection */
};

struct kube_next {
	enum kube_next_step step;
	int64_t delay_ms;
};

/*
 * 401 renews once. 429 and 5xx wait as long as the server says, else with backoff; 5xx and a broken
 * connection only repeat what is repeatable. An eviction that a budget refuses is an answer.
 */
struct kube_next kube_try_decide(const struct kube_try *outcome);
