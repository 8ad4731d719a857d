#include "node/core/converge.h"

#include "node/core/operation.h"
#include "node/records.h"
#include "sys/log.h"

static int64_t generation_of(const struct node *node)
{
	return node->spec ? node->spec->generation : 0;
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

static void step_identity(struct durable_steps *steps, const struct node *node,
			  const struct identity *identity)
{
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(free) char *path = identity_path(node->config->data, IDENTITY_FILE);

	identity_format(identity, &text);
	durable_steps_replace(steps, path, text.data, text.length, 0600);
}

/* --- a Spec that came: stored before anything is done about it --- */

/* The releases that a Spec waits for and that aren't pending, or were said too early for it; false when there are
 * none. */
static bool plan_withdrawn(struct node *node, const struct spec *spec, struct mono now,
			   struct durable_steps *steps)
{
	releases_copy(&node->releases, &node->write.releases);
	node->write.releases_changed = releases_add_withdrawn(
		&node->write.releases, spec, &node->holds, clock_wall(), now, node->boot_id);
	if (node->spec && releases_say_again(&node->write.releases, node->spec, spec))
		node->write.releases_changed = true;
	if (node->write.releases_changed)
		step_releases(steps, node, &node->write.releases);
	return node->write.releases_changed;
}

/* The Spec that is stored has come again, perhaps to a node whose record of releases was lost since, and
 * whose marker of that is gone already: what it waits for and isn't pending is asked about anew. Said
 * twice does no harm. Takes the Spec over when it says true. */
static bool recover_releases(struct node *node, struct spec *spec, struct mono now)
{
	struct durable_steps steps = {0};

	if (spec->generation != node->spec->generation)
		return false;
	if (plan_withdrawn(node, spec, now, &steps)) {
		node->write.again = spec; /* taken back when it can't be written */
		records_submit(node, &steps);
		return true;
	}
	records_write_deinit(&node->write);
	return false;
}

/* From here on spec.json is this node's. */
static void no_longer_fresh(struct node *node, struct durable_steps *steps)
{
	struct identity next;

	if (!node->identity || !node->identity->fresh)
		return;
	next = *node->identity;
	next.fresh = false;
	step_identity(steps, node, &next);
	node->write.no_longer_fresh = true;
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
		if (!recovered) {
			spec_deinit(spec);
			free(spec);
		}
		return recovered;
	}
	if (!node->spec || !str_equal(node->spec->lineage, spec->lineage)) {
		/* Another database, or ours again after the Spec was lost: what is waiting was
		 * numbered by a Spec that it doesn't know. Before the Spec, so that no crash leaves
		 * the old numbers under the new lineage. */
		node->write.reports_changed = true;
		node->write.reports.sequence = node->reports.sequence;
		records_tell_all(node, spec, &node->write.reports);
		node->inventory_due = node->conditions_due = true;
		step_reports(&steps, node, &node->write.reports);
	}
	plan_withdrawn(node, spec, now, &steps);
	node->write.spec = spec;
	step_spec(&steps, node, spec);
	no_longer_fresh(node, &steps);
	records_submit(node, &steps);
	return true;
}

/* --- one pass --- */

