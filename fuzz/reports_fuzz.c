#include "node/core/reports.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is read is written and read again to the same bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reports value = {0}, again = {0};
	CLEANUP(buf) struct buf text = {0}, twice = {0};
	struct error error;

	if (!reports_parse((const char *)data, size, &value, &error))
		return 0;
	reports_format(&value, &text);
	if (!reports_parse(buf_text(&text), text.length, &again, &error))
		abort();
	reports_format(&again, &twice);
	if (text.length != twice.length || memcmp(text.data, twice.data, text.length) != 0)
		abort();
	reports_deinit(&value);
	reports_deinit(&again);
	return 0;
}
