#include "node/core/outside.h"

#include <stdio.h>

/* --- the live set --- */

static bool is_bound(const struct holds *holds, const char *id)
{
	vec_each (holds, const struct hold *hold)
		vec_each (&hold->devices, const struct hold_device *device)
			if (holds_id_is(id, &device->atom, hold->allocation))
				return true;
	return false;
}

static bool is_wanted(const struct spec *spec, const char *id)
{
	for (size_t i = 0; spec && i < spec->assignments.count; i++) {
		const struct spec_assignment *assignment = &spec->assignments.items[i];

		vec_each (&assignment->devices, const struct spec_device *device)
			if (holds_id_is(id, &device->atom, assignment->allocation))
				return true;
	}
	return false;
}

static bool is_pending(const struct releases *releases, const char *id)
{
	vec_each (&releases->entries, const struct release_entry *entry)
		for (size_t i = 0; !entry->reported && i < entry->devices.count; i++)
			if (holds_id_is(id, &entry->devices.items[i].atom, entry->allocation))
				return true;
	return false;
}

bool outside_is_live(const struct outside_live *live, const char *id)
{
	return is_bound(live->holds, id) || is_wanted(live->spec, id) ||
	       is_pending(live->releases, id);
}

bool outside_has_gpu(const struct outside_live *live, struct atom_uuid gpu)
{
	for (size_t i = 0; i < live->holds->count; i++)
		vec_each (&live->holds->items[i].devices, const struct hold_device *device)
			if (atom_uuid_equal(device->atom.gpu, gpu))
				return true;
	for (size_t i = 0; i < live->releases->entries.count; i++) {
		const struct release_entry *entry = &live->releases->entries.items[i];

		for (size_t j = 0; !entry->reported && j < entry->devices.count; j++)
			if (atom_uuid_equal(entry->devices.items[j].atom.gpu, gpu))
				return true;
	}
	return false;
}

/* --- the decision --- */

static bool wait_for(struct outside_plan *plan, const char *what, const char *who)
{
	snprintf(plan->who, sizeof plan->who, "%s%s", what, who);
	return false;
}

static bool is_over(const struct outside_view *view, struct outside_plan *plan)
{
	if (!view->holds_known)
		return wait_for(plan, "what is bound can't be read", "");
	if (!view->worker)
		return true;
	if (view->inventory_unsure)
		return wait_for(plan, "the GPUs can't be read", "");
	if (view->answer == RELEASE_ANSWER_FAILED)
		return wait_for(plan, "the kubelet doesn't say who holds what", "");
	if (view->record_error)
		return wait_for(plan, RELEASE_RECORD_TROUBLE ": ", view->record_error);
	if (view->answer != RELEASE_ANSWER_FREE || !release_counts(plan->from, view->answered))
		return wait_for(plan, "the kubelet is to be asked", "");
	for (size_t i = 0; i < view->holder_count; i++)
		if (!outside_is_live(&view->live, view->holders[i].id)) {
			snprintf(plan->who, sizeof plan->who, "%s has %s", view->holders[i].who,
				 view->holders[i].id);
			return false;
		}
	if (view->process_error)
		return wait_for(plan,
				"the pods' processes can't be looked at: ", view->process_error);
	if (view->process)
		return wait_for(plan, view->process, " has a GPU open");
	return !view->blind ||
	       release_counts(mono_after(view->marked, OUTSIDE_UNSEEN_MS), view->answered) ||
	       wait_for(plan,
			"pods that nobody lists any more may run, for up to an hour from when that "
			"was found",
			"");
}

void outside_decide(const struct outside_view *view, struct outside_plan *ret_plan)
{
	struct outside_plan plan = {
		.from = release_evidence_from(view->marked, view->given, view->kubelet_since),
	};

	plan.over = is_over(view, &plan);
	*ret_plan = plan;
}
