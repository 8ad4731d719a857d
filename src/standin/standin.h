/*
 * standin: a kubelet for where there is none: a first look, tests, benches, the simulation.
 *
 * Does      what bcd sees of a kubelet: Registration, the calls to plugins, pod-resources, the
 *           checkpoint, restarts. Around it, in the least form: an API server's and a scheduler's
 *           part (pods wait while allocatable is too small), and a runtime's (CDI names are
 * resolved to what a container would see; nothing is started). Files     ROOT/device-plugins/
 * (kubelet.sock, checkpoint), ROOT/pod-resources/kubelet.sock, ROOT/standin-pods.json,
 * ROOT/standin.lock. Truth     the same table of device plugin tests runs on it and on a real
 * kubelet (tests/peer/deviceplugin). Threads   the loop's.
 */
#pragma once

#include "base/error.h"
#include "sys/loop.h"

#include <jansson.h>

#define STANDIN_DEFAULT_GRACE_S 30
#define STANDIN_RETRY_MS        1000 /* between two tries to make a container */

struct standin;

struct standin_options {
	const char *root;       /* made if absent */
	const char *const *cdi; /* folders with CDI specs; the later win */
	size_t cdi_count;
	bool unheard; /* its API server tells it nothing until standin_hears() */
};

/* CONFLICT when another one serves this root. */
MUST_CHECK bool standin_create(struct loop *loop, const struct standin_options *options,
			       struct standin **ret_standin, struct error *error);
void standin_destroy(struct standin *standin); /* takes NULL; open requests are answered */

/* It hears of its pods, and of all that was asked for meanwhile. Until then it lists none, lets none in, ends
 * none, and keeps what its checkpoint says; those that ran run on. */
void standin_hears(struct standin *standin);

/*
 * One request, one answer, sometimes before it returns. Requests are {"verb": ..., ...}:
 *
 *   run-pod      namespace ("default"), name, container ("main"), resource, count, env {},
 *                bound, stubborn, static   the pod, as soon as something was decided on it; a static one's
 *                                          UID is as a kubelet makes them, not as an API server does
 *   delete-pod   namespace, name, graceSeconds (30; only a stubborn pod uses it up)
 *   list         the pods
 *   node         per resource capacity, allocatable and what pods request; Register calls so far
 *   restart      downMs (0)                 the kubelet goes away for so long and comes back
 *
 * Answers are {"ok": true, ...} or {"ok": false, "code": "CONFLICT", "error": ...}.
 */
typedef void standin_answer_fn(void *arg, json_t *answer); /* answer is borrowed */
void standin_request(struct standin *standin, json_t *request, standin_answer_fn *fn, void *arg);
