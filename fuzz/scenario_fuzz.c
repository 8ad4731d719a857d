#include "gpu/core/scenario.h"
#include "text/toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool read_scenario(const char *text, size_t length, struct scenario *scenario)
{
	CLEANUP(tree) json_t *tree = NULL;
	struct error error;

	return toml_parse(text, length, 65536, "input", &tree, &error) &&
	       scenario_read(tree, scenario, &error);
}

/* A scenario that is taken can be written, read again, and made an inventory and a
 * reading. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(scenario) struct scenario scenario = {0}, again = {0};
	CLEANUP(inventory) struct inventory inventory = {0};
	CLEANUP(reading) struct reading reading = {0};
	CLEANUP(buf) struct buf text = {0};
	struct inventory_node nodes[INVENTORY_MAX_NODES];

	if (!read_scenario((const char *)data, size, &scenario))
		return 0;
	scenario_format(&scenario, &text);
	if (text.length <= 65536 && !read_scenario(buf_text(&text), text.length, &again))
		abort();
	scenario_inventory(&scenario, 4, "fuzz", &inventory);
	scenario_reading(&scenario, &reading);
	for (size_t i = 0; i < inventory.atoms.count; i++)
		inventory_atom_nodes(&inventory, &inventory.atoms.items[i].atom, nodes);
	return 0;
}
