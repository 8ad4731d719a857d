/*
 * options: a command's options as a table, argv read by it, and help text made from it.
 *
 * Forms     --name VALUE, --name=VALUE, -n VALUE, -nVALUE, --flag, "--" ends options. Options and
 *           operands mix. No abbreviations: what works today must not change when options are
 * added. Errors    INVALID_INPUT that names the option; an unknown one comes with the nearest name.
 * Lifetimes values and operands point into argv; tables outlive the result.
 * Pure.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#define OPTIONS_MAX      64 /* in all tables of one command */
#define OPTIONS_MAX_LIST 64 /* values of one OPTION_LIST */

enum option_kind {
	OPTION_FLAG,     /* no value */
	OPTION_TEXT,     /* any non-empty text, or one of `choices` */
	OPTION_NUMBER,   /* a whole number from min to max */
	OPTION_DURATION, /* such as 1h30m, from min to max milliseconds */
	OPTION_PATIENCE, /* the same, of how long to wait: a number without a unit is seconds */
	OPTION_LIST,     /* OPTION_TEXT that may be repeated */
};

/* One row; a table ends with a row whose name is NULL. */
struct option {
	const char *name; /* without dashes, such as "gpus" */
	char letter;      /* 'o' for -o as well; 0 for none */
	enum option_kind kind;
	const char *value; /* what help calls the value, such as "N"; NULL for flags */
	const char *help;  /* one line, lower case, no full stop */
	int64_t min, max;
	const char *const *choices; /* NULL-ended; NULL: any */
};

struct option_value {
	const struct option *option;
	const char *text; /* the last value given; NULL when not given */
	int64_t number; /* OPTION_NUMBER, OPTION_DURATION and OPTION_PATIENCE (ms); OPTION_FLAG: 1 */
	const char *list[OPTIONS_MAX_LIST];
	size_t list_count;
};

struct options {
	struct option_value *values; /* one a row of all tables */
	size_t count;
	const char **operands;
	size_t operand_count;
};

/* Reads argv[0] to argv[argc - 1], all of them arguments (no program name). */
MUST_CHECK bool options_parse(const struct option *const *tables, size_t table_count, int argc,
			      char *const *argv, struct options *ret_options, struct error *error);
void options_deinit(struct options *options);

static inline void options_cleanup(struct options *options)
{
	options_deinit(options);
}

/* By name; a name that is in no table is a programming error. */
bool options_given(const struct options *options, const char *name);
const char *options_text(const struct options *options, const char *name); /* NULL: not given */
int64_t options_number(const struct options *options, const char *name, int64_t otherwise);
const struct option_value *options_value(const struct options *options, const char *name);

/* INVALID_INPUT when `name` is given without `other`; when both are given. */
MUST_CHECK bool options_need(const struct options *options, const char *name, const char *other,
			     struct error *error);
MUST_CHECK bool options_exclude(const struct options *options, const char *name, const char *other,
				struct error *error);

/* One line a row, "  -o, --output FORMAT   help", help texts in one column. */
void options_help(struct buf *out, const struct option *table);
