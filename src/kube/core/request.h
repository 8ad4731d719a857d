/*
 * request: the calls bcd makes to a Kubernetes API server, as method, path and body.
 *
 * Pure      texts in, one request out; kube/client.h sends it.
 * Paths     every name is percent-encoded, whatever is in it.
 * Objects   are JSON trees (jansson), borrowed for the call.
 * Source    Kubernetes API conventions, 1.34 to 1.37; resource.k8s.io/v1 is served since 1.34.
 * Tests     tests/unit/kube/core/request_test.c, tests/peer/kube
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <jansson.h>

#define KUBE_SUBJECT_SIZE 160
#define KUBE_MANAGER      "bcd" /* field manager of all we write (DRA-13) */

/* A kind of object. */
struct kube_resource {
	const char *group; /* "" for the core API */
	const char *version;
	const char *plural;
	const char *kind; /* as people say it in messages, lower case */
	bool namespaced;
	const char *object; /* "Pod": `kind` as the API writes it; of a list "PodList" */
};
extern const struct kube_resource KUBE_NODE;
extern const struct kube_resource KUBE_POD;
extern const struct kube_resource KUBE_EVENT;          /* core v1 (kube/core/event.h) */
extern const struct kube_resource KUBE_RESOURCE_SLICE; /* resource.k8s.io/v1 */
extern const struct kube_resource KUBE_RESOURCE_CLAIM; /* resource.k8s.io/v1 */

/* One object. `namespace` is "" for a kind without; nothing is kept. */
struct kube_ref {
	const struct kube_resource *resource;
	const char *namespace;
	const char *name;
};

/* What a 2xx to a request has to be, and what a 404 or 409 has to be about. */
enum kube_form {
	KUBE_FORM_ANY,      /* an object, but no Status of a failure */
	KUBE_FORM_OBJECT,   /* that object */
	KUBE_FORM_LIST,     /* a list of that kind */
	KUBE_FORM_DELETION, /* that object as it is deleted, or a Status of success */
	KUBE_FORM_EVICTION, /* a Status of success */
};

#define KUBE_NAME_SIZE 254 /* of a name or namespace, and NUL */

struct kube_wanted {
	enum kube_form form;
	const struct kube_resource *resource;                 /* NULL of KUBE_FORM_ANY */
	char namespace[KUBE_NAME_SIZE], name[KUBE_NAME_SIZE]; /* "": any */
};

struct kube_request {
	const char *method;
	const char *content_type; /* NULL without a body */
	struct buf path;          /* "/api/v1/nodes/a?x=y" */
	struct buf body;
	/* Doing it twice is as doing it once, so it may be sent again when nobody knows whether it
	 * was carried out. */
	bool repeatable;
	struct kube_wanted wanted;
	char subject[KUBE_SUBJECT_SIZE]; /* for messages: "delete pod 'default/web'" */
};
void kube_request_deinit(struct kube_request *request);

static inline void kube_request_cleanup(struct kube_request *request)
{
	kube_request_deinit(request);
}

/* Each returns a request that the caller owns. */

struct kube_request kube_get(struct kube_ref ref);

struct kube_list_options {
	const char *namespace;                       /* NULL: all, or a kind without */
	const char *label_selector, *field_selector; /* NULL: everything */
	int limit;                                   /* objects a page; 0: all at once */
	const char *continue_token;                  /* NULL: the first page */
};
struct kube_request kube_list(const struct kube_resource *resource,
			      const struct kube_list_options *options);

/* What happens to a list's objects from then on (kube/core/watch.h), for `timeout_s`. `version` "": the API server begins
 * with what there is now. No limit and no continue token. */
struct kube_request kube_watch(const struct kube_resource *resource,
			       const struct kube_list_options *options, const char *version,
			       int timeout_s);

/* POST. `object` names itself. Not repeatable: a second one is ALREADY_EXISTS, and nobody could
 * tell whether the first was ours. */
struct kube_request kube_create(const struct kube_resource *resource, const char *namespace,
				const json_t *object);

/* Server-side apply as field manager KUBE_MANAGER; `force` takes fields from other managers. For a
 * node only of an object that is there (DRA-13). */
struct kube_request kube_apply(struct kube_ref ref, const json_t *object, bool force);

/* JSON merge patch: null deletes a field. */
struct kube_request kube_patch_merge(struct kube_ref ref, const json_t *patch);

struct kube_delete_options {
	const char *uid;        /* precondition; NULL: whoever has the name now */
	int64_t grace_period_s; /* < 0: the object's own */
	bool dry_run;
};
struct kube_request kube_delete(struct kube_ref ref, const struct kube_delete_options *options);

/* pods/eviction: a deletion that PodDisruptionBudgets may refuse with 429 (TAKE-15). */
struct kube_request kube_evict(struct kube_ref pod, const struct kube_delete_options *options);

/* Own labels and annotations; a NULL value in a {name: text} object removes the name. */
struct kube_request kube_node_labels(const char *node, const json_t *labels,
				     const json_t *annotations);
struct kube_request kube_node_cordon(const char *node, bool cordoned);

/* Any other GET, such as "/version", "/apis/resource.k8s.io". `path` is taken as it is. */
struct kube_request kube_get_path(const char *path);
