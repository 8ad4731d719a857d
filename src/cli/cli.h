/*
 * cli: what one run of a command has at hand.
 *
 * Lifetimes  the run of the program. Strings returned by the helpers below live as long.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/context.h"

#include <stdio.h>

enum cli_output {
	CLI_TABLE,
	CLI_WIDE,
	CLI_JSON,
	CLI_YAML,
	CLI_NAME,
};

struct cli {
	const struct command_set *set;
	const struct command *command;
	const struct options *options;
	enum cli_output output;
	bool verbose; /* -v: error code and request id */
	struct wall now;
	struct context context; /* filled for COMMAND_API */
	struct api *api;        /* opened for COMMAND_API */
	struct arena arena;
	int exit_status; /* of a run that returns true; 0 unless the command says otherwise */
};
