#include "gpu/core/belief.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is believed after it was read, with an XID for each GPU, has no device twice, and its record can be read. */
static void believe(const struct reading *reading)
{
	CLEANUP(belief) struct belief belief = {0}, again = {0};
	CLEANUP(inventory) struct inventory inventory = {0};
	CLEANUP(tree) json_t *record = NULL;
	const int32_t numa[INVENTORY_MAX_GPUS] = {0};
	struct error error;

	for (int i = 0; i < 2; i++) {
		belief_reading(&belief, reading, numa);
		vec_each (&reading->gpus, const struct reading_gpu *gpu) {
			struct klog_event event = {.kind = KLOG_XID, .xid = 79};

			str_copy(event.pci, sizeof event.pci, gpu->pci);
			belief_event(&belief, &event);
		}
	}
	belief_inventory(&belief, 4, &inventory);
	for (size_t i = 1; i < inventory.atoms.count; i++)
		if (atom_compare(&inventory.atoms.items[i - 1].atom,
				 &inventory.atoms.items[i].atom) >= 0)
			abort();
	record = belief_json(&belief);
	if (!belief_read_record(&again, record, &error))
		abort();
}

/* A reading that is taken is written, and read again as the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(reading) struct reading reading = {0}, again = {0};
	CLEANUP(buf) struct buf first = {0}, second = {0};
	CLEANUP(tree) json_t *tree = NULL, *written = NULL, *rewritten = NULL;
	struct error error;

	if (!tree_parse(data, size, READING_MAX_BYTES, "input", &tree, &error) ||
	    !reading_read(tree, &reading, &error))
		return 0;
	written = reading_json(&reading);
	if (!reading_read(written, &again, &error))
		abort();
	rewritten = reading_json(&again);
	tree_dump_canonical(&first, written);
	tree_dump_canonical(&second, rewritten);
	if (!str_equal(buf_text(&first), buf_text(&second)))
		abort();
	believe(&reading);
	return 0;
}
