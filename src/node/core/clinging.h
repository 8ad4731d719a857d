/*
 * clinging: the sentence about who keeps a release from its end.
 *
 * Owns      who holds which of the released devices, since when, what was done, and what comes next and
 *           when. The control plane repeats it to the people who wait (control/core/degraded.h), so
 *           times are absolute; a time of the day alone is of the date that was named last.
 * Pure.
 * Tests     tests/unit/node/core/clinging_test.c
 */
#pragma once

#include "base/buf.h"
#include "node/core/reap.h"
#include "node/core/release.h"

/* One device of one holder; texts are borrowed for the call. */
struct clinging_holder {
	const char *name; /* "default/web (main)", "process 123 (python) of pod UID" */
	const char *uid;  /* of its pod; "" when it can't be told */
	const char *id;   /* of the device, as the kubelet knows it; "" when it isn't known */
	const char *plan; /* what was done and comes next; "" while nothing is to be said */
};

/* What the reaper did and does next with one of this state: "to be asked to go at 12:00:30Z, forced at
 * 12:01:30Z". `since` is whose date isn't repeated. */
void clinging_plan(enum reap_state state, const struct reap_times *times, struct wall since,
		   struct buf *out);

/* "held since 2026-01-02T12:00:00Z by default/web (main), 2 of its 8 devices (gpu/…, gpu/…): to be asked to
 * go at …, and by …"; nothing without a holder. False: no device is named, since somebody holds them all, or
 * since it isn't known which they are. */
bool clinging_describe(const struct release_entry *entry, const struct clinging_holder *holders,
		       size_t count, struct buf *out);
