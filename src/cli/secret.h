/*
 * secret: values that must not be seen: read from a file or stdin, handed over into a file.
 *
 * A secret is never in argv, in an error, or in what --dry-run prints.
 */
#pragma once

#include "cli/cli.h"

/* Rows of the flags of commands that hand a secret over. */
#define SECRET_OUT_OPTIONS(what)                                                                   \
	{"out", 0, OPTION_TEXT, "FILE", "write the " what " there (0600), not to the terminal",    \
	 0,     0, NULL},                                                                          \
	{                                                                                          \
		"force", 0, OPTION_FLAG, NULL, "replace FILE if it exists", 0, 0, NULL             \
	}

/* Makes one by the row's fields, and hands over what stands in the answer's `field`. */
MUST_CHECK bool secret_create(struct cli *cli, const char *field, bool *ret_made,
			      struct error *error);

/* POSTs what makes one, and prints the answer. With --out its `field` goes to that file alone, which is there, and found
 * fit, before anything is asked; without, to stdout with a word about it. *ret_made: there is a new one; a dry run, and
 * the repetition of a create, make none. */
MUST_CHECK bool secret_ask(struct cli *cli, const char *path, json_t *body, const char *field,
			   bool *ret_made, struct error *error);

/* A secret from a file, or from stdin for "-"; one newline at its end is left out. */
MUST_CHECK bool secret_read(const char *path, const char **ret_value, struct arena *arena,
			    struct error *error);
