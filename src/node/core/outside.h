/*
 * outside: can a pod have a device that no record of this node accounts for?
 *
 * Why       When releasing.json couldn't be read, every GPU is claimed (REL-33). The claim ends by
 *           itself once this is sure that nobody holds a device of a release that was lost.
 * Live      is what the Spec wants, what is bound, and what is pending with its devices named; by
 *           device, not by allocation alone: a lost release of other devices stays in the way.
 * Looked at Every device that the kubelet says a pod has, or that a claim has prepared; and whole GPUs that nothing live has a
 *           part of, by the pods' processes. A slot or MIG instance can't be told apart from its
 *           GPU by a process (REL-11).
 * Blind     Where the host's processes can't be seen, what the lost record said of pods that had a device can't be had
 *           anew: one that kubelet and API server forgot may run on for a grace that nobody knows, so OUTSIDE_UNSEEN_MS
 *           pass first.
 * Doubt     is "held" (REL-40). Without readable holds nothing is decided (REL-41).
 * Pure.
 * Tests     tests/unit/node/core/outside_test.c
 */
#pragma once

#include "node/core/release.h"

#define OUTSIDE_WHO_SIZE  320
#define OUTSIDE_UNSEEN_MS (UNLISTED_UNKNOWN_S * (int64_t)1000 + UNLISTED_MARGIN_MS)

/* The parties of the live set. */
struct outside_live {
	const struct spec *spec; /* NULL: none, or unreadable; then it wants nothing */
	const struct holds *holds;
	const struct releases *releases;
};
/* A device as a holder has it (node/holders.h). */
bool outside_is_live(const struct outside_live *live, const char *id);
/* Has anything live this GPU, or a part of it? */
bool outside_has_gpu(const struct outside_live *live, struct atom_uuid gpu);

struct outside_holder {
	const char *id;  /* of its device */
	const char *who; /* for people */
};

struct outside_view {
	bool worker;           /* REL-15 */
	bool holds_known;      /* they could be read */
	bool inventory_unsure; /* there may be GPUs that aren't known */
	bool blind;            /* the host's processes can't be seen */
	struct outside_live live;
	/* the kubelet's answer, as release_view has it; FREE: `holders` is whole */
	enum release_answer answer;
	struct mono answered, marked, given, kubelet_since;
	const struct outside_holder *holders;
	size_t holder_count;
	/* what was found out of the pods' processes at the same time; of whole GPUs that nothing live
	 * has. NULL: nobody has one open */
	const char *process;
	const char *process_error; /* NULL: they could be looked at */
	const char *record_error;  /* of prepared.json; NULL: it could be read, or isn't there */
};

struct outside_plan {
	bool over;                  /* nobody: the marker may go */
	struct mono from;           /* a listing counts when it is asked for after this */
	char who[OUTSIDE_WHO_SIZE]; /* or what is in the way; "" when over */
};
void outside_decide(const struct outside_view *view, struct outside_plan *ret_plan);
