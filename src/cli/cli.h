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

#include <jansson.h>
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

/* Sends a change and gives its answer, a new reference; with --dry-run says what would be sent, and
 * the answer is NULL. --idempotency-key goes into `body` (borrowed, may be NULL). */
MUST_CHECK bool cli_change(struct cli *cli, const char *method, const char *path, json_t *body,
			   json_t **ret_answer, struct error *error);

/* The tenant to act for: --tenant, the context's, or the key's own. */
MUST_CHECK bool cli_tenant(struct cli *cli, const char **ret_id, struct error *error);
/* The pool: --pool, the context's, or the only one there is. */
MUST_CHECK bool cli_pool(struct cli *cli, const char **ret_id, struct error *error);

/* Writes a secret to a new file (0600); CONFLICT when it exists, unless `force`. */
MUST_CHECK bool cli_write_secret(const char *path, const char *secret, bool force,
				 struct error *error);

bool cli_exists(const char *path);

/* The JSON object in a file, or on stdin for "-". A new reference. */
MUST_CHECK bool cli_read_json(const char *path, json_t **ret_object, struct error *error);
