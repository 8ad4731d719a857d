#include "node/core/release.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is read is written and read again to the same bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct releases value = {0}, again = {0};
	CLEANUP(buf) struct buf text = {0}, twice = {0};
	struct error error;

	if (!releases_parse((const char *)data, size, &value, &error))
		return 0;
	releases_format(&value, &text);
	if (!releases_parse(buf_text(&text), text.length, &again, &error))
		abort();
	releases_format(&again, &twice);
	if (text.length != twice.length || memcmp(text.data, twice.data, text.length) != 0)
		abort();
	releases_deinit(&value);
	releases_deinit(&again);
	return 0;
}