/* What the pass will leave, as it grows. */
struct pass {
	struct node *node;
	struct mono now;
	struct durable_steps steps;
	bool entries_changed; /* after the first record of the pass */
	bool spec_changed;    /* what it says of failures */
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

/* Who had a device of what is pending: a restart must know it, too. The record is measured once a pass at
 * most, and when it was too full, not again before an entry has come or gone. */
static bool record_pods(struct node *node)
{
	struct releases *releases = &node->write.releases;
	struct releases_room room = {0};
	bool added = false, measured = false;

	if (node->crowded > 0 && node->crowded == releases->entries.count)
		return false;
	node->crowded = 0;
	vec_each (&node->users, const struct node_users *users) {
		if (!releases_lack_pods(releases, users->allocation, &users->pods))
			continue;
		if (!measured)
			room = releases_room(releases);
		measured = true;
		if (releases_add_pods(releases, &room, users->allocation, &users->pods))
			added = true;
		else
			node->crowded = releases->entries.count;
	}
	node->write.releases_changed |= added;
	return added;
}

/* And what is known of their ends, where the record alone may know. */
static bool record_users(struct node *node)
{
	struct release_users users = {0};
	bool changed = unlisted_record(node, &users) &&
		       releases_set_users(&node->write.releases, &users, node->boot_id);

	vec_deinit(&users);
	node->write.releases_changed |= changed;
	return changed;
}

/* What pods have by what isn't bound here: nobody had recorded it. False: nothing could be added. */
static bool adopt(struct pass *pass, const struct converge_plan *plan)
{
	struct releases *releases = &pass->node->write.releases;
	struct releases_room room;
	bool any = false;

	if (plan->adoptions.count > 0)
		room = releases_room(releases);
	for (size_t i = 0; i < plan->adoptions.count; i++) {
		const struct stray *stray = plan->adoptions.items[i];
		const struct inventory_atom *atom =
			inventory_find_atom(source_inventory(pass->node->gpus), &stray->atom);
		struct release_device device = {.atom = stray->atom};

		str_copy(device.visible, sizeof device.visible, atom ? atom->visible : "(gone)");
		if (!releases_adopt(releases, &room, holds_id_allocation(stray->id), &device,
				    stray->since, pass->now, pass->node->boot_id))
			continue; /* as long as it is listed it is claimed all the same */
		any = true;
		log_warn("release.adopted", "a pod has a device that isn't bound here", "holder",
			 stray->who, NULL);
	}
	return any;
}

static void plan_releases(struct pass *pass, const struct converge_plan *plan)
{
	struct node_write *write = &pass->node->write;
	bool dropped = false, adopted, pods, users;

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
	adopted = adopt(pass, plan);
	write->releases_changed |= adopted;
	pods = record_pods(pass->node);
	users = record_users(pass->node);
	write->releases_changed |= pass->node->boot_unrecorded;
	if (pods || users || adopted || pass->node->boot_unrecorded || plan->releases.count > 0)
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

/* What was told of it and hasn't arrived yet would have it withdrawn. Marked in place, as in
 * plan_failures(). */
static void forget_failure(struct pass *pass, const char *allocation)
{
	struct node *node = pass->node;
	struct spec_assignment *assignment = spec_find(node->spec, allocation);

	if (!*assignment->failed)
		return;
	assignment->failed[0] = '\0';
	pass->spec_changed = true;
	(void)reports_drop(&node->write.reports, REPORT_FAILED, allocation);
}

static void plan_binds(struct pass *pass, struct converge_plan *plan)
{
	struct node *node = pass->node;

	for (size_t i = 0; i < plan->binds.count; i++) {
		struct hold *hold = &plan->binds.items[i];

		(void)holds_find_nodes(hold);
		step_hold(pass, hold);
		(void)take_back(pass, hold->allocation);
		forget_failure(pass, hold->allocation);
		records_add_bound(&node->write.reports, hold, generation_of(node));
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
		pass->spec_changed = true;
		node->refused_at = pass->now;
		log_warn("bind.failed", failure->message, "allocation", failure->allocation,
			 "reason", failure->reason, NULL);
	}
	if (pass->spec_changed)
		step_spec(&pass->steps, node, node->spec);
}

static void say_released(struct node *node, const char *allocation)
{
	reports_add(&node->write.reports, REPORT_RELEASED, allocation, generation_of(node));
	node->write.reports_changed = true;
}

/* Its report is gone, and nobody acknowledged it: there was no room for it. What the Spec has again isn't
 * to be said as released, though. */
static bool is_unsaid(const struct node *node, const char *allocation)
{
	return !node->spec || !spec_find(node->spec, allocation);
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
			/* no number to say it under: the next Spec has one */
			if (!node->spec || !reports_may_release(&write->reports))
				continue;
			entry->reported = true;
			say_released(node, release->allocation);
			log_info("release.done", release->plan.why, "allocation",
				 release->allocation, NULL);
		} else if (release->plan.step == RELEASE_DONE &&
			   !reports_has(&write->reports, REPORT_RELEASED, release->allocation)) {
			if (!is_unsaid(node, release->allocation))
				releases_remove(&write->releases, release->allocation);
			else if (node->spec && reports_may_release(&write->reports))
				say_released(node, release->allocation);
			else
				continue;
		} else {
			continue;
		}
		write->releases_changed = pass->entries_changed = true;
	}
}

/* The entries of releases that were heard of go with their reports: by these alone, as one that isn't there
 * may have found no room. */
static void plan_acknowledged(struct pass *pass)
{
	struct node *node = pass->node;
	struct node_write *write = &node->write;
	int64_t acknowledged = report_may_go(node) ? uplink_acknowledged(node->uplink) : 0;

	if (acknowledged > node->reports.sequence || node->reports.queue.count == 0 ||
	    node->reports.queue.items[0].sequence > acknowledged)
		return;
	vec_each (&write->reports.queue, const struct report *report) {
		const struct release_entry *entry =
			releases_find(&write->releases, report->subject);

		if (report->sequence > acknowledged || report->kind != REPORT_RELEASED || !entry ||
		    !entry->reported)
			continue;
		releases_remove(&write->releases, report->subject);
		write->releases_changed = pass->entries_changed = true;
	}
	reports_acknowledge(&write->reports, acknowledged);
	write->reports_changed = true;
}

static void plan_news(struct pass *pass, const struct converge_view *claims)
{
	struct node *node = pass->node;
	struct uplink_operation operation;

	plan_acknowledged(pass);
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

		operation_refuse(claims, config_hosted(node->config), operation.kind,
				 operation.argument, report->reason, report->message);
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

/* Of the whole identity only this changes: key and certificate are files of their own. */
static void plan_place(struct pass *pass)
{
	struct node *node = pass->node;
	struct identity next;

	if (!node->place_due)
		return;
	node->place_due = false;
	next = *node->identity;
	str_copy(next.site, sizeof next.site, node->place.site);
	str_copy(next.pool, sizeof next.pool, node->place.pool);
	step_identity(&pass->steps, node, &next);
	node->write.place = node->place;
	node->write.place_changed = true;
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
	CLEANUP(buf) struct buf why = {0};
	const struct converge_view view = {
		.spec = node->spec,
		.holds = node->holds_error.code == ERROR_NONE ? &node->holds : NULL,
		.releases = &node->releases,
		.releases_unreadable = node->marker,
		.strays = &node->strays,
		.inventory = source_inventory(node->gpus),
		.inventory_unsure = !source_settled(node->gpus) || source_error(node->gpus),
		.again = mono_until(node->refused_at, pass->now) >= NODE_REFUSED_MS,
		.unoffered = node_offers(node, &why) ? NULL : buf_text(&why),
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
	plan_place(pass);
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
	if (!records_are_sure(node, now))
		return;
	if (store_spec(node, now))
		return;
	releases_copy(&node->releases, &node->write.releases);
	reports_copy(&node->reports, &node->write.reports);
	decide(&pass);
	records_submit(node, &pass.steps);
}
