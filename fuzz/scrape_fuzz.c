#include "node/core/scrape.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever comes has an answer once it is whole, the same for all that comes after; and the metrics are
 * given to a GET alone. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(buf) struct buf metrics = {0}, out = {0};
	enum scrape scrape = SCRAPE_MORE, whole;

	if (size > SCRAPE_MAX_REQUEST)
		return 0; /* more is never kept */
	whole = scrape_parse(data, size);
	buf_add_text(&metrics, "secret 1\n");
	for (size_t i = 0; i <= size && scrape == SCRAPE_MORE; i++)
		scrape = scrape_parse(data, i);
	if (scrape != whole)
		abort();
	if (scrape == SCRAPE_MORE)
		return 0;
	scrape_answer(scrape, &metrics, &out);
	if (!str_starts(buf_text(&out), "HTTP/1.1 ") ||
	    (scrape == SCRAPE_GET) != str_ends(buf_text(&out), "\r\n\r\nsecret 1\n"))
		abort();
	if (scrape == SCRAPE_GET && (size < 4 || memcmp(data, "GET ", 4) != 0))
		abort();
	return 0;
}
