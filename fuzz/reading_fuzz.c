#include "gpu/core/reading.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
	return 0;
}
