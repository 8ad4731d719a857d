/*
 * emit FOLDER: writes the CDI specs that bcd writes, one for each kind of hold, made by bcd's own
 * rule from a simulated machine. ./run has the official library judge them.
 */
#include "gpu/core/scenario.h"
#include "node/core/converge.h"
#include "node/core/offer.h"
#include "node/holds.h"
#include "sys/durable.h"

#include <stdio.h>

static const struct {
	const char *allocation;
	enum atom_class class;
	size_t count;
	bool with_nodes; /* type and number of the host's nodes; without, as if they were absent */
} rows[] = {
	{"alc_01kb00000000000000000000aa", ATOM_GPU, 1, true},
	{"alc_01kb00000000000000000000bb", ATOM_GPU, 3, true},
	{"alc_01kb00000000000000000000cc", ATOM_MIG, 2, true},
	{"alc_01kb00000000000000000000dd", ATOM_SLOT, 3, true},
	{"alc_01kb00000000000000000000ee", ATOM_GPU, 2, false},
};

static int fail(const struct error *error)
{
	fprintf(stderr, "emit: %s\n", error->what);
	return 1;
}

static bool make_machine(struct inventory *inventory, struct error *error)
{
	CLEANUP(scenario) struct scenario scenario = {0};

	if (!scenario_preset("8xH100", 0, &scenario, error) ||
	    !scenario_set(&scenario.gpus.items[6], "mig=3g.40gb@0,1g.10gb@4", 1, error) ||
	    !scenario_set(&scenario.gpus.items[7], "slots=4", 1, error))
		return false;
	scenario_inventory(&scenario, 0, "test", inventory);
	return true;
}

/* Free atoms of the row's class, in order; slots don't mix with their whole GPU. */
static void assign(const struct inventory *inventory, size_t row, size_t *next_gpu,
		   struct spec *spec)
{
	struct spec_assignment *assignment = vec_push(&spec->assignments);

	str_copy(assignment->allocation, sizeof assignment->allocation, rows[row].allocation);
	str_copy(assignment->binding, sizeof assignment->binding, OFFER_BINDING);
	for (size_t i = 0;
	     i < inventory->atoms.count && assignment->devices.count < rows[row].count; i++) {
		const struct inventory_atom *atom = &inventory->atoms.items[i];
		struct spec_device *device;

		if (atom->atom.class != rows[row].class)
			continue;
		if (atom->atom.class == ATOM_GPU && i < *next_gpu)
			continue;
		if (atom->atom.class == ATOM_GPU && i + 1 < inventory->atoms.count &&
		    atom[1].atom.class == ATOM_SLOT)
			continue;
		device = vec_push(&assignment->devices);
		device->atom = atom->atom;
		str_copy(device->visible, sizeof device->visible, atom->visible);
		if (atom->atom.class == ATOM_GPU)
			*next_gpu = i + 1;
	}
}

static bool write_hold(const char *folder, struct hold *hold, bool with_nodes, struct error *error)
{
	CLEANUP(free) char *path = holds_path(folder, hold->allocation);
	CLEANUP(buf) struct buf text = {0};

	if (with_nodes)
		(void)holds_find_nodes(hold);
	holds_format(hold, &text);
	return durable_create(path, text.data, text.length, 0644, error);
}

int main(int argc, char **argv)
{
	CLEANUP(inventory) struct inventory inventory = {0};
	CLEANUP(spec) struct spec spec = {0};
	struct releases none = {0};
	struct holds empty = {0};
	struct converge_view view = {
		.spec = &spec, .holds = &empty, .releases = &none, .inventory = &inventory};
	struct converge_plan plan = {0};
	struct error error;
	size_t next_gpu = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: emit FOLDER\n");
		return 2;
	}
	if (!make_machine(&inventory, &error))
		return fail(&error);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assign(&inventory, i, &next_gpu, &spec);
	converge_decide(&view, &plan);
	if (plan.failures.count > 0 || plan.binds.count != ARRAY_SIZE(rows)) {
		fprintf(stderr, "emit: %s\n",
			plan.failures.count ? plan.failures.items[0].message : "too few holds");
		return 1;
	}
	for (size_t i = 0; i < plan.binds.count; i++)
		if (!write_hold(argv[1], &plan.binds.items[i], rows[i].with_nodes, &error))
			return fail(&error);
	converge_plan_deinit(&plan);
	return 0;
}
