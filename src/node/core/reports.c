#include "node/core/reports.h"

#include <stdio.h>

static const char *const kind_names[REPORT_KINDS] = {
	[REPORT_INVENTORY] = "inventory", [REPORT_CONDITIONS] = "conditions",
	[REPORT_BOUND] = "bound",         [REPORT_FAILED] = "failed",
	[REPORT_RELEASED] = "released",   [REPORT_OPERATION] = "operation",
};
static const char *const top_keys[] = {"version", "sequence", "reports", NULL};
static const char *const report_keys[] = {"sequence", "generation", "kind",  "subject", "reason",
					  "message",  "ok",         "atoms", NULL};

const char *report_kind_name(enum report_kind kind)
{
	assert((size_t)kind < REPORT_KINDS);
	return kind_names[kind];
}

static bool kind_parse(const char *name, enum report_kind *ret_kind)
{
	for (size_t i = 0; i < REPORT_KINDS; i++) {
		if (!str_equal(name, kind_names[i]))
			continue;
		*ret_kind = (enum report_kind)i;
		return true;
	}
	return false;
}

void reports_deinit(struct reports *reports)
{
	if (!reports)
		return;
	for (size_t i = 0; i < reports->queue.count; i++)
		vec_deinit(&reports->queue.items[i].atoms);
	vec_deinit(&reports->queue);
}

void reports_copy(const struct reports *from, struct reports *ret_to)
{
	struct reports to = {.sequence = from->sequence};

	for (size_t i = 0; i < from->queue.count; i++) {
		const struct report *source = &from->queue.items[i];
		struct report *report = vec_push(&to.queue);

		*report = *source;
		memset(&report->atoms, 0, sizeof report->atoms);
		for (size_t j = 0; j < source->atoms.count; j++)
			*vec_push(&report->atoms) = source->atoms.items[j];
	}
	*ret_to = to;
}

static void remove_at(struct reports *reports, size_t index)
{
	vec_deinit(&reports->queue.items[index].atoms);
	vec_remove(&reports->queue, index);
}

bool reports_drop(struct reports *reports, enum report_kind kind, const char *subject)
{
	size_t before = reports->queue.count;

	for (size_t i = reports->queue.count; i-- > 0;)
		if (reports->queue.items[i].kind == kind &&
		    str_equal(reports->queue.items[i].subject, subject))
			remove_at(reports, i);
	return reports->queue.count < before;
}

/* A release's entry waits for its report. The others can be done without: an operation is sent again, inventory and
 * conditions are told at each Hello, what is bound at each start. */
static void make_room(struct reports *reports)
{
	size_t oldest = 0;

	while (oldest < reports->queue.count &&
	       reports->queue.items[oldest].kind == REPORT_RELEASED)
		oldest++;
	remove_at(reports, oldest < reports->queue.count ? oldest : 0);
}

bool reports_may_release(const struct reports *reports)
{
	size_t count = 0;

	vec_each (&reports->queue, const struct report *report)
		count += report->kind == REPORT_RELEASED;
	return count < REPORTS_MAX_RELEASED;
}

struct report *reports_add(struct reports *reports, enum report_kind kind, const char *subject,
			   int64_t generation)
{
	struct report *report;

	(void)reports_drop(reports, kind, subject);
	if (reports->queue.count == REPORTS_MAX)
		make_room(reports);
	report = vec_push(&reports->queue);
	report->sequence = ++reports->sequence;
	report->generation = generation;
	report->kind = kind;
	str_copy(report->subject, sizeof report->subject, subject);
	return report;
}

void reports_acknowledge(struct reports *reports, int64_t sequence)
{
	if (sequence > reports->sequence)
		return;
	while (reports->queue.count > 0 && reports->queue.items[0].sequence <= sequence)
		remove_at(reports, 0);
}

bool reports_has(const struct reports *reports, enum report_kind kind, const char *subject)
{
	for (size_t i = 0; i < reports->queue.count; i++)
		if (reports->queue.items[i].kind == kind &&
		    str_equal(reports->queue.items[i].subject, subject))
			return true;
	return false;
}

/* --- the record --- */

