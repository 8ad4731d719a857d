/*
 * help: help texts and the man page, made from the command tables.
 */
#pragma once

#include "cli/command.h"

void help_print_daily(const struct command_set *set); /* what people use, for no arguments */
void help_print_command(const struct command *command);

void help_daily(struct buf *out, const struct command_set *set);
void help_all(struct buf *out, const struct command_set *set);
void help_command(struct buf *out, const struct command *command);
/* better-compute(1) in man(7) form: all commands with their options and examples. */
void help_man(struct buf *out, const struct command_set *set);
/* The CLI reference of the docs, in Markdown. */
void help_markdown(struct buf *out, const struct command_set *set);
