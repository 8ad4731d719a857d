#include "node/records.h"

#include "sys/log.h"

#include <errno.h>

#define MAX_ENTRIES 10000 /* of the data folder */
#define ANEW_STEP   INT64_C(1000000000000)

/* --- trouble --- */

static const char *advice(int os)
{
	switch (os) {
	case ENOSPC:
	case EDQUOT:
		return "Make room on its file system: bcd tries again each second.";
	case EROFS:
		return "Mount its file system for writing: bcd tries again each second.";
	case EMFILE:
	case ENFILE:
		return "Too many files are open: bcd tries again each second; restart it if this "
		       "stays.";
	default:
		return "Look at the disk and the kernel's log: bcd tries again each second.";
	}
}

/* Logged when it comes and when it is another one, not each second. */
static void trouble(struct node *node, const struct error *error)
{
	struct mono now = loop_now(node->loop);
	bool news = !str_equal(node->write_told.what, error->what);

	if (node->write_told.code == ERROR_NONE)
		node->write_failing_since = now;
	node->write_failed_at = now;
	node->write_error = *error;
	if (!*error->hint)
		error_hint(&node->write_error, "%s", advice(error->os));
	node->write_told = node->write_error;
	node->write_after = mono_after(now, NODE_WRITE_AGAIN_MS);
	if (news)
		log_failure(LOG_ERROR, "record.write", error, "it is tried again each second");
}

static void trouble_is_over(struct node *node)
{
	node->write_error = (struct error){0};
}

static void note_hang(struct node *node, const struct error *error)
{
	bool before = node->write_hangs.code != ERROR_NONE;
	bool now = error->code != ERROR_NONE;

	node->write_hangs = *error;
	if (now && !before)
		log_failure(LOG_ERROR, "record.hangs", error,
			    "nothing is bound, withdrawn or reported until it ends");
	if (before && !now)
		log_info("record.hangs", "it goes on", NULL);
}

static void look_at_list(struct node *node, struct mono now)
{
	struct error error = {0};

	if (node->ticket)
		(void)durable_hangs(node->ticket->job, now, &error);
	note_hang(node, &error);
}

const struct error *records_trouble(struct node *node, struct mono now)
{
	bool fails = node->write_error.code != ERROR_NONE;
	struct mono until = fails ? now : node->write_failed_at;

	look_at_list(node, now);
	if (node->write_hangs.code != ERROR_NONE)
		return &node->write_hangs;
	if (node->write_told.code == ERROR_NONE)
		return NULL;
	if (!fails && mono_until(node->write_failed_at, now) >= RECORDS_CALM_MS) {
		node->write_told = (struct error){0};
		log_info("record.write", "it works again", NULL);
		return NULL;
	}
	return mono_until(node->write_failing_since, until) >= CONDITIONS_WRITE_MS
		       ? &node->write_told
		       : NULL;
}

/* --- loading --- */

/* The file is whole as far as anybody knows, or it is damaged and can't be kept: later again. */
static void read_later(struct node *node, const struct error *error)
{
	node->unread = true;
	trouble(node, error);
}

/* It is no such record: kept, so that the next one doesn't take its place. */
static bool keep(struct node *node, const char *path, struct error *why)
{
	CLEANUP(buf) struct buf kept = {0};
	struct error error = {0};

	if (!durable_keep(path, clock_wall(), &kept, &error)) {
		read_later(node, &error);
		return false;
	}
	error_wrap(why, "kept as '%s'", buf_text(&kept));
	return true;
}

static void load_spec(struct node *node)
{
	CLEANUP(buf) struct buf text = {0};
	struct spec spec = {0};
	struct error error = {0};

	spec_deinit(node->spec);
	free(TAKE(node->spec));
	if (node->identity && node->identity->fresh)
		return; /* what is there is no Spec of this node: the next one takes its place */
	if (durable_read_record(node->spec_path, SPEC_MAX_FILE, &text, &error) &&
	    spec_parse(buf_text(&text), text.length, &spec, &error)) {
		node->spec = mem_dup(&spec, sizeof spec);
		node->spec_error = (struct error){0};
	} else if (durable_is_passing(&error)) {
		read_later(node, &error);
	} else if (error.code != ERROR_NOT_FOUND && node->spec_error.code == ERROR_NONE &&
		   keep(node, node->spec_path, &error)) {
		log_failure(LOG_ERROR, "spec.unreadable", &error,
			    "what is bound stays bound until the control plane sends a Spec");
		node->spec_error = error;
		if (node->uplink) /* each stream begins with it */
			uplink_again(node->uplink);
	}
}

struct report *records_add_bound(struct reports *reports, const struct hold *hold,
				 int64_t generation)
{
	struct report *report = reports_add(reports, REPORT_BOUND, hold->allocation, generation);

	for (size_t i = 0; i < hold->devices.count; i++)
		*vec_push(&report->atoms) = hold->devices.items[i].atom;
	return report;
}