static json_t *format_report(const struct report *report)
{
	json_t *object = json_pack("{s:I, s:I, s:s, s:s}", "sequence", (json_int_t)report->sequence,
				   "generation", (json_int_t)report->generation, "kind",
				   report_kind_name(report->kind), "subject", report->subject);
	json_t *atoms;

	if (report->kind == REPORT_FAILED || report->kind == REPORT_OPERATION) {
		tree_set(object, "reason", tree_string(report->reason));
		tree_set(object, "message", tree_string(report->message)); /* may have been cut */
	}
	if (report->kind == REPORT_OPERATION)
		json_object_set_new(object, "ok", json_boolean(report->ok));
	if (report->kind != REPORT_BOUND)
		return object;
	atoms = json_array();
	for (size_t i = 0; i < report->atoms.count; i++) {
		char atom[ATOM_TEXT_SIZE];

		atom_format(atom, &report->atoms.items[i]);
		json_array_append_new(atoms, json_string(atom));
	}
	json_object_set_new(object, "atoms", atoms);
	return object;
}

static void format_all(const struct reports *reports, struct buf *out)
{
	CLEANUP(tree)
	json_t *tree = json_pack("{s:i, s:I, s:[]}", "version", REPORTS_VERSION, "sequence",
				 (json_int_t)reports->sequence, "reports");

	for (size_t i = 0; i < reports->queue.count; i++)
		json_array_append_new(json_object_get(tree, "reports"),
				      format_report(&reports->queue.items[i]));
	tree_dump_pretty(out, tree);
}

void reports_format(struct reports *reports, struct buf *out)
{
	format_all(reports, out);
	while (out->length > REPORTS_MAX_FILE) {
		for (size_t drop = reports->queue.count / 8 + 1; drop > 0; drop--)
			make_room(reports);
		buf_clear(out);
		format_all(reports, out);
	}
}

static bool parse_atoms(json_t *object, const char *where, struct report *report,
			struct error *error)
{
	json_t *atoms;

	if (!field_array(object, where, "atoms", report->kind == REPORT_BOUND, HOLDS_MAX_DEVICES,
			 &atoms, error))
		return false;
	for (size_t i = 0; atoms && i < json_array_size(atoms); i++) {
		const char *text = json_string_value(json_array_get(atoms, i));
		struct atom atom;

		if (!text)
			return error_field(error, where, "atoms must be strings");
		if (!atom_parse(text, &atom, error))
			return error_wrap(error, "%s", where);
		*vec_push(&report->atoms) = atom;
	}
	return true;
}

static bool parse_report(json_t *object, const char *where, const struct reports *before,
			 struct report *report, struct error *error)
{
	int64_t least =
		before->queue.count ? before->queue.items[before->queue.count - 1].sequence + 1 : 1;
	char kind[16] = "";

	if (!field_object(object, where, error) ||
	    !tree_check_keys(object, where, report_keys, error) ||
	    !field_number(object, where, "sequence", true, least, before->sequence,
			  &report->sequence, error) ||
	    !field_number(object, where, "generation", true, 0, INT64_MAX, &report->generation,
			  error) ||
	    !field_text(object, where, "kind", true, kind, sizeof kind, error) ||
	    !field_text(object, where, "subject", true, report->subject, sizeof report->subject,
			error) ||
	    !field_text(object, where, "reason", false, report->reason, sizeof report->reason,
			error) ||
	    !field_text(object, where, "message", false, report->message, sizeof report->message,
			error) ||
	    !field_bool(object, where, "ok", false, &report->ok, error))
		return false;
	if (!kind_parse(kind, &report->kind))
		return error_field(error, where, "kind '%s' is not known", kind);
	return parse_atoms(object, where, report, error);
}

static bool parse_tree(json_t *tree, struct reports *reports, struct error *error)
{
	json_t *array;

	if (!field_object(tree, "", error) || !field_version(tree, REPORTS_VERSION, error) ||
	    !tree_check_keys(tree, "", top_keys, error))
		return false;
	if (!field_number(tree, "", "sequence", true, 0, REPORTS_MAX_SEQUENCE, &reports->sequence,
			  error) ||
	    !field_array(tree, "", "reports", true, REPORTS_MAX, &array, error))
		return false;
	for (size_t i = 0; i < json_array_size(array); i++) {
		struct report report = {0};
		char where[FIELD_WHERE_SIZE];

		tree_path_item(where, "", "reports", i);
		if (!parse_report(json_array_get(array, i), where, reports, &report, error)) {
			vec_deinit(&report.atoms);
			return false;
		}
		*vec_push(&reports->queue) = report;
	}
	return true;
}

bool reports_parse(const char *text, size_t length, struct reports *ret_reports,
		   struct error *error)
{
	CLEANUP(reports) struct reports reports = {0};
	CLEANUP(tree) json_t *tree = NULL;

	if (!tree_parse(text, length, REPORTS_MAX_FILE, REPORTS_FILE, &tree, error))
		return false;
	if (!parse_tree(tree, &reports, error))
		return error_wrap(error, REPORTS_FILE);
	*ret_reports = reports;
	reports = (struct reports){0};
	return true;
}
