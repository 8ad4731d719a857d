/*
 * podlist: the API server's list of this node's pods, and of the claims that they name.
 *
 * Owns      when it is asked for (when somebody needs it; after a failure, or one that couldn't be read in full, not
 *           within 5 s), how long it is believed (5 s), and what of it is known: who a holder is, whether a pod that
 *           only the checkpoint names is over (node/unlisted.h), and why a deleted pod may stay.
 * Bounds    a pod that can't be read costs itself, no other; but then it can't be told who is gone: the trouble names
 *           it.
 * Threads   the loop's.
 * Tests     tests/unit/node/reaper_test.c, reaper_lists_test.c, the simulation
 */
#pragma once

#include "base/buf.h"
#include "node/core/reap.h"
#include "node/holders.h"

struct node;
struct podlist;
/* `reap` says who is in the way: only of those manifests are looked for. It must outlive the list. */
struct podlist *podlist_create(struct node *node, struct reap *reap);
void podlist_destroy(struct podlist *list);

/* Each turn: what is too old is forgotten. */
void podlist_age(struct podlist *list, struct mono now);
/* Asks, unless that is under way or failed just now. */
void podlist_ask(struct podlist *list, struct mono now);
/* Nobody needs it: its trouble is nobody's. */
void podlist_not_needed(struct podlist *list);

/* Are the list and the claims of its pods here? */
bool podlist_here(const struct podlist *list);
/* And could each pod be read? Else who isn't in it may be there. */
bool podlist_whole(const struct podlist *list);
struct mono podlist_asked(const struct podlist *list); /* when the one that is here was asked for */
/* Valid until the loop turns. */
const struct reap_pod *podlist_pods(const struct podlist *list, size_t *ret_count);
/* Does the pod of this number name the holder's claim? */
bool podlist_has_claim(const struct podlist *list, size_t pod, const struct holder *holder);
/* A pod names the claim, which came after the list and hasn't been asked for. */
bool podlist_claim_unasked(const struct podlist *list, const struct holder *holder);
/* Adds why the pod may stay: " (/etc/kubernetes/manifests/x.yaml)", " (its finalizer 'x' keeps it)"; or nothing. */
void podlist_describe(const struct podlist *list, const char *uid, struct buf *out);

/* Why it can't be asked for; NULL: it can. */
const struct error *podlist_trouble(const struct podlist *list);
/* Takes `error` over as `*trouble`, and logs it when it is another one. */
void podlist_note_trouble(struct error *trouble, const struct error *error);
