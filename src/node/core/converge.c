#include "node/core/converge.h"

#include "node/core/offer.h"

#include <stdarg.h>
#include <stdio.h>

void converge_plan_deinit(struct converge_plan *plan)
{
	if (!plan)
		return;
	holds_deinit(&plan->binds);
	holds_deinit(&plan->moves);
	vec_deinit(&plan->releases);
	vec_deinit(&plan->adoptions);
	vec_deinit(&plan->failures);
}

static bool fail(struct converge_plan *plan, const char *allocation, const char *reason,
		 const char *format, ...) PRINTF(4, 5);

static bool fail(struct converge_plan *plan, const char *allocation, const char *reason,
		 const char *format, ...)
{
	struct converge_failure *failure = vec_push(&plan->failures);
	va_list arguments;

	str_copy(failure->allocation, sizeof failure->allocation, allocation);
	str_copy(failure->reason, sizeof failure->reason, reason);
	va_start(arguments, format);
	vsnprintf(failure->message, sizeof failure->message, format, arguments);
	va_end(arguments);
	return false;
}

/* --- who claims a device? --- */

/* What a released device takes: its part as it stands now, or all of its GPU when the instance that
 * was released can't be found any more. */
static struct atom_range released_range(const struct inventory *inventory,
					const struct release_device *device)
{
	const struct inventory_atom *now = inventory_find_atom(inventory, &device->atom);

	if (now && str_equal(now->visible, device->visible))
		return now->range;
	return atom_whole();
}

static bool hold_claims(const struct hold *hold, const struct inventory_atom *wanted)
{
	for (size_t i = 0; i < hold->devices.count; i++) {
		const struct hold_device *device = &hold->devices.items[i];

		if (atom_overlap(device->atom.gpu, device->range, wanted->atom.gpu, wanted->range))
			return true;
	}
	return false;
}

static bool release_claims(const struct release_entry *entry, const struct inventory *inventory,
			   const struct inventory_atom *wanted)
{
	for (size_t i = 0; !entry->reported && i < entry->devices.count; i++) {
		const struct release_device *device = &entry->devices.items[i];

		if (atom_overlap(device->atom.gpu, released_range(inventory, device),
				 wanted->atom.gpu, wanted->range))
			return true;
	}
	return false;
}

/* Who has the device, other than `allocation` itself? NULL when nobody. */
static const char *claimant(const struct converge_view *view, const struct converge_plan *plan,
			    const char *allocation, const struct inventory_atom *wanted)
{
	const struct stray *stray;

	if (view->releases_unreadable)
		return RELEASES_CLAIMED_BY;
	for (size_t i = 0; i < view->holds->count; i++) {
		const struct hold *hold = &view->holds->items[i];

		if (!str_equal(hold->allocation, allocation) && hold_claims(hold, wanted))
			return hold->allocation;
	}
	stray = view->strays
			? strays_find(view->strays, wanted->atom.gpu, wanted->range, allocation)
			: NULL;
	if (stray)
		return stray->who;
	for (size_t i = 0; i < view->releases->entries.count; i++) {
		const struct release_entry *entry = &view->releases->entries.items[i];

		if (!str_equal(entry->allocation, allocation) &&
		    release_claims(entry, view->inventory, wanted))
			return entry->allocation;
	}
	for (size_t i = 0; i < plan->binds.count; i++)
		if (hold_claims(&plan->binds.items[i], wanted))
			return plan->binds.items[i].allocation;
	return NULL;
}

const char *converge_claimant(const struct converge_view *view, struct atom_uuid gpu)
{
	static const struct converge_plan nothing;
	const struct inventory_atom whole = {.atom = {.class = ATOM_GPU, .gpu = gpu},
					     .range = atom_whole()};

	const char *by;

	if (!view->holds)
		return HOLDS_CLAIMED_BY;
	by = claimant(view, &nothing, "", &whole);
	return by || !view->strays || !view->strays->unknown ? by : STRAYS_CLAIMED_BY;
}

/* --- binding --- */

