#include "cli/commands.h"
#include "cli/output.h"

static bool version(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *answer = json_object();

	(void)error;
	tree_set(answer, "version", tree_string(BC_VERSION));
	if (!output_raw(cli, answer))
		puts("better-compute " BC_VERSION);
	return true;
}

const struct command ABOUT_COMMANDS[] = {
	{
		.noun = "version",
		.summary = "print the version",
		.flags = COMMAND_OUTPUT,
		.example = "better-compute version\n",
		.run = version,
	},
	{0},
};
