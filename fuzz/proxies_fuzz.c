/* Networks of proxies and lists of hops, a line each: the first the network, then the list. */
#include "base/buf.h"
#include "serve/proxies.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(buf) struct buf text = {0};
	struct proxies proxies = {0};
	struct address peer, caller;
	struct error error;
	char *hops;

	buf_add(&text, data, size);
	buf_add(&text, "", 1);
	hops = strchr((char *)text.data, '\n');
	if (!hops)
		return 0;
	*hops++ = '\0';
	if (!proxies_add(&proxies, (const char *)text.data, &error) ||
	    !address_parse("10.0.0.1:1", &peer, &error))
		return 0;
	caller = proxies_caller(&proxies, &peer, hops);
	/* Nobody's word counts but a trusted proxy's. */
	assert(proxies_trust(&proxies, &peer) || memcmp(&caller, &peer, sizeof caller) == 0);
	return 0;
}
