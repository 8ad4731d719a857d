#include "kube/core/claim.h"
#include "text/tree.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever it is, no claim has two UIDs. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(tree) json_t *tree = NULL;
	struct error error;

	if (!tree_parse(data, size, 65536, "claim", &tree, &error))
		return 0;
	if (kube_claim_is(tree, "c-1") && kube_claim_is(tree, "c-2"))
		abort();
	(void)kube_claim_has(tree, "gpu.bcd.dev", "gpu-0");
	return 0;
}
