/*
 * verbs: what better-compute does besides being a client: one file a verb, one table a file.
 *
 * Each file defines its rows with its options, help and example, as src/cli/commands.c does; main.c
 * puts the tables together. A verb reads `cli->options` (text/options.h), prints to stdout, and
 * returns false with *error set when it failed; the exit status follows from the error.
 */
#pragma once

#include "cli/cli.h"
#include "cli/command.h"

extern const struct command UP_COMMANDS[];         /* up.c */
extern const struct command SERVE_COMMANDS[];      /* serve.c: serve */
extern const struct command PKI_COMMANDS[];        /* pki.c: pki init, pki show */
extern const struct command SECRET_KEY_COMMANDS[]; /* secret_key.c */
extern const struct command BACKUP_COMMANDS[];     /* backup.c: backup, restore */
