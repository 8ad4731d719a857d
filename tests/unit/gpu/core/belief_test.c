#include "belief_world.h"

#include "lib/seed.h"

/* N01. A GPU that the driver lists no longer stays, lost, and the others don't change. proves: DP-10
 * DP-13 DP-14 DP-44 */
static void test_a_lost_gpu_stays(void **state)
{
	CLEANUP(belief) struct belief belief = {0};
	CLEANUP(inventory) struct inventory inventory = {0};
	CLEANUP(reading) struct reading three = {0};

	(void)state;
	take_four(&belief);
	for (int n = 0; n < 4; n++)
		expect_cause(&belief, n, "");
	for (int n = 0; n < 4; n++)
		if (n != 1)
			add(&three, n);
	take(&belief, &three);
	for (int n = 0; n < 4; n++)
		expect_cause(&belief, n, n == 1 ? "lost: no longer on the PCI bus" : "");
	belief_inventory(&belief, 0, &inventory);
	assert_int_equal(inventory.gpus.count, 4);
	assert_string_equal(inventory.gpus.items[1].pci, "0000:11:00.0");
	assert_int_equal(inventory.gpus.items[2].numa, 1);
	take_four(&belief);
	expect_cause(&belief, 1, "");
}

/* N01. The same, named by the driver: by its place only, or with a text. */
static void test_a_gpu_that_the_driver_calls_lost(void **state)
{
	CLEANUP(belief) struct belief belief = {0};
	CLEANUP(reading) struct reading reading = {0};
	struct reading_gpu *lost;

	(void)state;
	take_four(&belief);
	add(&reading, 0);
	lost = add(&reading, 1);
	lost->has_uuid = false;
	lost->lost = true;
	lost->minor = -1;
	lost->model[0] = '\0';
	str_copy(add(&reading, 2)->error, READING_ERROR_SIZE, "no permission");
	/* of this one nothing is known but its place */
	lost = add(&reading, 4);
	lost->has_uuid = false;
	lost->lost = true;
	take(&belief, &reading);
	expect_cause(&belief, 0, "");
	expect_cause(&belief, 1, "lost: no longer on the PCI bus");
	expect_cause(&belief, 2, "unknown: no permission");
	expect_cause(&belief, 3, "lost: no longer on the PCI bus");
	assert_int_equal(belief.gpus.count, 4);
	assert_string_equal(belief.strangers, "0000:14:00.0: lost");
	/* without a place it is the one that is missing; two are one too many */
	for (int placeless = 1; placeless <= 2; placeless++) {
		vec_clear(&reading.gpus);
		for (int n = 0; n < 3; n++)
			add(&reading, n);
		for (int n = 0; n < placeless; n++) {
			lost = add(&reading, 4);
			lost->has_uuid = false;
			lost->lost = true;
			lost->pci[0] = '\0';
		}
		take(&belief, &reading);
		assert_string_equal(belief.strangers,
				    placeless == 1 ? "" : "at an unknown place: lost");
	}
	take_four(&belief);
	assert_string_equal(belief.strangers, "");
}

/* N02. proves: DP-10 DP-14 */
static void test_a_dead_source_is_not_healthy(void **state)
{
	static const char *const whys[] = {"nvidia-smi: Failed to initialize NVML: Unknown Error",
					   "Driver/library version mismatch",
					   "the driver does not answer"};
	CLEANUP(belief) struct belief belief = {0};
	char wanted[HEALTH_CAUSE_SIZE];

	(void)state;
	belief_failure(&belief, "not loaded");
	for (size_t i = 0; i < ARRAY_SIZE(whys); i++) {
		take_four(&belief);
		expect_cause(&belief, 0, "");
		belief_failure(&belief, whys[i]);
		snprintf(wanted, sizeof wanted, "unknown: %s", whys[i]);
		for (int n = 0; n < 4; n++)
			expect_cause(&belief, n, wanted);
		/* what is known to be bad says more */
		hear(&belief, 2, 79);
		expect_cause(&belief, 2, "XID 79: fell off the bus");
		reset(&belief, 2);
	}
	take_four(&belief);
	expect_cause(&belief, 3, "");
}

