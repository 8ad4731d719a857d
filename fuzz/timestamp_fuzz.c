#include "control/core/timestamp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(free) char *text = mem_alloc(size + 1);
	char formatted[TIMESTAMP_SIZE];
	struct wall time, again;
	struct error error;

	if (size > 0)
		memcpy(text, data, size);
	if (!timestamp_parse(text, "time", &time, &error))
		return 0;
	timestamp_format(formatted, time);
	if (!timestamp_parse(formatted, "time", &again, &error))
		abort();
	assert(again.ms == time.ms);
	return 0;
}
