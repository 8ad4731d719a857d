/* A stream of events, in pieces whose size the first byte says. */
#include "http/sse.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool on_event(void *arg, const char *data, size_t length, struct error *error)
{
	size_t *total = arg;

	(void)error;
	if (strlen(data) > length)
		abort();
	*total += length;
	return true;
}

/* However it is cut, it says the same. */
static size_t read_in_pieces(const char *text, size_t length, size_t piece, char id[SSE_ID_SIZE])
{
	CLEANUP(sse) struct sse sse = {0};
	struct error error;
	size_t total = 0;

	for (size_t at = 0; at < length; at += piece) {
		size_t rest = length - at;
		if (!sse_read(&sse, text + at, rest < piece ? rest : piece, on_event, &total,
			      &error))
			break;
	}
	memcpy(id, sse.id, SSE_ID_SIZE);
	return total;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char whole[SSE_ID_SIZE], cut[SSE_ID_SIZE];

	if (size < 2)
		return 0;
	if (read_in_pieces((const char *)data + 1, size - 1, size, whole) !=
		    read_in_pieces((const char *)data + 1, size - 1, data[0] % 7u + 1, cut) ||
	    strcmp(whole, cut) != 0)
		abort();
	return 0;
}
