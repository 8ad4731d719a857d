#include "text/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(tree) json_t *tree = NULL, *again = NULL;
	CLEANUP(buf) struct buf dump = {0};
	struct error error;

	if (!yaml_parse((const char *)data, size, 65536, "input", &tree, &error))
		return 0;
	/* Whatever YAML says, the tree is one that JSON can hold. */
	tree_dump_canonical(&dump, tree);
	if (!tree_parse(dump.data, dump.length, SIZE_MAX, "dump", &again, &error))
		abort();
	return 0;
}