void records_tell_all(const struct node *node, const struct spec *spec, struct reports *reports)
{
	int64_t generation = spec ? spec->generation : 0;

	for (size_t i = 0; i < node->holds.count; i++)
		if (!reports_has(reports, REPORT_BOUND, node->holds.items[i].allocation))
			records_add_bound(reports, &node->holds.items[i], generation);
	for (size_t i = 0; i < node->releases.entries.count; i++) {
		const struct release_entry *entry = &node->releases.entries.items[i];

		if (entry->reported && !(spec && spec_find(spec, entry->allocation)) &&
		    !reports_has(reports, REPORT_RELEASED, entry->allocation) &&
		    reports_may_release(reports))
			reports_add(reports, REPORT_RELEASED, entry->allocation, generation);
	}
}

/* A release whose report is on disk is reported, though the crash came before the entry said so:
 * what the control plane hears of first must not find the devices claimed. */
static void mark_reported(struct node *node)
{
	for (size_t i = 0; i < node->releases.entries.count; i++) {
		struct release_entry *entry = &node->releases.entries.items[i];

		if (reports_has(&node->reports, REPORT_RELEASED, entry->allocation))
			entry->reported = true;
	}
}

/* What could not be bound is marked in the Spec; only the words of it are gone. */
static void tell_failures(struct node *node)
{
	for (size_t i = 0; node->spec && i < node->spec->assignments.count; i++) {
		const struct spec_assignment *assignment = &node->spec->assignments.items[i];
		struct report *report;

		if (!*assignment->failed)
			continue;
		report = reports_add(&node->reports, REPORT_FAILED, assignment->allocation,
				     node->spec->generation);
		str_copy(report->reason, sizeof report->reason, assignment->failed);
		str_copy(report->message, sizeof report->message,
			 "it could not be bound; the words were lost with " REPORTS_FILE);
	}
}

/* No number was ever as high as the clock's milliseconds, unless it was given out in this way; for that there
 * is a step of 30 years for each file that was kept, since clocks go back as well. */
static bool begin_anew(struct node *node, struct error *error)
{
	struct durable_names names = {0};
	int64_t kept = 0;

	if (!durable_list(node->config->data, MAX_ENTRIES, &names, error))
		return false;
	for (size_t i = 0; i < names.count; i++)
		kept += str_starts(names.names[i], REPORTS_FILE ".unreadable-");
	durable_names_deinit(&names);
	node->reports.sequence = clock_wall().ms + kept * ANEW_STEP;
	return true;
}

/* Are they lost? */
static bool read_reports(struct node *node)
{
	CLEANUP(buf) struct buf text = {0};
	struct error error = {0};

	reports_deinit(&node->reports);
	node->reports = (struct reports){0};
	node->reports_stored = 0;
	if (durable_read_record(node->reports_path, REPORTS_MAX_FILE, &text, &error) &&
	    reports_parse(buf_text(&text), text.length, &node->reports, &error)) {
		node->reports_stored = node->reports.sequence;
		mark_reported(node);
		return false;
	}
	if (durable_is_passing(&error)) {
		read_later(node, &error);
	} else if (error.code != ERROR_NOT_FOUND) {
		/* It is still in its place: its absence would say that no number was ever given. */
		if (node->reports_error.code != ERROR_NONE)
			return true;
		if (!keep(node, node->reports_path, &error))
			return false;
		log_failure(LOG_ERROR, "reports.unreadable", &error,
			    "all that is held and pending is reported anew");
		node->reports_error = error;
		return true;
	}
	return false;
}

static void load_reports(struct node *node)
{
	int64_t given = node->reports.sequence; /* by this process */
	bool lost = read_reports(node);
	struct error error = {0};

	if (lost && !begin_anew(node, &error))
		read_later(node, &error);
	/* Whatever became of the file: those are named on a stream, and would be acknowledged there. */
	if (node->reports.sequence < given)
		node->reports.sequence = given;
	if (node->unread)
		return;
	if (lost)
		tell_failures(node);
	records_tell_all(node, node->spec, &node->reports);
	if (lost)
		node->reports_anew = node->reports.sequence;
}

void records_load(struct node *node)
{
	node->unread = false;
	node->unsynced = true;
	load_spec(node);
	load_reports(node);
}

/* --- the list under way --- */

void records_write_deinit(struct node_write *write)
{
	spec_deinit(write->spec);
	free(write->spec);
	spec_deinit(write->again);
	free(write->again);
	releases_deinit(&write->releases);
	reports_deinit(&write->reports);
	buf_deinit(&write->certificate);
	*write = (struct node_write){0};
}

static void adopt_spec(struct node *node, struct node_write *write)
{
	spec_deinit(node->spec);
	free(node->spec);
	node->spec = TAKE(write->spec);
	node->spec_error = (struct error){0};
	uplink_beat(node->uplink); /* the control plane shows which generation is stored */
}

