/*
 * output: how answers reach stdout, and questions a person.
 */
#pragma once

#include "cli/api.h"
#include "cli/cli.h"
#include "cli/table.h"

/* Columns of the terminal on stdout; 0 when it is none, so nothing is cut. */
size_t output_width(void);

bool output_colour(FILE *file); /* a terminal, and NO_COLOR isn't set */

void output_text(const struct buf *text);
/* A manual page's source, which is for man: on a terminal with a word about how it is read there. */
void output_man(const struct buf *page, const char *program);
/* One line, or several, for people: a newline is added, and text from outside can't move the
 * cursor. */
void output_line(const char *format, ...) PRINTF(1, 2);
void output_table(const struct cli *cli, const struct table *table);

/* json, yaml and name output of one object or of a list's items; false for tables: the caller's. */
bool output_raw(const struct cli *cli, const json_t *object);
bool output_raw_list(const struct cli *cli, json_t *items);

/* Indented JSON and a newline; "null" for NULL. Pure. */
void output_json(struct buf *out, const json_t *value);

/* A remark for the person, on stderr: "note: ...", in lines that fit the terminal. */
void output_note(const char *format, ...) PRINTF(1, 2);
/* The same with "warning: ": what was asked for is done, and won't work as it is. */
void output_warning(const char *format, ...) PRINTF(1, 2);

/* At most three lines on stderr: what failed, why, what to do; -v adds code and request id. */
void output_error(const struct cli *cli, const struct error *error, const char *request_id);

/* Asks on the terminal. Without one: INVALID_INPUT that names --yes. */
MUST_CHECK bool output_confirm(const char *question, struct error *error);
