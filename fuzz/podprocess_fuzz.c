#include "node/core/podprocess.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is told of a pod are hex digits and dashes; of who is no pod's nothing is told. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char allowed[] = "0123456789abcdefABCDEF-";
	const char *text = (const char *)data;
	struct podprocess process = {0};
	struct atom_uuid gpu;
	int32_t minor = 0;
	bool is = podprocess_read(text, size, &process);

	if ((!is && *process.pod) || strspn(process.pod, allowed) != strlen(process.pod) ||
	    strspn(process.container, allowed) != strlen(process.container))
		abort();
	if (podprocess_minor(text, size, &gpu, &minor) && minor < 0)
		abort();
	return 0;
}
