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

#define CLI_EXIT_CHANGES 6

/* Sends a change and gives its answer, a new reference; with --dry-run says what would be sent, and
 * for a PATCH what would change, and the answer is NULL. --idempotency-key goes into `body`
 * (borrowed, may be NULL). (change.c) */
MUST_CHECK bool cli_change(struct cli *cli, const char *method, const char *path, json_t *body,
			   json_t **ret_answer, struct error *error);
/* The API itself tries a change of what is there: it knows what would be refused. (change.c) */
MUST_CHECK bool cli_try(struct cli *cli, const char *method, const char *path, const json_t *body,
			struct error *error);
bool cli_is_dry(const struct cli *cli);
/* A dry run found something to change: exit status 6 with --exit-code. */
void cli_would_change(struct cli *cli);

/* The tenant to act for: --tenant, the context's, or the key's own. */
MUST_CHECK bool cli_tenant(struct cli *cli, const char **ret_id, struct error *error);
/* The pool: --pool, the context's, or the only one there is. */
MUST_CHECK bool cli_pool(struct cli *cli, const char **ret_id, struct error *error);

/* A file's content, or all of stdin for "-"; at most what the API takes. */
MUST_CHECK bool cli_read(const char *path, struct buf *ret_content, struct error *error);
/* The JSON object in it: a new reference. */
MUST_CHECK bool cli_read_json(const char *path, json_t **ret_object, struct error *error);

/* --out FILE: before anything is made (a check of the row), CONFLICT when it exists, without
 * --force; then written whole. */
MUST_CHECK bool cli_check_out(struct cli *cli, struct error *error);
MUST_CHECK bool cli_write_out(struct cli *cli, const struct buf *text, struct error *error);
struct durable_place;
/* The same of what is its owner's alone, before that is made: a run that is killed leaves it there or nowhere. */
MUST_CHECK bool cli_place_secret(struct cli *cli, struct durable_place *ret_place,
				 struct error *error);
