#include "node/core/converge.h"

#include "node/core/operation.h"
#include "node/state.h"
#include "sys/log.h"

/* --- loading --- */

static void load_spec(struct node *node)
{
	CLEANUP(buf) struct buf text = {0};
	struct spec spec = {0};

	spec_deinit(node->spec);
	free(TAKE(node->spec));
	node->spec_error = (struct error){0};
	if (durable_read_record(node->spec_path, SPEC_MAX_FILE, &text, &node->spec_error) &&
	    spec_parse(buf_text(&text), text.length, &spec, &node->spec_error)) {
		node->spec = mem_dup(&spec, sizeof spec);
		node->spec_error = (struct error){0};
	} else if (node->spec_error.code == ERROR_NOT_FOUND) {
		node->spec_error = (struct error){0};
	} else {
		log_failure(LOG_ERROR, "spec.unreadable", &node->spec_error,
			    "what is bound stays bound until the control plane sends a Spec");
	}
}

static struct report *add_bound(struct reports *reports, const struct hold *hold,
				int64_t generation)
{
	struct report *report = reports_add(reports, REPORT_BOUND, hold->allocation, generation);

	for (size_t i = 0; i < hold->devices.count; i++)
		*vec_push(&report->atoms) = hold->devices.items[i].atom;
	return report;
}

static int64_t generation_of(const struct node *node)
{
	return node->spec ? node->spec->generation : 0;
}

/* All that this node holds and has pending, told anew: after a start (what was bound when it died
 * may not have been told) and to a database that knows nothing of it. `spec` is what it is told
 * under, NULL for none; what that wants again is not told as released. */
