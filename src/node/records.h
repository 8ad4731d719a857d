/*
 * records: what is on disk of spec.json and reports.json, and the one durable list under way.
 *
 * Sure      before anybody acts or speaks on a record it was read, and its folder was synced since the start
 *           or since the last write that failed: what a killed process or a failed call left is seen,
 *           and may be gone after a power cut.
 * Damage    a file that isn't such a record is never taken as empty: it is kept beside it
 *           (durable_keep()), and its condition says so. One that can't be read for a passing reason
 *           is read again each second; until then nothing is decided and nothing is told.
 * Lost      numbers of reports begin again above all that were ever given, by the clock and the files kept.
 * Failing   writes are tried again each second; what they were to carry is taken back, not lost. People hear of what
 *           failed until nothing has for RECORDS_CALM_MS: a list that succeeds may hold other files.
 * Hanging   a list of which one step takes DURABLE_HANG_MS can't be ended: nothing else is decided until it is over, and
 *           for as long people hear which file it is.
 */
#pragma once

#include "node/state.h"

#define RECORDS_CALM_MS 10000 /* longer than any retry is apart from the next */

void records_load(struct node *node);
/* What people are to hear; NULL: nothing, or what the next try may mend. */
const struct error *records_trouble(struct node *node, struct mono now);
/* Does nothing get on disk, as far as is known? */
static inline bool records_fail(const struct node *node)
{
	return node->write_error.code != ERROR_NONE || node->write_hangs.code != ERROR_NONE;
}
/* May it be decided now? If not, what is needed for that is under way, or due at a time. */
bool records_are_sure(struct node *node, struct mono now);

/* Writes the list, then adopts `node->write`; takes both over. An empty list drops it. */
void records_submit(struct node *node, struct durable_steps *steps);
void records_write_deinit(struct node_write *write);

/* All that this node holds and has pending, told anew: after a start (what was bound when it died may not
 * have been told) and to a database that knows nothing of it. `spec` is what it is told under, NULL for
 * none; what that wants again is not told as released. */
void records_tell_all(const struct node *node, const struct spec *spec, struct reports *reports);
struct report *records_add_bound(struct reports *reports, const struct hold *hold,
				 int64_t generation);
