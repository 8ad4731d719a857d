/*
 * converge: from what is wanted and what is bound, to what is to be done.
 *
 * Owns      which assignment becomes a hold, which hold is released, which can't be done and why;
 *           the claim rule (REL-4): nothing gets a device that another hold or a release that is
 *           not reported yet has, in whole or in part, nor one that a pod has by a device which isn't
 *           bound here (strays.h): such a one is adopted, as a release that nobody had recorded; that a
 *           hold's file names no device node that may be another's by now.
 * Never     ends a booking by the clock: only a Spec does. Without a readable Spec or readable
 *           holds nothing is bound or released.
 * Again     what failed and is wanted all the same is bound as soon as nothing is in its way; it is
 *           told once for each reason.
 * Pure.
 * Tests     tests/unit/node/core/converge_test.c, converge_host_test.c (what the host has), converge_strays_test.c
 */
#pragma once

#include "node/core/release.h"
#include "node/core/reports.h"
#include "node/core/spec.h"
#include "node/core/strays.h"

#define HOLDS_CLAIMED_BY  "(what is bound, which could not be read)"
#define STRAYS_CLAIMED_BY "(pods that have it, which the kubelet could not be asked)"

struct converge_view {
	const struct spec *spec;         /* NULL: none is stored, or it is unreadable */
	const struct holds *holds;       /* NULL: unreadable */
	const struct releases *releases; /* never NULL */
	bool releases_unreadable;        /* the marker is there: everything is claimed (REL-33) */
	const struct strays *strays;     /* who has what isn't bound here; NULL: nobody, for sure */
	const struct inventory *inventory;
	bool inventory_unsure; /* the source can't be read: what isn't there may be there all the same */
	bool again; /* what failed is judged anew: the control plane has had time to withdraw it */
	const char *unoffered; /* why what is bound would reach no pod; NULL: it does */
	struct admission_share
		host; /* for bookings; no processors: unknown, nothing is refused for it */
};

struct converge_failure {
	char allocation[ID_SIZE];
	char reason[REPORTS_REASON_SIZE]; /* "overlap", "unknown-device", … */
	char message[REPORTS_MESSAGE_SIZE];
};

/* Owned; `{0}` is "nothing to do". */
struct converge_plan {
	struct holds binds; /* device nodes without numbers: the shell adds them */
	struct holds moves; /* bound already, and to be written with other nodes; likewise */
	VEC(const struct hold *) releases; /* borrowed from the view's holds */
	VEC(const struct stray *)
	adoptions; /* to be recorded as pending; borrowed from its strays */
	VEC(struct converge_failure) failures;
};
void converge_plan_deinit(struct converge_plan *plan);

/* Does the plan, or a release that is under way, take the hold's file away? It isn't written again then. */
bool converge_is_released(const struct converge_view *view, const struct converge_plan *plan,
			  const struct hold *hold);

/* Who claims this GPU, or a part of it: a hold's or pending release's allocation, whoever has it without one,
 * or why it can't be told. NULL: nobody. Borrowed from the view. For whatever else wants it (HOST-14). */
const char *converge_claimant(const struct converge_view *view, struct atom_uuid gpu);

/* What of the host holds and pending releases have, but for the pending release of `except` ("": none). */
struct admission_share converge_booked(const struct holds *holds, const struct releases *releases,
				       const char *except);

/* `*ret_plan` must be empty. */
void converge_decide(const struct converge_view *view, struct converge_plan *ret_plan);
