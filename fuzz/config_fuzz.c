#include "node/core/config.h"
#include "text/toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(config) struct config config = {0};
	CLEANUP(tree) json_t *tree = NULL;
	struct error error;

	if (!toml_parse((const char *)data, size, 65536, "input", &tree, &error) ||
	    !config_read(tree, NULL, &config, &error))
		return 0;
	/* every path is absolute, whatever was given */
	if (config.data[0] != '/' || config.cdi[0] != '/' || config.kubelet[0] != '/')
		abort();
	return 0;
}
