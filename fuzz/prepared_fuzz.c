#include "node/core/prepared.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is read is written and read again to the same bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct prepared value = {0}, again = {0};
	CLEANUP(buf) struct buf text = {0}, twice = {0};
	struct error error;

	if (!prepared_parse((const char *)data, size, &value, &error))
		return 0;
	prepared_format(&value, &text);
	if (!prepared_parse(buf_text(&text), text.length, &again, &error))
		abort();
	prepared_format(&again, &twice);
	if (text.length != twice.length || memcmp(text.data, twice.data, text.length) != 0)
		abort();
	prepared_deinit(&value);
	prepared_deinit(&again);
	return 0;
}
