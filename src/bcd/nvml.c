#include "bcd/verbs.h"
#include "gpu/child.h"
#include "nvml/child.h"

#include <unistd.h>

/* What bcd node starts to speak to NVML: see nvml/child.h. */
static const struct option options_table[] = {
	{.name = "root",
	 .kind = OPTION_TEXT,
	 .value = "DIR",
	 .help = "where the driver is looked for"},
	{.name = "library",
	 .kind = OPTION_TEXT,
	 .value = "FILE",
	 .help = "libnvidia-ml.so.1 itself"},
	{0},
};

static int run(const struct options *options)
{
	const char *root = options_text(options, "root");

	return nvml_child_run(STDIN_FILENO, options_text(options, "library"), root ? root : "/");
}

const struct verb NVML_VERB = {
	.name = CHILD_VERB,
	.summary = "speak to NVML for bcd node",
	.operands = "",
	.options = options_table,
	.more = "",
	.run = run,
};