static bool check_device(const struct converge_view *view, struct converge_plan *plan,
			 const struct spec_assignment *assignment, const struct spec_device *device,
			 const struct inventory_atom **ret_atom)
{
	const struct inventory_atom *atom = inventory_find_atom(view->inventory, &device->atom);
	const char *holder;
	char name[ATOM_TEXT_SIZE];

	atom_format(name, &device->atom);
	if (!atom)
		return fail(plan, assignment->allocation, "unknown-device",
			    "%s is not on this node", name);
	if (!str_equal(atom->visible, device->visible))
		return fail(plan, assignment->allocation, "atom-replaced",
			    "AtomReplaced: %s is %s now, not %s", name, atom->visible,
			    device->visible);
	holder = claimant(view, plan, assignment->allocation, atom);
	if (holder)
		return fail(plan, assignment->allocation, "overlap", "%s is claimed by %s", name,
			    holder);
	*ret_atom = atom;
	return true;
}

static void add_nodes(struct hold_nodes *nodes, const struct inventory_node *from, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct hold_node *node = vec_push(nodes);

		str_copy(node->path, sizeof node->path, from[i].path);
		str_copy(node->host_path, sizeof node->host_path, from[i].host_path);
	}
}

static void add_device(const struct inventory *inventory, struct hold *hold,
		       const struct inventory_atom *atom)
{
	struct hold_device *device = vec_push(&hold->devices);

	device->atom = atom->atom;
	device->range = atom->range;
	str_copy(device->visible, sizeof device->visible, atom->visible);
	holds_nodes_now(inventory, device, &device->nodes);
}

struct admission_share converge_booked(const struct holds *holds, const struct releases *releases,
				       const char *except)
{
	struct admission_share sum = {0};

	vec_each (holds, const struct hold *hold)
		admission_add(&sum, &hold->share);
	/* What is bound again while its release is pending has its share once. */
	vec_each (&releases->entries, const struct release_entry *entry)
		if (!entry->reported && !holds_find(holds, entry->allocation) &&
		    !str_equal(entry->allocation, except))
			admission_add(&sum, &entry->share);
	return sum;
}

static bool check_host(const struct converge_view *view, struct converge_plan *plan,
		       const struct spec_assignment *assignment)
{
	struct admission_share taken =
		converge_booked(view->holds, view->releases, assignment->allocation);
	CLEANUP(buf) struct buf why = {0};

	vec_each (&plan->binds, const struct hold *bind)
		admission_add(&taken, &bind->share);
	return admission_fits(&view->host, &taken, &assignment->share, &why) ||
	       fail(plan, assignment->allocation, "resources-exhausted", "%s", buf_text(&why));
}

/* Nothing is said of a device that only a readable source can tell of: it is looked at again. */
static bool must_wait(const struct converge_view *view, const struct spec_assignment *assignment)
{
	for (size_t i = 0; view->inventory_unsure && i < assignment->devices.count; i++)
		if (!inventory_find_atom(view->inventory, &assignment->devices.items[i].atom))
			return true;
	return false;
}

/* Nor before it is known who has them: what can't be asked today may hold tomorrow. */
static bool must_ask(const struct converge_view *view, const struct hold *hold)
{
	if (view->strays)
		vec_each (&hold->devices, const struct hold_device *device)
			if (!strays_known(view->strays, device->atom.gpu))
				return true;
	return false;
}

static bool make_hold(const struct converge_view *view, struct converge_plan *plan,
		      const struct spec_assignment *assignment, struct hold *hold)
{
	struct inventory_node nodes[INVENTORY_MAX_NODES];

	for (size_t i = 0; i < assignment->devices.count; i++) {
		const struct inventory_atom *atom;

		if (!check_device(view, plan, assignment, &assignment->devices.items[i], &atom))
			return false;
		/* parts of one assignment may not meet either */
		if (hold_claims(hold, atom))
			return fail(plan, assignment->allocation, "overlap",
				    "it names parts of one GPU that overlap");
		add_device(view->inventory, hold, atom);
	}
	str_copy(hold->allocation, sizeof hold->allocation, assignment->allocation);
	str_copy(hold->reservation, sizeof hold->reservation, assignment->reservation);
	str_copy(hold->binding, sizeof hold->binding, assignment->binding);
	hold->share = assignment->share;
	add_nodes(&hold->common, nodes, inventory_common_nodes(view->inventory, nodes));
	return true;
}

