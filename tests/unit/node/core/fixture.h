/* fixture: a machine and holds on it, small enough to read in a test. */
#pragma once

#include "gpu/core/scenario.h"
#include "lib/test.h"
#include "node/core/converge.h"
#include "node/core/offer.h"

#include <stdio.h>

#define ALC_A "alc_01kb00000000000000000000aa"
#define ALC_B "alc_01kb00000000000000000000bb"
#define ALC_C "alc_01kb00000000000000000000cc"
#define RSV_A "rsv_01kb00000000000000000000aa"

/* Eight H100; GPU 6 has MIG 3g.40gb@0 and 1g.10gb@4, GPU 7 has four slots. */
static inline void fixture_scenario(struct scenario *scenario)
{
	struct error error;

	expect_ok(scenario_preset("8xH100", 0, scenario, &error), &error);
	expect_ok(scenario_set(&scenario->gpus.items[6], "mig=3g.40gb@0,1g.10gb@4", 7, &error),
		  &error);
	expect_ok(scenario_set(&scenario->gpus.items[7], "slots=4", 7, &error), &error);
}

static inline void fixture_inventory(struct inventory *inventory)
{
	CLEANUP(scenario) struct scenario scenario = {0};

	fixture_scenario(&scenario);
	scenario_inventory(&scenario, 0, "test", inventory);
}

/* The whole GPU `k`. */
static inline struct atom fixture_gpu(const struct inventory *inventory, size_t k)
{
	return (struct atom){.class = ATOM_GPU, .gpu = inventory->gpus.items[k].uuid};
}

static inline struct atom fixture_mig(const struct inventory *inventory, uint16_t gi)
{
	return (struct atom){.class = ATOM_MIG, .gpu = inventory->gpus.items[6].uuid, .gi = gi};
}

static inline struct atom fixture_slot(const struct inventory *inventory, uint16_t slot)
{
	return (struct atom){
		.class = ATOM_SLOT, .gpu = inventory->gpus.items[7].uuid, .slot = slot};
}

/* Adds an atom, in any order, to an assignment. */
static inline void fixture_assign(struct spec_assignment *assignment,
				  const struct inventory *inventory, struct atom atom)
{
	const struct inventory_atom *now = inventory_find_atom(inventory, &atom);
	struct spec_device *device = vec_push(&assignment->devices);

	device->atom = atom;
	str_copy(device->visible, sizeof device->visible, now ? now->visible : "GPU-none");
	for (size_t i = assignment->devices.count - 1; i > 0; i--) {
		struct spec_device *items = assignment->devices.items, swap = items[i];

		if (atom_compare(&items[i - 1].atom, &items[i].atom) <= 0)
			break;
		items[i] = items[i - 1];
		items[i - 1] = swap;
	}
}

static inline struct spec_assignment *fixture_assignment(struct spec *spec, const char *allocation)
{
	struct spec_assignment *assignment = vec_push(&spec->assignments);

	str_copy(spec->lineage, sizeof spec->lineage, "lineage-1");
	spec->generation = 1;
	str_copy(assignment->allocation, sizeof assignment->allocation, allocation);
	str_copy(assignment->reservation, sizeof assignment->reservation, RSV_A);
	str_copy(assignment->binding, sizeof assignment->binding, OFFER_BINDING);
	return assignment;
}

/* Binds by the product's own rule; the atoms must be free. */
static inline void fixture_bind(struct holds *holds, const struct inventory *inventory,
				const char *allocation, const struct atom *atoms, size_t count)
{
	struct spec spec = {0};
	struct spec_assignment *assignment = fixture_assignment(&spec, allocation);
	struct releases none = {0};
	struct holds empty = {0};
	struct converge_view view = {
		.spec = &spec, .holds = &empty, .releases = &none, .inventory = inventory};
	struct converge_plan plan = {0};

	for (size_t i = 0; i < count; i++)
		fixture_assign(assignment, inventory, atoms[i]);
	converge_decide(&view, &plan);
	assert_int_equal(plan.binds.count, 1);
	*vec_push(holds) = plan.binds.items[0];
	plan.binds.count = 0;
	converge_plan_deinit(&plan);
	spec_deinit(&spec);
}

static inline void fixture_id(char out[HOLDS_ID_SIZE], struct atom atom, const char *allocation)
{
	struct hold_device device = {.atom = atom};

	holds_device_id(out, &device, allocation);
}

/* A hold of many slots, which nobody has to have. */
static inline void fixture_large_hold(struct holds *holds, int number, int devices)
{
	struct hold *hold = vec_push(holds);

	snprintf(hold->allocation, sizeof hold->allocation, "alc_%026d", number);
	str_copy(hold->binding, sizeof hold->binding, OFFER_BINDING);
	for (int i = 0; i < devices; i++) {
		struct hold_device *device = vec_push(&hold->devices);

		device->atom = (struct atom){.class = ATOM_SLOT, .slot = (uint16_t)(i % 512)};
		device->atom.gpu.bytes[0] = (uint8_t)number;
		device->atom.gpu.bytes[1] = (uint8_t)(i / 512);
		str_copy(device->visible, sizeof device->visible,
			 "GPU-00000000-0000-0000-0000-000000000000");
	}
}
