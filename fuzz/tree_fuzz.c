#include "text/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(tree) json_t *tree = NULL, *again = NULL;
	CLEANUP(buf) struct buf first = {0}, second = {0};
	struct error error;

	if (!tree_parse(data, size, 65536, "input", &tree, &error))
		return 0;
	/* What was read can be written, read again, and written the same. */
	tree_dump_canonical(&first, tree);
	if (!tree_parse(first.data, first.length, SIZE_MAX, "dump", &again, &error))
		abort();
	tree_dump_canonical(&second, again);
	assert(str_equal(buf_text(&first), buf_text(&second)));
	return 0;
}
