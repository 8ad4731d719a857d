/*
 * unlisted: node/core/unlisted.h at work: pods that the kubelet doesn't list hold what its checkpoint says,
 * until the API server's list of this node's pods, which the reaper asks for, or their last word, which a watch hears
 * (node/podwatch.h), shows that they are gone. Where
 * the host's processes can't be seen (node->blind) so does each pod that had a device, until its end is proven.
 *
 * Threads   the loop's.
 * Tests     tests/unit/node/vanished*_test.c, reaper_lists_test.c, the simulation, tests/peer/cluster (a DaemonSet's pod)
 */
#pragma once

#include "base/buf.h"
#include "kube/core/pod.h"
#include "node/core/unlisted.h"

struct holder;
struct node;
struct release_users;

/* The node has a new listing: holders that are known to be gone leave it, and users that are over. */
void unlisted_on_listing(struct node *node);
/* The API server's list of this node's pods came, and was asked for at `asked`. */
void unlisted_on_pods(struct node *node, const struct unlisted_listed *pods, size_t count,
		      struct mono asked);
/* An event of the API server's (node/podwatch.h): its object is as `pod` says, or was, when it was deleted. */
void unlisted_on_word(struct node *node, const struct kube_pod *pod, bool deleted);
/* What of a pod is to be known here; texts are borrowed from it. */
struct unlisted_listed unlisted_of(const struct kube_pod *pod);
/* Is that list to be asked for now? Only while such a pod is waited for, or its grace isn't known yet. */
bool unlisted_need_pods(struct node *node, struct mono now);
/* Are there pods whose end is near, and is to be seen at once? The API server has their last word for two seconds
 * or less; where it is heard as it comes, those of whom it has. */
bool unlisted_are_close(const struct node *node);
/* Is it proven that the pod is over? */
bool unlisted_is_over(const struct node *node, const char *uid);
/* Does the API server have this pod that had a device, and no listing of holders names it? Who doesn't end it
 * must be asked to: nothing else does. */
bool unlisted_clings(const struct node *node, const char *uid);
/* What is known of such a holder: "only the kubelet's checkpoint names it, …". */
void unlisted_describe(const struct node *node, const struct holder *holder, struct buf *out);
/* And of one that had a device. */
void unlisted_describe_user(const struct node *node, const struct unlisted_pod *pod,
			    struct buf *out);

/* What the record has of those that had a device comes back. */
void unlisted_recall(struct node *node);
/* What it is to have. `*ret_users` must be empty. False: nothing is known yet, it stays. */
bool unlisted_record(const struct node *node, struct release_users *ret_users);
