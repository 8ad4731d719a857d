/*
 * reports: what this node has to tell, numbered, kept on disk until acknowledged.
 *
 * Owns      reports.json (docs/formats/reports.json.md): GW-17, GW-25. A report has its effect
 * once, however often it is sent. Inventory and conditions are kept as "to be told": what is sent
 * is what is true then, and a change makes a new number.
 * Numbers   grow by one and are never used twice. One that was never given can't be acknowledged.
 * Room      REPORTS_MAX of them, REPORTS_MAX_FILE bytes. The oldest goes for a newer one, but a release only when nothing
 *           else is left: nobody would ask for that word again. Whoever has one to say sees to it that there is room
 *           (reports_may_release()), and that what isn't among them wasn't acknowledged for that.
 * Pure.
 * Tests     tests/unit/node/core/reports_test.c, fuzz/reports_fuzz.c
 */
#pragma once

#include "gpu/core/field.h"
#include "node/core/holds.h"

#define REPORTS_FILE         "reports.json"
#define REPORTS_VERSION      1
#define REPORTS_MAX_FILE     ((size_t)4 << 20)
#define REPORTS_MAX          4096
#define REPORTS_MAX_RELEASED 2048 /* of them: what else there is finds room beside these */
#define REPORTS_MAX_SEQUENCE (INT64_MAX / 2) /* in a record: it can be counted on from there */
#define REPORTS_REASON_SIZE  32
#define REPORTS_MESSAGE_SIZE 512

enum report_kind {
	REPORT_INVENTORY,
	REPORT_CONDITIONS,
	REPORT_BOUND,
	REPORT_FAILED,
	REPORT_RELEASED,
	REPORT_OPERATION,
};
#define REPORT_KINDS 6

struct report {
	int64_t sequence;
	int64_t generation; /* of the Spec that was acted on */
	enum report_kind kind;
	char subject[ID_SIZE]; /* allocation or operation; "" for inventory and conditions */
	char reason[REPORTS_REASON_SIZE];
	char message[REPORTS_MESSAGE_SIZE];
	bool ok;                /* REPORT_OPERATION */
	VEC(struct atom) atoms; /* REPORT_BOUND */
};

/* In rising sequence; `{0}` is empty. */
struct reports {
	int64_t sequence; /* the highest ever given */
	VEC(struct report) queue;
};
void reports_deinit(struct reports *reports);

static inline void reports_cleanup(struct reports *reports)
{
	reports_deinit(reports);
}

void reports_copy(const struct reports *from, struct reports *ret_to);

/* A new report at the end; an older one that it makes needless (same kind and subject) goes. The
 * caller fills what the kind needs; the pointer is good until the next change. */
struct report *reports_add(struct reports *reports, enum report_kind kind, const char *subject,
			   int64_t generation);
/* Takes back what isn't true any more; false: there was no such report. */
bool reports_drop(struct reports *reports, enum report_kind kind, const char *subject);
/* May a release be added? Otherwise it is said later. */
bool reports_may_release(const struct reports *reports);
/* Drops everything up to `sequence`; nothing, when that was never given. */
void reports_acknowledge(struct reports *reports, int64_t sequence);
bool reports_has(const struct reports *reports, enum report_kind kind, const char *subject);

/* Makes room when the file would be over REPORTS_MAX_FILE, as reports_add() does. */
void reports_format(struct reports *reports, struct buf *out);
MUST_CHECK bool reports_parse(const char *text, size_t length, struct reports *ret_reports,
			      struct error *error);
const char *report_kind_name(enum report_kind kind);