static bool has_device(const struct spec_assignment *assignment,
		       const struct release_device *released)
{
	vec_each (&assignment->devices, const struct spec_device *device)
		if (atom_equal(&device->atom, &released->atom) &&
		    str_equal(device->visible, released->visible))
			return true;
	return false;
}

static bool has_released(const struct release_entry *entry,
			 const struct spec_assignment *assignment)
{
	vec_each (&entry->devices, const struct release_device *device)
		if (!has_device(assignment, device))
			return false;
	return true;
}

/* What pods may still have of it is claimed only for as long as its entry stands, and that goes when
 * it is bound again: so it is bound with all of those devices or not at all. An adopted entry may
 * have fewer than were bound. */
static bool check_entry(const struct converge_view *view, struct converge_plan *plan,
			const struct spec_assignment *assignment)
{
	const struct release_entry *entry = releases_find(view->releases, assignment->allocation);

	return !entry || entry->reported || entry->devices.count == 0 ||
	       has_released(entry, assignment) ||
	       fail(plan, assignment->allocation, "devices-changed",
		    "its release with other devices is pending");
}

static void judge_assignment(const struct converge_view *view, struct converge_plan *plan,
			     const struct spec_assignment *assignment)
{
	CLEANUP(hold) struct hold hold = {0};

	if (*assignment->problem) {
		fail(plan, assignment->allocation, "invalid-assignment", "%s", assignment->problem);
		return;
	}
	if (view->unoffered) {
		fail(plan, assignment->allocation, "gpu-api", "%s", view->unoffered);
		return;
	}
	if (must_wait(view, assignment) || !check_entry(view, plan, assignment) ||
	    !check_host(view, plan, assignment) || !make_hold(view, plan, assignment, &hold))
		return;
	if (!holds_fit_file(&hold)) {
		fail(plan, assignment->allocation, "invalid-assignment",
		     "its CDI spec would be over %zu bytes", HOLDS_MAX_FILE);
		return;
	}
	if (must_ask(view, &hold))
		return;
	*vec_push(&plan->binds) = hold;
	hold = (struct hold){0};
}

/* What was in the way may be gone, whatever it was: nobody has to say so. A reason is told once. */
static void bind_assignment(const struct converge_view *view, struct converge_plan *plan,
			    const struct spec_assignment *assignment)
{
	size_t told = plan->failures.count;

	if (*assignment->failed && !view->again)
		return;
	judge_assignment(view, plan, assignment);
	if (plan->failures.count > told &&
	    str_equal(plan->failures.items[told].reason, assignment->failed))
		plan->failures.count = told;
}

static bool same_devices(const struct hold *hold, const struct spec_assignment *assignment)
{
	if (hold->devices.count != assignment->devices.count)
		return false;
	for (size_t i = 0; i < hold->devices.count; i++)
		if (!atom_equal(&hold->devices.items[i].atom, &assignment->devices.items[i].atom) ||
		    !str_equal(hold->devices.items[i].visible,
			       assignment->devices.items[i].visible))
			return false;
	return true;
}

/* The record has an end. What doesn't fit stays bound until there is room. */
static bool fits_record(const struct releases *releases, struct releases_room *room,
			const struct hold *hold)
{
	const struct release_entry *entry = releases_find(releases, hold->allocation);

	return (entry && !entry->reported && entry->devices.count > 0) ||
	       releases_room_take(room, hold, entry != NULL);
}

