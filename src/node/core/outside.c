#include "node/core/outside.h"

#include <stdio.h>

/* --- the live set --- */

static bool same_gpu(struct atom_uuid a, struct atom_uuid b)
{
	return memcmp(a.bytes, b.bytes, ATOM_UUID_BYTES) == 0;
}

static bool is_id(const char *id, const struct atom *atom, const char *allocation)
{
	const struct hold_device device = {.atom = *atom};
	char known[HOLDS_ID_SIZE];

	holds_device_id(known, &device, allocation);
	return str_equal(known, id);
}

static bool spec_wants(const struct spec *spec, const char *allocation, const char *id)
{
	const struct spec_assignment *assignment = spec ? spec_find(spec, allocation) : NULL;

	for (size_t i = 0; assignment && i < assignment->devices.count; i++)
		if (is_id(id, &assignment->devices.items[i].atom, allocation))
			return true;
	return false;
}

static bool is_pending(const struct releases *releases, const char *allocation, const char *id)
{
	const struct release_entry *entry = releases_find(releases, allocation);

	for (size_t i = 0; entry && !entry->reported && i < entry->devices.count; i++)
		if (is_id(id, &entry->devices.items[i].atom, allocation))
			return true;
	return false;
}

bool outside_is_live(const struct outside_live *live, const char *id)
{
	const char *allocation = holds_id_allocation(id);
	const struct hold_device *device;
	const struct hold *hold;

	return allocation && (holds_find_id(live->holds, id, &hold, &device) ||
			      spec_wants(live->spec, allocation, id) ||
			      is_pending(live->releases, allocation, id));
}

bool outside_has_gpu(const struct outside_live *live, struct atom_uuid gpu)
{
	for (size_t i = 0; i < live->holds->count; i++)
		vec_each (&live->holds->items[i].devices, const struct hold_device *device)
			if (same_gpu(device->atom.gpu, gpu))
				return true;
	for (size_t i = 0; i < live->releases->entries.count; i++) {
		const struct release_entry *entry = &live->releases->entries.items[i];

		for (size_t j = 0; !entry->reported && j < entry->devices.count; j++)
			if (same_gpu(entry->devices.items[j].atom.gpu, gpu))
				return true;
	}
	return false;
}

/* --- the decision --- */

static struct mono later(struct mono a, struct mono b)
{
	return a.ms > b.ms ? a : b;
}

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
	if (view->answer != RELEASE_ANSWER_FREE || mono_until(plan->from, view->answered) < 0)
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
	return !view->process || wait_for(plan, view->process, " has a GPU open");
}

void outside_decide(const struct outside_view *view, struct outside_plan *ret_plan)
{
	struct outside_plan plan = {
		.from = later(view->marked,
			      later(mono_after(view->given, RELEASE_SETTLE_MS),
				    mono_after(view->kubelet_since, RELEASE_KUBELET_SETTLE_MS))),
	};

	plan.over = is_over(view, &plan);
	*ret_plan = plan;
}
