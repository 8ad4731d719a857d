/* The kubelet's pod-resources answer. */
#include "node/holders.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct holders_listing listing = {0};
	struct error error;

	if (!holders_read(data, size, &listing, &error))
		return 0;
	(void)holders_listing_holds(&listing, "alc_01kb00000000000000000000aa");
	holders_listing_deinit(&listing);
	return 0;
}