static void release_unwanted(const struct converge_view *view, struct converge_plan *plan)
{
	struct releases_room room;
	bool measured = false;

	for (size_t i = 0; i < view->holds->count; i++) {
		const struct hold *hold = &view->holds->items[i];

		if (!str_equal(hold->binding, OFFER_BINDING) ||
		    spec_find(view->spec, hold->allocation))
			continue;
		if (!measured)
			room = releases_room(view->releases);
		measured = true;
		if (fits_record(view->releases, &room, hold))
			*vec_push(&plan->releases) = hold;
	}
}

/* --- what pods have all the same --- */

static bool is_wanted(const struct converge_view *view, const struct stray *stray)
{
	vec_each (&view->spec->assignments, const struct spec_assignment *assignment)
		vec_each (&assignment->devices, const struct spec_device *device)
			if (atom_equal(&device->atom, &stray->atom) &&
			    holds_id_is_of(stray->id, assignment->allocation))
				return true;
	return false;
}

static bool is_claimed(const struct converge_view *view, const struct stray *stray)
{
	const struct inventory_atom part = {.atom = stray->atom, .range = stray->range};

	vec_each (view->holds, const struct hold *hold)
		if (hold_claims(hold, &part))
			return true;
	vec_each (&view->releases->entries, const struct release_entry *entry)
		if (release_claims(entry, view->inventory, &part))
			return true;
	return false;
}

/* From then on it is a release as any other: it ends when nobody has the device, by all that counts there, also
 * for a bcd that is started anew, and its end is told. What is bound to somebody else can't become one, since
 * his pods would keep it from its end. */
static void adopt_strays(const struct converge_view *view, struct converge_plan *plan)
{
	if (view->releases_unreadable || view->inventory_unsure || !view->strays)
		return;
	vec_each (&view->strays->items, const struct stray *stray) {
		const char *allocation = holds_id_allocation(stray->id);

		if (!stray->process && !stray->anything && allocation &&
		    id_valid(allocation, "alc") && !is_wanted(view, stray) &&
		    !is_claimed(view, stray))
			*vec_push(&plan->adoptions) = stray;
	}
}

/* --- device nodes --- */

bool converge_is_released(const struct converge_view *view, const struct converge_plan *plan,
			  const struct hold *hold)
{
	const struct release_entry *entry = releases_find(view->releases, hold->allocation);

	for (size_t i = 0; i < plan->releases.count; i++)
		if (plan->releases.items[i] == hold)
			return true;
	return entry && !entry->reported;
}

/* A runtime reads the file whenever a container begins, whatever the kubelet was told since. */
static void move_hold(const struct converge_view *view, struct converge_plan *plan,
		      const struct hold *hold)
{
	struct hold *moved = NULL;

	for (size_t i = 0; i < hold->devices.count; i++) {
		struct hold_device *device;

		if (!holds_moved(view->inventory, &hold->devices.items[i]))
			continue;
		if (!moved)
			hold_copy(hold, moved = vec_push(&plan->moves));
		device = &moved->devices.items[i];
		vec_clear(&device->nodes);
		holds_nodes_now(view->inventory, device, &device->nodes);
	}
}

static void move_holds(const struct converge_view *view, struct converge_plan *plan)
{
	for (size_t i = 0; i < view->holds->count; i++)
		if (!converge_is_released(view, plan, &view->holds->items[i]))
			move_hold(view, plan, &view->holds->items[i]);
}

void converge_decide(const struct converge_view *view, struct converge_plan *ret_plan)
{
	struct converge_plan plan = {0};

	if (view->spec && view->holds) {
		release_unwanted(view, &plan);
		adopt_strays(view, &plan);
	}
	if (view->holds && !view->inventory_unsure)
		move_holds(view, &plan);
	for (size_t i = 0; view->spec && view->holds && i < view->spec->assignments.count; i++) {
		const struct spec_assignment *assignment = &view->spec->assignments.items[i];
		const struct hold *hold = holds_find(view->holds, assignment->allocation);

		if (!hold)
			bind_assignment(view, &plan, assignment);
		else if (!*assignment->failed && !same_devices(hold, assignment))
			fail(&plan, assignment->allocation, "devices-changed",
			     "it is bound with other devices; release it first");
	}
	*ret_plan = plan;
}
