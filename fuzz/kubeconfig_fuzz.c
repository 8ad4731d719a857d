#include "kube/core/config.h"

static void check(const struct kube_source *source)
{
	/* One or the other, and a path that needs no folder to be found. */
	if (source->path && (source->text || source->path[0] != '/'))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(kube_config) struct kube_config *config = kube_config_create();
	CLEANUP(kube_access) struct kube_access access = {0};
	struct error error;

	if (!kube_config_add(config, data, size, "/etc/kubernetes/kubelet.conf", &error) ||
	    !kube_config_resolve(config, NULL, &access, &error))
		return 0;
	if (strncasecmp(access.server, "https://", 8) != 0)
		abort();
	/* libcurl quotes one that it can't read. */
	if (access.proxy && (!strstr(access.proxy, "://") || strpbrk(access.proxy, "#? \t\r\n\\")))
		abort();
	check(&access.ca);
	check(&access.certificate);
	check(&access.key);
	check(&access.token);
	return 0;
}
