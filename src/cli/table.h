/*
 * table: rows for a terminal. Pure: the width is an argument.
 *
 * When the rows are wider than the terminal, devices are named shortly and ids are cut to what tells
 * them apart (with "…"), then spare columns are left out and flexible ones cut; when that isn't
 * enough, each row becomes a block of "TITLE  cell" lines. What is cut is never silently gone: "…" stands for it, and wide output or a pipe shows it whole.
 * Text from outside is shown without control characters.
 */
#pragma once

#include "base/buf.h"

#define TABLE_MAX_COLUMNS 16
#define TABLE_ID_MIN      12 /* an id is not cut shorter than this */

enum table_flags {
	TABLE_RIGHT = 1 << 0, /* numbers */
	TABLE_ID = 1 << 1,
	TABLE_FLEX = 1 << 2,   /* may be cut */
	TABLE_WIDE = 1 << 3,   /* shown by -o wide only */
	TABLE_SPARSE = 1 << 4, /* left out while all its cells are empty */
	TABLE_DEVICE =
		1 << 5, /* names of devices: shown as table_add_device does where it's narrow */
	TABLE_SPARE = 1 << 6, /* left out where it's too narrow for all */
	TABLE_ALIKE = 1 << 7, /* left out while all its cells are the same */
};

struct table_column {
	const char *title;
	unsigned flags;
};

struct table {
	const struct table_column *columns;
	size_t column_count;
	struct table_cells {
		char **items;
		size_t count, capacity;
	} cells; /* row by row */
};

/* `columns` must outlive the table. */
void table_init(struct table *table, const struct table_column *columns, size_t count);
void table_deinit(struct table *table);

static inline void table_cleanup(struct table *table)
{
	table_deinit(table);
}

/* The next cell, left to right, row after row. NULL and "" show as "-". */
void table_cell(struct table *table, const char *text);
void table_cellf(struct table *table, const char *format, ...) PRINTF(2, 3);
size_t table_row_count(const struct table *table);

/* `width` 0: no limit. Lines have no trailing space. */
void table_render(const struct table *table, size_t width, bool wide, struct buf *out);

/* Characters shown for UTF-8 text (no double-width letters are expected). */
size_t table_text_width(const char *text);
/* At most `width` characters of text; "…" as the last when it had to be cut. */
void table_add_cut(struct buf *out, const char *text, size_t width);

/* "gpu/6f1c0000…/s0" of "gpu/6f1c0000-aaaa-…/s0": short, and still that device's alone. */
void table_add_device(struct buf *out, const char *atom);

/* For text from outside, in place: '?' for each character that a terminal obeys rather than shows
 * (controls, what turns the writing's direction, what has no width) and for broken UTF-8. */
void table_sanitize(char *text);
/* The same; but lines stay lines. */
void table_sanitize_lines(char *text);
