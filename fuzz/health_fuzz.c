#include "gpu/core/belief.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A record that is taken can be written, read again, and made an inventory. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(belief) struct belief belief = {0}, again = {0};
	CLEANUP(inventory) struct inventory inventory = {0};
	CLEANUP(tree) json_t *tree = NULL, *written = NULL, *twice = NULL;
	const char *boot;
	struct error error;

	if (!tree_parse(data, size, BELIEF_MAX_RECORD, "input", &tree, &error))
		return 0;
	boot = json_string_value(json_object_get(tree, "bootId"));
	str_copy(belief.boot_id, sizeof belief.boot_id, boot ? boot : "");
	str_copy(again.boot_id, sizeof again.boot_id, belief.boot_id);
	if (!belief_read_record(&belief, tree, &error))
		return 0;
	written = belief_json(&belief);
	if (!belief_read_record(&again, written, &error))
		abort();
	twice = belief_json(&again);
	if (!json_equal(written, twice))
		abort();
	belief_inventory(&again, 4, &inventory);
	return 0;
}