/* Devices are handed out by number and UUID. proves: DP-10 DP-51 */
static void test_two_that_claim_to_be_one(void **state)
{
	static const char number[] = "unknown: another GPU has the same /dev/nvidia<number>";
	CLEANUP(belief) struct belief belief = {0};
	CLEANUP(reading) struct reading same = {0}, shifted = {0}, twice = {0};

	(void)state;
	add(&same, 0);
	add(&same, 1)->minor = 0;
	add(&same, 2);
	take(&belief, &same);
	expect_cause(&belief, 0, number);
	expect_cause(&belief, 1, number);
	expect_cause(&belief, 2, "");
	/* one is gone, and those behind it move up: the number that it had is another's */
	take_four(&belief);
	add(&shifted, 0);
	add(&shifted, 2)->minor = 1;
	add(&shifted, 3)->minor = 2;
	take(&belief, &shifted);
	for (int n = 0; n < 4; n++) {
		expect_cause(&belief, n, n == 1 ? "lost: no longer on the PCI bus" : "");
		assert_int_equal(belief_find(&belief, uuid_of(n))->minor, n == 0   ? 0
									  : n == 1 ? -1
										   : n - 1);
	}
	/* elsewhere, under the UUID of one that is there */
	take_four(&belief);
	for (int n = 0; n < 4; n++)
		add(&twice, n);
	add(&twice, 5)->uuid = uuid_of(2);
	take(&belief, &twice);
	expect_cause(&belief, 2, "unknown: two GPUs say that they are it");
	expect_cause(&belief, 3, "");
	take_four(&belief);
	expect_cause(&belief, 2, "");
}

static void add_mig(struct reading_gpu *gpu, int32_t gi, const char *uuid, int32_t start)
{
	struct reading_mig *mig = vec_push(&gpu->mig);

	gpu->mig_enabled = true;
	*mig = (struct reading_mig){.gi = gi, .start = start, .size = start < 0 ? 0 : 1};
	mig->memory_bytes = READING_UNKNOWN;
	str_copy(mig->profile, sizeof mig->profile, "1g.10gb");
	str_copy(mig->uuid, sizeof mig->uuid, uuid);
}

/* Instances that can't be told apart. proves: DP-51 */
static void test_instances_without_a_name(void **state)
{
	CLEANUP(belief) struct belief belief = {0};
	CLEANUP(inventory) struct inventory inventory = {0};
	CLEANUP(reading) struct reading reading = {0};
	struct reading_gpu *gpu = add(&reading, 0);

	(void)state;
	add_mig(gpu, 1, "MIG-a", 0);
	add_mig(gpu, 2, "", 1);
	add_mig(gpu, 3, "MIG-a", 2);
	add_mig(gpu, 1, "MIG-b", 3);
	add_mig(gpu, 4, "MIG-c", 4);
	take(&belief, &reading);
	belief_inventory(&belief, 0, &inventory);
	assert_int_equal(inventory.atoms.count, 2);
	assert_string_equal(inventory.atoms.items[0].visible, "MIG-a");
	assert_string_equal(inventory.atoms.items[1].visible, "MIG-c");
}

/* It comes back elsewhere while another took its place. proves: DP-14 DP-51 DP-52 */
static void test_gpus_that_move(void **state)
{
	CLEANUP(belief) struct belief belief = {0};
	CLEANUP(reading) struct reading swapped = {0};

	(void)state;
	take_four(&belief);
	hear(&belief, 0, 79);
	str_copy(add(&swapped, 0)->pci, INVENTORY_PCI_SIZE, "0000:11:00.0");
	str_copy(add(&swapped, 1)->pci, INVENTORY_PCI_SIZE, "0000:10:00.0");
	swapped.gpus.items[0].minor = 1;
	swapped.gpus.items[1].minor = 0;
	take(&belief, &swapped);
	expect_cause(&belief, 0, "XID 79: fell off the bus");
	expect_cause(&belief, 1, "");
	reset(&belief, 0); /* where 1 is now */
	expect_cause(&belief, 0, "XID 79: fell off the bus");
	reset(&belief, 1);
	expect_cause(&belief, 0, "");
}

/* N05. proves: DP-10 */
static void test_what_can_not_be_told(void **state)
{
	CLEANUP(belief) struct belief belief = {0};
	CLEANUP(inventory) struct inventory inventory = {0};
	CLEANUP(reading) struct reading reading = {0};
	struct reading_gpu *gpu;

	(void)state;
	gpu = add(&reading, 0);
	str_copy(gpu->pci, sizeof gpu->pci, "000f:01:00.0");
	gpu->memory_bytes = READING_UNKNOWN;
	gpu->recovery = HEALTH_RECOVERY_UNKNOWN;
	add(&reading, 1)->needs_reset = true;
	str_copy(reading.gpus.items[1].error, READING_ERROR_SIZE, "GPU requires reset");
	add(&reading, 2)->minor = -1;
	add(&reading, 3)->row_remap = HEALTH_REMAP_PENDING;
	take(&belief, &reading);
	expect_cause(&belief, 0, "");
	expect_cause(&belief, 1, "requires a reset");
	expect_cause(&belief, 2, "unknown: which /dev/nvidia<number> it is");
	expect_cause(&belief, 3, "row remap pending");
	belief_inventory(&belief, 0, &inventory);
	assert_int_equal(inventory_find_gpu(&inventory, uuid_of(0))->memory_bytes, 0);
}

