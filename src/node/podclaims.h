/*
 * podclaims: whether a ResourceClaim that pods name is still the one that has a device here.
 *
 * Why       pods name claims by name alone. One that was deleted and made anew is another claim, and the
 *           pods that name it now have nothing of what the first one had (kube/core/claim.h).
 * Asked     one claim after the other, only those that have a device here and that some pod of the list
 *           names: a node may ask for no other. What isn't told is another claim: nobody is deleted for it.
 * Threads   the loop's.
 * Tests     tests/unit/node/reaper_claims_test.c
 */
#pragma once

#include "kube/client.h"
#include "node/holders.h"

/* All are asked for. `trouble`: the last that wasn't answered; NULL none. Never from inside
 * podclaims_ask() while there is something to ask, at once when there is nothing. */
typedef void podclaims_fn(void *arg, const struct error *trouble);

struct podclaims;
struct podclaims *podclaims_create(podclaims_fn *fn, void *arg);
void podclaims_destroy(struct podclaims *podclaims);

/* Forgets what was known. `pods`: an array of v1.Pod. Nothing is kept of what is passed but the client. */
void podclaims_ask(struct podclaims *podclaims, struct kube_client *kube,
		   const struct holders_listing *listing, const json_t *pods);
bool podclaims_asking(const struct podclaims *podclaims);
void podclaims_forget(struct podclaims *podclaims);

/* Was the holder's claim asked for? One that came later wasn't, nor one that no pod names. */
bool podclaims_asked(const struct podclaims *podclaims, const struct holder *holder);
/* Does any pod name the holder's claim? */
bool podclaims_named(const struct holder *holder, const json_t *pods);
/* Has the pod the claim by which the holder's device is held? */
bool podclaims_has(const struct podclaims *podclaims, const struct holder *holder,
		   const json_t *pod);
