#include "kube/core/pod.h"
#include "text/tree.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is taken can be deleted: it has a name, a namespace and a UID. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(tree) json_t *tree = NULL;
	struct kube_pod pod;
	struct error error;

	if (!tree_parse(data, size, 65536, "pod", &tree, &error) ||
	    !kube_pod_read(tree, &pod, &error))
		return 0;
	(void)kube_pod_has_claim(tree, "gpus");
	if (!*pod.uid || !*pod.namespace || !*pod.name || pod.grace_s < 0)
		abort();
	return 0;
}
