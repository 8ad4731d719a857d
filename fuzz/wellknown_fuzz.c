#include "pki/wellknown.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Nothing pins these keys: none may be taken. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(wellknown) struct wellknown wellknown = {0};
	CLEANUP(buf) struct buf body = {0};
	struct pin_list none = {0};
	struct error error;

	buf_add(&body, data, size);
	if (wellknown_read(&body, &none, &wellknown, &error) || wellknown.encryption_key)
		abort();
	return 0;
}
