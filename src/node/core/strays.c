#include "node/core/strays.h"

#include "base/utc.h"
#include "node/core/outside.h"

#include <stdio.h>

void strays_deinit(struct strays *strays)
{
	if (!strays)
		return;
	vec_deinit(&strays->items);
	vec_deinit(&strays->unseen);
}

/* --- what is seen --- */

static bool is_bound(const struct holds *holds, const char *id, const struct atom *atom)
{
	vec_each (holds, const struct hold *hold)
		vec_each (&hold->devices, const struct hold_device *device)
			if (atom_equal(&device->atom, atom) && holds_id_is_of(id, hold->allocation))
				return true;
	return false;
}

static int compare_id(const void *id, const void *stray)
{
	return strcmp(id, ((const struct stray *)stray)->id);
}

static int compare_strays(const void *a, const void *b)
{
	return strcmp(((const struct stray *)a)->id, ((const struct stray *)b)->id);
}

/* What is pending was recorded, and outlives this process. */
static struct wall since_when(const struct strays_view *view, const struct strays *before,
			      const char *id)
{
	const char *allocation = holds_id_allocation(id);
	const struct release_entry *entry =
		allocation ? releases_find(view->releases, allocation) : NULL;
	const struct stray *known = NULL;

	if (entry && !entry->reported)
		return (struct wall){entry->since * 1000};
	if (before->items.count > 0)
		known = bsearch(id, before->items.items, before->items.count,
				sizeof *before->items.items, compare_id);
	return known ? known->since : view->now;
}

static void describe(struct stray *stray, const char *who)
{
	char text[UTC_SIZE];

	utc_format(text, stray->since);
	if (stray->process)
		snprintf(stray->who, sizeof stray->who,
			 "%.200s, which has it open since %s; bcd ends no process", who, text);
	else
		snprintf(stray->who, sizeof stray->who,
			 "%.200s, which has %.127s since %s; see KubernetesReleasePending", who,
			 stray->id, text);
}

static void see_holder(const struct strays_view *view, const struct strays *before,
		       const struct strays_holder *holder, struct strays *strays)
{
	const struct inventory_atom *now;
	struct stray stray = {0};

	stray.anything = !holds_id_atom(holder->id, &stray.atom);
	if (!stray.anything && is_bound(view->holds, holder->id, &stray.atom))
		return;
	now = stray.anything ? NULL : inventory_find_atom(view->inventory, &stray.atom);
	stray.range = now ? now->range : atom_whole();
	str_copy(stray.id, sizeof stray.id, holder->id);
	stray.since = since_when(view, before, stray.id);
	describe(&stray, holder->who);
	*vec_push(&strays->items) = stray;
}

/* Whoever is listed with a part of this GPU may be whose process it is. */
static bool is_listed(const struct strays_view *view, const struct strays_process *process)
{
	for (size_t i = 0; i < view->holder_count; i++) {
		const struct strays_holder *holder = &view->holders[i];
		struct atom atom;

		if (holds_id_atom(holder->id, &atom) && atom_uuid_equal(atom.gpu, process->gpu) &&
		    (!*holder->uid || !*process->uid || str_equal(holder->uid, process->uid)))
			return true;
	}
	return false;
}

static void see_process(const struct strays_view *view, const struct strays *before,
			const struct strays_process *process, struct strays *strays)
{
	const struct outside_live live = {NULL, view->holds, view->releases};
	struct stray stray = {.process = true, .range = atom_whole()};
	char uuid[ATOM_UUID_SIZE];

	if (outside_has_gpu(&live, process->gpu) || is_listed(view, process))
		return;
	stray.atom = (struct atom){.class = ATOM_GPU, .gpu = process->gpu};
	atom_uuid_format(uuid, process->gpu);
	snprintf(stray.id, sizeof stray.id, "%s %d", uuid, (int)process->pid);
	stray.since = since_when(view, before, stray.id);
	describe(&stray, process->who);
	*vec_push(&strays->items) = stray;
}

/* --- what isn't --- */

static bool is_whole(const struct strays_view *view)
{
	/* Before the first Allocate nobody can have got one meanwhile. */
	return !view->kubelet ||
	       (view->answer == RELEASE_ANSWER_FREE && !view->record_unread &&
		(view->given.ms == 0 ||
		 mono_until(mono_after(view->given, RELEASE_SETTLE_MS), view->answered) >= 0));
}

void strays_decide(const struct strays_view *view, const struct strays *before,
		   struct strays *ret_strays)
{
	struct strays strays = {.unknown = !is_whole(view)};

	for (size_t i = 0; i < view->holder_count; i++)
		see_holder(view, before, &view->holders[i], &strays);
	for (size_t i = 0; i < view->process_count; i++)
		see_process(view, before, &view->processes[i], &strays);
	for (size_t i = 0; view->kubelet && i < view->gpu_count; i++)
		if (!view->gpus[i].looked)
			*vec_push(&strays.unseen) = view->gpus[i].gpu;
	vec_sort(&strays.items, compare_strays);
	*ret_strays = strays;
}

/* --- for whoever wants a device --- */

const struct stray *strays_find(const struct strays *strays, struct atom_uuid gpu,
				struct atom_range range, const char *allocation)
{
	vec_each (&strays->items, const struct stray *stray)
		if (stray->anything || (atom_overlap(stray->atom.gpu, stray->range, gpu, range) &&
					(stray->process || !holds_id_is_of(stray->id, allocation))))
			return stray;
	return NULL;
}

bool strays_known(const struct strays *strays, struct atom_uuid gpu)
{
	if (strays->unknown)
		return false;
	vec_each (&strays->unseen, const struct atom_uuid *unseen)
		if (atom_uuid_equal(*unseen, gpu))
			return false;
	return true;
}
