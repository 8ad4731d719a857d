/*
 * help: help texts, the man page and the docs' reference, made from the command tables.
 */
#pragma once

#include "cli/command.h"

extern const char HELP_ABOUT[];   /* one sentence */
extern const char HELP_CONTEXT[]; /* which control plane is spoken to */
extern const char HELP_EXIT[];    /* what the exit status says */

/* Options that many commands take, told once. */
struct help_group {
	unsigned flag;   /* of enum command_flags; 0: every command's */
	const char *who; /* "Every command takes:" */
};
extern const struct help_group HELP_GROUPS[]; /* ends with one whose `who` is NULL */
const struct option *help_group_options(const struct help_group *group);

void help_print_daily(const struct command_set *set); /* what people use, for no arguments */
/* Without a `verb` typed: what the noun alone means, and its other verbs. */
void help_print_command(const struct command_set *set, const struct command *command, bool verb);

void help_print_man(const struct command_set *set); /* better-compute(1) */

void help_print_noun(const struct command_set *set, const char *noun); /* its verbs */

void help_daily(struct buf *out, const struct command_set *set);
void help_all(struct buf *out, const struct command_set *set);
void help_command(struct buf *out, const struct command *command);

/* "better-compute pools create NAME [OPTIONS]" */
void help_usage(struct buf *out, const struct command *command);
/* The example's lines, each behind `indent`. */
void help_example(struct buf *out, const struct command *command, const char *indent);

/* One paragraph, broken between words. */
void help_paragraph(struct buf *out, const char *text, size_t width);

/* better-compute(1) in man(7) form: all commands with their options and examples. (man.c) */
void help_man(struct buf *out, const struct command_set *set);
/* The CLI reference of the docs, in Markdown. (reference.c) */
void help_markdown(struct buf *out, const struct command_set *set);
/* The tables for programs: {"commands": [{name, summary, options, examples, ...}]}. */
void help_json(struct buf *out, const struct command_set *set);
