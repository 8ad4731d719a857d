#include "node/core/holds.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is read is written and read again to the same bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hold value = {0}, again = {0};
	CLEANUP(buf) struct buf text = {0}, twice = {0};
	struct error error;

	if (!holds_parse((const char *)data, size, "bcd.dev-alc_01kb00000000000000000000aa.json",
			 &value, &error))
		return 0;
	holds_format(&value, &text);
	if (!holds_parse(buf_text(&text), text.length,
			 "bcd.dev-alc_01kb00000000000000000000aa.json", &again, &error))
		abort();
	holds_format(&again, &twice);
	if (text.length != twice.length || memcmp(text.data, twice.data, text.length) != 0)
		abort();
	hold_deinit(&value);
	hold_deinit(&again);
	return 0;
}
