#include "node/core/staticpod.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As the kubelet's configuration and as a manifest. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[STATICPOD_MAX_PATH];

	if (staticpod_folder((const char *)data, size, path) && path[0] != '/')
		abort();
	(void)staticpod_is_of((const char *)data, size, "n1", "default", "web-n1");
	return 0;
}