/* N06. Parts have their GPU's node and health; an instance that was made anew at the same place is
 * another. proves: DP-9 DP-51 DP-53 */
static void test_parts(void **state)
{
	CLEANUP(belief) struct belief belief = {0};
	CLEANUP(inventory) struct inventory inventory = {0}, again = {0}, gone = {0};
	CLEANUP(reading) struct reading first = {0}, second = {0}, third = {0};
	struct reading_gpu *lost;

	(void)state;
	add(&first, 0);
	add(&first, 1);
	add_mig(add(&first, 2), 7, "MIG-a", 0);
	add_mig(&first.gpus.items[2], 8, "MIG-b", 1);
	take(&belief, &first);
	belief_inventory(&belief, 4, &inventory);
	assert_int_equal(inventory.atoms.count, 2 * 5 + 2);
	vec_each (&inventory.atoms, const struct inventory_atom *atom)
		assert_int_equal(atom->numa, atom->atom.class == ATOM_MIG ? 1 : 0);
	assert_string_equal(inventory.atoms.items[11].visible, "MIG-b");
	assert_int_equal(inventory.atoms.items[11].range.lo, 128);
	/* the next reading can't tell places, and one instance is another */
	add_mig(add(&second, 2), 8, "MIG-b", -1);
	add_mig(&second.gpus.items[0], 7, "MIG-n", -1);
	take(&belief, &second);
	hear(&belief, 2, 48);
	belief_inventory(&belief, 4, &again);
	assert_string_equal(again.atoms.items[10].visible, "MIG-n");
	assert_int_equal(again.atoms.items[11].range.lo, 128);
	assert_string_equal(again.atoms.items[11].health.cause, "XID 48: double bit ECC error");
	/* one that is lost keeps its parts */
	lost = add(&third, 2);
	lost->lost = true;
	take(&belief, &third);
	belief_inventory(&belief, 4, &gone);
	assert_int_equal(gone.atoms.count, again.atoms.count);
}

/* What a GPU must be, by rules of one line each. */
struct model {
	bool listed, well;
	bool sick; /* by an XID */
};

static void take_model(struct belief *belief, const struct model models[4])
{
	CLEANUP(reading) struct reading reading = {0};

	for (int n = 0; n < 4; n++)
		if (models[n].listed && !models[n].well)
			add(&reading, n)->row_remap = HEALTH_REMAP_FAILED;
		else if (models[n].listed)
			add(&reading, n);
	take(belief, &reading);
}

/* One thing happens; `known` is what the source said last. */
static void happen(struct belief *belief, struct model known[4], struct model now[4],
		   bool *readable, struct seed *seed)
{
	int n = (int)seed_below(seed, 4);

	switch (seed_below(seed, 8)) {
	case 0:
		hear(belief, n, 79);
		now[n].sick = true;
		break;
	case 1:
		hear(belief, n, 31);
		break;
	case 2:
		reset(belief, n);
		now[n].sick = false;
		break;
	case 3:
		now[n].listed = !now[n].listed;
		break;
	case 4:
		now[n].well = !now[n].well;
		break;
	case 5:
		belief_failure(belief, "no answer");
		*readable = false;
		break;
	default:
		take_model(belief, now);
		memcpy(known, now, 4 * sizeof *now);
		*readable = true;
		break;
	}
	for (int i = 0; i < 4; i++)
		known[i].sick = now[i].sick;
}

/* Whatever happens in whatever order: each GPU is as well as it alone is. proves: DP-10 DP-14 */
static void test_random_stories(void **state)
{
	struct seed seed;

	(void)state;
	seed_init(&seed);
	for (int story = 0; story < 300; story++) {
		CLEANUP(belief) struct belief belief = {0};
		struct model now[4], known[4];
		bool readable = true;

		for (int n = 0; n < 4; n++)
			known[n] = now[n] = (struct model){.listed = true, .well = true};
		take_four(&belief);
		for (int step = 0; step < 40; step++) {
			happen(&belief, known, now, &readable, &seed);
			for (int n = 0; n < 4; n++)
				assert_int_equal(*cause(&belief, n) == '\0',
						 readable && known[n].listed && known[n].well &&
							 !known[n].sick);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_lost_gpu_stays),
		cmocka_unit_test(test_a_gpu_that_the_driver_calls_lost),
		cmocka_unit_test(test_a_dead_source_is_not_healthy),
		cmocka_unit_test(test_two_that_claim_to_be_one),
		cmocka_unit_test(test_instances_without_a_name),
		cmocka_unit_test(test_gpus_that_move),
		cmocka_unit_test(test_what_can_not_be_told),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_random_stories),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
