#include "manifest/core/nodeconfig.h"
#include "manifest/manifest.h"
#include "text/toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is taken is rendered, and bcd can read its part of it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(settings) struct settings settings = {0};
	CLEANUP(tree) json_t *options = NULL, *objects = NULL, *config = NULL;
	CLEANUP(chart) struct chart chart = {0};
	CLEANUP(buf) struct buf text = {0}, yaml = {0};
	struct error error;

	if (!tree_parse(data, size, 65536, "input", &options, &error) ||
	    !manifest_read(options, &settings, &error) ||
	    !manifest_objects(&settings, &objects, &error))
		return 0;
	nodeconfig_write(&settings, &text);
	if (!toml_parse(buf_text(&text), text.length, text.length, "config", &config, &error))
		abort();
	render_yaml(objects, &yaml);
	chart_make(&settings, objects, "1", &chart);
	return 0;
}