static void tell_all(const struct node *node, const struct spec *spec, struct reports *reports)
{
	int64_t generation = spec ? spec->generation : 0;

	for (size_t i = 0; i < node->holds.count; i++)
		if (!reports_has(reports, REPORT_BOUND, node->holds.items[i].allocation))
			add_bound(reports, &node->holds.items[i], generation);
	for (size_t i = 0; i < node->releases.entries.count; i++) {
		const struct release_entry *entry = &node->releases.entries.items[i];

		if (entry->reported && !(spec && spec_find(spec, entry->allocation)) &&
		    !reports_has(reports, REPORT_RELEASED, entry->allocation))
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

static void load_reports(struct node *node)
{
	CLEANUP(buf) struct buf text = {0};
	struct error error = {0};

	reports_deinit(&node->reports);
	node->reports = (struct reports){0};
	if (durable_read_record(node->reports_path, REPORTS_MAX_FILE, &text, &error) &&
	    reports_parse(buf_text(&text), text.length, &node->reports, &error))
		mark_reported(node);
	else if (error.code != ERROR_NOT_FOUND)
		log_failure(LOG_ERROR, "reports.unreadable", &error,
			    "all that is held and pending is reported anew");
	node->reports_stored = node->reports.sequence;
	tell_all(node, node->spec, &node->reports);
}

void converge_load(struct node *node)
{
	load_spec(node);
	load_reports(node);
}

/* --- the list under way --- */

static void write_deinit(struct node_write *write)
{
	spec_deinit(write->spec);
	free(write->spec);
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
	if (write->releases_changed) {
		releases_deinit(&node->releases);
		node->releases = write->releases;
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
	}
}

static void on_written(void *arg, size_t done_count UNUSED, const struct error *error)
{
	struct node_ticket *ticket = arg;
	struct node *node = ticket->node;

	free(ticket);
	if (!node) /* destroyed meanwhile: the next start reads what is there */
		return;
	node->ticket = NULL;
	node->holds_due = true;
	node->figures.writes++;
	if (!error) {
		adopt(node, &node->write);
	} else {
		/* Some steps are on disk, others not: what is there is the truth. */
		node->figures.write_failures++;
		log_failure(LOG_ERROR, "record.write", error, "it is tried again in a second");
		node->write_after = mono_after(loop_now(node->loop), NODE_WRITE_AGAIN_MS);
		release_load(node);
		converge_load(node);
	}
	write_deinit(&node->write);
	node_wake(node);
}

static void submit(struct node *node, struct durable_steps *steps)
{
	if (steps->count == 0) {
		write_deinit(&node->write);
		durable_steps_deinit(steps);
		return;
	}
	node->ticket = mem_alloc(sizeof *node->ticket);
	node->ticket->node = node;
	durable_submit(node->loop, steps, on_written, node->ticket);
}

static void step_spec(struct durable_steps *steps, const struct node *node, const struct spec *spec)
{
	CLEANUP(buf) struct buf text = {0};

	spec_format(spec, &text);
	durable_steps_replace(steps, node->spec_path, text.data, text.length, 0600);
}

static void step_releases(struct durable_steps *steps, const struct node *node,
			  const struct releases *releases)
{
	CLEANUP(buf) struct buf text = {0};

	releases_format(releases, &text);
	durable_steps_replace(steps, node->releases_path, text.data, text.length, 0600);
}

static void step_reports(struct durable_steps *steps, const struct node *node,
			 struct reports *reports)
{
	CLEANUP(buf) struct buf text = {0};

	reports_format(reports, &text);
	durable_steps_replace(steps, node->reports_path, text.data, text.length, 0600);
}

/* --- a Spec that came: stored before anything is done about it --- */

/* The releases that a Spec waits for and that aren't pending; false when there are none. */
static bool plan_withdrawn(struct node *node, const struct spec *spec, struct mono now,
			   struct durable_steps *steps)
{
	releases_copy(&node->releases, &node->write.releases);
	node->write.releases_changed = releases_add_withdrawn(
		&node->write.releases, spec, &node->holds, clock_wall(), now, node->boot_id);
	if (node->write.releases_changed)
		step_releases(steps, node, &node->write.releases);
	return node->write.releases_changed;
}

/* The Spec that is stored has come again, to a node whose record of releases was lost. */
static bool recover_releases(struct node *node, const struct spec *spec, struct mono now)
{
	struct durable_steps steps = {0};

	if (!node->marker || spec->generation != node->spec->generation)
		return false;
	if (plan_withdrawn(node, spec, now, &steps)) {
		submit(node, &steps);
		return true;
	}
	write_deinit(&node->write);
	return false;
}

static bool store_spec(struct node *node, struct mono now)
{
	struct spec *spec = node->uplink ? uplink_take_spec(node->uplink) : NULL;
	struct durable_steps steps = {0};
	bool recovered;

	if (!spec)
		return false;
	if (!spec_accepts(node->spec, spec)) {
		recovered = recover_releases(node, spec, now);
		spec_deinit(spec);
		free(spec);
		return recovered;
	}
	if (!node->spec || !str_equal(node->spec->lineage, spec->lineage)) {
		/* Another database, or ours again after the Spec was lost: what is waiting was
		 * numbered by a Spec that it doesn't know. Before the Spec, so that no crash leaves
		 * the old numbers under the new lineage. */
		node->write.reports_changed = true;
		node->write.reports.sequence = node->reports.sequence;
		tell_all(node, spec, &node->write.reports);
		node->inventory_due = node->conditions_due = true;
		step_reports(&steps, node, &node->write.reports);
	}
	plan_withdrawn(node, spec, now, &steps);
	node->write.spec = spec;
	step_spec(&steps, node, spec);
	submit(node, &steps);
	return true;
}

/* --- one pass --- */

/* What the pass will leave, as it grows. */
struct pass {
	struct node *node;
	struct mono now;
	struct durable_steps steps;
	bool entries_changed; /* after the first record of the pass */
};

/* What is bound again was not released, whatever waits to be said (REL-6): neither the control plane
 * nor a restart may take the old word for the next release. */
static bool take_back(struct pass *pass, const char *allocation)
{
	struct node_write *write = &pass->node->write;
	bool dropped = reports_drop(&write->reports, REPORT_RELEASED, allocation);

	write->reports_changed |= dropped;
	return dropped;
}

static void plan_releases(struct pass *pass, const struct converge_plan *plan)
{
	struct node_write *write = &pass->node->write;
	bool dropped = false;

	for (size_t i = 0; i < plan->releases.count; i++) {
		const struct hold *hold = plan->releases.items[i];

		dropped |= take_back(pass, hold->allocation);
		releases_add(&write->releases, hold, clock_wall(), pass->now, pass->node->boot_id);
		write->releases_changed = true;
		log_info("release.pending", "a hold is no longer wanted", "allocation",
			 hold->allocation, NULL);
	}
	if (dropped)
		step_reports(&pass->steps, pass->node, &write->reports);
	if (plan->releases.count > 0)
		step_releases(&pass->steps, pass->node, &write->releases);
}

/* After the record: the CDI specs of what is released go. */
static void plan_withdrawals(struct pass *pass, const struct converge_plan *plan)
{
	struct node *node = pass->node;

	for (size_t i = 0; i < plan->releases.count; i++) {
		CLEANUP(free)
		char *path = holds_path(node->config->cdi, plan->releases.items[i]->allocation);

		durable_steps_remove(&pass->steps, path);
	}
	for (size_t i = 0; i < node->pending.count; i++) {
		const struct node_release *release = &node->pending.items[i];
		CLEANUP(free) char *path = holds_path(node->config->cdi, release->allocation);

		/* Recorded before a crash or a change of mind: only a Spec says it is unwanted. */
		if (release->plan.step == RELEASE_WITHDRAW && node->spec)
			durable_steps_remove(&pass->steps, path);
	}
}

static void step_hold(struct pass *pass, const struct hold *hold)
{
	CLEANUP(free) char *path = holds_path(pass->node->config->cdi, hold->allocation);
	CLEANUP(buf) struct buf text = {0};

	holds_format(hold, &text);
	durable_steps_replace(&pass->steps, path, text.data, text.length, 0644);
}

static void move(struct pass *pass, const struct hold *hold)
{
	step_hold(pass, hold);
	log_warn("bind.moved", "device nodes are others than when it was bound", "allocation",
		 hold->allocation, NULL);
}

/* The kernel may give nodes other numbers under the same names, as it does for nvidia-uvm. */
static void plan_numbers(struct pass *pass, const struct converge_view *view,
			 const struct converge_plan *plan)
{
	struct node *node = pass->node;

	if (!view->holds || mono_until(pass->now, node->numbers_again) > 0)
		return;
	node->numbers_again = mono_after(pass->now, NODE_HOLDS_MS);
	for (size_t i = 0; i < node->holds.count; i++) {
		const struct hold *hold = &node->holds.items[i];
		CLEANUP(hold) struct hold now = {0};

		if (converge_is_released(view, plan, hold) ||
		    holds_find(&plan->moves, hold->allocation))
			continue;
		hold_copy(hold, &now);
		if (holds_find_nodes(&now))
			move(pass, &now);
	}
}

static void plan_moves(struct pass *pass, const struct converge_view *view,
		       struct converge_plan *plan)
{
	vec_each (&plan->moves, struct hold * hold) {
		(void)holds_find_nodes(hold);
		move(pass, hold);
	}
	plan_numbers(pass, view, plan);
}

static void plan_binds(struct pass *pass, struct converge_plan *plan)
{
	struct node *node = pass->node;

	for (size_t i = 0; i < plan->binds.count; i++) {
		struct hold *hold = &plan->binds.items[i];

		(void)holds_find_nodes(hold);
		step_hold(pass, hold);
		(void)take_back(pass, hold->allocation);
		add_bound(&node->write.reports, hold, generation_of(node));
		node->write.reports_changed = true;
		log_info("bind", "devices are bound", "allocation", hold->allocation, NULL);
	}
}

static void plan_failures(struct pass *pass, const struct converge_plan *plan)
{
	struct node *node = pass->node;

	for (size_t i = 0; i < plan->failures.count; i++) {
		const struct converge_failure *failure = &plan->failures.items[i];
		struct report *report = reports_add(&node->write.reports, REPORT_FAILED,
						    failure->allocation, generation_of(node));
		struct spec_assignment *assignment = spec_find(node->spec, failure->allocation);

		str_copy(report->reason, sizeof report->reason, failure->reason);
		str_copy(report->message, sizeof report->message, failure->message);
		node->write.reports_changed = true;
		/* Marked in place: the record follows in this very list, and if that fails the
		 * Spec is read anew. */
		str_copy(assignment->failed, sizeof assignment->failed, failure->reason);
		log_warn("bind.failed", failure->message, "allocation", failure->allocation,
			 "reason", failure->reason, NULL);
	}
	if (plan->failures.count > 0)
		step_spec(&pass->steps, node, node->spec);
}

static void plan_reported(struct pass *pass, const struct converge_plan *plan)
{
	struct node *node = pass->node;
	struct node_write *write = &node->write;

	for (size_t i = 0; i < node->pending.count; i++) {
		const struct node_release *release = &node->pending.items[i];
		struct release_entry *entry = releases_find(&write->releases, release->allocation);

		if (!entry || holds_find(&plan->binds, release->allocation))
			continue; /* bound again in this very pass: no word of a release */
		if (release->plan.step == RELEASE_FORGET) {
			(void)take_back(pass, release->allocation);
			releases_remove(&write->releases, release->allocation);
		} else if (release->plan.step == RELEASE_REPORT) {
			if (!node->spec) /* no number to say it under: the next Spec has one */
				continue;
			entry->reported = true;
			reports_add(&write->reports, REPORT_RELEASED, release->allocation,
				    generation_of(node));
			write->reports_changed = true;
			log_info("release.done", release->plan.why, "allocation",
				 release->allocation, NULL);
		} else if (release->plan.step == RELEASE_DONE &&
			   !reports_has(&write->reports, REPORT_RELEASED, release->allocation)) {
			releases_remove(&write->releases, release->allocation);
		} else {
			continue;
		}
		write->releases_changed = pass->entries_changed = true;
	}
}

/* What is claimed is refused for that; nothing else is done here either. */
static void answer_operation(const struct node *node, const struct converge_view *claims,
			     const struct uplink_operation *operation, struct report *report)
{
	if (!operation_may(claims, operation->kind, operation->argument, report->reason,
			   report->message))
		return;
	str_copy(report->reason, sizeof report->reason, "unsupported");
	str_copy(report->message, sizeof report->message,
		 node->config->host_units
			 ? "this node takes no operations: bcd only binds GPUs"
			 : "this node takes no operations: this host's units are managed by "
			   "others; bcd only binds GPUs");
}

static void plan_news(struct pass *pass, const struct converge_view *claims)
{
	struct node *node = pass->node;
	struct uplink_operation operation;
	int64_t acknowledged = report_may_go(node) ? uplink_acknowledged(node->uplink) : 0;

	if (acknowledged > node->reports.sequence ||
	    (node->reports.queue.count > 0 &&
	     node->reports.queue.items[0].sequence <= acknowledged)) {
		reports_acknowledge(&node->write.reports, acknowledged);
		node->write.reports_changed = true;
	}
	if (node->reports.sequence > node->reports_stored) /* told anew after reading the record */
		node->write.reports_changed = true;
	if (node->inventory_due)
		reports_add(&node->write.reports, REPORT_INVENTORY, "", generation_of(node));
	if (node->conditions_due)
		reports_add(&node->write.reports, REPORT_CONDITIONS, "", generation_of(node));
	node->write.reports_changed |= node->inventory_due || node->conditions_due;
	node->inventory_due = node->conditions_due = false;
	while (node->uplink && uplink_take_operation(node->uplink, &operation)) {
		struct report *report = reports_add(&node->write.reports, REPORT_OPERATION,
						    operation.id, generation_of(node));

		answer_operation(node, claims, &operation, report);
		node->write.reports_changed = true;
	}
}

static void plan_certificate(struct pass *pass)
{
	struct node *node = pass->node;
	CLEANUP(buf) struct buf pem = {0};
	CLEANUP(free) char *path = NULL;

	if (!node->uplink)
		return;
	uplink_take_certificate(node->uplink, &pem);
	if (pem.length == 0)
		return;
	path = identity_path(node->config->data, IDENTITY_CERTIFICATE);
	durable_steps_replace(&pass->steps, path, pem.data, pem.length, 0600);
	node->write.certificate = pem;
	node->write.certificate_changed = true;
	pem = (struct buf){0};
}

/* Nobody has a device of a release that was lost: the claim on all GPUs ends. What is on disk is read
 * again then. */
static void plan_marker(struct pass *pass)
{
	struct node *node = pass->node;

	if (!node->marker || !node->outside.over)
		return;
	log_info("releases.marker", "nobody outside has a GPU: they are free to be given again",
		 NULL);
	durable_steps_remove(&pass->steps, node->marker_path);
}

static void decide(struct pass *pass)
{
	struct node *node = pass->node;
	const struct converge_view view = {
		.spec = node->spec,
		.holds = node->holds_error.code == ERROR_NONE ? &node->holds : NULL,
		.releases = &node->releases,
		.releases_unreadable = node->marker,
		.inventory = source_inventory(node->gpus),
		.inventory_unsure = !source_settled(node->gpus) || source_error(node->gpus),
		.host = node_host(node),
	};
	struct node_write *write = &node->write;
	struct converge_plan plan = {0};

	converge_decide(&view, &plan);
	plan_releases(pass, &plan);
	plan_withdrawals(pass, &plan);
	plan_moves(pass, &view, &plan);
	plan_binds(pass, &plan);
	plan_failures(pass, &plan);
	plan_news(pass, &view);
	plan_reported(pass, &plan);
	plan_certificate(pass);
	plan_marker(pass);
	if (write->reports_changed)
		step_reports(&pass->steps, node, &write->reports);
	/* Last: an entry goes, or counts as reported, only after what it stood for is on disk. */
	if (pass->entries_changed)
		step_releases(&pass->steps, node, &write->releases);
	converge_plan_deinit(&plan);
}

void converge_step(struct node *node, struct mono now)
{
	struct pass pass = {.node = node, .now = now};

	if (node->ticket || node->misplaced)
		return;
	if (mono_until(now, node->write_after) > 0) {
		node_again(node, node->write_after);
		return;
	}
	if (store_spec(node, now))
		return;
	releases_copy(&node->releases, &node->write.releases);
	reports_copy(&node->reports, &node->write.reports);
	decide(&pass);
	submit(node, &pass.steps);
}