static void adopt(struct node *node, struct node_write *write)
{
	if (write->spec)
		adopt_spec(node, write);
	if (write->no_longer_fresh)
		node->identity->fresh = false;
	if (write->releases_changed) {
		releases_deinit(&node->releases);
		node->releases = write->releases;
		node->boot_unrecorded = false;
		write->releases = (struct releases){0};
	}
	if (write->reports_changed) {
		reports_deinit(&node->reports);
		node->reports = write->reports;
		node->reports_stored = node->reports.sequence;
		write->reports = (struct reports){0};
	}
	if (write->certificate_changed) {
		buf_deinit(&node->identity->certificate_pem);
		node->identity->certificate_pem = write->certificate;
		write->certificate = (struct buf){0};
		log_info("certificate.renewed", "the node's certificate was renewed", NULL);
		uplink_hurry(node->uplink);
	}
	if (write->place_changed) {
		struct identity *identity = node->identity;

		str_copy(identity->site, sizeof identity->site, write->place.site);
		str_copy(identity->pool, sizeof identity->pool, write->place.pool);
	}
}

static void adopt_sync(struct node *node)
{
	node->unsynced = false;
	node->tidy = true;
	node->tidy_at = mono_after(loop_now(node->loop), DURABLE_LEFT_MS + 1000);
	if (node->uplink)
		uplink_beat(node->uplink);
}

/* What the list was to carry is said, or decided, again. An operation without a result comes again. */
static void take_back(struct node *node, struct node_write *write)
{
	if (node->uplink)
		uplink_return(node->uplink, write->spec ? TAKE(write->spec) : TAKE(write->again),
			      &write->certificate);
	node->inventory_due |= reports_has(&write->reports, REPORT_INVENTORY, "");
	node->conditions_due |= reports_has(&write->reports, REPORT_CONDITIONS, "");
	node->place_due |=
		write->place_changed; /* to the newest place, which may be another by now */
}

static void on_written(void *arg, size_t done_count UNUSED, const struct error *error)
{
	struct node_ticket *ticket = arg;
	struct node *node = ticket->node;
	struct mono since = ticket->since;
	bool hung;

	free(ticket);
	if (!node) /* destroyed meanwhile: the next start reads what is there */
		return;
	node->ticket = NULL;
	hung = node->write_hangs.code != ERROR_NONE;
	note_hang(node, &(struct error){0});
	node->holds_due = true;
	node->figures.writes++;
	if (error) {
		/* Some steps are on disk, others not: what is there is the truth, the holds first. */
		node->figures.write_failures++;
		node->unread = true;
		trouble(node, error);
		if (hung) /* people have heard of it: it is no moment's trouble */
			node->write_failing_since = since;
		take_back(node, &node->write);
	} else if (node->write.sync) {
		adopt_sync(node);
	} else {
		trouble_is_over(node);
		adopt(node, &node->write);
	}
	records_write_deinit(&node->write);
	node_wake(node);
}

void records_submit(struct node *node, struct durable_steps *steps)
{
	if (steps->count == 0) {
		trouble_is_over(node);
		records_write_deinit(&node->write);
		durable_steps_deinit(steps);
		return;
	}
	node->ticket = mem_alloc(sizeof *node->ticket);
	*node->ticket = (struct node_ticket){.node = node, .since = loop_now(node->loop)};
	node->ticket->job = durable_submit(node->loop, steps, on_written, node->ticket);
}

/* --- sure --- */

static void sync_folders(struct node *node)
{
	struct durable_steps steps = {0};

	node->write.sync = true;
	durable_steps_sync(&steps, node->config->data);
	/* Whoever removed it has ended what was bound; a folder is all that it takes to bind again. */
	durable_steps_folder(&steps, node->config->cdi, NODE_CDI_MODE);
	records_submit(node, &steps);
}

/* Temporary files of writes that failed, or died, on their way. */
static void tidy(struct node *node, struct mono now)
{
	CLEANUP(free) char *in_cdi = identity_path(node->config->cdi, SPEC_FILE);

	if (!node->tidy || mono_until(now, node->tidy_at) > 0)
		return;
	node->tidy = false;
	durable_tidy(node->spec_path, clock_wall());
	durable_tidy(in_cdi, clock_wall());
}

bool records_are_sure(struct node *node, struct mono now)
{
	if (mono_until(now, node->write_after) > 0) {
		node_again(node, node->write_after);
		return false;
	}
	tidy(node, now);
	if (node->marker_error.code != ERROR_NONE) {
		trouble(node, &node->marker_error);
		return false;
	}
	if (!node->unread && !node->unsynced)
		return true;
	if (node->unread) {
		release_load(node);
		records_load(node);
	}
	if (!node->unread && !node->misplaced)
		sync_folders(node);
	return false;
}
